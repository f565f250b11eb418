"""Wear: how worn a tool is, from twelve noisy readings of its sensors.

Forty tools were taken apart and measured. Of four hundred others the hours in use are known, and more hours never mean less
wear; the hours are no input of the network. In ``wear_all_pairs`` a batch gives all its pairs, with the order of the hours as the
antecedent and one row of weights. In ``wear_chosen_pairs`` two thousand pairs are chosen beforehand, with a row for each.
"""

import dataclasses
import functools

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, percent, rmse
from dualogic_paper.everyday.training import ask, batches, perceptron, take_step

SENSORS, LABELLED = 12, 40

hours_of_one, hours_of_other = dl.var("hours_of_one"), dl.var("hours_of_other")
wear_of_one, wear_of_other = dl.var("wear_of_one"), dl.var("wear_of_other")
ALL_PAIRS = (hours_of_one <= hours_of_other) >> (wear_of_one <= wear_of_other)
CHOSEN_PAIRS = wear_of_one <= wear_of_other


@dataclasses.dataclass(frozen=True)
class Tools:
    """Tools, one row each."""

    readings: Tensor  # of the sensors, ``(n, 12)``
    hours: Tensor  # in use, in thousands, ``(n,)``
    wear: Tensor  # how worn they are, ``(n,)``; grows with the hours


def make_tools(count: int, seed: int) -> Tools:
    """Draw tools. What the sensors mean is the same for every seed; each sees the hours through a curve of its own."""
    generator = torch.Generator().manual_seed(seed)
    sensors = torch.Generator().manual_seed(11)
    pitch, phase = 1 + 2 * torch.rand(SENSORS, generator=sensors), 6 * torch.rand(SENSORS, generator=sensors)
    hours = 3 * torch.rand(count, generator=generator)
    wear = hours.sqrt() + (3 * (hours - 1.5)).sigmoid()
    readings = torch.sin(hours.unsqueeze(1) * pitch + phase) + 0.5 * torch.randn(count, SENSORS, generator=generator)
    return Tools(readings, hours, wear)


def choose_pairs(hours: Tensor, count: int, seed: int) -> Tensor:
    """Pairs of tools, the one with fewer hours first, ``(count, 2)``."""
    pairs = torch.randint(0, len(hours), (count, 2), generator=torch.Generator().manual_seed(seed))
    swapped = hours[pairs[:, 0]] > hours[pairs[:, 1]]
    return torch.where(swapped.unsqueeze(1), pairs.flip(1), pairs)


def run(
    make_loss: LossFactory, seed: int, chosen: bool, pool: int = 400, pairs: int = 2000, test: int = 2000, epochs: int = 40
) -> Metrics:
    """Train a network on the tools that were measured and on the order of the others."""
    known, others = make_tools(LABELLED, 100 + seed), make_tools(pool, 1000 + seed)
    noted = known.wear + 0.2 * torch.randn(LABELLED, generator=torch.Generator().manual_seed(seed))
    network = nn.Sequential(*perceptron(SENSORS, 64, 64, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=1e-4)
    logic = make_loss(CHOSEN_PAIRS, pairs) if chosen else make_loss(ALL_PAIRS)
    listed = choose_pairs(others.hours, pairs, seed)
    for index in batches(pairs, 5 * 32, epochs, seed) if chosen else batches(pool, 32, epochs, seed):
        loss = mse_loss(network(known.readings), noted)
        if logic is not None and chosen:
            wear = network(others.readings[listed[index]].flatten(0, 1)).view(-1, 2)
            loss = loss + logic(index, wear_of_one=wear[:, 0], wear_of_other=wear[:, 1])
        elif logic is not None:
            loss = loss + logic(**bind_all_pairs(others.hours[index], network(others.readings[index])))
        take_step(optimizer, loss)
    tools = make_tools(test, 5000 + seed)
    said = ask(network, tools.readings)
    order = choose_pairs(tools.hours, 10 * len(said), seed=0)
    return {
        "rmse": rmse(said, tools.wear),
        HELD: percent(said[order[:, 0]] <= said[order[:, 1]]),
        # A network that calls all tools equally worn meets the rule, so a spread below 100 % says that the rule flattens.
        "spread": 100 * (said.std() / tools.wear.std()).item(),
        "too_high": (said - tools.wear).mean().item(),
    }


def bind_all_pairs(hours: Tensor, wear: Tensor) -> dict[str, Tensor]:
    """Every pair of a batch once, in no order of the hours."""
    one, other = torch.combinations(torch.arange(len(hours))).T
    return {"hours_of_one": hours[one], "hours_of_other": hours[other], "wear_of_one": wear[one], "wear_of_other": wear[other]}


ABOUT_ALL = "the wear of tools from noisy sensors; more hours, no less wear, on all pairs of a batch with one row of weights"
ABOUT_CHOSEN = "the same on two thousand pairs that are chosen beforehand"
PROBLEM_ALL_PAIRS, PROBLEM_CHOSEN_PAIRS = (
    Problem(name, about, functools.partial(run, chosen=chosen), "rmse", "RMSE of the wear", lower_is_better=True)
    for name, about, chosen in (("wear_all_pairs", ABOUT_ALL, False), ("wear_chosen_pairs", ABOUT_CHOSEN, True))
)
