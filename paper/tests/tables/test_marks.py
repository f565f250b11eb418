"""The marks of two tables, from the committed files alone: nothing of ``dualogic_paper`` is asked, and the tests are scipy's."""

import json
import re
from pathlib import Path

import pytest

stats = pytest.importorskip("scipy.stats")
ROOT = Path(__file__).parents[2]
NAMES = {
    "none": "Baseline (none)",
    "semantic": "SL (semantic)",
    "problog": "DPL (problog)",
    "pd1": "PD1",
    "pd2": "PD2",
    "dl2": "DL2",
    "dual": "Ours (dual)",
    "dual-exchanged-True": "Ours (dual[exchanged=True])",
    "none-exchanged-True": "Baseline (none[exchanged=True])",
    "dual-not-told-which-class-has-no-labels": "dual (not told which class has no labels)",
    "dual-former-default": "dual (former default)",
    "dual-former-default-evidence-False": "dual[evidence=False] (former default)",
    "dual-former-default-delta-exact": "dual[delta=exact] (former default)",
    "dual-paper": "Ours, as printed (dual-paper)",
    "dual-view-teacher": "Ours (dual[view=teacher])",
    "uniform-evidence-True": "uniform[evidence=True]",
}
COLUMNS = {
    "digits-mixed": ["accuracy", "satisfied", None, "q", "usps_accuracy", "usps_satisfied", None, "usps_q"],
    "paths": ["-mse", "-mae", "satisfied", "symmetric", "triangle", None, None, None],
}


def read_page(task):
    """The cells of each row, by its name."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    table = page.partition(f"<!-- begin {task} -->")[2].partition("\n\nMean")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {name: cells for name, *cells in rows[1:]}


def read_file(task, name, key):
    runs = json.loads((ROOT / "results" / task / f"{name}.json").read_text())["runs"]
    sign = -1 if key.startswith("-") else 1
    return {run["config"]["seed"]: sign * run["test"][key.lstrip("-")] for run in runs}


def probability(one, other):
    common = sorted(one.keys() & other.keys())
    ours, theirs = [one[seed] for seed in common], [other[seed] for seed in common]
    pairs = [mine - its for mine, its in zip(ours, theirs)]
    if max(pairs) == min(pairs):  # scipy divides by their deviation
        return 1.0 if pairs[0] == 0 else 0.0
    return float(stats.ttest_rel(ours, theirs).pvalue)


@pytest.mark.parametrize("task", COLUMNS)
def test_the_marks_are_those_that_scipy_gives(task):
    rows = read_page(task)
    files = sorted(file.stem for file in (ROOT / "results" / task).glob("*.json"))
    own = "dual" if "dual" in files else "dual-not-told-which-class-has-no-labels"
    rivals = [name for name in files if name not in ("supervised", own)]
    assert {NAMES.get(name, name) for name in [*rivals, own]} == rows.keys() - {"Fully supervised"}
    marked = 0
    for position, key in enumerate(COLUMNS[task]):
        if key is None:
            assert not any(re.search("[▲≈▼*]", cells[position]) for cells in rows.values())
            continue
        figures = {name: read_file(task, name, key) for name in [*rivals, own]}
        found = sorted((probability(figures[name], figures[own]), name) for name in rivals)
        rejected = 0  # Holm: from the smallest on, until one is too large for its rank
        while rejected < len(found) and found[rejected][0] * (len(found) - rejected) < 0.05:
            rejected += 1
        for rank, (_, name) in enumerate(found):
            common = figures[name].keys() & figures[own].keys()
            higher = sum(figures[name][seed] - figures[own][seed] for seed in common) > 0
            expected = "≈" if rank >= rejected else "▲" if higher else "▼"
            assert re.findall("[▲≈▼]", rows[NAMES.get(name, name)][position]) == [expected], (key, name)
            marked += 1
        means = {name: sum(values.values()) / len(values) for name, values in figures.items()}
        first, second = sorted(means, key=means.__getitem__)[:-3:-1]
        bold = probability(figures[first], figures[second]) < 0.05
        assert [name for name, cells in rows.items() if "**" in cells[position]] == [NAMES.get(first, first)] * bold
    assert marked > 50
