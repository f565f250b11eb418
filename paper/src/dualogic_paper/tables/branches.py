"""The paper reads the duals as probabilities of how a rule is met; here they are set beside what was measured."""

import collections
import dataclasses
import functools
import math
import re
from collections.abc import Sequence

from dualogic_paper.tables.naming import group_runs
from dualogic_paper.tables.runs import Results, Run
from dualogic_paper.tables.summary import Table, make_row
from dualogic_paper.tasks import TASKS, Column

_KEY = re.compile(r"(?P<branch>.+?)_(?P<kind>weight|holds)(?:_(?P<group>.+))?")
GAP = "gap"


@dataclasses.dataclass(frozen=True)
class Branch:
    """One way to meet the rule, on one group of samples."""

    name: str  # of the operand
    group: str = ""  # of samples; empty for all

    def key(self, kind: str) -> str:
        """The key in ``Result.pool``."""
        return "_".join(part for part in (self.name, kind, self.group) if part)


def find_branches(runs: Sequence[Run]) -> list[Branch]:
    """The branches with both a weight and a share of samples in some run, groups together; one alone in a group says nothing."""
    keys = dict.fromkeys(key for run in runs for key in run.values["pool"])
    matches = [match for match in map(_KEY.fullmatch, keys) if match]
    branches = dict.fromkeys(Branch(match["branch"], match["group"] or "") for match in matches)
    groups = list(dict.fromkeys(branch.group for branch in branches))
    paired = [branch for branch in branches if branch.key("weight") in keys and branch.key("holds") in keys]
    sizes = collections.Counter(branch.group for branch in paired)
    return sorted((branch for branch in paired if sizes[branch.group] > 1), key=lambda branch: groups.index(branch.group))


def make_branch_table(results: Results) -> Table | None:
    """Mean weight on each branch beside the share of pool samples on which it holds; ``None`` if no run has weights."""
    branches = find_branches(results.runs)
    if not branches:
        return None
    labels = {column.key: column.label for column in TASKS[results.task].columns}
    columns: list[Column] = []
    for branch in branches:
        name = labels.get(branch.name, branch.name.replace("_", " "))
        where = f", {branch.group.replace('_', ' ')}" if branch.group else ""
        columns += [
            Column(branch.key("weight"), f"{name}{where}: weight", "neither", 2),
            Column(branch.key("holds"), "holds", "neither", 2),
        ]
    columns.append(Column(GAP, "largest gap", "neither", 2))
    groups = [group for group in group_runs(results) if any(find_branches([run]) for run in group[1])]
    rows = [make_row(*group, results, columns, functools.partial(_read, branches=branches)) for group in groups]
    notes = (
        "Mean weight of the duals on each branch, and the share of pool samples on which that branch holds, at the end of "
        "training; mean ± standard deviation over seeds. Read as probabilities, the two would agree; the largest gap between "
        "them is the last column. Weights sum to 1, while several branches may hold on one sample.",
    )
    return Table(f"{results.name}-branches", f"{results.title}: duals read as probabilities", tuple(columns), tuple(rows), notes)


def _read(run: Run, key: str, branches: Sequence[Branch]) -> float | None:
    pool: dict[str, float] = run.values["pool"]
    if key == GAP:
        pairs = [(pool.get(branch.key("weight"), math.nan), pool.get(branch.key("holds"), math.nan)) for branch in branches]
        gaps = [abs(weight - holds / 100) for weight, holds in pairs]
        return max((gap for gap in gaps if math.isfinite(gap)), default=None)
    value, shares = pool.get(key), {branch.key("holds") for branch in branches}
    return value / 100 if value is not None and key in shares else value
