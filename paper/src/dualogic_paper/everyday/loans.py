"""Loans: a grade and an interest rate from a table of applicants.

A lender has 80 past loans, whose grades and rates were noted carelessly, and 2,000 applications without either. The house has
five rules, all true of the world that made the table. Two of them are about the 4 % who once failed to pay: a method that pushes
"8 % or more" on everybody shows in the error of the rate.
"""

import dataclasses

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, softplus

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, holds, percent, rmse
from dualogic_paper.everyday.training import batches, perceptron, train

GRADES = ("A", "B", "C", "D")
INCOME, DEFAULTED = 0, 3
MISTAKES = 0.15  # the share of noted grades that are drawn at random; the noise of noted rates grows with it

grade = dl.categorical("grade", len(GRADES), classes=list(GRADES), input="logits")
rate = dl.var("rate")
rate_with_more_income = dl.var("rate_with_more_income")
defaulted = dl.boolean("defaulted")

RULES = {
    "more income, no higher rate": rate_with_more_income <= rate,
    "grade after a default": defaulted >> grade.isin(["C", "D"]),
    "rate after a default": defaulted >> (rate >= 8),
    "rate of grade D": (grade == "D") >> (rate >= 9),
    "lowest rate": rate >= 5,
}


@dataclasses.dataclass(frozen=True)
class Applicants:
    """A table of applicants, one row each."""

    # income, debt, years in the job, whether they once failed to pay, and six columns that mean nothing, ``(n, 10)``
    features: Tensor
    noted_grades: Tensor  # as they were noted, ``(n,)``
    noted_rates: Tensor  # as they were noted, ``(n,)``
    grades: Tensor  # as they should be, ``(n,)``
    rates: Tensor  # as they should be, ``(n,)``


def make_applicants(count: int, seed: int, mistakes: float = 0.0) -> Applicants:
    """Draw applicants, a share of whose grades is noted at random."""
    generator = torch.Generator().manual_seed(seed)
    income, debt, years = (torch.rand(count, generator=generator) * 2 - 1 for _ in range(3))
    default = (torch.rand(count, generator=generator) < 0.04).float()
    meaningless = torch.randn(count, 6, generator=generator)
    risk = 1.2 * debt - 1.5 * income - 0.4 * years + 0.5 * torch.sin(3 * debt) + 2.5 * default
    grades = torch.bucketize(risk, torch.tensor([-1.0, 0.3, 1.6]))
    grades = torch.where(default.bool(), grades.clamp(min=2), grades)
    rates = 5 + 2 * softplus(risk) + 3 * default
    rates = torch.where(grades == 3, rates.clamp(min=9.0), rates)
    is_mistake = torch.rand(count, generator=generator) < mistakes
    noted_grades = torch.where(is_mistake, torch.randint(0, len(GRADES), (count,), generator=generator), grades)
    noted_rates = rates + 6 * mistakes * torch.randn(count, generator=generator)
    features = torch.cat([torch.stack([income, debt, years, default], 1), meaningless], 1)
    return Applicants(features, noted_grades, noted_rates, grades, rates)


class Lender(nn.Module):
    """A network with two answers: logits of the grade ``(n, 4)`` and the rate ``(n,)``."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*perceptron(10, 64, 64), nn.ReLU())
        self.grade, self.rate = nn.Linear(64, len(GRADES)), nn.Linear(64, 1)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Grade and rate; rates start near 8 %."""
        hidden = self.body(features)
        return self.grade(hidden), 8 + 3 * self.rate(hidden).squeeze(-1)


def bind(lender: Lender, features: Tensor) -> dict[str, Tensor]:
    """What the rules are about, by symbol."""
    richer = features.clone()
    richer[:, INCOME] += 0.5
    grades, rates = lender(features)
    return {"grade": grades, "rate": rates, "rate_with_more_income": lender(richer)[1], "defaulted": features[:, DEFAULTED]}


def run(make_loss: LossFactory, seed: int, labelled: int = 80, pool: int = 2000, test: int = 4000, epochs: int = 60) -> Metrics:
    """Train a lender and compare it with the world as it should be."""
    known = make_applicants(labelled, 100 + seed, MISTAKES)
    others = make_applicants(pool, 2000 + seed, MISTAKES).features
    lender = Lender()

    def task_loss() -> Tensor:
        grades, rates = lender(known.features)
        return cross_entropy(grades, known.noted_grades) + mse_loss(rates, known.noted_rates) / 4

    steps = batches(pool, 200, epochs, seed)
    train(lender, make_loss(RULES, pool), steps, task_loss, lambda index: bind(lender, others[index]), decay=1e-2)
    applicants = make_applicants(test, 30000 + seed)
    with torch.no_grad():
        tensors = bind(lender, applicants.features)
    rates, has_defaulted = tensors["rate"], applicants.features[:, DEFAULTED].bool()
    return {
        "rmse": rmse(rates, applicants.rates),
        "rmse_defaulted": rmse(rates[has_defaulted], applicants.rates[has_defaulted]),
        "accuracy": percent(tensors["grade"].argmax(-1) == applicants.grades),
        HELD: percent(holds(RULES, **tensors).all(0)),
        "too_many_at_8": percent(rates >= 8) - percent(applicants.rates >= 8),
    }


ABOUT = "a grade and a rate from a table; five house rules, two of them about 4 % of the rows"
PROBLEM = Problem("loans", ABOUT, run, "rmse", "RMSE of the rate", lower_is_better=True, tuned=True)
