"""The figures on pages are those of the files in results/benchmarks, and the files keep to the bounds they were measured for."""

import json
import math

import pytest

from dualogic_paper.speed import report


@pytest.mark.parametrize("path", report.PAGES, ids=lambda path: path.name)
def test_pages_show_what_was_measured(path):
    text, (name, make) = path.read_text(), report.PAGES[path]
    assert report.replace_block(text, name, make(report.load())) == text, "run: python -m dualogic_paper.speed.run --pages"


def test_files_are_complete_and_consistent():
    found = report.load()
    assert "cpu" in found
    for data in found.values():
        assert {"name", "threads", "torch", "date", "commit", "command"} <= set(data["machine"])
        for name, entry in data["figures"].items():
            if "error" not in entry:
                assert entry["bound"] == report.FIGURES[name].bound
                assert math.isfinite(entry["value"])
                assert entry["passed"] == (entry["value"] <= entry["bound"])


@pytest.mark.parametrize("make", [make for _, make in report.PAGES.values()])
def test_a_changed_figure_changes_the_pages(make):
    found = report.load()
    before = make(found)
    entry = found["cpu"]["figures"]["train_cifar"]
    entry["value"] += 0.5
    assert make(found) != before


def test_missed_bounds_errors_and_gaps_are_shown(tmp_path):
    machine = {
        "name": "A",
        "threads": 1,
        "torch": "2",
        "date": "today",
        "commit": "abc",
        "command": "run",
    }
    figures = {
        "rule_eager": report.entry("rule_eager", 1.234, {}),
        "rule_fastest": report.entry("rule_fastest", 0.3, {"how": "CUDA graph"}),
        "network_vgg16": report.entry("network_vgg16", 1.005, {"how": "both captured"}),
        "atoms_1e3": {"error": "RuntimeError: no"},
    }
    (tmp_path / "h200.json").write_text(json.dumps({"machine": machine, "figures": figures}))
    found = report.load(tmp_path)
    assert list(found) == ["h200"]
    rows = {name: row for row in report.block(found).splitlines() for name, value in report.FIGURES.items() if value.what in row}
    assert rows["rule_eager"].endswith("| 1.1 | - | **1.23, missed** |")
    assert rows["rule_fastest"].endswith("| 0.35 | - | 0.300 (CUDA graph) |")
    assert rows["network_vgg16"].endswith("| 1.00 (both captured) |")
    assert rows["atoms_1e3"].endswith("| 1.2 | - | failed |")
    assert rows["processes"].endswith("| 1e-09 | - | - |")


@pytest.mark.parametrize("text", ["nothing", "<!-- /benchmarks --> <!-- benchmarks -->", "<!-- benchmarks -->"])
def test_a_document_without_marks_is_refused(text):
    with pytest.raises(ValueError, match="has no partner"):
        report.replace_block(text, "benchmarks", "new")
