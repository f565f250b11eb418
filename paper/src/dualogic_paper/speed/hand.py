"""Rules under the default of ``dual``, written by hand in plain PyTorch: what a step of the library is measured against.

Each class does what a training step does: weights are gathered, moved and scattered, the loss is taken with the moved ones, and
``delta`` follows the costs. Nothing is checked. Where there are several sensible layouts, the fastest counts.
"""

import itertools
import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

import dualogic as dl

STEP, FLOOR = 0.07, 1.0  # the defaults of ``dual``
TINY = torch.finfo(torch.float32).tiny


def loss_of(mu: Tensor, delta: Tensor) -> Tensor:
    """The truncated-normal loss."""
    ratio = mu / delta
    return delta.log() + 0.5 * ratio * ratio + torch.log1p(-0.5 * torch.erfc(ratio * 0.5**0.5))


def slope_of(mu: Tensor, delta: Tensor) -> Tensor:
    """Its slope."""
    ratio = mu / delta
    tail = 1 - 0.5 * torch.erfc(ratio * 0.5**0.5)
    return (ratio + torch.exp(-0.5 * ratio * ratio) / ((2 * math.pi) ** 0.5 * tail)) / delta


def next_delta(mu: Tensor, delta: Tensor) -> Tensor:
    """The typical cost of a violation, as a running mean."""
    total, roots = mu.sum(0), mu.sqrt().sum(0)
    typical = (total / (roots + TINY)).square()
    count = total / (typical + TINY)
    return torch.lerp(delta, typical, count / (count + 100.0)).clamp_min(FLOOR)


def nearness(costs: Tensor, dim: int) -> Tensor:
    """How near each operand of an *or* is to the nearest."""
    costs = costs + TINY
    return (costs.amin(dim, keepdim=True) / costs).square().square()


def dearness(costs: Tensor, dim: int) -> Tensor:
    """How dear each operand of an *and* is beside the dearest."""
    costs = costs.clamp_min(TINY)
    return (costs / costs.amax(dim, keepdim=True)).square()


def unrest(costs: Tensor, dim: int) -> Tensor:
    """How much of its cost an *or* of truth values keeps: nothing where the two most believed sum to 1."""
    first, second = torch.exp(-costs).topk(2, dim).values.unbind(dim)
    return (1 - first - second).clamp_min(0) / (1 - first).clamp_min(TINY)


def unrest_of_two(one: Tensor, two: Tensor) -> Tensor:
    first, second = torch.exp(-one), torch.exp(-two)
    return (1 - first - second).clamp_min(0) / (1 - torch.maximum(first, second)).clamp_min(TINY)


def normalised(weights: Tensor, dim: int) -> Tensor:
    return weights / weights.sum(dim, keepdim=True)


