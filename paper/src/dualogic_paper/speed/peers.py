"""The rule in ``eval()`` against LTNtorch's of the same rule: forward and backward pass, batch 128, one process, alternating.

LTNtorch aggregates with a p-mean over samples and groups; dualogic's default method takes the closed-form optimum of the duals,
and its method "ltn", shown beside it, LTN's own operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ltn
import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.speed.report import entry
from dualogic_paper.speed.step import BATCH, median_times

SAMPLES, GROUPS, SIZE, REPEATS = 30_000, 20, 5, 1500

FORALL = ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
IMPLIES = ltn.Connective(ltn.fuzzy_ops.ImpliesReichenbach())
OR = ltn.Connective(ltn.fuzzy_ops.OrProbSum())


def compare(name: str, rule: dl.Formula, ours: Callable[[dl.LogicLoss], Tensor], theirs: Callable[[], Tensor]) -> dict[str, Any]:
    """Both losses with their backward passes, as functions of the same leaves."""
    losses = {method: dl.LogicLoss(rule, num_samples=SAMPLES, method=method).eval() for method in ("dual", "ltn")}
    detail: dict[str, Any] = {}
    for method, logic in losses.items():
        mine, peer = median_times(lambda _: ours(logic).backward(), lambda _: theirs().backward(), REPEATS)  # noqa: B023
        detail[method] = {"ratio": mine / peer, "ms": 1e3 * mine, "ms LTNtorch": 1e3 * peer}
    return {name: entry(name, detail["dual"]["ratio"], detail)}


def implication(device: str) -> dict[str, Any]:
    """P -> Q on truth values."""
    torch.manual_seed(0)
    p, q = torch.rand(BATCH), torch.rand(BATCH)
    first, second = (ltn.Predicate(func=lambda pair, side=side: pair[:, side]) for side in (0, 1))

    def ours(logic: dl.LogicLoss) -> Tensor:
        return logic(p=p.detach().requires_grad_(), q=q.detach().requires_grad_())  # type: ignore[no-any-return]

    def theirs() -> Tensor:
        x = ltn.Variable("x", torch.stack([p.detach().requires_grad_(), q.detach().requires_grad_()], 1))
        return 1.0 - FORALL(x, IMPLIES(first(x), second(x))).value  # type: ignore[no-any-return]

    return compare("ltn_implication", dl.boolean("p") >> dl.boolean("q"), ours, theirs)


def cifar(device: str) -> dict[str, Any]:
    """Each superclass has all of the mass or none, from logits."""
    torch.manual_seed(0)
    logits = 3 * torch.randn(BATCH, GROUPS * SIZE)
    membership = torch.eye(GROUPS).repeat_interleave(SIZE, 0)
    mass = dl.var("p", GROUPS * SIZE) @ dl.constant("membership", membership)
    is_zero = ltn.Predicate(func=lambda sums, group: 1 - sums.gather(1, group.long()).squeeze(-1))
    is_one = ltn.Predicate(func=lambda sums, group: sums.gather(1, group.long()).squeeze(-1))

    def ours(logic: dl.LogicLoss) -> Tensor:
        return logic(p=logits.detach().requires_grad_().softmax(-1))  # type: ignore[no-any-return]

    def theirs() -> Tensor:
        sums = logits.detach().requires_grad_().softmax(1).view(BATCH, GROUPS, SIZE).sum(-1)
        x, s = ltn.Variable("x", sums), ltn.Variable("s", torch.arange(GROUPS).float().unsqueeze(1))
        return 1.0 - FORALL([x, s], OR(is_zero(x, s), is_one(x, s))).value  # type: ignore[no-any-return]

    return compare("ltn_cifar", ((mass == 0) | (mass == 1)).all(), ours, theirs)
