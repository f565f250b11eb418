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


@pytest.mark.slow
def test_convergence(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "convergence", "--smoke"]) == 0
    assert "| exact | all samples |" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
