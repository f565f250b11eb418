"""What the page says, before any browser: verdicts on runs that were really trained, and folders that lack something."""

import json
import shutil

import pytest

from dualogic.cli import main
from dualogic.errors import DataError, OptionError
from dualogic.report import make_model, read_runs
from dualogic.report.page import to_safe_json
from dualogic.report.reading import find_baseline
from tables.fabricate import make_result, write_runs

NEVER_NINE = "never predicting 9 on rotated images of class 6"


def model_of(*folders):
    return make_model(read_runs(folders))


@pytest.mark.slow
class TestTrainedRuns:
    def test_a_shortcut_is_named_and_a_learned_rule_is_not(self, runs):
        model = model_of(runs)
        none, dl2, dual = model["runs"]
        assert [run["name"] for run in model["runs"]] == ["none, seed 0", "dl2, seed 0", "dual, seed 0"]
        assert [run["tone"] for run in model["runs"]] == ["no rule", "shortcut", "learned"]
        assert "The rule is satisfied by " in dl2["sentence"]
        assert NEVER_NINE in dl2["sentence"]
        assert "never" not in dual["sentence"]
        assert dual["sentence"].startswith("The rule is satisfied as meant: by predicting 6 on upright images of class 6")
        assert none["sentence"].startswith("No rule was taught: violated")
        assert model["verdict"].startswith("1 of 3 runs took a shortcut: in dl2, seed 0, the rule is satisfied by ")
        assert model["group"] == "6"

    def test_the_baseline_is_found_beside_the_run(self, runs):
        alone = model_of(runs / "dl2" / "0")
        assert NEVER_NINE in alone["verdict"]
        assert "without the rule" in alone["verdict"]
        assert alone["runs"][0]["against"] == "the run without a rule, digits/none/0"
        assert alone["runs"][0]["missing"] == []

    @pytest.mark.parametrize(("method", "shortcut"), [("dl2", True), ("dual", False)])
    def test_without_a_baseline_the_truth_about_rotated_digits_tells(self, runs, tmp_path, method, shortcut):
        copy = shutil.copytree(runs / method / "0", tmp_path / method / "0")
        model = model_of(copy)
        assert (NEVER_NINE in model["verdict"]) == shortcut
        assert (model["tone"] == "shortcut") == shortcut
        assert "a run without the rule on the same samples" in model["runs"][0]["missing"][0]

    def test_a_baseline_on_other_samples_is_not_taken(self, runs, tmp_path):
        copy = shutil.copytree(runs, tmp_path / "digits")
        file = copy / "none" / "0" / "diagnosis.json"
        changed = json.loads(file.read_text())
        changed["validation"]["samples"] = "others"
        file.write_text(json.dumps(changed))
        records = read_runs([copy])
        assert all(find_baseline(record, records) is None for record in records)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda kept: kept["validation"].pop("words"), "is not what a run writes"),
            (lambda kept: kept.pop("history"), "is not what a run writes"),
            (lambda kept: kept["pool"].update(report={}), r"not what ShortcutReport\.to_dict\(\) gives"),
        ],
    )
    def test_a_diagnosis_that_lacks_something_is_named(self, runs, tmp_path, change, message):
        copy = shutil.copytree(runs / "dual" / "0", tmp_path / "dual" / "0")
        kept = json.loads((copy / "diagnosis.json").read_text())
        change(kept)
        (copy / "diagnosis.json").write_text(json.dumps(kept))
        with pytest.raises(DataError, match=rf"diagnosis\.json.*{message}"):
            read_runs([copy])

    def test_curves_by_class_and_at_the_end(self, runs):
        dual = model_of(runs)["runs"][2]
        assert [step["epoch"] for step in dual["steps"]] == list(range(4, 41, 4))
        first, last = (dual["steps"][position]["pool"]["rule"]["6"]["parts"]["rule"] for position in (0, -1))
        assert sum(last["weights"]) == pytest.approx(1, abs=1e-3)
        assert last["weights"][1] > first["weights"][1]
        # The same number by another way: the task's own measure of all 6s of the pool.
        recorded = json.loads((runs / "dual" / "0" / "metrics.jsonl").read_text().splitlines()[-1])
        assert last["weights"][1] == pytest.approx(recorded["pool/q_weight_sixes"], abs=1e-3)
        assert last["holds"][1] == pytest.approx(recorded["pool/q_holds_sixes"] / 100, abs=1e-3)
        shares = dual["final"]["validation"]["rule"]["6"]["parts"]["rule"]
        assert sum(shares["alone"]) + shares["together"] + shares["none"] == pytest.approx(1, abs=1e-3)
        curves = [run["curves"].keys() for run in model_of(runs)["runs"]]
        assert curves[:2] == [{"task_loss"}, {"task_loss", "rule_loss"}]
        assert {"task_loss", "rule_loss"} <= curves[2] <= {"task_loss", "rule_loss", "delta/rule"}

    def test_failures_break_the_rule_and_have_pictures(self, runs):
        none, dl2, _ = model_of(runs)["runs"]
        failures = none["failures"]["rule"]
        assert failures
        assert [sample["cost"] for sample in failures] == sorted((sample["cost"] for sample in failures), reverse=True)
        assert all(sample["picture"].startswith("iVBORw0KGgo") for sample in failures)
        # A sample breaks the rule where 9 leads on the rotated image and 6 does not on the upright one.
        assert all(", rotated as 9" in sample["caption"] and "read as 6" not in sample["caption"] for sample in failures)
        assert len(dl2["failures"]["rule"]) < len(failures)

    def test_the_command(self, runs, tmp_path, capsys):
        out = tmp_path / "new" / "page.html"
        assert main(["report", str(runs / "dl2" / "0"), str(runs / "dual" / "0"), "--out", str(out)]) == 0
        printed = capsys.readouterr().out
        assert NEVER_NINE in printed
        assert printed.endswith(f"written: {out}\n")
        text = out.read_text(encoding="utf-8")
        assert text.startswith("<!doctype html>")
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert len(text) < 400_000


