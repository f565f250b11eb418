"""A table as text, Markdown or LaTeX."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dualogic_paper.tables.marks import MARKS
from dualogic_paper.tables.naming import describe_column
from dualogic_paper.tables.summary import Cell, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "▲": r"$\uparrow$",
    "≈": r"$\approx$",
    "▼": r"$\downarrow$",
}


def show_cell(cell: Cell) -> str:
    """Measured figure, how it stands to ``dual``, and the paper's in brackets.

    Example:
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
    text = f"{_number(cell.mean, cell.decimals)}"
    if cell.deviation is not None:
        text += f" ± {cell.deviation:.{cell.decimals}f}"
    return f"{text} [{len(cell.values)} of {cell.runs - cell.diverged} runs]" if cell.lacking else text


def to_rich(table: Table) -> RichTable:
    """For a terminal."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table as RichTable

    made = RichTable(
        title=escape(table.title),
        caption=escape("\n".join(table.notes)),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    made.add_column("method")
    for column in table.columns:
        made.add_column(escape(describe_column(column, table.columns)), justify="right")
    made.add_column(table.counted, justify="right")
    for row in table.rows:
        cells = [f"[bold]{escape(show_cell(cell))}[/bold]" if cell.best else escape(show_cell(cell)) for cell in row.cells]
        made.add_row(escape(row.name), *cells, row.seeds)
    return made


def to_text(table: Table) -> str:
    """Plain text, as wide as it needs to be."""
    import io

    from rich.console import Console

    console = Console(file=io.StringIO(), width=400, color_system=None)
    console.print(to_rich(table))
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def to_markdown(table: Table) -> str:
    """A pipe table with its notes below; the best figures in bold."""
    lines = [
        _pipes("method", *(describe_column(column, table.columns) for column in table.columns), table.counted),
        "|---" * (len(table.columns) + 2) + "|",
    ]
    for row in table.rows:
        cells = (_bold(cell) for cell in row.cells)
        lines.append(_pipes(row.name, *cells, row.seeds))
    return "\n".join([*lines, "", " ".join(table.notes)]) + "\n"


def to_latex(table: Table) -> str:
    """A ``table`` for a document that uses the package ``booktabs``; the best figures in bold."""
    heads = [
        escape_latex(text)
        for text in ("Method", *(describe_column(column, table.columns) for column in table.columns), table.counted)
    ]
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
        cells = [_bold_latex(cell) for cell in row.cells]
        lines.append(" & ".join([escape_latex(row.name), *cells, escape_latex(row.seeds)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Example:
        >>> escape_latex("5 % ± 1")
        '5 \\% $\\pm$ 1'
    """
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _bold(cell: Cell) -> str:
    measured = show_measured(cell)
    return f"**{measured}**{show_cell(cell)[len(measured) :]}" if cell.best else show_cell(cell)


def _bold_latex(cell: Cell) -> str:
    measured = show_measured(cell)
    rest = escape_latex(show_cell(cell)[len(measured) :])
    measured = escape_latex(measured)
    return rf"\textbf{{{measured}}}{rest}" if cell.best else measured + rest


def _pipes(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _number(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    # "-0.0" would look like a sign that means something.
    return text.lstrip("-") if math.isclose(float(text), 0.0) else text
