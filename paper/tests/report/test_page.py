"""The page in a real browser: it loads without a complaint, its controls work by keyboard, it fits a phone and prints."""

import itertools
import json
import re
import shutil

import pytest

from browser import CONTRAST
from dualogic.report import make_model, make_page, make_report, read_runs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    made = tmp_path_factory.mktemp("page") / "report.html"
    made.write_text(make_report([runs]), encoding="utf-8")
    return made


@pytest.fixture
def page(browser, file):
    made = browser.open(file)
    yield made
    assert made.troubles() == []


def focus_by_tab(page, name):
    """Press Tab until an element has the focus."""
    for _ in range(60):
        page.press("Tab")
        if page.ask("document.activeElement.id") == name:
            return
    pytest.fail(f"#{name} is not reached by Tab")


def shown(page, section):
    return page.ask(f"document.querySelector('#{section} .body').textContent")


def test_it_shows_everything(page, file):
    assert page.ask("document.getElementById('verdict').textContent").startswith("1 of 3 runs took a shortcut")
    assert page.ask("document.querySelectorAll('article.card').length") == 3
    headings = page.ask("[...document.querySelectorAll('section:not([hidden]) > h2')].map((one) => one.textContent)")
    assert len(headings) == 6
    # The rule, two branches that hold, one weight each; two losses. Delta never leaves its floor of 1 here: no chart.
    assert page.ask("document.querySelectorAll('#training svg.chart').length") == 5
    assert page.ask("document.querySelectorAll('#losses svg.chart').length") == 2
    assert page.ask("document.querySelectorAll('#final svg.chart rect').length") == 3 * 4
    assert page.ask("[...document.images].every((one) => one.complete && one.naturalWidth === 64)")
    assert page.ask("document.images.length") > 3


def test_every_chart_has_words_and_a_table(page):
    charts = page.ask(
        "[...document.querySelectorAll('svg.chart')].map((one) => [one.getAttribute('role'), one.getAttribute('aria-label'), "
        "one.closest('figure').querySelectorAll('table tbody tr').length])"
    )
    assert len(charts) == 8
    for role, label, rows in charts:
        assert role == "img"
        assert "dl2, seed 0" in label or "dual, seed 0" in label
        assert rows >= 2
    unnamed = (
        "[...document.querySelectorAll('select, input')].filter((one) => !one.labels.length || !one.labels[0].textContent.trim())"
    )
    assert page.ask(f"{unnamed}.length") == 0


def test_the_numbers_are_those_of_the_run(page, runs):
    line = (runs / "dual" / "0" / "metrics.jsonl").read_text().splitlines()[-1]
    loss = json.loads(line)["task_loss"]
    table = "[...document.querySelectorAll('#losses figure')].find((one) => one.textContent.startsWith('Loss of the task'))"
    row = page.ask(f"[...{table}.querySelectorAll('tbody tr')].pop().textContent")
    assert row.startswith("40")
    assert row.endswith(f"{loss:.4g}")


def test_runs_are_toggled_by_keyboard(page):
    focus_by_tab(page, "run-1")
    assert "dl2, seed 0" in shown(page, "failures")
    before = page.ask("document.querySelectorAll('#training path.series').length")
    page.press(" ")
    assert "dl2, seed 0" not in shown(page, "failures")
    assert page.ask("document.querySelectorAll('#training path.series').length") < before
    assert "2 of 3 runs" in page.ask("document.getElementById('status').textContent")
    page.press(" ")
    assert "dl2, seed 0" in shown(page, "failures")


def test_class_branch_and_samples_are_chosen_by_keyboard(page):
    # The class of the verdict comes first.
    assert page.ask("document.getElementById('group').value") == "6"
    focus_by_tab(page, "branch")
    texts = {shown(page, "training")}
    page.press("ArrowDown")
    assert "Branch f == 6" not in shown(page, "training")
    page.press("ArrowDown")
    assert "Branch g != 9" not in shown(page, "training")
    texts.add(shown(page, "training"))
    focus_by_tab(page, "group")
    page.press("ArrowDown")
    assert "class 7" in shown(page, "final")
    assert "class 6" not in shown(page, "final")
    texts.add(shown(page, "training"))
    focus_by_tab(page, "where")
    page.press("ArrowDown")
    assert "training samples" in page.ask("document.getElementById('status').textContent")
    texts.add(shown(page, "training"))
    assert len(texts) == 4


def test_every_class_apart(page):
    focus_by_tab(page, "each")
    page.press(" ")
    captions = page.ask("[...document.querySelectorAll('#final figcaption')].map((one) => one.textContent)")
    assert captions == ["all samples", *(f"class {digit}" for digit in range(10))]
    assert page.ask("document.getElementById('group').disabled")
    assert page.ask("document.querySelectorAll('#training svg.chart').length") > 30
    page.press(" ")
    assert page.ask("document.querySelectorAll('#training svg.chart').length") == 5


