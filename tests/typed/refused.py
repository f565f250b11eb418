"""Mistakes that strict mypy must see: an unused ``type: ignore`` is an error, and so is one of another kind."""

from __future__ import annotations

import torch

import dualogic as dl


def mistakes(rule: dl.Formula, logic: dl.LogicLoss) -> tuple[list[int], str]:
    dl.var(3)  # type: ignore[arg-type]
    dl.categorical("kind", "three")  # type: ignore[arg-type]
    dl.categorical("kind", 3, inputs="logits")  # type: ignore[call-arg]
    dl.LogicLoss("x <= 1")  # type: ignore[arg-type]
    dl.LogicLoss(rule, samples=3)  # type: ignore[call-arg]
    dl.methods.Dual(steps=0.1)  # type: ignore[call-arg]
    rule.satisfied(tol="small")  # type: ignore[arg-type]
    rule.costs(x=torch.rand(3))  # type: ignore[attr-defined]
    weights: list[int] = logic.weights()  # type: ignore[assignment]
    findings: str = dl.lint(rule)  # type: ignore[assignment]
    return weights, findings
