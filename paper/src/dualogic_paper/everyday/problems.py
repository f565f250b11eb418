"""All problems by name, in the order of the tables: those on which defaults were chosen, then those that were only looked at."""

from dualogic_paper.everyday import (
    attributes,
    bags,
    beliefs,
    causes,
    exactly_one,
    fares,
    hidden_digit,
    houses,
    loans,
    members,
    mentions,
    parcels,
    scenes,
    shop,
    stages,
    tags,
    tumours,
    wear,
)
from dualogic_paper.everyday.problem import Problem

MODULES = (
    *(loans, shop, tags, attributes, beliefs, hidden_digit, stages, mentions, parcels),
    *(members, bags, houses),
    *(exactly_one, wear, tumours, fares, causes, scenes),
)
PROBLEMS: dict[str, Problem] = {
    problem.name: problem for module in MODULES for problem in vars(module).values() if isinstance(problem, Problem)
}
