"""Houses: kind and price, from thirteen features; a hundred kinds are labelled, and fifty prices, ten percent off.

Rules say what kinds cost, in euros, and what the number of rooms tells about price and kind. The network works with prices around
0, as one does; the rules have those that people talk about. So a cost may be a hundred thousand.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, holds, percent
from dualogic_paper.everyday.training import batches, perceptron, train

KINDS = ["flat", "house", "villa"]
OFTEN, DEARER = (0.45, 0.4, 0.15), (0.0, 60_000.0, 200_000.0)
FEATURES, MIDDLE, SCALE, MISREAD = 12, 280_000.0, 110_000.0, 0.1

kind = dl.categorical("kind", len(KINDS), classes=KINDS, input="logits")
price, rooms = dl.var("price"), dl.var("rooms")
RULES: dict[str, dl.Formula] = {
    "villa": (kind == "villa") >> (price >= 400_000),
    "flat": (kind == "flat") >> (price <= 350_000),
    "large": (rooms >= 5) >> (price >= 220_000),
    "small": (rooms <= 2) >> ((price <= 300_000) & (kind != "villa")),
    "least": price >= 50_000,
}


def make_houses(count: int, generator: torch.Generator, centres: Tensor, pull: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw houses: features ``(n, 13)``, of which the last tells the rooms; kinds, prices and rooms ``(n,)``."""
    number = torch.randint(1, 8, (count,), generator=generator)
    kinds = torch.multinomial(torch.tensor(OFTEN), count, replacement=True, generator=generator)
    kinds = torch.where((number <= 2) & (kinds == KINDS.index("villa")), 0, kinds)
    features = 0.7 * centres[kinds] + 1.1 * torch.randn(count, FEATURES, generator=generator)
    paid = 120_000 + 30_000 * number + torch.tensor(DEARER)[kinds] + 60_000 * torch.tanh(features @ pull)
    for where, least, most in (
        (kinds == KINDS.index("villa"), 400_000, 1e9),
        (kinds == KINDS.index("flat"), 0, 350_000),
        (number >= 5, 220_000, 1e9),
        (number <= 2, 0, 300_000),
    ):
        paid = torch.where(where, paid.clamp(least, most), paid)
    return torch.cat([features, (number[:, None] - 4.0) / 2], 1), kinds, paid, number.float()


def run(make_loss: LossFactory, seed: int, pool: int = 800, test: int = 2000, epochs: int = 25) -> Metrics:
    """Train one network for both answers."""
    generator = torch.Generator().manual_seed(1000 + seed)
    world = torch.randn(len(KINDS), FEATURES, generator=generator), torch.randn(FEATURES, generator=generator) / FEATURES**0.5
    sorted_houses, sold, others, tests = (make_houses(count, generator, *world) for count in (100, 50, pool, test))
    paid = sold[2] * (1 + MISREAD * torch.randn(len(sold[2]), generator=generator))
    network = perceptron(FEATURES + 1, 48, len(KINDS) + 1)

    def answer(features: Tensor, number: Tensor) -> dict[str, Tensor]:
        said = network(features)
        return {"kind": said[:, :-1], "price": MIDDLE + SCALE * said[:, -1], "rooms": number}

    def task_loss() -> Tensor:
        loss = cross_entropy(network(sorted_houses[0])[:, :-1], sorted_houses[1])
        return loss + mse_loss(network(sold[0])[:, -1], (paid - MIDDLE) / SCALE)

    steps = batches(pool, 80, epochs, seed)
    train(network, make_loss(RULES, pool), steps, task_loss, lambda index: answer(others[0][index], others[3][index]))
    with torch.no_grad():
        said = answer(tests[0], tests[3])
    found, error = said["kind"].argmax(-1), (said["price"] - tests[2]).square().mean() / tests[2].var(correction=0)
    accuracy, explained = percent(found == tests[1]), max(-100.0, 100 * (1 - error.item()))
    return {
        "both": (accuracy + explained) / 2,
        "accuracy": accuracy,
        "explained": explained,
        HELD: percent(holds(RULES, **said).all(0)),
        "too_many": max(percent(found == number) - percent(tests[1] == number) for number in range(len(KINDS))),
    }


ABOUT = "kind and price of houses, from few labels; what kinds cost, in euros"
PROBLEM = Problem("houses", ABOUT, run, "both", "accuracy and R², mean", tuned=True)
