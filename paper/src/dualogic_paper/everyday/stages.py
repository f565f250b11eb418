"""Stages: which of five stages of sleep each of sixteen moments of a night is, where it is known which may follow which.

Eight nights are labelled and 200 are not. The signal is weak, and the network sees one moment at a time. All changes are allowed
in a night of which the network says the same stage from end to end: a rule that is taught too hard ends there.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, holds, percent
from dualogic_paper.everyday.training import ask, batches, perceptron, train

FOLLOWERS = {
    "wake": ["wake", "light"],
    "light": ["light", "wake", "middle"],
    "middle": ["middle", "deep", "dream", "wake"],
    "deep": ["deep", "middle"],
    "dream": ["dream", "wake", "light"],
}
STAGES, MOMENTS, CHANNELS = list(FOLLOWERS), 16, 8
STAYS = 0.65
NOISE = 1.5

stage = dl.categorical("stage", len(STAGES), shape=(MOMENTS,), classes=STAGES, input="logits")
RULES = {name: ((stage[:-1] == name) >> stage[1:].isin(after)).all() for name, after in FOLLOWERS.items()}


def make_nights(count: int, generator: torch.Generator, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Draw nights: signals ``(n, 16, 8)`` and stages ``(n, 16)``."""
    chances = torch.zeros(len(STAGES), len(STAGES))
    for name, (own, *others) in FOLLOWERS.items():
        row = STAGES.index(name)
        chances[row, STAGES.index(own)] = STAYS
        chances[row, [STAGES.index(other) for other in others]] = (1 - STAYS) / len(others)
    stages = [torch.randint(len(STAGES), (count,), generator=generator)]
    for _ in range(MOMENTS - 1):
        stages.append(torch.multinomial(chances[stages[-1]], 1, generator=generator).squeeze(1))
    nights = torch.stack(stages, 1)
    return centres[nights] + NOISE * torch.randn(count, MOMENTS, CHANNELS, generator=generator), nights


def run(make_loss: LossFactory, seed: int, labelled: int = 8, pool: int = 200, test: int = 300, epochs: int = 100) -> Metrics:
    """Train a network that reads the stage of one moment."""
    generator = torch.Generator().manual_seed(1000 + seed)
    centres = torch.randn(len(STAGES), CHANNELS, generator=generator)
    (known, stages), (others, _), (tests, truth) = (make_nights(n, generator, centres) for n in (labelled, pool, test))
    network, steps = perceptron(CHANNELS, 48, len(STAGES)), batches(pool, 50, epochs, seed)

    def task_loss() -> Tensor:
        return cross_entropy(network(known).flatten(0, 1), stages.flatten())

    train(network, make_loss(RULES, pool), steps, task_loss, lambda index: {"stage": network(others[index])})
    logits = ask(network, tests)
    said = logits.argmax(-1)
    shares = [(percent(said == number), percent(truth == number)) for number in range(len(STAGES))]
    return {
        "accuracy": percent(said == truth),
        HELD: percent(holds(RULES, stage=logits).all(0)),
        "rarest": min(told for told, _ in shares),
        "too_many": max(told - true for told, true in shares),
    }


ABOUT = "stages of sleep, moment by moment; which may follow which"
PROBLEM = Problem("stages", ABOUT, run, "accuracy", "accuracy", tuned=True)
