"""What the demo's numbers say: a table, and a sentence about each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualogic.demo.study import NO_RULE, Study
from dualogic.demo.training import Run

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("accuracy", "rule\nmet", "Q:\ncalled\na 6", "not-P:\nturned,\nno 9", "dual weight\non Q: 6s\n/ others", "time")
EXPLANATION = (
    "The rule is P >> Q: what reads as a 9 after half a turn (P) is a 6 (Q). It was meant to be met by Q, calling 6s a 6. The "
    "shortcut is not-P: turned 6s are no longer read as a 9, and the rule asks for nothing. Pool: what the rule sees, only 6s or "
    "all digits. Accuracy (%) on all held-out images; rule met, Q and not-P (%) on held-out 6s, where a class must lead by 0.1. "
    "Dual weight on Q: from 0, all on not-P, to 1, all on Q."
)
MOST = 50.0  # a statement about the held-out 6s is made where it holds for more than this percentage of them


def row_label(method: str) -> str:
    """How a method is called in the table and the figure."""
    return "no rule" if method == NO_RULE else method


def make_table(study: Study) -> Table:
    """All runs, one section for each pool."""
    from rich import box
    from rich.table import Table

    title = f"The 6/9 rule, {study.epochs} epochs, seed {study.seed}"
    table = Table(title=title, caption=EXPLANATION, caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("pool", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for pool in study.pools:
        for position, run in enumerate(study.of_pool(pool)):
            style = "bold" if run.method == "dual" else None
            table.add_row(pool if position == 0 else "", row_label(run.method), *_cells(run), style=style)
        table.add_section()
    return table


def _cells(run: Run) -> list[str]:
    final = run.final
    cells = [f"{value:.1f}" for value in (final.accuracy, final.satisfied, final.q, final.not_p)]
    weights = ["-" if weight is None else f"{weight:.2f}" for weight in (final.weight_sixes, final.weight_others)]
    cells.append("" if final.weight_sixes is None else " / ".join(weights))
    return [*(cells if run.failure is None else ["diverged", "", "", "", ""]), f"{run.seconds:.1f} s"]


def describe_pool(study: Study, pool: str) -> list[str]:
    """What each method did on one pool: a sentence each, chosen by its numbers."""
    runs = study.of_pool(pool)
    baseline = next((run for run in runs if run.method == NO_RULE), None)
    return [describe_run(run, baseline) for run in runs]


def describe_run(run: Run, baseline: Run | None) -> str:
    """Did a run learn the 6, take the shortcut, or something else? The baseline is the run without the rule on the same pool."""
    name = row_label(run.method)
    if run.failure is not None:
        return f"{name}: stopped in epoch {len(run.history)}. {run.failure}"
    final, compared, both = run.final, "", ""
    if baseline is not None and run is not baseline:
        gain = final.accuracy - baseline.final.accuracy
        compared = f", {abs(gain):.1f} {'above' if gain >= 0 else 'below'} no rule"
    if final.q > MOST and final.not_p > MOST and run.method != NO_RULE:
        both = f" It met the rule both ways: {final.not_p:.0f} % of turned 6s no longer read as a 9."
    return f"{name}: {_deed(run, baseline)}; accuracy {final.accuracy:.1f}{compared}.{both}"


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
