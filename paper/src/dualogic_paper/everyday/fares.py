"""Fares: the price of a ticket, with rules that begin with facts of the input.

A railway has 60 receipts, whose prices were rounded and mistyped, and 1,500 passengers without one. Age and distance are inputs,
in years and kilometres: where a rule applies is known, and only the price can give way. A method that treats 61 years as "hardly
over 60", or lowers the prices of those who are 55, shows in the error.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, holds, percent, rmse
from dualogic_paper.everyday.training import batches, perceptron, train

age, distance, price = dl.var("age"), dl.var("distance"), dl.var("price")
RULES = {
    "old": (age > 60) >> (price <= 5),
    "young": (age < 6) >> (price <= 1),
    "far": ((age >= 18) & (age <= 60) & (distance > 70)) >> (price >= 12),
}


def make_passengers(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw passengers: age in years, distance in kilometres and four meaningless columns ``(n, 6)``; and prices ``(n,)``."""
    generator = torch.Generator().manual_seed(seed)
    years = 90 * torch.rand(count, generator=generator)
    kilometres = 100 * torch.rand(count, generator=generator)
    meaningless = torch.randn(count, 4, generator=generator)
    prices = 3 + 0.15 * kilometres + torch.sin(kilometres / 12)
    prices = torch.where(years < 18, 0.5 * prices, prices)
    prices = torch.where(years > 60, 1 + 0.2 * prices, prices)
    prices = torch.where(years < 6, 0.5, prices)
    return torch.cat([torch.stack([years, kilometres], 1), meaningless], 1), prices


def bind(network: nn.Module, passengers: Tensor) -> dict[str, Tensor]:
    """What the rules are about, by symbol; the network itself sees and says numbers around 0."""
    scaled = passengers.clone()
    scaled[:, 0], scaled[:, 1] = passengers[:, 0] / 25 - 2, passengers[:, 1] / 25 - 2
    return {"age": passengers[:, 0], "distance": passengers[:, 1], "price": 8 + 4 * network(scaled)}


def run(make_loss: LossFactory, seed: int, labelled: int = 60, pool: int = 1500, test: int = 4000, epochs: int = 60) -> Metrics:
    """Train a network on the receipts; errors are those for all, for those whom a rule concerns, and for the others."""
    known, prices = make_passengers(labelled, 100 + seed)
    noted = (prices + torch.randn(labelled, generator=torch.Generator().manual_seed(seed))).round()
    others, _ = make_passengers(pool, 2000 + seed)
    network = nn.Sequential(*perceptron(6, 64, 64, 1), nn.Flatten(0))

    def task_loss() -> Tensor:
        return mse_loss(bind(network, known)["price"], noted) / 4

    steps = batches(pool, 150, epochs, seed)
    train(network, make_loss(RULES, pool), steps, task_loss, lambda index: bind(network, others[index]), decay=1e-2)
    passengers, prices = make_passengers(test, 30000 + seed)
    with torch.no_grad():
        tensors = bind(network, passengers)
    years, kilometres, said = tensors["age"], tensors["distance"], tensors["price"]
    concerned = (years > 60) | (years < 6) | ((years >= 18) & (years <= 60) & (kilometres > 70))
    return {
        "rmse": rmse(said, prices),
        "rmse_concerned": rmse(said[concerned], prices[concerned]),
        "rmse_others": rmse(said[~concerned], prices[~concerned]),
        HELD: percent(holds(RULES, **tensors).all(0)),
        "too_dear_for_others": (said - prices)[~concerned].mean().item(),
    }


ABOUT = "the price of a ticket; rules whose antecedents are facts of the input, such as an age over 60"
PROBLEM = Problem("fares", ABOUT, run, "rmse", "RMSE of the price", lower_is_better=True)
