"""Code as users write it: strict mypy must accept every line."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import dualogic as dl


def declare() -> dl.Formula:
    price, limits = dl.var("price"), dl.var("limits", 2)
    kind = dl.categorical("kind", 3, classes=["car", "van", "bus"], input="logits")
    paid = dl.boolean("paid")
    rows = dl.axis("rows", max=4)
    present, spans = dl.mask("present", rows), dl.var("spans", rows, 2)
    rule: dl.Formula = (kind == "bus") >> (price >= limits[0] + 1)
    rule &= ~paid | (abs(price - 2) <= limits.max())
    rule &= (spans[:, 0] <= spans[:, 1]).all(where=present)
    return rule & dl.ExactlyOne(kind == 0, kind == 1, paid) & kind.isin([0, "van"])


def cost(rule: dl.Formula, tensors: dict[str, Any]) -> tuple[Tensor, Tensor]:
    return rule.cost(**tensors), rule.to_nnf().satisfied(tol=0.1, **tensors)


class Training(nn.Module):
    """A loss with rules by name, as a part of a network."""

    def __init__(self, rules: dict[str, dl.Formula], samples: int) -> None:
        super().__init__()
        self.logic = dl.LogicLoss(rules, num_samples=samples, method=dl.methods.Dual(step=0.1), weight=0.5)

    def forward(self, index: Tensor, price: Tensor) -> Tensor:
        with self.logic.frozen():
            before: Tensor = self.logic(index, price=price)
        loss: Tensor = self.logic(index, price=price)
        return loss - before


def look(training: Training, rule: dl.Formula) -> list[str]:
    weights: dict[str, Tensor] = training.logic.weights(torch.arange(3))
    delta: Tensor = training.logic.delta
    report: dl.ShortcutReport = dl.diagnose(rule, price=torch.rand(3))
    findings: list[dl.Finding] = dl.lint(rule)
    return [*weights, str(delta), str(report), *(finding.message for finding in findings)]


def read(path: str) -> dict[str, dl.Formula]:
    rules: dl.RuleSet = dl.load_rules(path)
    return {**rules, "one more": dl.parse("x <= 1", {"x": dl.var("x")})}
