"""Runs as tables in Markdown: one for each problem with a row for each method, and a short one with a row for each problem."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from dualogic.errors import DataError
from dualogic_paper.comparison import Difference, compare
from dualogic_paper.everyday.problem import HELD, Problem
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.setting import METHODS, Setting
from dualogic_paper.everyday.store import Run
from dualogic_paper.pages import pipe_table, replace_block

NO_RULE, DUAL = Setting("none"), Setting("dual")
NO_RUNS = "No runs yet."
REFUSALS = ("OptionError", "FormulaTypeError", "SizeError")


@dataclasses.dataclass(frozen=True)
class Row:
    """All seeds of one method on one problem."""

    setting: Setting  # the method
    figures: Mapping[int, float]  # the primary figure by seed
    held: Mapping[int, float]  # how often the rules hold, by seed
    failed: int  # how many seeds have no figure
    failure: str | None  # why, for one of them

    @property
    def mean(self) -> float:
        """Of the primary figure."""
        return statistics.mean(self.figures.values())

    def show(self, problem: Problem) -> tuple[str, str]:
        """The mean figure, and how often the rules hold."""
        return f"{self.mean:.{problem.decimals}f}", f"{statistics.mean(self.held.values()):.1f}"


def collect(problem: Problem, runs: Sequence[Run]) -> dict[Setting, Row]:
    """The rows of a problem, in the order of the methods."""
    by_setting: dict[Setting, list[Run]] = {}
    for run in runs:
        if run.problem == problem.name:
            by_setting.setdefault(Setting(run.method, run.weight), []).append(run)
    rows = {}
    for setting in sorted(by_setting, key=lambda one: (METHODS.index(one.name), one.method, -one.weight)):
        found = {run.seed: run for run in by_setting[setting]}
        good = {seed: run.metrics for seed, run in sorted(found.items()) if run.failure is None}
        rows[setting] = Row(
            setting,
            {seed: metrics[problem.primary] for seed, metrics in good.items()},
            {seed: metrics[HELD] for seed, metrics in good.items()},
            len(found) - len(good),
            next((run.failure for run in found.values() if run.failure is not None), None),
        )
    return rows


def gain(problem: Problem, row: Row, reference: Row | None) -> Difference | None:
    """By how much a method is better than another, whichever way the figure counts."""
    if reference is None or not row.figures:
        return None
    better, worse = (reference, row) if problem.lower_is_better else (row, reference)
    return compare(better.figures, worse.figures)


def best_other(problem: Problem, rows: Mapping[Setting, Row]) -> Row | None:
    """The best method besides ``dual`` and no rule, by its mean; one that fails with some seeds does not count."""
    known = (NO_RULE.name, DUAL.name)
    others = [row for row in rows.values() if row.setting.name not in known and row.figures and not row.failed]
    return (min if problem.lower_is_better else max)(others, key=lambda row: row.mean, default=None)


def make_problem_table(problem: Problem, runs: Sequence[Run]) -> str:
    """A row for each method: its figure, how often the rules hold, and how much better it is than no rule and than ``dual``."""
    rows, cells = collect(problem, runs), []
    for setting, row in rows.items():
        name = setting.label if setting == NO_RULE else f"`{setting.label}`"
        if not row.figures:
            kind = (row.failure or "").partition(":")[0]
            cells.append((name, "refuses such rules" if kind in REFUSALS else kind, "", "", "", "0"))
            continue
        to_no_rule, to_dual = (
            "" if setting == reference else _show_difference(problem, gain(problem, row, rows.get(reference)))
            for reference in (NO_RULE, DUAL)
        )
        seeds = f"{len(row.figures)} of {len(row.figures) + row.failed}" if row.failed else str(len(row.figures))
        cells.append((name, *row.show(problem), to_no_rule, to_dual, seeds))
    heads = ("method", problem.title, "rules held, %", "better than no rule by", "better than `dual` by", "seeds")
    return pipe_table(heads, cells)


def make_short_table(runs: Sequence[Run]) -> str:
    """A row for each problem: no rule, ``dual``, and the best other method, with the share of rules held in parentheses."""
    lines = []
    for problem in PROBLEMS.values():
        rows = collect(problem, runs)
        if not rows:
            continue
        plain, dual, other = rows.get(NO_RULE), rows.get(DUAL), best_other(problem, rows)
        cells = ["" if row is None or not row.figures else "{} ({})".format(*row.show(problem)) for row in (plain, dual, other)]
        if other is not None:
            cells[2] = f"`{other.setting.label}` {cells[2]}"
        difference = "" if dual is None else _show_difference(problem, gain(problem, dual, plain))
        arrow = "lower is better" if problem.lower_is_better else "%"
        lines.append((f"`{problem.name}`", f"{problem.title}, {arrow}", *cells, difference))
    heads = ("problem", "figure", "no rule", "`dual`", "best other", "`dual` better than no rule by")
    return pipe_table(heads, lines) if lines else NO_RUNS


def make_problem_tables(runs: Sequence[Run]) -> str:
    """The tables of all problems that have runs, each under its name."""
    present = {run.problem for run in runs}
    parts = [
        f"### {problem.name}\n\n{problem.about[0].upper()}{problem.about[1:]}.\n\n{make_problem_table(problem, runs)}"
        for problem in PROBLEMS.values()
        if problem.name in present
    ]
    return "\n\n".join(parts) or NO_RUNS


def make_tables(runs: Sequence[Run]) -> str:
    """The short table, then those of the problems."""
    return f"{make_short_table(runs)}\n\n{make_problem_tables(runs)}" if runs else NO_RUNS


def _show_difference(problem: Problem, difference: Difference | None) -> str:
    if difference is None:
        return ""
    digits = problem.decimals
    if math.isinf(difference.margin):
        return f"{difference.mean:+.{digits}f}"
    low, high = difference.mean - difference.margin, difference.mean + difference.margin
    text = f"{difference.mean:+.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
    return f"**{text}**" if difference.is_sure else text


def list_problems(runs: Sequence[Run]) -> str:
    """One line for each problem; those by which defaults were chosen first."""
    groups = {
        "The defaults of `dual` were chosen on these, with seeds from 20 on:": True,
        "These were only looked at meanwhile, with the same seeds from 20 on:": False,
    }
    parts = []
    for heading, tuned in groups.items():
        rows = [(f"`{problem.name}`", problem.about, problem.title) for problem in PROBLEMS.values() if problem.tuned == tuned]
        parts += [heading, pipe_table(("problem", "what is learned, by which rules", "figure"), rows)]
    return "\n\n".join(parts)


BLOCKS: dict[str, Callable[[Sequence[Run]], str]] = {  # what stands between ``<!-- NAME -->`` and ``<!-- /NAME -->`` of pages
    "everyday": make_short_table,
    "everyday problems": list_problems,
    "everyday tables": make_problem_tables,
}


def update_page(page: str, runs: Sequence[Run]) -> str:
    """A page with its blocks made from runs; refuses one without a block, or with a block that has no end."""
    names = [name for name in BLOCKS if f"<!-- {name} -->" in page]
    if not names:
        raise DataError(f"the page has no marker to put a table at; add <!-- {' -->, <!-- '.join(BLOCKS)} --> and its end")
    for name in names:
        page = replace_block(page, name, BLOCKS[name](runs))
    return page
