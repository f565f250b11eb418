"""Training steps on a CPU against the fastest opponents: by hand, and LTNtorch with one flat variable.

A step is the forward pass from logits, the backward pass to them, and the update of duals and delta; results by hand are
compared at the end. LTNtorch has no duals. The fastest layout by hand, and the faster of two ways to write a rule for it, count.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.everyday import shop
from dualogic_paper.speed.clock import take_turns
from dualogic_paper.speed.hand import Clauses, Implication, LongClauses, Pairs, Shop
from dualogic_paper.speed.report import entry
from dualogic_paper.speed.rule import SUPERCLASSES, write_rule

REPEATS, DRAWN = 1200, 50
IN_A_ROW = torch.eye(20).repeat_interleave(5, 0)  # superclasses of classes side by side, ``(100, 20)``


class Inputs:
    """What the steps of a benchmark see: for each the positions of its samples, if there are any, and one of fifty logits."""

    def __init__(self, scale: float, *shape: int, samples: int = 0) -> None:
        generator = torch.Generator().manual_seed(0)
        steps = range(REPEATS if samples else 0)
        self.index = [torch.randperm(samples, generator=generator)[: shape[-2]] for _ in steps]
        self.logits = scale * torch.randn(DRAWN, *shape, generator=generator)

    def leaf(self, number: int) -> Tensor:
        return self.logits[number % DRAWN].detach().requires_grad_()

    def probabilities(self, number: int) -> Tensor:
        return self.leaf(number).softmax(-1)


def time_steps(losses: Mapping[str, Callable[[int], Tensor]]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Times of losses with their backward passes, and what each loss was at last."""
    last: dict[str, Tensor] = {}

    def step(name: str, number: int) -> None:
        last[name] = losses[name](number)
        last[name].backward()

    return take_turns({name: partial(step, name) for name in losses}, REPEATS), last


def compare(name: str, found: dict[str, Any], opponents: Sequence[str], ours: str = "dualogic") -> dict[str, Any]:
    """The figure: our processor time over that of the fastest opponent."""
    fastest = min(opponents, key=found["us"].__getitem__)
    how = f"to {fastest}" if len(opponents) > 1 else ""
    how += f"{', ' * bool(how)}on a busy machine" if found["busy"] else ""
    return {name: entry(name, found["us"][ours] / found["us"][fastest], {"how": how, **found})}


def cifar(device: str) -> dict[str, Any]:
    """The CIFAR-100 rule: each of 20 superclasses has all of the mass or none; batch 128, 30,000 samples."""
    inputs = Inputs(3, 128, 100, samples=30_000)
    logic = dl.LogicLoss(write_rule(), num_samples=30_000)
    hands = {"(20, 2)": Clauses(30_000, 20, 2), "(2, 20)": LongClauses(30_000, 20, 2), "pairs": Pairs(30_000, 20)}

    def costs(number: int) -> tuple[Tensor, Tensor]:
        total = inputs.probabilities(number) @ SUPERCLASSES
        return total.abs(), (total - 1).abs()

    losses = {
        "dualogic": lambda number: logic(inputs.index[number], p=inputs.probabilities(number)),
        "(20, 2)": lambda number: hands["(20, 2)"](inputs.index[number], torch.stack(costs(number), -1)),
        "(2, 20)": lambda number: hands["(2, 20)"](inputs.index[number], torch.stack(costs(number), 1)),
        "pairs": lambda number: hands["pairs"](inputs.index[number], costs(number)),  # type: ignore[arg-type]
    }
    found, _ = time_steps(losses)
    for hand in hands.values():
        hand.compare(logic, torch.cat(inputs.index).unique())
    return compare("train_cifar", found, list(hands))


def many_rules(device: str) -> dict[str, Any]:
    """The 45 rules over 36 truth values of the everyday problem ``shop``; batch 100, 1,500 samples."""
    inputs = Inputs(2, 100, 36, samples=1500)
    logic, hand = dl.LogicLoss(dict(shop.RULES), num_samples=1500), Shop(1500)
    losses = {
        "dualogic": lambda number: logic(inputs.index[number], **shop.bind(inputs.leaf(number))),
        "by hand": lambda number: hand(inputs.index[number], inputs.leaf(number)),
    }
    found, last = time_steps(losses)
    # By hand, rules are plainly averaged: samples that violate few of them are not raised.
    plain = torch.stack([rule["loss"] for rule in logic.statistics().values()]).mean()
    torch.testing.assert_close(plain, last["by hand"].detach(), rtol=1e-3, atol=1e-4)
    return compare("train_shop", found, ["by hand"])


