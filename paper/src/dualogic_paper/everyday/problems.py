"""All problems by name, in the order of the tables: those on which defaults were chosen, then those that were only looked at."""

import importlib

from dualogic_paper.everyday.problem import Problem

FILES = (
    *("loans", "shop", "tags", "attributes", "beliefs", "hidden_digit", "stages", "mentions", "parcels"),
    *("members", "bags", "houses"),
    *("exactly_one", "wear", "tumours", "fares", "causes", "scenes"),
)
PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for file in FILES
    for problem in vars(importlib.import_module(f"dualogic_paper.everyday.{file}")).values()
    if isinstance(problem, Problem)
}
