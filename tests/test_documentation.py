"""Every page of the documentation is true: its Python runs, in order, and prints what it shows; its rules can be read.

A block that cannot run alone is marked by a comment in front of it that says why: ``<!-- not run: it trains for an hour -->``.
"""

import doctest
import importlib.util
import re
import types
from pathlib import Path

import pytest

import dualogic as dl

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "paper" / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?^```(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
NEWCOMERS = ("index", "all-of-dualogic", "glossary", "shortcuts", "what-the-paper-shows", "what-everyday-problems-show")
KINDS = {"python", "pycon", "rules", "console", "sh", "text", ""}


def run_page(text, name):
    """Run all blocks of a page in one namespace, which is returned."""
    scope = {"__name__": "__main__"}
    for found in BLOCK.finditer(text):
        kind, code = found["kind"], found["code"]
        line = text.count("\n", 0, found.start("code"))
        assert kind in KINDS, f"{name}:{line}: a block of kind {kind!r}, which no test knows"
        if found["why"]:
            continue
        if kind == "python":
            exec(compile("\n" * line + code, name, "exec", dont_inherit=True), scope)
        elif kind == "pycon":
            session = doctest.DocTestParser().get_doctest(code, {}, name, name, line)
            session.globs = scope
            report = []
            runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
            runner.run(session, out=report.append, clear_globs=False)
            assert runner.failures == 0, "".join(report)
        elif kind == "rules":
            assert dl.parse_rules(code)
    return scope


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the examples of a clone, for what a page reads and writes."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # Lightning's own doing, and its advice on speed
@pytest.mark.filterwarnings("ignore:.*does not have many workers")
@pytest.mark.filterwarnings("ignore:.*the number of training batches")
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "all-of-dualogic"], ids=lambda page: page.stem)
def test_code_runs(page):
    run_page(page.read_text(encoding="utf-8"), page.name)


@pytest.mark.usefixtures("folder")
def test_the_page_of_everything_teaches_what_it_says():
    scope = run_page((ROOT / "docs" / "all-of-dualogic.md").read_text(encoding="utf-8"), "all-of-dualogic.md")
    assert scope["accuracy"](scope["before"]) < 0.7
    assert scope["accuracy"](scope["after"]) > 0.97
    means = [scope["weights"][scope["kinds"] == kind].mean(0)[1].item() for kind in range(3)]
    assert means[0] > 0.95
    assert max(means[1:]) < 0.05
    assert scope["accuracy"](scope["shortcut"]) < scope["accuracy"](scope["before"]) - 0.1
    before, shortcut = (
        scope["rule"].satisfied(**scope["outputs"](scope[name])).float().mean() for name in ("before", "shortcut")
    )
    assert shortcut > before + 0.1
    assert scope["findings"][0].kind == "dead-branch"
    assert scope["held"].float().mean() > 0.95
    assert 0.3 < scope["asked"].float().mean() < 0.37


def test_pages_for_newcomers_say_which_weight_is_meant():
    """Dual weights and the loss weight; in prose, not in code or in tables that are made."""
    made = re.compile(r"```.*?```|<!-- (\w+) -->.*?<!-- /\1 -->|`[^`]*`", re.DOTALL)
    for page in (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in NEWCOMERS)):
        prose = " ".join(made.sub("", page.read_text(encoding="utf-8")).split())
        assert not re.findall(r".{30}(?<![dD]ual )(?<![lL]oss )\bweights?\b", prose), page.name


def test_tables_of_the_site_show_bars_and_its_pictures_open():
    pytest.importorskip("latex2mathml")
    spec = importlib.util.spec_from_file_location("site_hook", ROOT / "docs" / "site.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    assert hook.on_page_content(r"<td><code>a \| b</code></td>") == "<td><code>a | b</code></td>"
    assert hook.on_page_content('<img alt="A" src="a.png" />') == '<a href="a.png"><img alt="A" src="a.png" /></a>'


def test_the_timed_walk_can_be_read():
    spec = importlib.util.spec_from_file_location("walk", ROOT / "docs" / "walk.py")
    walk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walk)
    program, commands = walk.read_walk()
    assert "dl.Recorder(" in program
    assert [command.split()[0] for command in commands] == ["git", "python3", "pip", "python", "dualogic"]


def test_the_api_page_lists_every_public_name():
    listed = set(re.findall(r"^::: ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    last = {name.rpartition(".")[2] for name in listed}
    public = {name for name in dl.__all__ if not isinstance(getattr(dl, name), types.ModuleType)}
    assert public <= last
    assert {method.__name__ for method in dl.methods.METHODS.values()} <= last


def test_the_page_on_methods_lists_all_of_them_and_the_options_of_the_default():
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    table, _, options = text.partition("## Options of `dual`")
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == list(dl.methods.METHODS)
    default = dl.methods.Dual()
    rows = re.findall(r"^\| `(\w+)` \| `?\"?([\w.]+)\"?`? \|", options, flags=re.MULTILINE)
    assert len(rows) >= 6
    assert all(str(getattr(default, name)) in (value, f"{value}.0") for name, value in rows)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```python\n1 / 0\n```\n", ZeroDivisionError),
        ("```pycon\n>>> 1\n2\n```\n", AssertionError),
        ("```rules\nrule r: x\n```\n", dl.errors.ParseError),
    ],
)
def test_a_page_that_is_not_true_fails_unless_marked(text, error):
    with pytest.raises(error):
        run_page(text, "page.md")
    run_page(f"<!-- not run: why -->\n{text}", "page.md")


def test_a_block_of_an_unknown_kind_fails():
    with pytest.raises(AssertionError, match=r"page\.md:3: a block of kind 'ruby'"):
        run_page("A line.\n\n```ruby\n1\n```\n", "page.md")
