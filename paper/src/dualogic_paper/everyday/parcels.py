"""Parcels: which of four kinds a thing is, and how many kilograms it has, from ten features.

The kind is labelled for 200 things; the weight for sixty others, fifteen percent off: the kind is known much better. Rules say
which weights a kind can have (``parcels``), or which kinds a weight leaves (``parcels_weighed``).
"""

import functools

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, holds, percent
from dualogic_paper.everyday.training import batches, perceptron, train

KINDS = {"letter": (0.0, 1.0, 0.35), "packet": (0.5, 5.0, 0.3), "parcel": (4.0, 32.0, 0.25), "pallet": (30.0, 80.0, 0.1)}
"""The least and greatest weight of each kind, and how often it comes."""
FEATURES, NOISE, MISREAD = 10, 1.1, 0.15
MIDDLE, SCALE = 12.0, 15.0

kind, kg = dl.categorical("kind", len(KINDS), classes=list(KINDS), input="logits"), dl.var("kg")
BY_KIND = {name: (kind == name) >> ((kg >= low) & (kg <= high)) for name, (low, high, _) in KINDS.items()}
BY_WEIGHT = {
    "very light": (kg < 0.5) >> (kind == "letter"),
    "light": (kg < 4) >> kind.isin(["letter", "packet"]),
    "heavy": (kg > 5) >> kind.isin(["parcel", "pallet"]),
    "very heavy": (kg > 32) >> (kind == "pallet"),
}


def make_things(count: int, generator: torch.Generator, centres: Tensor, pull: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Draw things: features ``(n, 10)``, kinds and weights ``(n,)``."""
    low, high, often = torch.tensor(list(KINDS.values())).unbind(1)
    kinds = torch.multinomial(often, count, replacement=True, generator=generator)
    features = centres[kinds] + NOISE * torch.randn(count, FEATURES, generator=generator)
    return features, kinds, torch.lerp(low[kinds], high[kinds], torch.sigmoid(1.5 * features @ pull))


def run(
    rules: dict[str, dl.Formula], make_loss: LossFactory, seed: int, pool: int = 700, test: int = 2000, epochs: int = 40
) -> Metrics:
    """Train one network for both answers."""
    generator = torch.Generator().manual_seed(1000 + seed)
    world = torch.randn(len(KINDS), FEATURES, generator=generator), torch.randn(FEATURES, generator=generator) / FEATURES**0.5
    sorted_things, weighed, others, tests = (make_things(n, generator, *world) for n in (200, 60, pool, test))
    weights = weighed[2] * (1 + MISREAD * torch.randn(len(weighed[2]), generator=generator))
    network = perceptron(FEATURES, 64, 64, len(KINDS) + 1)

    def answer(features: Tensor) -> dict[str, Tensor]:
        said = network(features)
        return {"kind": said[:, :-1], "kg": MIDDLE + SCALE * said[:, -1]}

    def task_loss() -> Tensor:
        loss = cross_entropy(answer(sorted_things[0])["kind"], sorted_things[1])
        return loss + mse_loss(answer(weighed[0])["kg"] / SCALE, weights / SCALE)

    steps = batches(pool, 70, epochs, seed)
    train(network, make_loss(rules, pool), steps, task_loss, lambda index: answer(others[0][index]), rate=2e-3)
    with torch.no_grad():
        said = answer(tests[0])
    found, error = said["kind"].argmax(-1), (said["kg"] - tests[2]).square().mean() / tests[2].var(correction=0)
    accuracy, explained = percent(found == tests[1]), 100 * (1 - error.item())
    return {
        "both": (accuracy + explained) / 2,
        "accuracy": accuracy,
        "explained": explained,
        HELD: percent(holds(rules, **said).all(0)),
        "too_many": max(percent(found == number) - percent(tests[1] == number) for number in range(len(KINDS))),
    }


ABOUT = "kind and weight of what is sent, from few labels; "
PROBLEM, PROBLEM_WEIGHED = (
    Problem(name, ABOUT + told, functools.partial(run, rules), "both", "accuracy and R², mean", tuned=True)
    for name, told, rules in (
        ("parcels", "which weights a kind can have", BY_KIND),
        ("parcels_weighed", "which kinds a weight leaves", BY_WEIGHT),
    )
)
