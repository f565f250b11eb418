"""docs/lint.md is true: its example gives the output shown."""

import re
from pathlib import Path

from dualogic.cli import main
from dualogic.lint.check import GROUND_LIMIT, TIMEOUT
from dualogic.lint.finding import KINDS
from dualogic.lint.terms import LARGEST_POWER

PAGE = Path(__file__).parents[2] / "docs" / "lint.md"
TEXT = PAGE.read_text(encoding="utf-8")


def block(kind):
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    return found


def test_the_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command, *expected = block("console").splitlines()
    words = command.split()
    assert words[:3] == ["$", "dualogic", "lint"]
    Path(words[3]).write_text(block("rules"))
    assert main(words[2:]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(expected)
    for line, shown in zip(printed, expected):
        # Which example the solver finds is its own affair, but not what it is about.
        example = line.startswith("    example: ")
        assert line == shown or (example and re.findall(r"\w+ =", line) == re.findall(r"\w+ =", shown))


def test_the_kinds_and_limits():
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", TEXT, flags=re.MULTILINE)
    assert rows == [(kind, described.severity) for kind, described in KINDS.items()]
    assert f"{GROUND_LIMIT:,}" in TEXT
    assert f"{TIMEOUT:g} seconds by default" in TEXT
    assert f"whole powers up to {LARGEST_POWER}" in TEXT
