"""Figures of a task: measured beside published, learning curves, how the rule came to be met, and all parts side by side."""

import dataclasses
import itertools
import math
import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dualogic_paper import arms
from dualogic_paper.tables import style
from dualogic_paper.tables.branches import Branch, find_branches
from dualogic_paper.tables.by_heart import draw_heart
from dualogic_paper.tables.matching import MATCHED, draw_certainty
from dualogic_paper.tables.naming import PAPER_NAMES, describe_column, divide, group_runs, order_of, short_name, strip_label
from dualogic_paper.tables.runs import FORMER, NEAREST, Results, Run
from dualogic_paper.tables.summary import Table, make_table
from dualogic_paper.tasks import TASKS, Column

PANEL_WIDTH, PANEL_HEIGHT = 4.6, 3.2
MOST_IN_A_ROW = 4
MOST_LINES = 10
Group = tuple[str, list[Run]]
DASHES = ("--", ":", "-.")
FIGURE_1 = ("none", "dl2", "uniform", "dual-paper", "dual")  # what cheats, what the paper proposes, and its ablation


@dataclasses.dataclass(frozen=True)
class Curve:
    """Mean and deviation over seeds of one measure."""

    epochs: tuple[float, ...]  # at which some run has the measure
    means: tuple[float, ...]  # over the runs that have it there
    deviations: tuple[float, ...]  # 0 where one run alone has it
    ends: tuple[tuple[float, float], ...] = ()  # epoch and value at which diverged runs stopped


def make_curve(runs: Sequence[Run], key: str) -> Curve | None:
    """The learning curve of some runs; ``None`` if they have no such measure."""
    found: dict[float, list[float]] = {}
    for run in runs:
        for row in run.curve:
            if math.isfinite(row.get(key, math.nan)):
                found.setdefault(row["epoch"], []).append(row[key])
    if not found:
        return None
    epochs = sorted(found)
    last = [[row for row in run.curve if key in row] for run in runs if run.diverged]
    return Curve(
        tuple(epochs),
        tuple(statistics.fmean(found[epoch]) for epoch in epochs),
        tuple(statistics.stdev(found[epoch]) if len(found[epoch]) > 1 else 0.0 for epoch in epochs),
        tuple((rows[-1]["epoch"], rows[-1][key]) for rows in last if rows),
    )


def save_figures(results: Results, path: Path) -> list[Path]:
    """Draw all figures of a task and of its parts, as ``digits-comparison.png`` if ``path`` is ``digits.png``."""
    import matplotlib as mpl

    drawings = (draw_comparison, draw_curves, draw_rule, draw_certainty, draw_heart)
    wanted = [(part.part, draw, part) for part in divide(results) for draw in drawings]
    written = []
    for of_part, draw, part in [*wanted, ("", draw_parts, results)]:
        with mpl.rc_context(style.SETTINGS):
            figure = draw(part)
            if figure is None:
                continue
            words = [path.stem, *([of_part] if of_part else []), draw.__name__.removeprefix("draw_")]
            file = path.with_name("-".join(words) + path.suffix)
            style.save(figure, file)
        written.append(file)
    return written


def draw_comparison(results: Results) -> Any:
    """Each column a panel, each method a line in it: dots with deviations are measured, diamonds are the paper's."""
    table = make_table(results)
    shown = [place for place, _ in enumerate(table.columns) if any(row.cells[place].values for row in table.rows)]
    if not shown:
        return None
    high = math.ceil(len(shown) / MOST_IN_A_ROW)
    wide = math.ceil(len(shown) / high)
    title = f"{table.title}\nfilled: measured, mean and deviation over seeds; hollow: the paper"
    figure = style.make_figure(2.2 + 2.7 * wide, 0.8 + high * (0.7 + 0.27 * len(table.rows)), title)
    grid = figure.subplots(high, wide, squeeze=False, sharey=True)
    for axes, place in zip(grid.flat, shown):
        _draw_panel(axes, table, place)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    return figure


