"""Types as users meet them: right code passes strict mypy, and mistakes do not."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def check(*files):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.slow
def test_right_code_is_accepted_and_every_marked_mistake_is_one(tmp_path):
    """One call for all, because most of its time goes into reading torch."""
    unmarked = tmp_path / "unmarked.py"
    unmarked.write_text((HERE / "refused.py").read_text().replace("  # type: ignore", "  # "))
    found = check(HERE / "accepted.py", HERE / "refused.py", unmarked)
    lines = [line for line in found.stdout.splitlines() if ": error:" in line]
    assert {Path(line.partition(":")[0]).name for line in lines} == {"unmarked.py"}, found.stdout + found.stderr
    assert len(lines) == (HERE / "refused.py").read_text().count("# type: ignore[")
