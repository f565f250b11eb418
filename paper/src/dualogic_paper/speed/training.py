"""Training steps on a CPU against the fastest opponents: by hand, and LTNtorch with one flat variable.

A step is the forward pass from logits, the backward pass to them, and the update of duals and delta; by hand it is the same
mathematics (``hand.py``), and the results are compared at the end. LTNtorch has no duals; its step is its loss and the backward
pass. The fastest layout by hand, and the faster of two ways to write a rule in LTNtorch, count.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.everyday import shop
from dualogic_paper.speed.clock import take_turns
from dualogic_paper.speed.hand import Clauses, Implication, LongClauses, Pairs, Shop
from dualogic_paper.speed.report import entry
from dualogic_paper.speed.rule import SUPERCLASSES, write_rule

REPEATS = 1200
IN_A_ROW = torch.eye(20).repeat_interleave(5, 0)
"""Superclasses of classes side by side, ``(100, 20)``."""


def compare(name: str, found: dict[str, Any], opponents: Sequence[str], ours: str = "dualogic") -> dict[str, Any]:
    """The figure: our processor time over that of the fastest opponent."""
    fastest = min(opponents, key=found["us"].__getitem__)
    how = f"to {fastest}" if len(opponents) > 1 else ""
    how += f"{', ' * bool(how)}on a busy machine" if found["busy"] else ""
    return entry(name, found["us"][ours] / found["us"][fastest], {"how": how, **found})


def cifar(device: str) -> dict[str, Any]:
    """The CIFAR-100 rule: each of 20 superclasses has all of the mass or none; batch 128, 30,000 samples."""
    samples, batch = 30_000, 128
    generator = torch.Generator().manual_seed(0)
    logic = dl.LogicLoss(write_rule(), num_samples=samples)
    hands = {"(20, 2)": Clauses(samples, 20, 2), "(2, 20)": LongClauses(samples, 20, 2), "pairs": Pairs(samples, 20)}
    batches = [torch.randperm(samples, generator=generator)[:batch] for _ in range(REPEATS)]
    logits = 3 * torch.randn(50, batch, 100, generator=generator)

    def probabilities(number: int) -> Tensor:
        return logits[number % 50].detach().requires_grad_().softmax(-1)

    def by_hand(name: str, join: Callable[[Tensor, Tensor], Any]) -> Callable[[int], None]:
        def step(number: int) -> None:
            total = probabilities(number) @ SUPERCLASSES
            hands[name](batches[number], join(total.abs(), (total - 1).abs())).backward()

        return step

    steps: dict[str, Callable[[int], object]] = {
        "dualogic": lambda number: logic(batches[number], p=probabilities(number)).backward(),
        "(20, 2)": by_hand("(20, 2)", lambda one, two: torch.stack([one, two], -1)),
        "(2, 20)": by_hand("(2, 20)", lambda one, two: torch.stack([one, two], 1)),
        "pairs": by_hand("pairs", lambda one, two: (one, two)),
    }
    found = take_turns(steps, REPEATS)
    every = torch.cat(batches).unique()
    weights = logic.weights(every)
    for hand in hands.values():
        rows = hand.table[every]
        torch.testing.assert_close(weights["rule"], hand.split(rows)[0], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(weights["rule/0"], hand.inner(rows), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(logic.delta[0], hand.delta, rtol=1e-3, atol=1e-4)
    return {"train_cifar": compare("train_cifar", found, list(hands))}


def many_rules(device: str) -> dict[str, Any]:
    """The 45 rules over 36 truth values of the everyday problem ``shop``; batch 100, 1,500 samples."""
    samples, batch = 1500, 100
    generator = torch.Generator().manual_seed(0)
    logic, hand = dl.LogicLoss(dict(shop.RULES), num_samples=samples), Shop(samples)
    batches = [torch.randperm(samples, generator=generator)[:batch] for _ in range(REPEATS)]
    logits = 2 * torch.randn(50, batch, 36, generator=generator)
    losses: dict[str, Tensor] = {}

    def ours(number: int) -> None:
        leaf = logits[number % 50].detach().requires_grad_()
        losses["ours"] = logic(batches[number], **dict(zip(shop.LABELS, leaf.unbind(1))))
        losses["ours"].backward()

    def by_hand(number: int) -> None:
        leaf = logits[number % 50].detach().requires_grad_()
        losses["hand"] = hand(batches[number], leaf)
        losses["hand"].backward()

    found = take_turns({"dualogic": ours, "by hand": by_hand}, REPEATS)
    # By hand, rules are plainly averaged: samples that violate few of them are not raised.
    plain = torch.stack([rule["loss"] for rule in logic.statistics().values()]).mean()
    torch.testing.assert_close(plain, losses["hand"].detach(), rtol=1e-3, atol=1e-4)
    return {"train_shop": compare("train_shop", found, ["by hand"])}


def implication(device: str) -> dict[str, Any]:
    """``P >> Q`` between two classes of ten; batch 64."""
    import ltn

    samples, batch = 3000, 64
    generator = torch.Generator().manual_seed(0)
    f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
    rule = (g == 9) >> (f == 6)
    logic, optimum = dl.LogicLoss(rule, num_samples=samples), dl.LogicLoss(rule, num_samples=samples).eval()
    hand = Implication(9, 6)
    batches = [torch.randperm(samples, generator=generator)[:batch] for _ in range(REPEATS)]
    logits = 2 * torch.randn(50, 2, batch, 10, generator=generator)
    forall = ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
    implies = ltn.Connective(ltn.fuzzy_ops.ImpliesReichenbach())
    truths = [ltn.Predicate(func=lambda pair, side=side: pair[:, side]) for side in (0, 1)]
    places = ((slice(0, 10), 9), (slice(10, 20), 6))
    classes = [ltn.Predicate(func=lambda x, own=own, at=at: x[:, own].softmax(1)[:, at]) for own, at in places]

    def leaves(number: int) -> list[Tensor]:
        return [side.detach().requires_grad_() for side in logits[number % 50]]

    def ours(number: int) -> None:
        g, f = leaves(number)
        logic(batches[number], f=f, g=g).backward()

    def evaluated(number: int) -> None:
        g, f = leaves(number)
        optimum(f=f, g=g).backward()

    def of_truths(number: int) -> None:
        g, f = leaves(number)
        x = ltn.Variable("x", torch.stack([g.softmax(1)[:, 9], f.softmax(1)[:, 6]], 1))
        (1.0 - forall(x, implies(truths[0](x), truths[1](x))).value).backward()

    def of_logits(number: int) -> None:
        x = ltn.Variable("x", torch.cat(leaves(number), 1))
        (1.0 - forall(x, implies(classes[0](x), classes[1](x))).value).backward()

    steps = {
        "dualogic": ours,
        "dualogic in eval()": evaluated,
        "LTNtorch on truth values": of_truths,
        "LTNtorch on logits": of_logits,
        "by hand": lambda number: hand(*leaves(number)).backward(),
    }
    found = take_turns(steps, REPEATS)
    torch.testing.assert_close(logic.delta, hand.delta, rtol=1e-3, atol=1e-4)
    peers = ["LTNtorch on truth values", "LTNtorch on logits"]
    return {
        "train_implication": compare("train_implication", found, peers),
        "train_implication_hand": compare("train_implication_hand", found, ["by hand"]),
        "eval_implication": compare("eval_implication", found, peers, "dualogic in eval()"),
    }


def cifar_evaluated(device: str) -> dict[str, Any]:
    """The CIFAR-100 rule in ``eval()``, and LTNtorch's with one variable of 128 x 20 truth values."""
    import ltn

    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(50, 128, 100, generator=generator)
    logic = dl.LogicLoss(write_rule(IN_A_ROW), num_samples=30_000).eval()
    forall = ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
    either = ltn.Connective(ltn.fuzzy_ops.OrProbSum())
    none, all_of_it = ltn.Predicate(func=lambda s: 1 - s[:, 0]), ltn.Predicate(func=lambda s: s[:, 0])

    def ours(number: int) -> None:
        logic(p=logits[number % 50].detach().requires_grad_().softmax(-1)).backward()

    def theirs(number: int) -> None:
        sums = logits[number % 50].detach().requires_grad_().softmax(1).view(128, 20, 5).sum(-1)
        x = ltn.Variable("x", sums.flatten())
        (1.0 - forall(x, either(none(x), all_of_it(x))).value).backward()

    return {"eval_cifar": compare("eval_cifar", take_turns({"dualogic": ours, "LTNtorch": theirs}, REPEATS), ["LTNtorch"])}


def dl2(device: str) -> dict[str, Any]:
    """``method="dl2"`` on the CIFAR-100 rule, and DL2's translation by hand: sums for *and*, products for *or*."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(50, 128, 100, generator=generator)
    logic = dl.LogicLoss(write_rule(IN_A_ROW), method="dl2")
    losses: dict[str, Tensor] = {}

    def ours(number: int) -> None:
        losses["ours"] = logic(p=logits[number % 50].detach().requires_grad_().softmax(-1))
        losses["ours"].backward()

    def by_hand(number: int) -> None:
        total = logits[number % 50].detach().requires_grad_().softmax(-1) @ IN_A_ROW
        losses["hand"] = (total.abs() * (total - 1).abs()).sum(1).mean()
        losses["hand"].backward()

    found = take_turns({"dualogic": ours, "by hand": by_hand}, REPEATS)
    torch.testing.assert_close(losses["ours"], losses["hand"])
    return {"train_dl2": compare("train_dl2", found, ["by hand"])}
