"""Run the notebooks and store what they show: ``python examples/notebooks/execute.py [--quick] [NOTEBOOK ...]``.

The cells are plain Python, so they run here one after the other in one namespace, without a Jupyter kernel: what a cell prints,
the value of its last line and the figures that it leaves open become its outputs. A digest of the code is stored beside the
outputs, so that a test can tell whether they belong together. ``--quick`` runs with ``DUALOGIC_QUICK=1`` and stores nothing.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import hashlib
import io
import json
import linecache
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
QUICK = "DUALOGIC_QUICK"
DOTS_PER_INCH = 100

Notebook = dict[str, Any]


def find_notebooks() -> list[Path]:
    """All notebooks of this folder, in the order of their names."""
    return sorted(FOLDER.glob("*.ipynb"))


def load(path: Path) -> Notebook:
    """The notebook of a file."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def save(notebook: Notebook, path: Path) -> None:
    """Write a notebook as Jupyter does: indented by one space, with a newline at the end."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """The cells that are run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def digest(notebook: Notebook) -> str:
    """A fingerprint of the code, cell by cell; text and outputs do not count."""
    sources = ["".join(cell["source"]) for cell in code_cells(notebook)]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def execute(notebook: Notebook, name: str) -> None:
    """Run all code cells in place: set their outputs and counts; an error is raised with the cell's number and line."""
    import matplotlib as mpl

    mpl.use("agg", force=True)
    scope: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), start=1):
        cell["outputs"] = _run_cell("".join(cell["source"]), f"{name}, cell {count}", count, scope)
        cell["execution_count"] = count


def _run_cell(source: str, name: str, count: int, scope: dict[str, Any]) -> list[dict[str, Any]]:
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for the lines of a traceback
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), name, "exec"), scope)
        if last is not None and not source.rstrip().endswith(";"):  # as in Jupyter, a semicolon hides the value
            value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
        elif last is not None:
            exec(compile(ast.Module([last], []), name, "exec"), scope)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        text = repr(value).splitlines(keepends=True)
        outputs.append({"data": {"text/plain": text}, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs + _figures()


def _figures() -> list[dict[str, Any]]:
    import matplotlib.pyplot as plt

    outputs = []
    for number in plt.get_fignums():
        picture = io.BytesIO()
        # Without a date or a version in the file the same figure gives the same bytes.
        plt.figure(number).savefig(picture, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["<Figure>"]}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    plt.close("all")
    return outputs


def main() -> None:
    """Run the notebooks named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, default=find_notebooks())
    parser.add_argument("--quick", action="store_true", help="a few steps each; nothing is stored")
    options = parser.parse_args()
    if options.quick:
        os.environ[QUICK] = "1"
    else:
        os.environ.pop(QUICK, None)
    import torch

    import dualogic

    torch.set_num_threads(1)
    for path in options.notebooks:
        notebook = load(path)
        started = time.process_time()
        execute(notebook, path.name)
        seconds = round(time.process_time() - started, 1)
        sys.stdout.write(f"{path.name}: {seconds} s\n")
        if not options.quick:
            versions = {"dualogic": dualogic.__version__, "torch": torch.__version__}
            notebook["metadata"]["dualogic"] = {"code": digest(notebook), "seconds": seconds, "versions": versions}
            save(notebook, path)


if __name__ == "__main__":
    main()
