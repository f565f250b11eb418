"""Mentions: which of five mentions in a text are of the same thing, where *the same* is symmetric and transitive.

The network sees two mentions at a time. Fifteen texts are labelled and 300 are not. The rules are met by a network that says no
to all: a rule that is taught too hard ends there.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, holds, percent
from dualogic_paper.everyday.training import ask, batches, perceptron, train

MENTIONS, THINGS, FEATURES = 5, 3, 6
NOISE = 0.6
PAIRS = [(i, j) for i in range(MENTIONS) for j in range(MENTIONS) if i != j]
PLACES = {pair: place for place, pair in enumerate(PAIRS)}
TRIPLES = [(i, j, k) for i, j in PAIRS for k in range(MENTIONS) if k not in (i, j)]
FIRST, SECOND = torch.tensor(PAIRS).unbind(1)

same = dl.boolean("same", len(PAIRS), input="logits")
RULES = {
    "symmetric": (same >> same[[PLACES[j, i] for i, j in PAIRS]]).all(),
    "transitive": (
        (same[[PLACES[i, j] for i, j, _ in TRIPLES]] & same[[PLACES[j, k] for _, j, k in TRIPLES]])
        >> same[[PLACES[i, k] for i, _, k in TRIPLES]]
    ).all(),
}


def make_texts(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw texts: features of ordered pairs of mentions ``(n, 20, 18)``, and whether both are of the same thing, ``(n, 20)``."""
    things = torch.randint(THINGS, (count, MENTIONS), generator=generator)
    looks = torch.randn(count, THINGS, FEATURES, generator=generator)
    noise = NOISE * torch.randn(count, MENTIONS, FEATURES, generator=generator)
    mentions = looks[torch.arange(count).unsqueeze(1), things] + noise
    first, second = mentions[:, FIRST], mentions[:, SECOND]
    return torch.cat([first, second, first * second], -1), things[:, FIRST] == things[:, SECOND]


def run(make_loss: LossFactory, seed: int, labelled: int = 15, pool: int = 300, test: int = 500, epochs: int = 60) -> Metrics:
    """Train a network that compares two mentions."""
    generator = torch.Generator().manual_seed(6000 + seed)
    (known, labels), (others, _), (tests, truth) = (make_texts(n, generator) for n in (labelled, pool, test))
    network = nn.Sequential(*perceptron(3 * FEATURES, 48, 1), nn.Flatten(-2))

    def task_loss() -> Tensor:
        return binary_cross_entropy_with_logits(network(known), labels.float())

    steps = batches(pool, 50, epochs, seed)
    train(network, make_loss(RULES, pool), steps, task_loss, lambda index: {"same": network(others[index])})
    logits = ask(network, tests)
    said = logits > 0
    return {
        "f1": f1(said.flatten(), truth.flatten()),
        HELD: percent(holds(RULES, same=logits).all(0)),
        "too_many_yes": percent(said) - percent(truth),
    }


PROBLEM = Problem("mentions", "which mentions in a text are of the same thing; symmetric and transitive", run, tuned=True)
