"""All problems by name, in the order of the tables: those on which defaults were chosen, then those that were only looked at."""

from dualogic_paper.everyday import (
    attributes,
    beliefs,
    causes,
    exactly_one,
    fares,
    hidden_digit,
    loans,
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

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        loans.PROBLEM,
        shop.PROBLEM,
        tags.PROBLEM,
        attributes.PROBLEM,
        attributes.PROBLEM_WRONG,
        beliefs.PROBLEM,
        hidden_digit.PROBLEM_SIX,
        hidden_digit.PROBLEM_NINE,
        stages.PROBLEM,
        mentions.PROBLEM,
        parcels.PROBLEM,
        parcels.PROBLEM_WEIGHED,
        exactly_one.PROBLEM,
        wear.PROBLEM_ALL_PAIRS,
        wear.PROBLEM_CHOSEN_PAIRS,
        tumours.PROBLEM,
        fares.PROBLEM,
        causes.PROBLEM,
        scenes.PROBLEM,
    )
}