def test_focus_is_visible_and_the_order_is_that_of_the_page(page):
    seen = []
    for _ in range(14):
        page.press("Tab")
        seen.append(page.ask("document.activeElement.getBoundingClientRect().top + window.scrollY"))
        if page.ask("document.activeElement.id") == "each":
            break
        assert page.ask("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert page.ask("document.activeElement.id") == "each"
    # Controls of one line stand at slightly different heights.
    assert all(after >= before - 40 for before, after in itertools.pairwise(seen[1:]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_width_scrolls_sideways(browser, file, width, scheme):
    page = browser.open(file, width=width, height=800, scheme=scheme)
    for each in (False, True):
        if each:
            page.ask("document.getElementById('each').click()")
        assert page.ask("document.documentElement.scrollWidth") <= width
        assert page.ask("[...document.querySelectorAll('details')].forEach((one) => { one.open = true; })") is None
        assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.troubles() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(browser, file, scheme):
    page = browser.open(file, scheme=scheme)
    assert page.ask(CONTRAST) == []
    page.media("print", scheme)
    assert page.ask(CONTRAST) == []


def test_print(page):
    page.media("print", "dark")
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.ask("getComputedStyle(document.querySelector('.choices')).display") == "none"
    assert page.ask("document.getElementById('status').getClientRects().length") == 1
    page.media()
    pdf = page.print()
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8


def test_without_a_script_the_verdicts_stand(browser, file, tmp_path):
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub(r"<script>.*</script>", "", file.read_text(encoding="utf-8"), flags=re.S), encoding="utf-8")
    page = browser.open(bare)
    assert "took a shortcut" in page.ask("document.body.innerText")
    assert page.ask("[...document.querySelectorAll('form, #final')].every((one) => one.hidden)")


def test_a_run_without_a_diagnosis_has_its_losses(browser, runs, tmp_path):
    copy = shutil.copytree(runs / "dual" / "0", tmp_path / "dual" / "0")
    (copy / "diagnosis.json").unlink()
    made = tmp_path / "old.html"
    made.write_text(make_report([copy]), encoding="utf-8")
    page = browser.open(made)
    assert "the run kept nothing about how its rules are met" in page.ask("document.querySelector('.missing').textContent")
    assert page.ask("document.querySelectorAll('#losses path.series').length") >= 2
    assert "This run kept no samples" in shown(page, "failures")
    assert page.troubles() == []


EVIL = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>\"'&@@data@@"


def poison(value):
    """The same with a piece of HTML in every text and every key that a file brings."""
    if isinstance(value, str):
        return value + EVIL
    if isinstance(value, list):
        return [poison(entry) for entry in value]
    return {key: poison(entry) for key, entry in value.items()} if isinstance(value, dict) else value


def test_nothing_from_a_file_is_run(browser, runs, tmp_path):
    model = make_model(read_runs([runs]))
    kept = {"tone", "kind", "key", "name", "path", "label", "group"}

    def walk(value):
        if isinstance(value, dict):
            return {key: entry if key in kept or key == "picture" else walk(entry) for key, entry in value.items()}
        return [walk(entry) for entry in value] if isinstance(value, list) else poison(value)

    evil = walk(model)
    evil["runs"][0]["name"] += EVIL
    evil["groups"][0]["name"] += EVIL
    rule = evil["rules"][0]["name"] = "rule" + EVIL
    for run in evil["runs"]:
        run["failures"] = {rule: run["failures"]["rule"]}
        for step in [*run["steps"], run["final"]]:
            for part in ("validation", "pool"):
                if part in step:
                    step[part] = {rule: step[part]["rule"]}
    evil["runs"][0]["failures"][rule][0]["picture"] = '" onerror="window.hit=1'
    made = tmp_path / "evil.html"
    text = make_page(evil)
    assert text.count("<script") == 2
    assert EVIL not in text
    made.write_text(text, encoding="utf-8")
    page = browser.open(made)
    page.ask("document.getElementById('each').click()")
    assert page.ask("window.hit === undefined")
    assert EVIL in page.ask("document.getElementById('verdict').textContent")
    assert EVIL in shown(page, "training")
    assert EVIL in shown(page, "failures")
    assert page.ask("document.scripts.length") == 2
    assert page.troubles() == []
    # What is not the page's own script is refused even where it stands in the page.
    made.write_text(text.replace("</main>", "<script>window.hit=1</script></main>"), encoding="utf-8")
    page = browser.open(made)
    assert page.ask("window.hit === undefined")
    assert any("Content Security Policy" in str(trouble) for trouble in page.troubles())