@pytest.fixture
def folders(tmp_path):
    """Run folders as older versions left them: no diagnosis."""
    files = write_runs(tmp_path, [make_result("digits", method, seed) for method in ("none", "dual") for seed in range(2)])
    return tmp_path, files


def test_a_run_without_a_diagnosis_says_so(folders):
    root, _ = folders
    model = model_of(root)
    assert [run["name"] for run in model["runs"]] == [
        f"{method}, seed {seed}" for method in ("none", "dual") for seed in range(2)
    ]
    assert model["verdict"].startswith("4 of 4 runs have no verdict")
    for run in model["runs"]:
        assert any(entry.startswith("diagnosis.json: ") for entry in run["missing"])
        assert run["failures"] == {}
        assert run["steps"] == []
    assert model["rules"] == []


def test_a_run_that_has_not_ended(folders):
    _, files = folders
    folder = files[0].parent
    files[0].unlink()
    run = model_of(folder)["runs"][0]
    assert run["tone"] == "no verdict"
    assert [entry.partition(":")[0] for entry in run["missing"]] == ["result.json", "metrics.jsonl"]
    (folder / "metrics.jsonl").write_text('{"epoch": 1.0, "task_loss": NaN}\n')
    assert model_of(folder)["runs"][0]["curves"] == {"task_loss": [[1.0, None]]}


def test_mistakes_are_one_line(folders, tmp_path, capsys):
    root, files = folders
    with pytest.raises(OptionError, match="is no run folder and has none inside"):
        read_runs([tmp_path / "nothing"])
    write_runs(tmp_path / "other", [make_result("paths", "dual", 0)])
    with pytest.raises(OptionError, match="a report is about runs of one task; got digits, paths"):
        read_runs([root / "digits", tmp_path / "other"])
    files[0].write_text(files[0].read_text()[:50])
    with pytest.raises(DataError, match=r"result\.json is not whole JSON"):
        read_runs([root / "digits"])
    (files[1].parent / "config.json").write_text("{}")
    with pytest.raises(DataError, match=r"config\.json lacks task, method"):
        read_runs([files[1].parent])
    assert main(["report", str(tmp_path / "nothing"), "--out", str(tmp_path / "page.html")]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("dualogic: ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_a_folder_named_twice_is_read_once(folders):
    root, files = folders
    assert len(read_runs([root, files[0].parent])) == 4


def test_json_inside_of_html():
    text = to_safe_json({"<!--</script>": "&\u2028<b>"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"<!--</script>": "&\u2028<b>"}
