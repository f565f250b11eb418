"""Kill a run at random moments, start it again, and print how often it ended as one that was not killed.

Call: ``python kill_and_resume.py FOLDER KILLS SEED``. A program of its own, because it forks.
"""

import dataclasses
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from dualogic.experiments.runner import Config, Machine, RunFolder, train
from dualogic.experiments.tasks import DigitsMixed


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


def main(folder: Path, kills: int, seed: int) -> None:
    torch.set_num_threads(1)
    task = dataclasses.replace(DigitsMixed(angle=20.0).make_smoke(folder), epochs=5)
    config, machine = Config(task), Machine(accelerator="cpu", data=folder, checkpoint_seconds=0.0)
    started = time.monotonic()
    os.waitpid(fork(config, machine, folder / "whole"), 0)
    duration = time.monotonic() - started
    expected, draw, same, killed = result(folder / "whole"), random.Random(seed), 0, 0
    for trial in range(kills):
        path = folder / f"trial-{trial}"
        started = time.monotonic()
        child = fork(config, machine, path)
        time.sleep(draw.uniform(0.0, duration))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            # The machine is less busy than it was; a whole run takes no longer than this one.
            duration = min(duration, time.monotonic() - started)
        if RunFolder(path).result is None:
            os.waitpid(fork(config, machine, path), 0)
        same += result(path) == expected
    print(json.dumps({"same": same, "killed": killed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