def _draw_panel(axes: Any, table: Table, place: int) -> None:
    colours = style.choose_colours([(row.method, row.label) for row in table.rows])
    column = table.columns[place]
    for height, row in enumerate(table.rows):
        cell, colour = row.cells[place], colours[row.label]
        if cell.published is not None:
            axes.plot(
                cell.published.value, height, "D", markersize=7, markerfacecolor="none", markeredgecolor=style.INK, alpha=0.7
            )
        if cell.values:
            axes.errorbar(cell.mean, height, xerr=cell.deviation, fmt="o", markersize=5, color=colour, capsize=2)
        elif cell.diverged:
            axes.text(0.02, height, "diverged", transform=axes.get_yaxis_transform(), color=colour, fontsize=8, va="center")
    arrow = {"higher": ", higher is better", "lower": ", lower is better", "neither": ""}[column.better]
    axes.set_title(textwrap.fill(describe_column(column, table.columns) + arrow, 28), fontsize=9)
    axes.set_yticks(range(len(table.rows)), [row.name for row in table.rows])
    axes.set_ylim(len(table.rows) - 0.5, -0.5)
    axes.margins(x=0.12)


def curve_keys(results: Results) -> list[str]:
    """What learning curves show: the measure that chooses the model, on training and validation samples, and satisfaction."""
    chosen = TASKS[results.task].choose_by
    known = {key for run in results.runs for row in run.curve for key in row}
    return [key for key in dict.fromkeys((f"train_{chosen}", chosen, "train_satisfied", "satisfied")) if key in known]


def draw_curves(results: Results) -> Any:
    """Validation measures against epochs, a line for each method: mean, and a band of one deviation."""
    from matplotlib.ticker import LogFormatter

    keys = curve_keys(results)
    if not keys:
        return None
    rows = _split_groups(group_runs(results))
    crosses = "; x: a run that diverged" if any(run.diverged for run in results.runs) else ""
    title = f"{results.title}: mean and one deviation over seeds{crosses}"
    figure = style.make_figure(_panel_width(group_runs(results)) * len(keys), PANEL_HEIGHT * len(rows) + 0.4, title)
    labels = {column.key: column.label for column in TASKS[results.task].columns}
    falling = {column.key for column in TASKS[results.task].columns if column.better == "lower"}
    grid = figure.subplots(len(rows), len(keys), squeeze=False)
    for axes, (groups, key) in zip(grid.flat, itertools.product(rows, keys)):
        name = key.removeprefix("train_")
        if name in falling:
            axes.set_yscale("log")  # with plain numbers on it
            axes.yaxis.set_major_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
            axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
        drawn = _draw_lines(axes, groups, key)
        axes.set_title(f"{labels.get(name, name)} ({'validation' if name == key else 'training'})")
        axes.set_xlabel("epoch")
        _name_lines(axes, drawn)
    return figure


def _split_groups(groups: list[Group]) -> list[list[Group]]:
    """Too many lines for one panel become two rows: what the paper compares, and the rest between the same two marks."""
    if len(groups) <= MOST_LINES:
        return [groups]
    paper = [group for group in groups if group[0] in PAPER_NAMES]
    rest = [group for group in groups if group not in paper or group[0] in ("none", "dual")]
    return [row for row in (paper, rest) if row]


def _draw_lines(axes: Any, groups: Sequence[Group], key: str) -> list[tuple[str, str, float]]:
    """Draw a line for each method; returns name, colour and last value of each."""
    colours = style.choose_colours([(runs[0].method, label) for label, runs in groups])
    drawn = []
    for order, (label, runs) in enumerate(groups):
        curve = make_curve(runs, key)
        if curve is None:
            continue
        colour = colours[label]
        own = runs[0].method in ("none", "dual")
        axes.plot(curve.epochs, curve.means, color=colour, linewidth=2.4 if own else 1.3, zorder=2 + order)
        least = min(curve.means) / 2 if axes.get_yscale() == "log" else -math.inf
        low = [max(least, mean - deviation) for mean, deviation in zip(curve.means, curve.deviations)]
        high = [mean + deviation for mean, deviation in zip(curve.means, curve.deviations)]
        axes.fill_between(curve.epochs, low, high, color=colour, alpha=0.15, linewidth=0)
        for epoch, value in curve.ends:
            axes.plot(epoch, value, "x", color=colour, markersize=7, zorder=30)
        drawn.append((short_name(runs[0].method, label), colour, curve.means[-1]))
    return drawn


