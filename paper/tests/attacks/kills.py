"""Kill a run at random moments, start it again, and print how often it ended as one that was not killed.

Call (tests on the path): ``python kills.py FOLDER KILLS [SEED]``. A program of its own, because it forks. Moments
are drawn in the processor time of the run, which does not depend on what else the machine does.
"""

import dataclasses
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch

from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.tasks import DigitsMixed


def fork(config: Config, machine: Machine, path: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            train(config, machine, RunFolder(path))
            os._exit(0)
        except BaseException as error:
            print(f"{path.name}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
    return child


def result(path: Path) -> dict:
    """All that a run leaves, but for the time it took."""
    found = {key: value for key, value in RunFolder(path).result.items() if key != "seconds"}
    tensors = {name: torch.load(path / name, weights_only=True) for name in ("model.pt", "duals.pt")}
    flat = {f"{file}/{key}": value for file, state in tensors.items() for key, value in state.items()}
    bits = {key: value.numpy().tobytes().hex() if torch.is_tensor(value) else repr(value) for key, value in flat.items()}
    return {**found, "metrics": (path / "metrics.jsonl").read_text(), "bits": bits}


def spent(child: int) -> float:
    """Seconds of processor time that a living child has used."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_after(child: int, seconds: float) -> bool:
    """Kill a child when it has used so much processor time; whether it still lived."""
    while True:
        ended, _ = os.waitpid(child, os.WNOHANG)
        if ended:
            return False
        if spent(child) >= seconds:
            os.kill(child, signal.SIGKILL)
            return os.WIFSIGNALED(os.waitpid(child, 0)[1])
        time.sleep(0.001)


def main(folder: Path, kills: int, seed: int) -> dict:
    torch.set_num_threads(1)
    task = dataclasses.replace(DigitsMixed(angle=20.0).make_smoke(folder), epochs=5)
    config, machine = Config(task), Machine(accelerator="cpu", data=folder, checkpoint_seconds=0.0)
    _, status, usage = os.wait4(fork(config, machine, folder / "whole"), 0)
    assert status == 0
    whole, expected = usage.ru_utime + usage.ru_stime, result(folder / "whole")
    draw, counts = random.Random(seed), {"same": 0, "killed": 0, "clean": 0}
    for trial in range(kills):
        path = folder / f"trial-{trial}"
        for _ in range(draw.choice([1, 1, 2])):  # some are killed twice
            child = fork(config, machine, path)
            counts["killed"] += kill_after(child, draw.uniform(0.0, 0.95 * whole))
        if RunFolder(path).result is None:
            os.waitpid(fork(config, machine, path), 0)
        counts["same"] += result(path) == expected
        counts["clean"] += not list(path.glob(".*.part"))
        shutil.rmtree(path)
    return counts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)))
