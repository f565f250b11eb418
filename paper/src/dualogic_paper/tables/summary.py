"""Mean and deviation over seeds with the paper's figure in the same cell, and which differences are more than chance."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from dualogic_paper import arms
from dualogic_paper.comparison import LEVEL, adjust, compare_rows
from dualogic_paper.runner.config import Config
from dualogic_paper.tables import matching
from dualogic_paper.tables.gradient import NO_GRADIENT, NO_GRADIENT_NOTE, teaches
from dualogic_paper.tables.naming import describe_column, group_runs, order_of, shared_changes, show_name, strip_label
from dualogic_paper.tables.published import EPOCH_SECONDS, Published, find_published, methods_of
from dualogic_paper.tables.runs import FORMER, NEAREST, NOT_TOLD, Results, Run
from dualogic_paper.tasks import TASKS, Column

OWN = "dual"
MARKS = {"better": "▲", "level": "≈", "worse": "▼"}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one method reached in one column."""

    values: tuple[float, ...]  # one for each run that did not diverge and has a finite figure
    runs: int  # how many were made
    diverged: int = 0  # how many of them stopped early; their figures are left out of the mean
    decimals: int = 1  # how many are shown
    published: Published | None = None  # the paper's figure
    seeds: tuple[int, ...] = ()  # of the values
    best: bool = False  # the best mean, by more than chance; see :func:`mark_rows`
    mark: str = ""  # better or worse than ``dual``, or level with it; empty if that is not known

    @property
    def by_seed(self) -> dict[int, float]:
        """The values."""
        return dict(zip(self.seeds, self.values))

    @property
    def mean(self) -> float:
        """Over the runs; not a number if there is none."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation (divided by n - 1); ``None`` for one run."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def lacking(self) -> int:
        """Runs that did not diverge and yet have no finite figure."""
        return self.runs - self.diverged - len(self.values)


@dataclasses.dataclass(frozen=True)
class Row:
    """One method with its options."""

    name: str  # shown in the table
    label: str  # of the runs; see :func:`~dualogic_paper.tables.runs.make_label`
    method: str  # the arm
    seeds: str  # how many runs there are, and what became of those that failed
    cells: tuple[Cell, ...]  # one for each column
    teaches: bool = True  # the method's loss has a gradient on the rule; see :mod:`dualogic_paper.tables.gradient`


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells with a heading, ready to be printed in any form."""

    name: str  # unique among all tables
    title: str  # above it
    columns: tuple[Column, ...]  # of numbers
    rows: tuple[Row, ...]  # from top to bottom
    notes: tuple[str, ...]  # sentences below it
    counted: str = "seeds"  # what the last column counts

    @property
    def heads(self) -> list[str]:
        """Of the columns of numbers and of the last one."""
        return [*(describe_column(column, self.columns) for column in self.columns), self.counted]


def make_table(results: Results) -> Table:
    """The main table of a task, or of a part: every method that was run or published, in the order of ``arms.names()``."""
    task = TASKS[results.task]
    columns = task.columns
    if matching.can_match(results.runs):
        columns = (*columns, matching.MATCHED, matching.EQUALLY_CERTAIN)
    timed = not results.times and any(EPOCH_SECONDS in find_published(run.task, run.method, run.hyper) for run in results.runs)
    if timed:
        columns = (*columns, Column(EPOCH_SECONDS, "s / epoch", "neither"))
    rows = [_make_main_row(name, group, columns, results) for name, group in group_runs(results)]
    shown: set[tuple[str, tuple[Published | None, ...]]] = set()
    for place, row in enumerate(rows):  # the paper's figures belong to the first row of a method
        key = (row.method, tuple(cell.published for cell in row.cells))
        if key in shown:
            cells = tuple(dataclasses.replace(cell, published=None) for cell in row.cells)
            rows[place] = dataclasses.replace(row, cells=cells)
        shown.add(key)
    absent = methods_of(results.task, results.runs[0].hyper) - {row.method for row in rows}
    rows += [_unmeasured_row(method, columns, results) for method in absent]
    rows = mark_rows(sorted(rows, key=lambda row: order_of(row.method, row.label)), columns)
    return Table(results.name, results.title, columns, tuple(rows), _make_notes(results, rows, columns, timed))


