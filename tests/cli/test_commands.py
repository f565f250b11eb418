import json
import subprocess
import sys

import pytest

import dualogic
from dualogic.cli import main
from dualogic.cli.dispatch import find_commands
from dualogic.methods import METHODS


def test_the_demo_from_end_to_end(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert main(["demo", "--quick", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    for method in ("no", "hard", "uniform", "dual"):
        assert sum(method in row[:2] for row in rows if row and row[-1] == "s") == 2, method
    assert "mixed, dual: " in printed
    assert "sixes, no rule: " in printed
    assert (out / "figure.png").stat().st_size > 10_000
    numbers = json.loads((out / "results.json").read_text())
    assert [(run["pool"], run["method"]) for run in numbers["runs"]] == [
        (pool, method) for pool in ("sixes", "mixed") for method in ("none", "hard", "uniform", "dual")
    ]
    dual = numbers["runs"][-1]
    assert len(dual["history"]) == 3
    assert 0 < dual["final"]["weight_others"] < 1


def test_options_choose_the_runs(tmp_path, capsys):
    words = ["demo", "--method", "hard", "--pool", "sixes", "--epochs", "1", "--seed", "4", "--out", str(tmp_path)]
    assert main(words) == 0
    capsys.readouterr()
    numbers = json.loads((tmp_path / "results.json").read_text())
    assert [(run["pool"], run["method"], len(run["history"])) for run in numbers["runs"]] == [
        ("sixes", "none", 2),
        ("sixes", "hard", 2),
    ]
    assert (numbers["epochs"], numbers["seed"]) == (1, 4)


def test_an_unknown_method_is_one_line_and_status_1(tmp_path, capsys):
    assert main(["demo", "--quick", "--method", "magic", "--out", str(tmp_path / "out")]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("dualogic: --method must be all, none or one of ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("hidden", "line"),
    [
        ("tyro", "dualogic: tyro is not installed; type, in a clone of dualogic: pip install -e '.[cli]'"),
        ("rich", "dualogic: rich is not installed; type, in a clone of dualogic: pip install -e '.[cli]'"),
        ("sklearn", "dualogic: sklearn is not installed; type, in a clone of dualogic: pip install -e '.[demo]'"),
        ("matplotlib", "dualogic: matplotlib is not installed; type, in a clone of dualogic: pip install -e '.[demo]'"),
    ],
)
def test_a_missing_extra_gives_the_pip_line_before_any_work(hidden, line, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, hidden, None)
    assert main(["demo", "--quick", "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.strip() == line
    assert not (tmp_path / "out").exists()


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dualogic {dualogic.__version__}\n"


@pytest.mark.parametrize("words", [["demo", "--pool", "nines"], ["no-such-command"], ["demo", "--epochs", "many"]])
def test_words_that_cannot_be_parsed_leave_with_status_2(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    capsys.readouterr()


def test_every_command_explains_itself():
    for name, command in find_commands().items():
        assert command.__doc__, name
        assert callable(command.run), name


def test_a_failing_process_ends_with_status_1_and_no_traceback(tmp_path):
    code = "import sys; from dualogic.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "demo", "--method", "magic", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "magic" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_registered_method_trains(tmp_path, capsys):
    assert main(["demo", "--method", "all", "--pool", "sixes", "--epochs", "1", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    numbers = json.loads((tmp_path / "results.json").read_text())
    trained = {run["method"]: run for run in numbers["runs"]}
    assert {*trained, *numbers["skipped"]} == {"none", *METHODS}
    assert all(run["failure"] is None for run in trained.values())