def implication(device: str) -> dict[str, Any]:
    """``P >> Q`` between two classes of ten; batch 64."""
    import ltn

    inputs = Inputs(2, 2, 64, 10, samples=3000)
    f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
    rule = (g == 9) >> (f == 6)
    logic, optimum = dl.LogicLoss(rule, num_samples=3000), dl.LogicLoss(rule, num_samples=3000).eval()
    hand = Implication(9, 6)
    forall = ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
    implies = ltn.Connective(ltn.fuzzy_ops.ImpliesReichenbach())
    truths = [ltn.Predicate(func=lambda pair, side=side: pair[:, side]) for side in (0, 1)]
    places = ((slice(0, 10), 9), (slice(10, 20), 6))
    classes = [ltn.Predicate(func=lambda x, own=own, at=at: x[:, own].softmax(1)[:, at]) for own, at in places]

    def leaves(number: int) -> dict[str, Tensor]:
        return dict(zip("gf", (side.detach().requires_grad_() for side in inputs.logits[number % DRAWN])))

    def of_truths(number: int) -> Tensor:
        both = leaves(number)
        x = ltn.Variable("x", torch.stack([both["g"].softmax(1)[:, 9], both["f"].softmax(1)[:, 6]], 1))
        return 1.0 - forall(x, implies(truths[0](x), truths[1](x))).value  # type: ignore[no-any-return]

    def of_logits(number: int) -> Tensor:
        x = ltn.Variable("x", torch.cat(list(leaves(number).values()), 1))
        return 1.0 - forall(x, implies(classes[0](x), classes[1](x))).value  # type: ignore[no-any-return]

    peers = {"LTNtorch on truth values": of_truths, "LTNtorch on logits": of_logits}
    losses = {
        "dualogic": lambda number: logic(inputs.index[number], **leaves(number)),
        "dualogic in eval()": lambda number: optimum(**leaves(number)),
        **peers,
        "by hand": lambda number: hand(**leaves(number)),
    }
    found, _ = time_steps(losses)
    torch.testing.assert_close(logic.delta, hand.delta, rtol=1e-3, atol=1e-4)
    return {
        **compare("train_implication", found, list(peers)),
        **compare("train_implication_hand", found, ["by hand"]),
        **compare("eval_implication", found, list(peers), "dualogic in eval()"),
    }


def cifar_evaluated(device: str) -> dict[str, Any]:
    """The CIFAR-100 rule in ``eval()``, and LTNtorch's with one variable of 128 x 20 truth values."""
    import ltn

    inputs = Inputs(3, 128, 100)
    logic = dl.LogicLoss(write_rule(IN_A_ROW), num_samples=30_000).eval()
    forall = ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
    either = ltn.Connective(ltn.fuzzy_ops.OrProbSum())
    none, all_of_it = ltn.Predicate(func=lambda s: 1 - s[:, 0]), ltn.Predicate(func=lambda s: s[:, 0])

    def theirs(number: int) -> Tensor:
        x = ltn.Variable("x", inputs.probabilities(number).view(128, 20, 5).sum(-1).flatten())
        return 1.0 - forall(x, either(none(x), all_of_it(x))).value  # type: ignore[no-any-return]

    found, _ = time_steps({"dualogic": lambda number: logic(p=inputs.probabilities(number)), "LTNtorch": theirs})
    return compare("eval_cifar", found, ["LTNtorch"])


def dl2(device: str) -> dict[str, Any]:
    """``method="dl2"`` on the CIFAR-100 rule, and DL2's translation by hand: sums for *and*, products for *or*."""
    inputs, logic = Inputs(3, 128, 100), dl.LogicLoss(write_rule(IN_A_ROW), method="dl2")

    def by_hand(number: int) -> Tensor:
        total = inputs.probabilities(number) @ IN_A_ROW
        return (total.abs() * (total - 1).abs()).sum(1).mean()

    found, last = time_steps({"dualogic": lambda number: logic(p=inputs.probabilities(number)), "by hand": by_hand})
    torch.testing.assert_close(last["dualogic"], last["by hand"])
    return compare("train_dl2", found, ["by hand"])