def make_row(
    label: str, runs: Sequence[Run], results: Results, columns: Sequence[Column], read: Callable[[Run, str], float | None]
) -> Row:
    """A row of figures, which ``read`` finds by a column's key; those of diverged runs are left out and counted."""
    method, diverged, cells = runs[0].method, sum(run.diverged for run in runs), []
    for column in columns:
        found = [(run.seed, read(run, column.key)) for run in runs if not run.diverged]
        kept = {seed: value for seed, value in found if value is not None and math.isfinite(value)}
        cells.append(Cell(tuple(kept.values()), len(runs), diverged, column.decimals, seeds=tuple(kept)))
    shared = shared_changes(results)
    unfinished = sum(strip_label(name, shared) == label for name, _ in results.unfinished)
    seeds = f"{len(runs)}{f', diverged {diverged} of {len(runs)}' if diverged else ''}"
    seeds += f", unfinished {unfinished}" if unfinished else ""
    return Row(show_name(method, label), label, method, seeds, tuple(cells))


def _make_main_row(label: str, runs: Sequence[Run], columns: Sequence[Column], results: Results) -> Row:
    method = runs[0].method
    published = find_published(results.task, method, runs[0].hyper)

    def read(run: Run, key: str) -> float | None:
        if key == EPOCH_SECONDS:
            return float(run.values["seconds"]) / run.hyper["epochs"] if run.hyper.get("epochs") else None
        if key == matching.MATCHED.key:
            return matching.match_temperature(run, results.runs)
        test: dict[str, float] = run.values["test"]
        return matching.equally_certain(test) if key == matching.EQUALLY_CERTAIN.key else test.get(key)

    row = make_row(label, runs, results, columns, read)
    cells = [dataclasses.replace(cell, published=published.get(column.key)) for cell, column in zip(row.cells, columns)]
    if method == arms.NO_RULE and matching.MATCHED in columns:  # at its own entropy it has its own satisfaction
        cells[columns.index(matching.MATCHED)] = Cell((), 0, 0, matching.MATCHED.decimals)
    taught = runs[0].made is None or teaches(runs[0].settled_task, runs[0].made)
    return dataclasses.replace(row, name=row.name + ("" if taught else f", {NO_GRADIENT}"), cells=tuple(cells), teaches=taught)


def _unmeasured_row(method: str, columns: Sequence[Column], results: Results) -> Row:
    published = find_published(results.task, method, results.runs[0].hyper)
    cells = tuple(Cell((), 0, 0, column.decimals, published.get(column.key)) for column in columns)
    unfinished = sum(name.split("[")[0] == method for name, _ in results.unfinished)
    return Row(show_name(method, method), method, method, f"0, unfinished {unfinished}" if unfinished else "not run", cells)


def _make_notes(results: Results, rows: Sequence[Row], columns: Sequence[Column], timed: bool) -> tuple[str, ...]:
    sources = sorted({cell.published.source for row in rows for cell in row.cells if cell.published is not None})
    notes = ["Mean ± standard deviation over seeds, on test samples, of the model chosen on validation samples."]
    if sources:
        notes[0] = notes[0][:-1] + f"; in brackets the paper's figure ({', '.join(sources)})."
    if any(run.diverged for run in results.runs):
        notes.append("Diverged runs are counted and left out of means; a row with one cannot be the best.")
    own = find_own(rows)
    if any(cell.mark for row in rows for cell in row.cells) and own is not None:
        notes.append(
            f"{MARKS['better']} better than {own.name}, {MARKS['level']} level with it, {MARKS['worse']} worse: p < {LEVEL} "
            "after Holm's method over the column, differences taken seed by seed."
        )
    if any(cell.best for row in rows for cell in row.cells):
        notes.append("Bold: the best mean, where the 95 % interval of its difference from the next one is clear of 0.")
    if not all(row.teaches for row in rows):
        notes.append(NO_GRADIENT_NOTE)
    if any(cell.lacking for row in rows for cell in row.cells if row.seeds != "not run"):
        notes.append("Where a number of runs is given behind a figure, only these have it.")
    if matching.MATCHED in columns:
        notes += [matching.MATCHED_NOTE, matching.EQUALLY_CERTAIN_NOTE]
    if timed:
        notes.append("Times of runs that shared a device are longer than those of runs alone.")
    shared = shared_changes(results)
    if shared:
        notes.append(f"All runs: {', '.join(shared)}, otherwise than by default.")
    notes += _describe_settings(results)
    notes += compare_with_paper(rows, columns)
    left_out = [name for name in TASKS[results.task].arms if name not in {row.method for row in rows}]
    if left_out:
        notes.append(f"Not run: {', '.join(left_out)}.")
    notes.append(_describe_origin(results.runs))
    return tuple(notes)


