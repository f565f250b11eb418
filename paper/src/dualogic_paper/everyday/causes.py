"""Causes: why a machine stopped, as one or several of five causes.

Every stop has some cause; the rule is a plain *or* over five outputs. Wear is a cause of three stops in four, so that the *or*
is mostly met by it. A method that also pulls at operands which are not needed gives stops too many causes. There are 60 labelled
stops and 1,500 without.
"""

from functools import partial

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, percent
from dualogic_paper.everyday.training import batches, name_columns, perceptron, train_answers

CAUSES = ("wear", "heat", "dust", "power", "operator")
FEATURES = 16
bind = partial(name_columns, CAUSES)

worn, hot, dusty, powerless, misused = (dl.boolean(cause, input="logits") for cause in CAUSES)
RULE = worn | hot | dusty | powerless | misused


def make_stops(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw stops: features ``(n, 16)`` and causes ``(n, 5)`` of zeros and ones, at least one each."""
    generator = torch.Generator().manual_seed(seed)
    # What each cause does to the features is the same for every seed.
    directions = 0.8 * torch.randn(len(CAUSES), FEATURES, generator=torch.Generator().manual_seed(5))
    chances = torch.tensor([0.75, 0.08, 0.08, 0.08, 0.08])
    causes = (torch.rand(count, len(CAUSES), generator=generator) < chances).float()
    # A stop without a cause gets one of the four rare ones.
    given = torch.randint(1, len(CAUSES), (count,), generator=generator)
    without = causes.sum(1) == 0
    causes[without, given[without]] = 1
    return causes @ directions + torch.randn(count, FEATURES, generator=generator), causes


def run(make_loss: LossFactory, seed: int, labelled: int = 60, pool: int = 1500, test: int = 2000, epochs: int = 30) -> Metrics:
    """Train a network with one output for each cause."""
    known, (others, _) = make_stops(labelled, 100 + seed), make_stops(pool, 2000 + seed)
    network, steps = perceptron(FEATURES, 64, len(CAUSES)), batches(pool, 100, epochs, seed)
    features, causes = make_stops(test, 30000 + seed)
    said, true = train_answers(network, make_loss(RULE, pool), bind, known, others, steps, features) > 0, causes.bool()
    return {
        "f1": sum(f1(said[:, cause], true[:, cause]) for cause in range(len(CAUSES))) / len(CAUSES),
        "f1_wear": f1(said[:, 0], true[:, 0]),
        "exact": percent((said == true).all(1)),
        HELD: percent(said.any(1)),
        "too_many_yes": percent(said) - percent(true),
    }


ABOUT = "one or several of five causes of a stop; a plain *or*, which one operand meets three times in four"
PROBLEM = Problem("causes", ABOUT, run)
