"""After the paper's Figure 2: what each method reached on each part of a task, as bars side by side."""

from collections.abc import Sequence
from typing import Any

from dualogic_paper import arms
from dualogic_paper.tables import style
from dualogic_paper.tables.matching import MATCHED
from dualogic_paper.tables.naming import describe_column, divide, order_of, short_name, strip_label
from dualogic_paper.tables.runs import FORMER, Results
from dualogic_paper.tables.summary import Row, Table, make_table
from dualogic_paper.tasks import TASKS, Column

SATISFIED = "satisfied"
GROUP_WIDTH = 0.86
WIDTH = 8.6


def draw_parts(results: Results) -> Any:
    """A panel for each column that has a better side, in it a group of bars for each part and a bar for each method.

    Bars are means, whiskers deviations, white diamonds the paper's. A line across a bar of satisfaction is what the network
    without the rule satisfies when it is made as certain. The fully supervised reference and rows with options are left out.
    ``None`` if the task has no parts.
    """
    if not TASKS[results.task].parts:
        return None
    parts = divide(results)
    tables = [make_table(part) for part in parts]
    columns = [column for column in TASKS[results.task].columns if column.better != "neither"]
    rows = {row.label: row for table in tables for row in table.rows if _is_shown(row)}
    order = sorted(rows, key=lambda label: order_of(rows[label].method, label))
    if not order:
        return None
    title = (
        f"{TASKS[results.task].title}\nbars: measured, mean and deviation over seeds; diamonds: the paper\n"
        "lines: the network without the rule, made as certain"
    )
    figure = style.make_figure(WIDTH, 1.2 + 2.1 * len(columns), title)
    colours = style.choose_colours([(rows[name].method, name) for name in order])
    grid = figure.subplots(len(columns), 1, squeeze=False, sharex=True)
    for axes, column in zip(grid.flat, columns):
        for place, table in enumerate(tables):
            _draw_group(axes, table, column, order, colours, place)
        axes.set_title(describe_column(column, columns) + " (%)")
        axes.set_xticks(range(len(parts)), [part.part_title for part in parts])
        axes.grid(visible=False, axis="x")
        axes.set_ylim(bottom=0)
    handles = [figure.axes[0].bar(0, 0, color=colours[name], label=short_name(rows[name].method, name)) for name in order]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(order), 5))
    return figure


def _is_shown(row: Row) -> bool:
    return strip_label(row.label, [FORMER]) == row.method != arms.SUPERVISED


def _draw_group(axes: Any, table: Table, column: Column, order: Sequence[str], colours: dict[str, str], place: int) -> None:
    position = table.columns.index(column)
    matched = table.columns.index(MATCHED) if MATCHED in table.columns and column.key == SATISFIED else None
    width = GROUP_WIDTH / len(order)
    rows = {row.label: row for row in table.rows if _is_shown(row)}
    for number, name in enumerate(order):
        if name not in rows:
            continue
        cell = rows[name].cells[position]
        middle = place + (number - (len(order) - 1) / 2) * width
        if cell.values:
            whisker = {"elinewidth": 1, "ecolor": style.INK}
            axes.bar(middle, cell.mean, width * 0.9, yerr=cell.deviation, color=colours[name], error_kw=whisker)
        if cell.published is not None:
            axes.plot(middle, cell.published.value, "D", markersize=5, markerfacecolor="white", markeredgecolor=style.INK)
        if matched is not None and rows[name].cells[matched].values:
            axes.hlines(rows[name].cells[matched].mean, middle - width / 2, middle + width / 2, color="black", linewidth=2.2)