def compare_with_paper(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """Say of each column whether ``dual`` is at the published figure: better, within one deviation of it, or worse."""
    verdicts: dict[str, list[str]] = {"better": [], "within one deviation": [], "worse": []}
    own = find_own(rows)
    if own is None:
        return []
    for column, cell in zip(columns, own.cells):
        if cell.published is None or not cell.values or column.better == "neither":
            continue
        gain = (cell.mean - cell.published.value) * (1 if column.better == "higher" else -1)
        close = abs(gain) <= (cell.deviation or 0.0)
        verdict = "within one deviation" if close else "better" if gain > 0 else "worse"
        difference = "" if close else f" by {abs(gain):.{column.decimals}f}"
        verdicts[verdict].append(f"{describe_column(column, columns)}{difference}")
    words = [f"{verdict}: {', '.join(found)}" for verdict, found in verdicts.items() if found]
    return [f"{own.name} against the paper's: {'; '.join(words)}."] if words else []


def _describe_settings(results: Results) -> list[str]:
    """Which methods had a weight or learning rate of their own, as the results say it, or the task if they do not."""
    own: dict[str, str] = {}
    for run in results.runs:
        if run.made is None:
            continue
        settled = Config(run.settled_task, run.method, weight=run.values["config"].get("weight")).settings
        settings = run.values.get("settings") or settled
        words = [f"weight {settings['weight']:g}"] if settings["weight"] != 1 else []
        rate = settings["learning_rate"]
        words += [f"learning rate {rate:g}"] if rate != run.hyper["learning_rate"] else []
        if words:
            own[run.method] = f"{run.method} with {' and '.join(words)}"
    return [f"Settings of single methods: {', '.join(own.values())}."] if own else []


def _describe_origin(runs: Sequence[Run]) -> str:
    machines = sorted({str(run.values["machine"].get("device", "unknown")) for run in runs})
    commits = sorted({str(run.values["commit"]) for run in runs})
    hours = sum(float(run.values["seconds"]) for run in runs) / 3600
    plural = "s" if len(commits) > 1 else ""
    count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    dates = sorted({str(run.values["date"]) for run in runs if run.values.get("date")})
    when = f", {' to '.join(dict.fromkeys((dates[0], dates[-1])))}" if dates else ""
    return f"{count} on {', '.join(machines)}{when}, {hours:.2f} h of training in all, at commit{plural} {', '.join(commits)}."


def find_own(rows: Sequence[Row]) -> Row | None:
    """The row with which the others are compared: ``dual`` or, where it was not run, what is nearest to it."""
    found = {row.label: row for row in rows if any(cell.values for cell in row.cells)}
    others = (row for row in found.values() if row.method == OWN and FORMER not in row.label)
    labels = [OWN, *(f"{OWN}[{word}]" for word in (NOT_TOLD, NEAREST, FORMER))]
    return next((found[label] for label in labels if label in found), None) or next(others, None)


def mark_rows(rows: Sequence[Row], columns: Sequence[Column]) -> list[Row]:
    """Set ``best`` and ``mark`` of all cells in columns that have a better and a worse.

    The best mean is so by more than chance if the 95 % interval of its difference from the next mean is clear of 0. A row of one
    seed, with a diverged run, or whose method has no gradient cannot be the best; full supervision is left out. A row is better
    or worse than ``dual`` if ``p < 0.05`` after Holm's method over the rows of the column, and else level.
    """
    cells = [list(row.cells) for row in rows]
    own = find_own(rows)
    for position, column in enumerate(columns):
        if column.better == "neither":
            continue
        sign = 1 if column.better == "higher" else -1
        running = [
            number
            for number, row in enumerate(rows)
            if row.method != arms.SUPERVISED and cells[number][position].values and not cells[number][position].diverged
        ]
        ranked = sorted(running, key=lambda number: -sign * cells[number][position].mean)
        if len(ranked) > 1 and rows[ranked[0]].teaches:
            first, second = (cells[number][position].by_seed for number in ranked[:2])
            difference = compare_rows(first, second)
            if difference is not None and difference.is_sure and sign * difference.mean > 0:
                cells[ranked[0]][position] = dataclasses.replace(cells[ranked[0]][position], best=True)
        if own is None:
            continue
        against = own.cells[position].by_seed
        found = {
            number: difference
            for number in running
            if rows[number] is not own and (difference := compare_rows(cells[number][position].by_seed, against)) is not None
        }
        for number, p in zip(found, adjust([difference.p for difference in found.values()])):
            mark = "level" if p >= LEVEL else "better" if sign * found[number].mean > 0 else "worse"
            cells[number][position] = dataclasses.replace(cells[number][position], mark=mark)
    return [dataclasses.replace(row, cells=tuple(found)) for row, found in zip(rows, cells)]
