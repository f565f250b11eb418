"""Satisfaction against certainty: what each network satisfies, whatever the temperature that its logits are divided by."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from dualogic_paper import arms
from dualogic_paper.tables import style
from dualogic_paper.tables.matching import can_match, satisfaction_at
from dualogic_paper.tables.naming import group_runs, short_name
from dualogic_paper.tables.runs import Results, Run

LEAST, MOST, POINTS = 0.1, 2.0, 40
"""Mean entropies that are drawn, in nats."""
TICKS = (2.0, 1.0, 0.5, 0.2, 0.1)


def draw_certainty(results: Results) -> Any:
    """A line for each method, the mean over seeds of satisfaction at each mean entropy; a dot where the network itself is.

    A method whose line is above another's teaches more than certainty; along a line, no prediction changes. ``None`` if
    satisfaction was not measured at several temperatures.
    """
    if not can_match(results.runs):
        return None
    groups = [group for group in group_runs(results) if group[1][0].method != arms.SUPERVISED]
    colours = style.choose_colours([(runs[0].method, label) for label, runs in groups])
    title = f"{results.title}\nlines: logits scaled, no prediction changes; dots: the networks as they are"
    figure = style.make_figure(8.6, 5.0, title)
    axes = figure.subplots()
    for label, runs in groups:
        ended = [run for run in runs if not run.diverged and "entropy" in run.values["test"]]
        line = trace(ended)
        if not line:
            continue
        axes.plot(*zip(*line), color=colours[label], label=short_name(runs[0].method, label))
        own = [statistics.fmean(run.values["test"][key] for run in ended) for key in ("entropy", "satisfied")]
        axes.plot(*own, "o", color=colours[label], markersize=8, markeredgecolor="white", zorder=10)
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.minorticks_off()
    axes.set_xlim(MOST, LEAST)
    axes.set_xlabel("mean entropy (nats), more certain to the right")
    axes.set_title("satisfied (% of test samples)")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def trace(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Mean entropy and satisfaction, from :data:`LEAST` to :data:`MOST`, where every run was measured around that entropy."""
    found = []
    for step in range(POINTS):
        entropy = LEAST * math.exp(math.log(MOST / LEAST) * step / (POINTS - 1))
        values = [satisfaction_at(run.values["test"], entropy) for run in runs]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            found.append((entropy, statistics.fmean(known)))
    return found