def _panel_width(groups: Sequence[Group]) -> float:
    longest = max(len(short_name(runs[0].method, label)) for label, runs in groups)
    return PANEL_WIDTH + 0.075 * max(0, longest - 16)


def _name_lines(axes: Any, drawn: Sequence[tuple[str, str, float]]) -> None:
    """Name each line at its end; names that would overlap move apart and keep a thin link to their line."""
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [float(to_axes.transform((0, value))[1]) for _, _, value in drawn]
    for (name, colour, _), end, place in zip(drawn, ends, style.spread(ends, min(0.075, 1 / max(1, len(drawn) - 1)))):
        axes.plot([1.01, 1.05], [end, place], color=colour, linewidth=0.8, transform=axes.transAxes, clip_on=False)
        axes.text(1.06, place, name, color=colour, fontsize=8, va="center", transform=axes.transAxes)


def draw_rule(results: Results) -> Any:
    """After the paper's Figure 1: accuracy, then how often each branch of the rule holds; dashed, the mean weight of ``dual`` on
    it times 100, a dash pattern for each group of samples.
    """
    branches = find_branches(results.runs)
    groups = [group for group in group_runs(results) if strip_label(group[0], [FORMER]) in FIGURE_1]
    known = {key for run in results.runs for row in run.curve for key in row}
    names = [name for name in dict.fromkeys(branch.name for branch in branches) if name in known]
    if not names:
        return None
    keys = [TASKS[results.task].choose_by, *names]
    labels = {column.key: column.label for column in TASKS[results.task].columns}
    title = f"{results.title}: how the rule is met. Dashed: mean weight of dual on the branch, times 100"
    figure = style.make_figure(_panel_width(groups) * len(keys), PANEL_HEIGHT + 0.4, title)
    for axes, key in zip(figure.subplots(1, len(keys), squeeze=False).flat, keys):
        drawn = _draw_lines(axes, groups, key)
        axes.set_title(labels.get(key, key) + (" (% of held-out samples)" if key in names else " (validation)"))
        axes.set_xlabel("epoch")
        if key in names:
            axes.set_ylim(-4, 104)
            _draw_weights(axes, groups, [branch for branch in branches if branch.name == key])
        _name_lines(axes, drawn)
    return figure


def _draw_weights(axes: Any, groups: Sequence[Group], branches: Sequence[Branch]) -> None:
    own = next((runs for _, runs in groups if runs[0].method == "dual"), [])
    for dash, branch in zip(DASHES * len(branches), branches):
        curve = make_curve(own, f"pool/{branch.key('weight')}")
        if curve is None:
            continue
        name = f"weight on {branch.group.replace('_', ' ') or 'the pool'}"
        colour = style.COLOURS["dual"]
        axes.plot(curve.epochs, [100 * mean for mean in curve.means], dash, color=colour, linewidth=1.6, label=name, zorder=20)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="center right")


def draw_parts(results: Results) -> Any:
    """After the paper's Figure 2: a panel for each column with a better side, with a bar for each part and method; a line across
    a bar of satisfaction is what the network without the rule satisfies when it is made as certain.
    """
    if not TASKS[results.task].parts:
        return None
    parts = divide(results)
    tables = [make_table(part) for part in parts]
    columns = [column for column in TASKS[results.task].columns if column.better != "neither"]
    every = [row for table in tables for row in table.rows if strip_label(row.label, [FORMER, NEAREST]) == row.method]
    rows = {row.label: row for row in every if row.method != arms.SUPERVISED}
    order = sorted(rows, key=lambda label: order_of(rows[label].method, label))
    if not order:
        return None
    title = (
        f"{TASKS[results.task].title}\nbars: measured, mean and deviation over seeds; diamonds: the paper\n"
        "lines: the network without the rule, made as certain"
    )
    figure = style.make_figure(8.6, 1.2 + 2.1 * len(columns), title)
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


def _draw_group(axes: Any, table: Table, column: Column, order: Sequence[str], colours: dict[str, str], place: int) -> None:
    position = table.columns.index(column)
    matched = table.columns.index(MATCHED) if MATCHED in table.columns and column.key == "satisfied" else None
    width = 0.86 / len(order)
    rows = {row.label: row for row in table.rows}
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
