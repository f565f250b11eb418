"""All problems by name, in the order of the table."""

from __future__ import annotations

from dualogic.experiments.everyday import attributes, beliefs, loans, shop, tags
from dualogic.experiments.everyday.problem import Problem

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        loans.PROBLEM,
        shop.PROBLEM,
        tags.PROBLEM,
        attributes.PROBLEM,
        attributes.PROBLEM_WRONG,
        beliefs.PROBLEM,
    )
}
