"""Time the walk of docs/index.md: from a clone to a report on the program at the top of docs/report.md.

Call:
    python docs/walk.py [--online] [--repeat 3]

Everything happens in a temporary folder. Without ``--online`` nothing is downloaded: the packages that dualogic needs are taken
from the environment of this interpreter (which needs hatchling), so that the seconds of ``pip install`` are dualogic's alone.
Prints the least seconds of each command, and those of a processor.
"""

from __future__ import annotations

import argparse
import re
import resource
import site
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?:python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read_walk() -> tuple[str, list[str]]:
    """The program, and the commands of the walk without their comments."""
    program = BLOCK.findall((ROOT / "docs" / "report.md").read_text(encoding="utf-8"))[0]
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").partition("## From a clone to a report")[2]
    return program, [line.partition("#")[0].strip() for line in BLOCK.findall(text)[0].splitlines()]


def borrow(packages: Path) -> None:
    """Link all packages of this interpreter but dualogic's own into another environment."""
    for there in (path for folder in site.getsitepackages() for path in Path(folder).iterdir()):
        if not re.search("dualogic|distutils-precedence|^pip", there.name) and not (packages / there.name).exists():
            (packages / there.name).symlink_to(there)


def walk(program: str, commands: list[str], online: bool) -> dict[str, tuple[float, float]]:
    """Do it once; seconds on the clock and of a processor, by command."""
    seconds = {}
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        for command in commands:
            if command.startswith("git clone"):
                typed = f"git clone -q '{ROOT}' dualogic"
            else:
                typed = command
                place = Path(made) / "dualogic"
            if command.startswith("pip install") and not online:
                borrow(next(place.glob(".venv/lib/python*/site-packages")))
                typed = f"{command} --no-deps --no-build-isolation"
            if "mine.py" in command:
                (place / "mine.py").write_text(program)
            active = ". .venv/bin/activate && " if (place / ".venv").exists() else ""
            started, used = time.perf_counter(), used_by_children()
            subprocess.run(["bash", "-c", f"{active}{typed}"], cwd=place, check=True, capture_output=True)
            seconds[command] = time.perf_counter() - started, used_by_children() - used
        assert (place / "report.html").exists()
    return seconds


def used_by_children() -> float:
    """Seconds of processors, in all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run() -> None:
    """Walk, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--online", action="store_true", help="let pip download what is needed")
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    walks = [walk(*read_walk(), given.online) for _ in range(given.repeat)]
    total = [0.0, 0.0]
    for command in walks[0]:
        clock, processor = (min(one[command][kind] for one in walks) for kind in (0, 1))
        total = [total[0] + clock, total[1] + processor]
        print(f"{clock:6.1f} s, {processor:5.1f} s of a processor  {command}")
    print(f"{total[0]:6.1f} s, {total[1]:5.1f} s of a processor  in all, with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    run()