class Clauses:
    """``all`` over an ``or``, on costs ``(batch, clauses, atoms)``: the operands of an ``or`` side by side."""

    operands = -1

    def __init__(self, samples: int, clauses: int, atoms: int, device: str = "cpu") -> None:
        self.clauses, self.atoms = clauses, atoms
        self.table = torch.zeros(samples, clauses * (1 + atoms), device=device)
        self.delta = torch.ones((), device=device)

    def __call__(self, index: Tensor, costs: Tensor) -> Tensor:
        """The loss of a batch; moves the duals and delta."""
        dim, clauses = self.operands, self.clauses
        with torch.no_grad():
            rows = self.table[index]
            near = nearness(costs, dim)
            outer, inner = self.split(rows)
            clause = (normalised(inner * near, dim) * costs).sum(dim)
            mu = (normalised(outer * dearness(clause, 1), 1) * clause).sum(1, keepdim=True)
            slope = STEP * slope_of(mu, self.delta)
            move_outer = slope * (outer * (0.5 * clauses)).clamp_max(1) * (clause - (outer * clause).sum(1, keepdim=True))
            pace = inner if self.atoms == 2 else (inner * (0.5 * self.atoms)).clamp_max(1)
            move_inner = slope[:, :, None] * pace * ((inner * costs).sum(dim, keepdim=True) - costs)
            rows = rows + torch.cat([move_outer, move_inner.flatten(1)], 1)
            self.table[index] = rows
            outer, inner = self.split(rows)
            inner = normalised(inner * near, dim)
            outer = normalised(outer * dearness((inner * costs).sum(dim), 1), 1)
            weights = outer.unsqueeze(dim) * inner
        return self.finish((weights * costs).sum((1, 2)))

    def finish(self, mu: Tensor) -> Tensor:
        """The loss of costs, and what they make of delta."""
        loss = loss_of(mu, self.delta).mean()
        with torch.no_grad():
            self.delta = next_delta(mu, self.delta)
        return loss

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of the clauses, and within them."""
        return rows[:, : self.clauses].softmax(1), rows[:, self.clauses :].view(-1, self.clauses, self.atoms).softmax(2)

    def inner(self, rows: Tensor) -> Tensor:
        """The weights within clauses ``(batch, clauses, atoms)``, to be compared."""
        return self.split(rows)[1]

    def compare(self, logic: dl.LogicLoss, index: Tensor) -> None:
        """Refuse a loss of the same rule that has other duals, or another delta."""
        weights, rows = logic.weights(index), self.table[index]
        mine = (self.split(rows)[0], self.inner(rows), self.delta)
        for found, expected in zip((weights["rule"], weights["rule/0"], logic.delta[0]), mine):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


class LongClauses(Clauses):
    """As ``Clauses``, on costs ``(batch, atoms, clauses)``: the long axis last."""

    operands = 1

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows[:, : self.clauses].softmax(1), rows[:, self.clauses :].view(-1, self.atoms, self.clauses).softmax(1)

    def inner(self, rows: Tensor) -> Tensor:
        return self.split(rows)[1].transpose(1, 2)


class Pairs(Clauses):
    """Clauses of two atoms: one logit instead of two, and sigmoids; called with the costs of first and second atoms."""

    def __init__(self, samples: int, clauses: int, device: str = "cpu") -> None:
        super().__init__(samples, clauses, 1, device)

    def __call__(self, index: Tensor, costs: tuple[Tensor, Tensor]) -> Tensor:  # type: ignore[override]
        one, two = costs
        clauses = self.clauses
        with torch.no_grad():
            rows = self.table[index]
            # Both are multiplied by the fourth power of the other's cost, which is the same once they are divided by the sum.
            first, second = (one + TINY).square().square(), (two + TINY).square().square()
            outer, inner = self.split(rows)
            used = self.use(inner, first, second)
            clause = torch.lerp(two, one, used)
            mu = (normalised(outer * dearness(clause, 1), 1) * clause).sum(1, keepdim=True)
            slope = STEP * slope_of(mu, self.delta)
            move_outer = slope * (outer * (0.5 * clauses)).clamp_max(1) * (clause - (outer * clause).sum(1, keepdim=True))
            move_inner = (2 * slope) * inner * (1 - inner) * (two - one)
            rows = rows + torch.cat([move_outer, move_inner], 1)
            self.table[index] = rows
            outer, inner = self.split(rows)
            used = self.use(inner, first, second)
        clause = torch.lerp(two, one, used)
        with torch.no_grad():
            outer = normalised(outer * dearness(clause, 1), 1)
        return self.finish((outer * clause).sum(1))

    @staticmethod
    def use(inner: Tensor, first: Tensor, second: Tensor) -> Tensor:
        near = inner * second
        return near / (near + (1 - inner) * first)

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows[:, : self.clauses].softmax(1), rows[:, self.clauses :].sigmoid()

    def inner(self, rows: Tensor) -> Tensor:
        inner = self.split(rows)[1]
        return torch.stack([inner, 1 - inner], 2)


class Implications:
    """Implications that rest, whose weights follow the beliefs: their cost, and what tells whether antecedents are evidence."""

    def __init__(self, count: int) -> None:
        self.known = torch.zeros(6, count)

    def __call__(self, antecedent: Tensor, consequent: Tensor) -> Tensor:
        """The costs ``(batch, count)`` up to rounding, from those of both sides, ``-log p``."""
        with torch.no_grad():
            share = 1 - ((self.known[4] - 0.06) / 0.02).clamp(0, 1)
            p, q = torch.exp(-antecedent), torch.exp(-consequent)
            no_p, no_q = (1 - p).clamp_min(TINY), (1 - q).clamp_min(TINY)
            denied_p, denied_q = no_p.log(), no_q.log()
            odds_p, odds_q = -antecedent - denied_p, -consequent - denied_q
            weight = torch.sigmoid(odds_p + 0.5 * (1 - share) * odds_q)
            gap, other = consequent - antecedent, denied_p - denied_q
            violated = (gap > 0).to(p.dtype)
            into = violated * weight * (p - q) / no_q
            away = violated * (weight - 1) * (1 - share) * p * (gap - other)
            cost = violated * (p * gap + no_p * other).clamp_min(0) - into * consequent - away * antecedent
        return cost + into * consequent + away * antecedent

    @staticmethod
    def cost(antecedent: Tensor, consequent: Tensor) -> Tensor:
        """The costs alone."""
        p = torch.exp(-antecedent)
        no_p, no_q = (1 - p).clamp_min(TINY), (1 - torch.exp(-consequent)).clamp_min(TINY)
        gap = consequent - antecedent
        return (gap > 0) * (p * gap + no_p * (no_p / no_q).log()).clamp_min(0)

    @torch.no_grad()
    def learn(self, antecedent: Tensor, consequent: Tensor) -> None:
        """Who knows: running means, and the highest share so far."""
        p, firm = torch.exp(-antecedent), (2 * torch.exp(-consequent) - 1).clamp_min(0)
        both = p * firm
        seen = torch.stack([1 - p, firm - both, p, both]).mean(1)
        means = torch.lerp(self.known[:4], seen, 0.005)
        without, within = means[1] / (means[0] + TINY), means[3] / (means[2] + TINY)
        count = self.known[5] + len(p)
        found = without / ((without + within).clamp_min(0.2) + 100 / count)
        self.known = torch.cat([means, torch.maximum(self.known[4], found)[None], count[None]])


class Implication:
    """``P >> Q`` between two classes, from logits."""

    def __init__(self, *classes: int) -> None:
        self.classes = classes
        self.implications = Implications(1)
        self.delta = torch.ones(1)

    def __call__(self, g: Tensor, f: Tensor) -> Tensor:
        """The loss of a batch, from logits ``(batch, classes)``."""
        p, q = (-logits.log_softmax(1)[:, place : place + 1] for logits, place in zip((g, f), self.classes))
        mu = self.implications(p, q)
        self.implications.learn(p, q)
        loss = loss_of(mu, self.delta).mean()
        with torch.no_grad():
            self.delta = next_delta(mu.relu(), self.delta)
        return loss


class Shop:
    """The 45 rules of ``shop.rules``: logits ``(batch, 36)`` are six groups of a kind and its five members.

    ``mu`` has 30 members that imply their kinds, 6 times at most one member, 6 kinds that imply a member, 2 exclusions, and 1.
    """

    FOOD, OTHERS = 2, (5, 0)
    SIZES = (60, 60, 30, 2, 6)

    def __init__(self, samples: int) -> None:
        pairs = list(itertools.combinations(range(5), 2))
        self.left, self.right = (torch.tensor(side) for side in zip(*pairs))
        self.others = torch.tensor(self.OTHERS)
        self.implications = Implications(36)
        self.table = torch.zeros(samples, sum(self.SIZES))
        self.delta = torch.ones(45)

    def __call__(self, index: Tensor, logits: Tensor) -> Tensor:
        """The loss of a batch; moves the duals and delta."""
        yes, no = softplus(-logits).view(-1, 6, 6), softplus(logits).view(-1, 6, 6)
        kinds, members, without = yes[:, :, 0], yes[:, :, 1:], no[:, :, 1:]
        left, right = without.index_select(2, self.left), without.index_select(2, self.right)
        food, other = no[:, self.FOOD, :1], no[:, :, 0].index_select(1, self.others)
        batch = len(logits)
        antecedents = torch.cat([members.reshape(batch, 30), kinds], 1)
        parents = kinds.unsqueeze(2).expand(-1, -1, 5).reshape(batch, 30)

        def use(pair: Tensor, some: Tensor, apart: Tensor, any_kind: Tensor) -> list[Tensor]:
            """What each *or* has in the loss, where operands that are far count less."""
            some, any_kind = normalised(some * near[0], 2), normalised(any_kind * near[1], 1)
            return [Pairs.use(pair, *fourth[:2]), some, Pairs.use(apart, *fourth[2:]), any_kind]

        def mix(used: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
            """The costs of the *or*s: of two members, of a kind's members, and of the last three rules."""
            apart = torch.lerp(other, food.expand_as(other), used[2]) * kept[2]
            something = (used[3] * kinds).sum(1, keepdim=True) * kept[3]
            denied, one = torch.lerp(right, left, used[0]) * kept[0], (used[1] * members).sum(2) * kept[1]
            return denied, one, torch.cat([apart, something], 1)

        with torch.no_grad():
            near = nearness(members, 2), nearness(kinds, 1)
            fourth = [side.square().square() for side in (left, right, food, other)]
            kept = unrest_of_two(left, right), unrest(members, 2), unrest_of_two(food, other), unrest(kinds, 1).unsqueeze(1)
            rows = self.table[index]
            every, pair, some, apart, any_kind = self.weights(rows)
            denied, one, mixed = mix(use(pair, some, apart, any_kind))
            excluded = (normalised(every * dearness(denied, 2), 2) * denied).sum(2)
            consequents = torch.cat([parents, one], 1)
            mu = torch.cat([excluded, self.implications.cost(kinds, one), mixed], 1)
            slope = STEP * slope_of(mu, self.delta[30:])
            first, second, third, last = slope[:, :6, None], slope[:, 6:12, None], slope[:, 12:14], slope[:, 14:]
            moves = [
                first * (every * 5).clamp_max(1) * (denied - (every * denied).sum(2, keepdim=True)),
                first * (2 * pair * (1 - pair)) * (right - left),
                second * (some * 2.5).clamp_max(1) * ((some * members).sum(2, keepdim=True) - members),
                third * (2 * apart * (1 - apart)) * (other - food),
                last * (any_kind * 3).clamp_max(1) * ((any_kind * kinds).sum(1, keepdim=True) - kinds),
            ]
            rows = rows + torch.cat([move.flatten(1) for move in moves], 1)
            self.table[index] = rows
            every, *inner = self.weights(rows)
            used = use(*inner)
        denied, one, mixed = mix(used)
        with torch.no_grad():
            every = normalised(every * dearness(denied, 2), 2)
        implied = self.implications(antecedents, torch.cat([parents, one], 1))
        self.implications.learn(antecedents, consequents)
        mu = torch.cat([implied[:, :30], (every * denied).sum(2), implied[:, 30:], mixed], 1)
        loss = loss_of(mu, self.delta).mean()
        with torch.no_grad():
            self.delta = next_delta(mu.relu(), self.delta)
        return loss

    def weights(self, rows: Tensor) -> list[Tensor]:
        """Those of each connective, from the table's rows."""
        every, pair, some, apart, any_kind = rows.split(self.SIZES, 1)
        every, pair, some = every.view(-1, 6, 10), pair.sigmoid().view(-1, 6, 10), some.view(-1, 6, 5)
        return [every.softmax(2), pair, some.softmax(2), apart.sigmoid(), any_kind.softmax(1)]
