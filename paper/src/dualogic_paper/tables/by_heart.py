"""How often a rule holds on images that the network was trained on, and on new ones: what was learned, and what by heart.

Runs of CIFAR-100 note how often a superclass has all of the mass, the right one and others; the rule holds on the sum.
"""

import statistics
from collections.abc import Mapping
from typing import Any

from dualogic_paper.tables import style
from dualogic_paper.tables.naming import group_runs, short_name
from dualogic_paper.tables.runs import Results, Run
from dualogic_paper.tables.summary import Table, make_row
from dualogic_paper.tasks import Column
from dualogic_paper.tasks.cifar100 import SUPERCLASSES

RIGHT, OTHERS = "pool/all_holds_true_superclass", "pool/all_holds_others"
MIDDLE = 0.6  # of training, after which the learning rate falls below a half of its highest
COLUMNS = (
    Column("early_pool", "trained on, after 60 % of the epochs", "neither"),
    Column("early_new", "new, then", "neither"),
    Column("pool", "trained on, at the end", "neither"),
    Column("new", "new, at the end", "neither"),
    Column("gap", "difference", "neither"),
    Column("right", "of those trained on that meet it, superclass right", "neither"),
)
NOTE = (
    "Share of images that meet the rule, in percent: of 2,000 unlabelled images that the network was trained on, and of the "
    "validation images. Mean ± standard deviation over seeds."
)


def holds(row: Mapping[str, float]) -> tuple[float, float] | None:
    """From what was measured after an epoch: on how many images of the pool the rule holds, and on how many rightly, in percent.

    >>> holds({RIGHT: 60.0, OTHERS: 1.0})
    (79.0, 60.0)
    """
    return (row[RIGHT] + (SUPERCLASSES - 1) * row[OTHERS], row[RIGHT]) if RIGHT in row and OTHERS in row else None


def make_heart_table(results: Results) -> Table | None:
    """A row for each method; ``None`` if nothing was noted of the pool, or satisfaction not measured."""
    groups = [group for group in group_runs(results) if any(map(_look, group[1]))]
    rows = [make_row(*group, results, COLUMNS, _read) for group in groups]
    title = f"{results.title}: training images and new ones"
    return Table(f"{results.name}-heart", title, COLUMNS, tuple(rows), (NOTE,)) if rows else None


def _look(run: Run) -> list[tuple[float, tuple[float, float], float]]:
    """Epoch, what :func:`holds` gives then, and the satisfaction on new images."""
    return [(row["epoch"], found, row["satisfied"]) for row in run.curve if (found := holds(row)) and "satisfied" in row]


def _read(run: Run, key: str) -> float | None:
    known = _look(run)
    if not known:
        return None
    early = min(known, key=lambda point: abs(point[0] - MIDDLE * known[-1][0]))
    (pool, right), new = known[-1][1:]
    figures = {"early_pool": early[1][0], "early_new": early[2], "pool": pool, "new": new, "gap": pool - new}
    return (100 * right / pool if pool else None) if key == "right" else figures[key]


def draw_heart(results: Results) -> Any:
    """A panel for each method: how often the rule holds over training, on the two kinds of images; ``None`` as above."""
    groups = [group for group in group_runs(results) if any(map(_look, group[1]))]
    if not groups:
        return None
    wide = min(5, len(groups))
    high = -(-len(groups) // wide)
    title = f"{results.title}: the rule holds on % of the images, mean over seeds\nsolid: training images; dashed: new images"
    figure = style.make_figure(2.5 * wide, 2.2 * high + 0.6, title)
    grid = figure.subplots(high, wide, squeeze=False, sharex=True, sharey=True)
    colours = style.choose_colours([(runs[0].method, label) for label, runs in groups])
    for axes, (label, runs) in zip(grid.flat, groups):
        points: dict[float, list[tuple[float, float]]] = {}
        for epoch, (pool, _), new in (point for run in runs for point in _look(run)):
            points.setdefault(epoch, []).append((pool, new))
        epochs = sorted(points)
        for place, dash in enumerate(("-", "--")):
            means = [statistics.fmean(point[place] for point in points[epoch]) for epoch in epochs]
            axes.plot(epochs, means, dash, color=colours[label])
        axes.set_title(short_name(runs[0].method, label).replace("[", "\n["), fontsize=8)
    for axes in grid.flat[len(groups) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel("epoch")
    return figure
