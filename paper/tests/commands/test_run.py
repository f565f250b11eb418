"""``dualogic run``: every task runs in seconds on a CPU."""

import pytest

from dualogic.cli import main
from dualogic_paper.tasks import TASKS


@pytest.mark.slow
@pytest.mark.parametrize("task", list(TASKS))
def test_smoke(task, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", task, "--smoke", "--accelerator", "cpu", "--method", "dual"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{task} dual 0: ") and "diverged" not in line for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_hyper_parameters_are_options(capsys):
    with pytest.raises(SystemExit):
        main(["run", "digits", "--help"])
    shown = capsys.readouterr().out
    for option in ("--epochs", "--batch", "--learning-rate", "--weight-decay", "--method", "--seeds", "--smoke", "--angle"):
        assert option in shown


def test_bad_words_are_explained(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "digits", "--method", "dule"]) == 1
    assert "--method must be one of none" in capsys.readouterr().err
    assert main(["run", "digits", "--seeds", "x"]) == 1
    assert "--seeds takes numbers" in capsys.readouterr().err
    assert main(["run", "digits", "--data", "nowhere"]) == 1
    assert "dualogic data get mnist" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_computed_nothing_leaves_what_was_there(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "runs" / "digits" / "notes.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    assert main(["run", "digits", "--data", "nowhere", "--method", "dual", "none", "--seeds", "0..2"]) == 1
    assert [path.name for path in kept.parent.iterdir()] == ["notes.txt"]


@pytest.mark.slow
def test_a_smoke_run_that_is_kept_can_be_reported(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "paths", "--smoke", "--keep", "--runs", "kept", "--accelerator", "cpu"]) == 0
    assert capsys.readouterr().out.strip().endswith("kept/paths/dual/0")
    assert main(["report", "kept"]) == 0
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_convergence(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "convergence", "--smoke"]) == 0
    assert "| exact | all samples |" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
