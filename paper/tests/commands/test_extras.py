"""Each command works with what the distribution requires, and nothing else."""

import pytest

from blocked_packages import RUN, run
from tables.fabricate import make_result, write_runs


@pytest.mark.parametrize(
    "commands",
    [
        ["data list", "run paths --smoke --accelerator cpu"],
        ["table digits --runs runs", "report runs"],
        ["everyday --problems fares --methods none --seeds 0 --out out --commit abc1234"],
    ],
    ids=["run", "table and report", "everyday"],
)
def test_a_command_needs_no_more_than_the_distribution(commands, tmp_path):
    write_runs(tmp_path / "runs", [make_result("digits", "dual", 0)])
    done = run(RUN, "", *commands, cwd=tmp_path, package="dualogic-paper")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
