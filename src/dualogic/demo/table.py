"""The demo's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualogic.demo.study import NO_RULE, Study
from dualogic.demo.training import Run

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("accuracy", "rule\nmet", "Q:\ncalled\na 6", "not-P:\nturned,\nno 9", "weight on Q\n6s / others", "time")
EXPLANATION = (
    "The rule is P >> Q: what reads as a 9 after half a turn (P) is a 6 (Q). It was meant to be met by Q, calling 6s a 6. The "
    "shortcut is not-P: turned 6s are no longer read as a 9, and the rule asks for nothing. Pool: what the rule sees, only 6s or "
    "all digits. Accuracy (%) on all held-out images; rule met, Q and not-P (%) on held-out 6s, where a class must lead by 0.1. "
    "Weight on Q: from 0, all on not-P, to 1, all on Q."
)


def row_label(method: str) -> str:
    """How a method is called in the table and the figure.

    Example:
        >>> row_label("none"), row_label("dual")
        ('no rule', 'dual')
    """
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
    duration = f"{run.seconds:.1f} s"
    if run.failure is not None:
        return ["diverged", "", "", "", "", duration]
    percentages = [f"{value:.1f}" for value in (final.accuracy, final.satisfied, final.q, final.not_p)]
    if final.weight_sixes is None:
        weights = ""
    else:
        weights = f"{final.weight_sixes:.2f} / {'-' if final.weight_others is None else f'{final.weight_others:.2f}'}"
    return [*percentages, weights, duration]


def to_markdown(results: dict[str, Any], pool: str) -> str:
    """The runs on one pool as a Markdown table, from what ``dualogic demo`` saves in ``results.json``."""
    lines = ["| method | accuracy | rule satisfied | not-P | Q | weight on Q: 6s / others |", "|---|---|---|---|---|---|"]
    for run in results["runs"]:
        if run["pool"] != pool:
            continue
        final = run["final"]
        numbers = [f"{final[key]:.1f}" for key in ("accuracy", "satisfied", "not_p", "q")]
        weights = "" if final["weight_sixes"] is None else f"{final['weight_sixes']:.2f} / {final['weight_others']:.2f}"
        lines.append(f"| {row_label(run['method'])} | {' | '.join(numbers)} | {weights} |")
    return "\n".join(lines)
