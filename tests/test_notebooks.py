"""Every notebook runs, in its quick mode, and shows what its own code gave in a full run."""

import base64
import copy
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
REMEDY = "run: python examples/notebooks/execute.py"

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")
pytest.importorskip("lark")
pytest.importorskip("z3")
pytest.importorskip("pysdd")


@pytest.fixture(scope="module")
def executor():
    specification = importlib.util.spec_from_file_location("notebooks_execute", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules[specification.name]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


def test_it_runs(executor, path, monkeypatch):
    monkeypatch.setenv(executor.QUICK, "1")
    notebook = executor.load(path)
    stored = copy.deepcopy(notebook)
    executor.execute(notebook, path.name)
    for new, old in zip(executor.code_cells(notebook), executor.code_cells(stored)):
        # The numbers differ in a quick run, but what kinds of things are shown does not.
        assert [sorted(output) for output in new["outputs"]] == [sorted(output) for output in old["outputs"]]
    assert executor.digest(notebook) == executor.digest(stored)


def test_its_outputs_are_those_of_its_code(executor, path):
    notebook = executor.load(path)
    stored = notebook["metadata"]["dualogic"]
    assert stored["code"] == executor.digest(notebook), REMEDY
    assert 0 < stored["seconds"] < 60
    counts = [cell["execution_count"] for cell in executor.code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1)), REMEDY


def test_it_is_short_and_its_figures_are_small(executor, path):
    notebook = executor.load(path)
    assert 10 <= len(notebook["cells"]) <= 15
    outputs = [output for cell in executor.code_cells(notebook) for output in cell["outputs"]]
    figures = [base64.b64decode(output["data"]["image/png"]) for output in outputs if "image/png" in output.get("data", {})]
    assert figures
    assert all(figure.startswith(b"\x89PNG") and len(figure) < 100_000 for figure in figures)


def test_a_change_of_the_code_is_noticed(executor):
    notebook = executor.load(NOTEBOOKS[0])
    before = executor.digest(notebook)
    executor.code_cells(notebook)[-1]["source"].append("\n# more")
    assert executor.digest(notebook) != before


def test_an_error_says_in_which_cell(executor):
    cells = [{"cell_type": "code", "source": ["x = 1\n", "x + 1"]}, {"cell_type": "code", "source": ["print(x)\n", "1 / 0"]}]
    notebook = {"cells": cells}
    with pytest.raises(ZeroDivisionError) as caught:
        executor.execute(notebook, "broken.ipynb")
    assert str(caught.traceback[-1].path) == "broken.ipynb, cell 2"
    assert cells[0]["outputs"][0]["data"]["text/plain"] == ["2"]


def test_the_readme_lists_every_notebook():
    text = (ROOT / "examples" / "README.md").read_text()
    assert NOTEBOOKS
    assert all(f"(notebooks/{path.name})" in text for path in NOTEBOOKS)


def test_the_site_shows_every_notebook_with_its_outputs(executor, path):
    pytest.importorskip("mkdocs")
    assert f"notebooks/{path.stem}.md\n" in (ROOT / "mkdocs.yml").read_text()
    specification = importlib.util.spec_from_file_location("docs_notebooks", ROOT / "docs" / "notebooks.py")
    hook = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hook)
    notebook = executor.load(path)
    text, figures = hook.to_markdown(notebook, path.stem)
    assert text.startswith("# ")
    assert all(f"({name})" in text for name in figures)
    outputs = [output for cell in executor.code_cells(notebook) for output in cell["outputs"]]
    assert len(figures) == sum("image/png" in output.get("data", {}) for output in outputs)
    assert all("".join(output.get("text", [])).rstrip() in text for output in outputs)
    assert all("".join(cell["source"]) in text for cell in notebook["cells"])
