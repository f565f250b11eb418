"""Bags: which of six parts of a thing are faulty, where for most things only the whole was looked at.

Twenty things have a label for each part. Of 500 others it is known whether they have a fault, and not where: a thing has one if
and only if some part has. Half of that rule is a fact of the data, and the rule can be met by the other half alone.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, holds, percent
from dualogic_paper.everyday.training import ask, batches, perceptron, train

PARTS, FEATURES, LIMIT = 6, 8, 1.2

faulty_part, faulty = dl.boolean("faulty_part", PARTS, input="logits"), dl.boolean("faulty")
RULES: dict[str, dl.Formula] = {"whole": dl.Iff(faulty, faulty_part.any())}


def run(make_loss: LossFactory, seed: int, labelled: int = 20, pool: int = 500, test: int = 1500, epochs: int = 15) -> Metrics:
    """Train a network that looks at one part at a time."""
    generator = torch.Generator().manual_seed(1000 + seed)
    direction = torch.randn(FEATURES, generator=generator)

    def make_things(count: int) -> tuple[Tensor, Tensor]:
        features = torch.randn(count, PARTS, FEATURES, generator=generator)
        return features, features @ direction / direction.norm() > LIMIT

    (known, answers), (others, hidden), (tests, true) = (make_things(count) for count in (labelled, pool, test))
    network = nn.Sequential(perceptron(FEATURES, 32, 1), nn.Flatten(-2))

    def task_loss() -> Tensor:
        return binary_cross_entropy_with_logits(network(known), answers.float())

    def bind(index: Tensor) -> dict[str, Tensor]:
        return {"faulty_part": network(others[index]), "faulty": hidden[index].any(1).float()}

    train(network, make_loss(RULES, pool), batches(pool, 50, epochs, seed), task_loss, bind)
    said = ask(network, tests)
    return {
        "f1": f1(said > 0, true),
        HELD: percent(holds(RULES, faulty_part=said, faulty=true.any(1).float()).all(0)),
        "too_many_yes": percent(said > 0) - percent(true),
    }


ABOUT = "faults of parts, where mostly the whole was looked at; a whole has a fault if and only if some part has"
PROBLEM = Problem("bags", ABOUT, run, tuned=True)
