"""How much of a rule's satisfaction comes from certainty alone: the network without the rule, made as certain; and the figure.

Dividing logits by a temperature changes no prediction, but both the entropy and how often a rule about certainty is satisfied.
"""

import itertools
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from dualogic_paper.arms import NO_RULE, SUPERVISED
from dualogic_paper.tables import style
from dualogic_paper.tables.naming import group_runs, short_name
from dualogic_paper.tables.runs import Results, Run
from dualogic_paper.tasks import Column

MATCHED = Column("matched", "sat. of no rule, as certain", "neither")
MATCHED_NOTE = (
    f"{MATCHED.label}: satisfaction of the network without the rule and of the same seed, its logits divided by the temperature "
    "at which its mean entropy is that of the row (linear between measured temperatures); it shows what certainty alone gives."
)
COMMON_ENTROPY = 0.5
EQUALLY_CERTAIN = Column("equally_certain", f"sat. at {COMMON_ENTROPY} nats", "higher")
EQUALLY_CERTAIN_NOTE = (
    f"{EQUALLY_CERTAIN.label}: satisfaction of each network, its logits divided by the temperature at which its mean entropy is "
    f"{COMMON_ENTROPY} nats; so rows can be compared, whatever their certainty."
)
ABOUT_THE_RULE = ("rule_on", "form", "view")  # hyper-parameters that change nothing where there is no rule
_KEY = re.compile(r"entropy(?P<mark>_t[\d.]+)?")


def can_match(runs: Sequence[Run]) -> bool:
    """Whether some run without a rule was measured at several temperatures."""
    return any(run.method == NO_RULE and len(_points(run.values["test"])) > 1 for run in runs)


def equally_certain(test: Mapping[str, float]) -> float | None:
    """The satisfaction of a run by its test measures, logits scaled to the mean entropy :data:`COMMON_ENTROPY`."""
    return satisfaction_at(test, COMMON_ENTROPY) if len(_points(test)) > 1 else None


def match_temperature(run: Run, runs: Sequence[Run]) -> float | None:
    """The satisfaction of the run without a rule, of the same seed and configuration, at this run's entropy; none if unknown."""
    entropy = run.values["test"].get("entropy")
    for other in runs:
        alike = other.method == NO_RULE and other.seed == run.seed and not other.diverged and _setting(other) == _setting(run)
        if alike and entropy is not None:
            return satisfaction_at(other.values["test"], entropy)
    return None


def satisfaction_at(test: Mapping[str, float], entropy: float) -> float | None:
    """Satisfaction at a mean entropy in nats, between those measured at several temperatures; at 0 the rule holds everywhere.

    >>> test = {"entropy": 2.0, "satisfied": 10.0, "entropy_t0.5": 1.0, "satisfied_t0.5": 50.0}
    >>> [satisfaction_at(test, entropy) for entropy in (2.0, 1.5, 1.0, 0.5, 0.0, 3.0)]
    [10.0, 30.0, 50.0, 75.0, 100.0, None]
    """
    points = [(0.0, 100.0), *_points(test)]
    for (low, at_low), (high, at_high) in itertools.pairwise(points):
        if low <= entropy <= high:
            share = (entropy - low) / (high - low) if high > low else 1.0
            return at_low + share * (at_high - at_low)
    return None


def _points(test: Mapping[str, float]) -> list[tuple[float, float]]:
    """Entropy and satisfaction at each temperature, by entropy."""
    marks = [match["mark"] or "" for match in map(_KEY.fullmatch, test) if match]
    return sorted((test["entropy" + mark], test["satisfied" + mark]) for mark in marks if "satisfied" + mark in test)


def _setting(run: Run) -> dict[str, Any]:
    hyper = {name: value for name, value in run.hyper.items() if name not in ABOUT_THE_RULE}
    return {**hyper, "precision": run.values["config"].get("precision")}


LEAST, MOST, POINTS = 0.1, 2.0, 40  # mean entropies that are drawn, in nats
TICKS = (2.0, 1.0, 0.5, 0.2, 0.1)


def draw_certainty(results: Results) -> Any:
    """A line for each method, the mean over seeds of satisfaction at each mean entropy; a dot where the network itself is."""
    if not can_match(results.runs):
        return None
    groups = [group for group in group_runs(results) if group[1][0].method != SUPERVISED]
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
