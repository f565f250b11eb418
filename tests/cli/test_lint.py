import json
import sys
from pathlib import Path

import pytest

from dualogic.cli import main
from dualogic.errors import how_to_install

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "rules").glob("*.rules"))
FAULTY = """# a comment
var v
bool a

rule low: v <= 0
rule high:
    v >= 1
rule idle: a or not a
"""


@pytest.fixture
def faulty(tmp_path):
    path = tmp_path / "faulty.rules"
    path.write_text(FAULTY)
    return path


def test_the_examples_are_sound(capsys):
    assert len(EXAMPLES) >= 4
    assert main(["lint", *map(str, EXAMPLES)]) == 0
    printed = capsys.readouterr().out
    assert "warning" not in printed
    assert "error" not in printed


def test_text_names_file_line_and_example(faulty, capsys):
    assert main(["lint", str(faulty)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{faulty}:5: error: rules 'low' and 'high' cannot hold together [conflict]"
    assert lines[1].startswith("    example: v = ")
    assert lines[2] == f"{faulty}:8: warning: rule 'idle' always holds, so it teaches nothing [tautology]"
    assert lines[-1].startswith("1 file: 1 error, 1 warning")


def test_a_warning_alone_is_status_1(tmp_path, capsys):
    path = tmp_path / "idle.rules"
    path.write_text("bool a\nrule idle: a or not a\n")
    assert main(["lint", str(path)]) == 1
    assert "1 warning" in capsys.readouterr().out


def test_json(faulty, capsys):
    assert main(["lint", "--format", "json", str(faulty)]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert report["file"] == str(faulty)
    assert report["problem"] is None
    conflict, tautology = (finding for finding in report["findings"] if finding["severity"] != "info")
    assert (conflict["kind"], conflict["severity"], conflict["rules"], conflict["line"]) == (
        "conflict",
        "error",
        ["low", "high"],
        5,
    )
    assert conflict["witness"]["v"] <= 0
    assert (tautology["kind"], tautology["line"]) == ("tautology", 8)


def test_sarif(faulty, capsys):
    assert main(["lint", "--format", "sarif", str(faulty)]) == 1
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "dualogic"
    assert run["invocations"][0]["executionSuccessful"] is True
    identifiers = [rule["id"] for rule in driver["rules"]]
    for result in run["results"]:
        assert identifiers[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith("faulty.rules")
        assert place["region"]["startLine"] >= 5
    conflict = run["results"][0]
    assert (conflict["ruleId"], conflict["level"]) == ("conflict", "error")
    assert conflict["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 6


def test_a_file_with_a_mistake_is_shown_and_the_others_are_checked(faulty, tmp_path, capsys):
    broken = tmp_path / "broken.rules"
    broken.write_text("var v\nrule r: v <= \n")
    assert main(["lint", str(broken), str(faulty), str(tmp_path / "missing.rules")]) == 2
    captured = capsys.readouterr()
    assert f"dualogic: {broken}, line 2, column 13: the text ends here" in captured.err
    assert "rule r: v <=" in captured.err
    assert "missing.rules" in captured.err
    assert "[conflict]" in captured.out
    assert "2 not read" in captured.out
    assert main(["lint", "--format", "sarif", str(broken)]) == 2
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "line 2, column 13" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_without_files_there_is_nothing_to_do(capsys):
    assert main(["lint"]) == 2
    assert "at least one rule file" in capsys.readouterr().err


@pytest.mark.parametrize(("hidden", "extra"), [("z3", "lint"), ("lark", "rules")])
def test_a_missing_extra_gives_the_pip_line(hidden, extra, faulty, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, hidden, None)
    assert main(["lint", str(faulty)]) == 1
    assert capsys.readouterr().err.strip() == f"dualogic: {hidden} is not installed; {how_to_install(extra)}"


def test_a_timeout_that_makes_no_sense(faulty, capsys):
    assert main(["lint", "--timeout", "0", str(faulty)]) == 1
    assert "timeout must be a number of seconds above 0" in capsys.readouterr().err
