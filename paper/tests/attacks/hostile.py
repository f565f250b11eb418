"""Hostile inputs to every command: each is answered by one message, in bounded time and memory.

Call (tests on the path): ``python hostile.py FOLDER INPUTS [SEED]``. A program of its own, because it forks: every
input is given to a process that has all imports behind it.
"""

import contextlib
import dataclasses
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import traceback
from pathlib import Path

import torch

from attacks import rule_files
from attacks.damage import KINDS, KINDS_OF_JSON, damage
from dualogic.cli import main as command_line
from dualogic_paper.data import make_sample
from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.runner.folder import CHECKPOINT, CONFIG, DIAGNOSIS, METRICS, RESULT
from dualogic_paper.tasks import Digits

SECONDS = 5
MEMORY = 1 << 30
MOST_LINES = 8
"""Of an answer: an error in a rule file shows the line, a mark, and what was expected; commands name every file apart."""
WORDS = """
--jobs 0 | --jobs -1 | --devices 0 | --devices -5 | --weight nan | --weight -inf | --held-out 0 | --held-out 1 | --held-out -1
--held-out nan | --angle nan | --angle 1e999 | --seeds 0..99999999999 | --seeds 5..1 | --seeds , | --seeds ² | --seeds -1
--epochs 0 | --epochs -1 | --batch 0 | --measure-every 0 | --learning-rate 0 | --learning-rate nan | --weight-decay -1
--rule-from 2 | --rule-from nan | --method magic | --options step | --options step=nan | --options =1 | --options nothing=1
--data /dev/null | --data nowhere | --runs /dev/null/runs
""".strip().replace("\n", " | ")
OPTIONS = [words.split() for words in WORDS.split(" | ")]
OPTIONS += [["--seeds", "9" * 9999], ["--options", "step=" + "(" * 5000]]


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str
    seconds: float
    memory: int

    def fault(self):
        """What is wrong with the answer; ``None`` if nothing is."""
        if self.status not in (0, 1, 2):
            return f"ended with status {self.status}"
        if "Traceback" in self.err:
            return "a traceback"
        lines = [line for line in self.err.splitlines() if line.strip()]
        boxed = any(line.startswith("╭") for line in lines)  # of words that cannot be parsed
        if lines and not boxed and not (lines[0].startswith("dualogic: ") and len(lines) <= MOST_LINES):
            return "more than a message"
        if self.status and not lines and "warning" not in self.out and "error" not in self.out:
            return "a failure without a word"
        if self.seconds > SECONDS:
            return f"{self.seconds:.1f} s of processor time"
        return f"{self.memory >> 20} MB of memory" if self.memory > MEMORY else None


