import json
import sys

import pytest

from dualogic.cli import main
from tables.fabricate import make_result, write_runs


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder with runs, and nothing else in the current one."""
    monkeypatch.chdir(tmp_path)
    for task in ("digits", "digits-mixed"):
        write_runs(tmp_path / "runs", [make_result(task, method, seed) for method in ("none", "dual") for seed in range(3)])
    return tmp_path / "runs"


def test_collect_then_read_the_default_folder(runs, capsys):
    assert main(["table", "digits", "--runs", "runs", "--collect", "results"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("written: results/digits/dual.json\nwritten: results/digits/none.json\n")
    assert main(["table", "digits"]) == 0
    assert first.endswith(capsys.readouterr().out)
    assert main(["table", "digits", "--runs", "runs"]) == 0
    assert first.endswith(capsys.readouterr().out)
    assert main(["table", "digits", "--from", "runs"]) == 0
    assert first.endswith(capsys.readouterr().out)
    assert "(98.8)" in first
    assert "duals read as probabilities" in first


@pytest.mark.parametrize(("format", "sign"), [("text", "─"), ("markdown", "|---"), ("latex", r"\toprule")])
def test_every_format_goes_to_a_file(format, sign, runs, capsys):
    assert main(["table", "digits", "--runs", "runs", "--format", format]) == 0
    printed = capsys.readouterr().out
    assert main(["table", "digits", "--runs", "runs", "--format", format, "--out", "new/table"]) == 0
    assert capsys.readouterr().out == "written: new/table\n"
    written = (runs.parent / "new" / "table").read_text(encoding="utf-8")
    assert written.split() == printed.split()
    assert sign in written
    assert written.count("Ours (dual)") >= 2


def test_figures(runs, capsys):
    assert main(["table", "digits", "--runs", "runs", "--format", "figure"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"written: figures/digits-{name}.png" for name in ("comparison", "curves", "rule")]
    assert all((runs.parent / line.removeprefix("written: ")).stat().st_size > 10_000 for line in lines)


def test_all_makes_a_page_and_brings_it_up_to_date(runs, capsys):
    words = ["table", "all", "--format", "markdown"]
    assert main([*words, "--runs", "runs", "--collect", "results", "--out", "results.md"]) == 0
    capsys.readouterr()
    page = runs.parent / "results.md"
    text = page.read_text(encoding="utf-8")
    assert main(words) == 0
    assert capsys.readouterr().out == text
    page.write_text(text + "\nA word by hand.\n", encoding="utf-8")
    assert main([*words, "--out", "results.md"]) == 0
    assert page.read_text(encoding="utf-8") == text + "\nA word by hand.\n"
    assert main(["table", "all", "--format", "latex"]) == 0
    assert capsys.readouterr().out.count(r"\begin{table}") == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["magic"], "the task must be all or one of digits, digits-mixed"),
        (["digits"], "no results of 'digits' in results/digits"),
        (["all"], "no results in results (looked for TASK/LABEL.json"),
        (["all", "--format", "markdown"], "no results in results (looked for TASK/LABEL.json"),
        (["digits", "--collect", "results"], "--collect copies runs and needs to know from where; add --runs"),
        (["digits", "--from", "runs", "--format", "figure", "--out", "a.docx"], "--out of a figure must end in one of"),
    ],
)
def test_mistakes_are_one_line_and_status_1(words, message, runs, capsys):
    assert main(["table", *words]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"dualogic: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_half_a_file_is_named(runs, capsys):
    file = runs / "digits" / "dual" / "1" / "result.json"
    file.write_text(json.dumps(make_result())[:100])
    assert main(["table", "digits", "--runs", "runs", "--collect", "results"]) == 1
    assert "runs/digits/dual/1/result.json is not whole JSON" in capsys.readouterr().err
    assert not (runs.parent / "results").exists()


def test_an_unknown_format_leaves_with_status_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["table", "digits", "--format", "pdf"])
    assert caught.value.code == 2
    capsys.readouterr()


def test_without_matplotlib_only_figures_are_missing(runs, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["table", "digits", "--runs", "runs"]) == 0
    capsys.readouterr()
    assert main(["table", "digits", "--runs", "runs", "--format", "figure"]) == 1
    assert (
        capsys.readouterr().err == "dualogic: matplotlib is not installed; type, in a clone of dualogic: pip install -e paper\n"
    )
