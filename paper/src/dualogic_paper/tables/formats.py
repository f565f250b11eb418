"""A table as text, Markdown or LaTeX."""

import io
import math
from collections.abc import Callable
from typing import Any

from dualogic_paper.pages import pipe_table
from dualogic_paper.tables.summary import MARKS, Cell, Table

_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **dict(zip("\\~^", (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"))),
    **dict(zip("±<>|▲≈▼", (r"$\pm$", "$<$", "$>$", "$|$", r"$\uparrow$", r"$\approx$", r"$\downarrow$"))),
}


def show_cell(cell: Cell) -> str:
    """Measured figure, how it stands to ``dual``, and the paper's in brackets.

    >>> from dualogic_paper.tables.published import Published
    >>> show_cell(Cell((98.5, 98.9), runs=2, published=Published.parse("98.8", "Table 1")))
    '98.7 ± 0.3 (98.8)'
    >>> show_cell(Cell((98.5, 98.9), runs=2, mark="level"))
    '98.7 ± 0.3 ≈'
    >>> show_cell(Cell((98.5, 98.9), runs=4, diverged=1))
    '98.7 ± 0.3 [2 of 3 runs]'
    >>> show_cell(Cell((), runs=5, diverged=5))
    'diverged'
    """
    published = "" if cell.published is None else f" ({cell.published.text})"
    mark = f" {MARKS[cell.mark]}" if cell.mark else ""
    return f"{show_measured(cell)}{mark}{published}"


def show_measured(cell: Cell) -> str:
    """The measured figure alone."""
    if not cell.values:
        return "diverged" if cell.runs and cell.diverged == cell.runs else "-"
    text = f"{cell.mean:.{cell.decimals}f}"
    if math.isclose(float(text), 0.0):  # "-0.0" would look like a sign that means something
        text = text.lstrip("-")
    if cell.deviation is not None:
        text += f" ± {cell.deviation:.{cell.decimals}f}"
    return f"{text} [{len(cell.values)} of {cell.runs - cell.diverged} runs]" if cell.lacking else text


def to_rich(table: Table) -> Any:
    """For a terminal, a table of rich's."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table as RichTable

    title, caption = escape(table.title), escape("\n".join(table.notes))
    made = RichTable(title=title, caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    made.add_column("method")
    for head in table.heads:
        made.add_column(escape(head), justify="right")
    for row in table.rows:
        cells = [f"[bold]{escape(show_cell(cell))}[/bold]" if cell.best else escape(show_cell(cell)) for cell in row.cells]
        made.add_row(escape(row.name), *cells, row.seeds)
    return made


def to_text(table: Table) -> str:
    """Plain text, as wide as it needs to be."""
    from rich.console import Console

    file = io.StringIO()
    Console(file=file, width=400, color_system=None).print(to_rich(table))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def to_markdown(table: Table) -> str:
    """A pipe table with its notes below; the best figures in bold."""
    rows = [(row.name, *(_show_best(cell, "**{}**", str) for cell in row.cells), row.seeds) for row in table.rows]
    return "\n".join([pipe_table(("method", *table.heads), rows), "", " ".join(table.notes)]) + "\n"


def to_latex(table: Table) -> str:
    """A ``table`` for a document that uses the package ``booktabs``; the best figures in bold."""
    heads = [escape_latex(text) for text in ("Method", *table.heads)]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(' '.join((table.title + '.', *table.notes)))}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        cells = [_show_best(cell, r"\textbf{{{}}}", escape_latex) for cell in row.cells]
        lines.append(" & ".join([escape_latex(row.name), *cells, escape_latex(row.seeds)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _show_best(cell: Cell, bold: str, escape: Callable[[str], str]) -> str:
    """A cell, of which the measured figure is in bold if it is the best."""
    measured = show_measured(cell)
    rest = show_cell(cell)[len(measured) :]
    return (bold if cell.best else "{}").format(escape(measured)) + escape(rest)
