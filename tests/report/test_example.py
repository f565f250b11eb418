"""The recorded example, and the page that the command makes of it."""

import sys

import pytest

from dualogic.cli import main
from dualogic.report import read_runs
from integrations.examples import FOLDER


@pytest.mark.slow
def test_the_example_is_recorded(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    script = FOLDER.parent / "recorded.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--epochs", "2"])
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec", dont_inherit=True), {"__name__": "__main__"})
    assert [record.path.name for record in read_runs([tmp_path / "runs"])] == ["none", "dual", "hard"]
    assert main(["report", "runs"]) == 0
    assert "written: report.html" in capsys.readouterr().out
    assert (tmp_path / "report.html").stat().st_size < 300_000
