"""The demo's figure: how P, Q and the dual weights evolve, after the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dualogic.demo.study import Study
from dualogic.demo.table import row_label
from dualogic.demo.training import Run
from dualogic.errors import needs

COLOURS = {"none": "#7a7a7a", "hard": "#d1495b", "uniform": "#e09f3e", "dual": "#00798c"}
REST = ("#8e6c8a", "#5b8e7d", "#bc6c25", "#457b9d", "#9a8c98", "#6a994e", "#b56576", "#4d648d", "#a68a64", "#7b5ea7", "#3d5a80")
SIXES, OTHERS = "#00798c", "#b08968"
POOL_NAMES = {"sixes": "only 6s", "mixed": "all digits"}
INK = "#333333"
PANELS = (
    ("Q: 6s called a 6\nwhat the rule was meant to teach", "q"),
    ("P: turned 6s that read as a 9\nlow: met by not-P, the shortcut", "p"),
    ('Where dual puts its weight\nQ, "it is a 6", or not-P, "turned, it is no 9"', None),
)
Series = tuple[str, str, list[float]]


def save_figure(study: Study, path: Path) -> None:
    """Draw all runs of a study, a row for each pool: Q and P on held-out 6s in percent, and the mean dual weights on Q."""
    with needs("demo", "the demo's figure needs matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    pools = study.pools
    height = 2.9 if len({run.method for run in study.runs}) <= 6 else 4.0
    figure = Figure(figsize=(13, height * len(pools) + 0.8), layout="constrained")
    FigureCanvasAgg(figure)
    for axes_row, pool in zip(figure.subplots(len(pools), len(PANELS), squeeze=False, sharex=True), pools):
        runs = study.of_pool(pool)
        for axes, (title, measure) in zip(axes_row, PANELS):
            series = _weights(runs) if measure is None else _percentages(runs, measure)
            _draw(axes, series, study.epochs, top=100.0 if measure else 1.0)
            if measure is None:
                axes.set_yticks([0, 0.5, 1], ["not-P", "equal", "Q"])
            if pool == pools[0]:
                axes.set_title(title, loc="left", fontsize=11, color=INK)
            if pool == pools[-1]:
                axes.set_xlabel("epoch", color=INK)
        axes_row[0].set_ylabel(f"pool of {POOL_NAMES[pool]}\n\n% of held-out 6s", color=INK)
    title = "No label for 6, one rule: if an image reads as a 9 after half a turn (P), it is a 6 (Q)"
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, color=INK)
    figure.savefig(path, dpi=150)


def _percentages(runs: Sequence[Run], measure: str) -> list[Series]:
    spare = iter(REST * len(runs))
    return [
        (row_label(run.method), COLOURS.get(run.method) or next(spare), [getattr(step, measure) for step in run.history])
        for run in runs
    ]


def _weights(runs: Sequence[Run]) -> list[Series]:
    kinds = (("6s", SIXES, "weight_sixes"), ("other digits", OTHERS, "weight_others"))
    steps = [run.history for run in runs if run.method == "dual"]
    found = [(label, colour, [getattr(step, measure) for step in each]) for each in steps for label, colour, measure in kinds]
    return [series for series in found if None not in series[2]]


def _draw(axes: Any, series: Sequence[Series], epochs: int, top: float) -> None:
    axes.set_xlim(0, epochs)
    axes.set_ylim(-0.04 * top, 1.04 * top)
    axes.set_yticks([0, top / 2, top])
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#bbbbbb")
    axes.tick_params(colors="#666666", labelsize=9)
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
    if not series:
        axes.text(0.5, 0.5, "not trained with dual", transform=axes.transAxes, ha="center", va="center", color="#999999")
        return
    for position, (_, colour, values) in enumerate(series):
        # Lines that coincide stay visible: earlier ones are wider and lie below.
        width = 1.8 + 0.4 * min(len(series) - 1 - position, 4)
        axes.plot(range(len(values)), values, color=colour, linewidth=width, solid_capstyle="round", clip_on=False)
    _label(axes, series, top)


def _label(axes: Any, series: Sequence[Series], top: float) -> None:
    """Name each line at its end; names that would overlap move apart and keep a thin link to their line."""
    low, high = (limit / top for limit in axes.get_ylim())
    gap = 0.085 if len(series) <= 8 else 0.062
    ends = [values[-1] / top for _, _, values in series]
    for (label, colour, _), end, place in zip(series, ends, spread(ends, gap)):
        heights = [(height - low) / (high - low) for height in (end, place)]
        axes.plot([1.01, 1.05], heights, color=colour, linewidth=0.8, transform=axes.transAxes, clip_on=False)
        axes.text(1.06, heights[1], label, color=colour, fontsize=9, va="center", transform=axes.transAxes)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move labels apart until neighbours are ``gap`` from each other, close to where they were and within [0, 1] if they fit."""
    order = sorted(range(len(places)), key=lambda item: places[item])
    moved = [places[item] for item in order]
    for position in range(1, len(moved)):
        moved[position] = max(moved[position], moved[position - 1] + gap)
    ceiling = max(1.0, gap * (len(moved) - 1))
    for position in reversed(range(len(moved))):
        moved[position] = min(moved[position], ceiling)
        ceiling = moved[position] - gap
    return [place for _, place in sorted(zip(order, moved))]
