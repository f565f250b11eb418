import json
import subprocess
import sys

import pytest

import dualogic as dl
from dualogic.cli import main as dualogic
from dualogic.errors import MissingExtraError, NonFiniteError, OptionError
from dualogic_paper.everyday.__main__ import main
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.setting import METHODS, Setting
from everyday.fabricate import TOY

HIDDEN = ("tyro", "rich", "sklearn", "scipy", "lark", "z3", "pysdd", "lightning", "matplotlib", "torchmetrics")
BARE = f"""
import sys
sys.modules.update(dict.fromkeys({HIDDEN!r}))
from dualogic_paper.everyday.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setitem(PROBLEMS, "toy", TOY)


@pytest.fixture
def words(tmp_path):
    return ["--problems", "toy", "--methods", "none", "dual", "semantic", "--seeds", "2-4", "--out", str(tmp_path / "out")]


def test_from_end_to_end(words, tmp_path, capsys):
    assert main([*words, "--commit", "abc"]) == 0
    printed = capsys.readouterr().out
    assert "9 runs to make, 0 there already" in printed
    assert "| no rule | 3.00 | 0.0 |" in printed
    assert "| `semantic` | refuses such rules |" in printed
    runs = json.loads((tmp_path / "out" / "toy.json").read_text())["runs"]
    assert [(run["method"], run["seed"]) for run in runs] == [
        (method, seed) for method in ("dual", "none", "semantic") for seed in (2, 3, 4)
    ]
    assert {"problem", "method", "weight", "seed", "metrics", "commit", "date", "versions", "options"} <= set(runs[0])
    assert runs[0]["options"] == dl.methods.Dual().describe()
    assert runs[0]["commit"] == "abc"
    assert runs[0]["failure"] is None
    assert runs[-1]["failure"].startswith("FormulaTypeError")


def test_runs_are_not_repeated_unless_asked(words, capsys):
    main(words)
    table = capsys.readouterr().out.partition("| problem")[2]
    assert main([*words, "--jobs", "1"]) == 0
    second = capsys.readouterr().out
    assert "0 runs to make, 9 there already" in second
    assert second.endswith(table)
    assert main([*words, "--table"]) == 0
    assert "runs to make" not in capsys.readouterr().out
    main([*words, "--again"])
    assert "9 runs to make" in capsys.readouterr().out


def test_the_command_of_the_package_does_the_same(words, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- everyday -->\n\n<!-- /everyday -->\n")
    assert dualogic(["everyday", *words, "--pages", str(page)]) == 0
    assert "9 runs to make" in capsys.readouterr().out
    assert "| `toy` | error, lower is better | 3.00 (0.0) |" in page.read_text()
    assert main([*words, "--table"]) == 0
    assert "| `toy` |" in capsys.readouterr().out


def test_weights_and_options_are_runs_of_their_own(words, tmp_path, capsys):
    words[words.index("none") : words.index("--seeds")] = ["none", "dual:step=0.5"]
    assert main([*words, "--weights", "1", "0.2"]) == 0
    printed = capsys.readouterr().out
    assert "9 runs to make" in printed
    assert "| `dual:step=0.5, weight 0.2` |" in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--problems", "toys"], "a problem must be one of loans, "),
        (["--methods", "magic"], "a method must be one of none, dual, "),
        (["--methods", "none:step=1"], "without rules there are no options"),
        (["--seeds", "a-b"], "--seeds takes numbers such as 0-7 or 20 21; got 'a-b'"),
        (["--jobs", "0"], "--jobs must be 1 or more"),
    ],
)
def test_wrong_words_are_one_line(change, message, words, capsys):
    assert main([*words, *change]) == 1
    error = capsys.readouterr().err
    assert error.startswith("everyday: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "status", "kept"),
    [(NonFiniteError("too much"), 0, 3), (MissingExtraError("get it"), 0, 0), (ZeroDivisionError("why"), 1, 0)],
)
def test_what_breaks_down_is_a_result_and_what_is_missing_is_not(error, status, kept, words, tmp_path, monkeypatch, capsys):
    def break_down(make_loss, seed):
        raise error

    monkeypatch.setitem(PROBLEMS, "toy", TOY.__class__(**{**vars(TOY), "run": break_down}))
    assert main([*words, "--methods", "dual"]) == status
    assert str(error) in capsys.readouterr().out
    file = tmp_path / "out" / "toy.json"
    assert (len(json.loads(file.read_text())["runs"]) if file.exists() else 0) == kept


def test_torch_and_numpy_are_enough(tmp_path):
    words = ["--problems", "tumours", "--methods", "none", "dual", "semantic", "--seeds", "0", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", BARE, *words], capture_output=True, text=True, check=True)
    assert "[3/3] tumours, semantic, seed 0: skipped: the methods 'semantic' and 'problog' count models with pysdd" in done.stdout
    assert len(json.loads((tmp_path / "tumours.json").read_text())["runs"]) == 2


@pytest.mark.slow
def test_several_workers_give_the_same_figures(tmp_path, capsys):
    words = ["--problems", "tumours", "--methods", "none", "hard", "--seeds", "0"]
    for jobs in ("1", "2"):
        assert main([*words, "--jobs", jobs, "--out", str(tmp_path / jobs)]) == 0
    capsys.readouterr()
    one, two = (json.loads((tmp_path / jobs / "tumours.json").read_text())["runs"] for jobs in ("1", "2"))
    assert [run["metrics"] for run in one] == [run["metrics"] for run in two]


def test_every_method_has_a_setting():
    assert [Setting(name).label for name in METHODS] == ["no rule", *dl.methods.METHODS]
    assert Setting("dual:rule=exponentiated,step=2.0,share=0.02").make_method() == dl.methods.Dual(
        rule="exponentiated", step=2.0, share=0.02
    )
    with pytest.raises(OptionError):
        Setting("dual:step=-1")
    with pytest.raises(OptionError, match="stepp"):
        Setting("dual:stepp=1")
