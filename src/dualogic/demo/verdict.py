"""What the numbers say, in words."""

from __future__ import annotations

from dualogic.demo.study import NO_RULE, Study
from dualogic.demo.training import Run

MOST = 50.0
"""A statement about the held-out 6s is made where it holds for more than this percentage of them."""


def describe_pool(study: Study, pool: str) -> list[str]:
    """What each method did on one pool: a sentence each, chosen by its numbers."""
    runs = study.of_pool(pool)
    baseline = next((run for run in runs if run.method == NO_RULE), None)
    return [describe_run(run, baseline) for run in runs]


def describe_run(run: Run, baseline: Run | None) -> str:
    """Did a run learn the 6, take the shortcut, or something else?

    Args:
        run: the run.
        baseline: the run without the rule on the same pool; accuracies are compared with it.
    """
    name = "no rule" if run.method == NO_RULE else run.method
    if run.failure is not None:
        return f"{name}: stopped in epoch {len(run.history)}. {run.failure}"
    return f"{name}: {_deed(run, baseline)}; {_compare(run, baseline)}.{_denial(run)}"


def _deed(run: Run, baseline: Run | None) -> str:
    final = run.final
    if final.q > MOST:
        if baseline is not None and final.accuracy < baseline.final.accuracy:
            return f"calls {final.q:.0f} % of 6s a 6, but also {final.false_six:.0f} % of the other digits"
        return f"learned the 6 without a label (Q {final.q:.0f} %)"
    if run.method == NO_RULE:
        return f"did not learn the 6 (Q {final.q:.0f} %)"
    if final.satisfied > MOST:
        return f"took the shortcut, the rule met on {final.satisfied:.0f} % of 6s but Q on {final.q:.0f} %"
    return f"did not meet the rule (on {final.satisfied:.0f} % of 6s)"


def _compare(run: Run, baseline: Run | None) -> str:
    accuracy = f"accuracy {run.final.accuracy:.1f}"
    if baseline is None or run is baseline:
        return accuracy
    gain = run.final.accuracy - baseline.final.accuracy
    return f"{accuracy}, {abs(gain):.1f} {'above' if gain >= 0 else 'below'} no rule"


def _denial(run: Run) -> str:
    """A network that meets Q and denies P has met the rule both ways."""
    final = run.final
    if final.q > MOST and final.not_p > MOST and run.method != NO_RULE:
        return f" It met the rule both ways: {final.not_p:.0f} % of turned 6s no longer read as a 9."
    return ""
