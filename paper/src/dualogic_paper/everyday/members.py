"""Members: which of four kinds a member of a library is, by twelve answers to a survey, five of each kind labelled.

Of all members in the pool the register knows age, income and whether they have a student card; the network does not see these.
House rules say what a kind needs: no child is of age. They conclude with facts, so they can only say what somebody is not.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, holds, percent
from dualogic_paper.everyday.training import ask, batches, perceptron, train

KINDS = ["child", "student", "worker", "retired"]
AGES = ((3.0, 18.0), (17.0, 35.0), (20.0, 66.0), (55.0, 95.0))
MOST_EARNED = (0.0, 8000.0, 42_000.0, 20_000.0)
ANSWERS, SIGNAL = 12, 0.55

kind = dl.categorical("kind", len(KINDS), classes=KINDS, input="logits")
age, income, card = dl.var("age"), dl.var("income"), dl.boolean("card")
RULES: dict[str, dl.Formula] = {
    "child": (kind == "child") >> (age < 18),
    "student": (kind == "student") >> (age < 35),
    "card": (kind == "student") >> card,
    "worker": (kind == "worker") >> (income >= 12_000),
    "retired": (kind == "retired") >> (age >= 55),
}


def make_members(count: int, generator: torch.Generator, centres: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Draw members: answers ``(n, 12)``, kinds ``(n,)``, and what the register knows."""

    def draw() -> Tensor:
        return torch.rand(count, generator=generator)

    kinds = torch.randint(len(KINDS), (count,), generator=generator)
    youngest, oldest = torch.tensor(AGES)[kinds].unbind(1)
    earned = torch.tensor(MOST_EARNED)[kinds] * draw()
    register = {
        "age": torch.lerp(youngest, oldest, 0.999 * draw()),
        "income": torch.where(kinds == KINDS.index("worker"), 12_000 + 30_000 * draw(), earned),
        "card": ((kinds == KINDS.index("student")) | (draw() < 0.3)).float(),
    }
    return SIGNAL * centres[kinds] + torch.randn(count, ANSWERS, generator=generator), kinds, register


def run(make_loss: LossFactory, seed: int, labelled: int = 20, pool: int = 600, test: int = 3000, epochs: int = 30) -> Metrics:
    """Train a small network on the answers."""
    generator = torch.Generator().manual_seed(1000 + seed)
    centres = torch.randn(len(KINDS), ANSWERS, generator=generator)
    (known, kinds, _), (others, _, register), (tests, true, facts) = (
        make_members(count, generator, centres) for count in (labelled, pool, test)
    )
    network = perceptron(ANSWERS, 64, len(KINDS))

    def bind(index: Tensor) -> dict[str, Tensor]:
        return {"kind": network(others[index]), **{name: values[index] for name, values in register.items()}}

    steps = batches(pool, 60, epochs, seed)
    train(network, make_loss(RULES, pool), steps, lambda: cross_entropy(network(known), kinds), bind)
    said = ask(network, tests)
    found = said.argmax(-1)
    return {
        "accuracy": percent(found == true),
        HELD: percent(holds(RULES, kind=said, **facts).all(0)),
        "too_many": max(percent(found == number) - percent(true == number) for number in range(len(KINDS))),
    }


ABOUT = "kinds of members by a survey, five labels each; rules that conclude with facts of a register, such as an age"
PROBLEM = Problem("members", ABOUT, run, "accuracy", "accuracy", tuned=True)
