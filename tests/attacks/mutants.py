"""Small faults of the source, each made in a copy of the project: the tests named beside it must fail.

Call: ``PYTHONPATH=tests python tests/attacks/mutants.py [WORD ...]``; with words, only the mutants whose name or file has one
of them. Ends with status 1 if a mutant survives, or if the text that it changes is no longer there once. Not part of CI: see
``make mutants``.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from attacks.faults import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PARTS = ("src", "tests", "paper", "examples", "docs", "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")


def make_copy(folder: Path) -> Path:
    """What the tests need of the project, in a folder of its own."""
    copy = folder / "project"
    copy.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(source, copy / part)
    return copy


def attempt(mutant: Mutant, copy: Path) -> str:
    """Make the fault, run the tests, and take it back; what became of the mutant."""
    file = copy / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return f"GONE: the text stands {text.count(mutant.old)} times in {mutant.file}"
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        # The reproduction has tests of its own, with their own settings.
        home = copy / "paper" if mutant.tests.startswith("paper/") else copy
        selection = mutant.tests.replace("paper/tests/", "tests/").split()
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *selection]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy / "paper" / "src")]),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=1800)
    except subprocess.TimeoutExpired:
        return "killed (it never ended)"
    finally:
        file.write_text(text, encoding="utf-8")
    # 1: tests failed; anything else would be no verdict.
    return {0: "SURVIVED", 1: "killed"}.get(done.returncode, f"NO VERDICT: pytest ended with {done.returncode}")


def main(words: list[str]) -> int:
    """Try the mutants, and print a line for each."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in f"{mutant.name} {mutant.file}" for word in words)]
    verdicts = []
    with tempfile.TemporaryDirectory() as made:
        copy = make_copy(Path(made))
        for mutant in chosen:
            verdicts.append(attempt(mutant, copy))
            print(f"{verdicts[-1]}: {mutant.name} ({mutant.file})", flush=True)
    killed = sum(verdict.startswith("killed") for verdict in verdicts)
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