def ask(words, folder):
    """Give words to the command line in a process of its own."""
    out, err = folder / "answer.out", folder / "answer.err"
    child = os.fork()
    if child == 0:
        status = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (4 * SECONDS, 4 * SECONDS))
            signal.alarm(60 * SECONDS)  # of one that waits for ever
            os.chdir(folder)
            for path, number in ((out, 1), (err, 2)):
                os.dup2(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
            sys.stdout, sys.stderr = (
                io.TextIOWrapper(os.fdopen(number, "wb", 0), "utf-8", write_through=True) for number in (1, 2)
            )
            try:
                status = command_line(words)
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else 71
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status, usage = os.wait4(child, 0)
    texts = [path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in (out, err)]
    code = os.waitstatus_to_exitcode(status)
    return Answer(code, *texts, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def make_runs(folder):
    """A folder of runs: one that has ended, with everything in it, and one that was stopped."""
    task = dataclasses.replace(Digits().make_smoke(folder / "data"), epochs=2, batch=64)
    machine = Machine(accelerator="cpu", data=folder / "data", checkpoint_seconds=0.0)
    runs = folder / "whole"

    class Stop(Exception):
        pass

    def stop(epoch, measures):
        raise Stop

    for seed in range(2):
        train(Config(task, "dual", seed=seed), machine, RunFolder(runs / "digits" / "dual" / str(seed)))
    with contextlib.suppress(Stop):
        train(Config(task, "dual", seed=2), machine, RunFolder(runs / "digits" / "dual" / "2"), stop)
    make_sample("usps", folder / "caches", train=40, test=20)
    return runs


def ask_about_rules(content, folder):
    file = folder / "hostile.rules"
    file.write_bytes(content)
    return ask(["lint", "--timeout", "0.2", str(file)], folder)


def ask_about_runs(draw, folder, whole):
    """Damage a run folder and let a command read it."""
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    shutil.copytree(whole, runs)
    name = draw.choice([CONFIG, RESULT, METRICS, DIAGNOSIS, CHECKPOINT])
    kind = draw.choice(KINDS if name == CHECKPOINT else KINDS_OF_JSON)
    place = runs / "digits" / "dual" / ("2" if name == CHECKPOINT else "1")
    damage(place / name, kind, draw.random())
    options = json.loads((whole / "digits" / "dual" / "0" / CONFIG).read_text())["task"]
    again = [
        "--epochs",
        str(options["epochs"]),
        "--batch",
        str(options["batch"]),
        "--data",
        str(folder / "data"),
        "--accelerator",
        "cpu",
    ]
    words = {
        "table": ["table", "digits", "--runs", str(runs)],
        "report": ["report", str(runs), "--out", str(folder / "report.html")],
        "run": [
            "run",
            "digits",
            *again,
            "--accelerator",
            "cpu",
            "--runs",
            str(runs),
            "--seeds",
            "2" if name == CHECKPOINT else "0,1",
        ],
    }[
        draw.choice(
            ["run"] if name == CHECKPOINT else ["table", "report", "run"] if name in (CONFIG, RESULT) else ["table", "report"]
        )
    ]
    return ask(words, folder), f"{kind} in {name}, {words[0]}"


def ask_about_data(draw, folder):
    caches = folder / "damaged"
    shutil.rmtree(caches, ignore_errors=True)
    shutil.copytree(folder / "caches", caches)
    name = draw.choice(["usps.npz", "usps.json"])
    kind = draw.choice(KINDS if name == "usps.npz" else KINDS_OF_JSON)
    damage(caches / name, kind, draw.random())
    if name == "usps.npz" and draw.random() < 0.5:
        (caches / "usps.json").unlink()  # its content is read then
    words = draw.choice([["data", "check", "usps"], ["data", "list"]])
    return ask([*words, "--folder", str(caches)], folder), f"{kind} in {name}, {' '.join(words)}"


def fixed(folder):
    """By name, the rule files and options that are always asked about."""
    files = {
        f"rule file: {name}": lambda content=content: ask_about_rules(content, folder)
        for name, content in rule_files.fixed().items()
    }
    options = {f"run {' '.join(words)[:60]}": lambda words=words: ask(["run", "digits", *words], folder) for words in OPTIONS}
    return {**files, **options}


def inputs(count, seed, folder):
    """Names and answers of hostile inputs: the fixed rule files and options first, then random ones."""
    whole = make_runs(folder)
    first = fixed(folder)
    for name in list(first)[:count]:
        yield name, first[name]()
    for place in range(count - len(first)):
        draw = random.Random(f"{seed} {place}")
        kind = draw.choice(["rules", "rules", "runs", "runs", "data"])
        if kind == "rules":
            content = rule_files.mutated(draw.random())
            yield f"mutated rule file {content[:2000]!r}", ask_about_rules(content, folder)
        else:
            answer, name = ask_about_runs(draw, folder, whole) if kind == "runs" else ask_about_data(draw, folder)
            yield name, answer


def main(folder, count, seed=0):
    """Ask, and count the faults by what they are."""
    torch.set_num_threads(1)
    faults, slowest, largest = [], 0.0, 0
    with contextlib.suppress(ImportError):
        import lark
        import z3

        assert lark, z3
    for name, answer in inputs(count, seed, folder):
        slowest, largest = max(slowest, answer.seconds), max(largest, answer.memory)
        fault = answer.fault()
        if fault is not None:
            faults.append(f"{fault}: {name}")
            print(f"{fault}: {name}\n{answer.err[-1500:]}", file=sys.stderr)
    return {"inputs": count, "faults": len(faults), "slowest_s": round(slowest, 2), "largest_mb": largest >> 20}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)))
