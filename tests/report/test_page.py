"""The page about one's own training, in a real browser."""

import pytest
import torch

import dualogic as dl
from browser import CONTRAST
from dualogic.cli import main
from dualogic.report import make_report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    made = tmp_path_factory.mktemp("page") / "report.html"
    assert main(["report", str(runs), "--out", str(made)]) == 0
    return made


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """45 rules, recorded with and without them."""
    folder = tmp_path_factory.mktemp("many")
    a, b = dl.boolean("a", 45), dl.boolean("b", 45)
    rules = {f"rule {number}": (a[number] >> b[number]) for number in range(45)}
    shares = torch.linspace(0, 1, 45)
    for name, learned in (("none", False), ("dual", True)):
        logic = dl.LogicLoss(rules)
        with dl.Recorder(folder / name, logic if learned else rules, title="Many rules") as recorder:
            random = torch.Generator().manual_seed(0)
            tensors = {"a": torch.ones(60, 45), "b": (torch.rand(60, 45, generator=random) < shares).float()}
            recorder.epoch(**tensors)
            recorder.diagnose(**tensors)
    made = folder / "report.html"
    made.write_text(make_report([folder]), encoding="utf-8")
    return made


def shown(page, section):
    return page.ask(f"document.getElementById('{section}').innerText")


def test_the_page_says_what_happened_and_shows_it(browser, file):
    page = browser.open(file)
    assert page.ask("document.querySelector('h1').textContent") == "Points"
    assert "1 of 3 runs took a shortcut: in hard, the rule is satisfied by" in page.ask(
        "document.getElementById('verdict').innerText"
    )
    assert page.ask("[...document.querySelectorAll('.card h3')].map((one) => one.textContent)") == ["none", "dual", "hard"]
    titles = page.ask("[...document.querySelectorAll('#losses figcaption')].map((one) => one.textContent)")
    assert {"Loss of the task", "Loss of the rule", "accuracy"} <= set(titles)
    assert page.ask("document.querySelectorAll('#training path.series').length") >= 9
    assert page.ask("document.querySelectorAll('#failures img').length") > 0
    assert page.ask("[...document.images].every((one) => one.complete && one.naturalWidth === 24)")
    assert "x -" in shown(page, "failures")
    assert "satisfied in kind" in shown(page, "findings")
    assert page.ask("document.getElementById('glance').hidden")
    page.ask(
        "document.getElementById('group').value = 'all'; document.getElementById('controls').dispatchEvent(new Event('change'))"
    )
    assert page.troubles() == []


def test_the_first_view_shows_the_rule_that_the_verdict_is_about_and_is_not_empty(browser, tmp_path):
    """Labels are given at the end only, as most do: then training samples are not divided by class."""
    f, g = dl.categorical("f", 3), dl.categorical("g", 3)
    rules = {"first": (g == 2) >> (f == 1), "lost": (g == 1) >> (f == 0)}
    one_hot = torch.eye(3)[torch.arange(90) % 3]
    without = {"f": one_hot, "g": one_hot[torch.arange(90) - 1]}
    lost = {"f": one_hot, "g": torch.eye(3)[torch.zeros(90, dtype=torch.long)]}
    without["f"] = torch.eye(3)[torch.where(torch.arange(90) < 60, 2, torch.arange(90) % 3)]
    for name, tensors, logic in (("none", without, rules), ("taught", lost, dl.LogicLoss(rules))):
        with dl.Recorder(tmp_path / name, logic, title="Two rules") as recorder:
            if isinstance(logic, dl.LogicLoss):
                logic(**{key: value.clone().requires_grad_() for key, value in tensors.items()})
            recorder.step(task_loss=1.0)
            recorder.epoch()
            recorder.diagnose(labels=torch.arange(90) % 3, **tensors)
    made = tmp_path / "report.html"
    made.write_text(make_report([tmp_path]), encoding="utf-8")
    page = browser.open(made)
    rule = page.ask("document.getElementById('rule').value")
    assert f" {rule}: " in page.ask("document.getElementById('verdict').innerText")
    assert "Not recorded" not in shown(page, "final")
    assert page.ask("document.querySelectorAll('#training path.series').length") > 0
    assert page.troubles() == []


def test_one_row_for_each_of_many_rules(browser, many):
    page = browser.open(many)
    names = page.ask("[...document.querySelectorAll('#glance tbody th')].map((one) => one.textContent)")
    assert sorted(names) == sorted(f"rule {number}" for number in range(45))
    assert names[0] == page.ask("document.getElementById('rule').value") == "rule 0"
    assert "violated" in shown(page, "glance")
    page.ask("document.querySelectorAll('#glance button')[7].focus()")
    page.press(" ")
    assert page.ask("document.getElementById('rule').value") == names[7]
    assert page.ask("document.activeElement.textContent") == names[7]
    assert page.ask("document.querySelectorAll('#glance button[aria-pressed=true]').length") == 1
    assert f"{names[7]} (" in page.ask("document.getElementById('status').textContent")
    assert page.troubles() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_it_fits_and_can_be_read(browser, file, many, width, scheme):
    for one in (file, many):
        page = browser.open(one, width=width, height=800, scheme=scheme)
        page.ask("[...document.querySelectorAll('details')].forEach((one) => { one.open = true; })")
        assert page.ask("document.documentElement.scrollWidth") <= width
        assert page.ask(CONTRAST) == []
        page.media("print", scheme)
        assert page.ask(CONTRAST) == []
        assert page.troubles() == []


def test_a_wide_table_can_be_read_on_a_phone(browser, tmp_path):
    rules = {f"what is {name} and late is never sent to anybody": dl.boolean(name) >> dl.boolean("late") for name in ("a", "b")}
    for name, logic in (("none", rules), ("taught with the rules", dl.LogicLoss(rules))):
        with dl.Recorder(tmp_path / name, logic, title="Mails") as recorder:
            recorder.epoch(**(tensors := {symbol: torch.rand(60) for symbol in ("a", "b", "late")}))
            recorder.diagnose(**tensors)
    made = tmp_path / "report.html"
    made.write_text(make_report([tmp_path]), encoding="utf-8")
    page = browser.open(made, width=390, height=800)
    box = "({left, right, width}) => ({left, right, width})"
    for where in ("caption, .caption", "#glance tbody th"):
        boxes = page.ask(f"[...document.querySelectorAll('{where}')].map((one) => ({box})(one.getBoundingClientRect()))")
        assert boxes
        assert all(one["left"] >= 0 and one["right"] <= 390 for one in boxes if one["width"])
    assert all(one["width"] < 390 / 2 for one in boxes)  # the names of rules leave room for what is said of them


def test_a_run_that_goes_on_has_a_page_already(browser, tmp_path):
    x = dl.var("x")
    logic = dl.LogicLoss((x <= 0) | (x >= 1))
    recorder = dl.Recorder(tmp_path / "one", logic).open()
    made = tmp_path / "report.html"
    for epochs in range(3):
        recorder._write(force=True)
        made.write_text(make_report([tmp_path / "one"]), encoding="utf-8")
        page = browser.open(made)
        assert "the run has not ended" in page.ask("document.querySelector('.missing').innerText")
        assert page.ask("document.querySelectorAll('#losses path.series').length") == (2 if epochs else 0)
        assert page.troubles() == []
        logic(x=torch.rand(8, requires_grad=True))
        recorder.step(task_loss=1.0 + epochs)
        recorder.epoch()
    recorder.close()
