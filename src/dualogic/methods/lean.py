"""The weights of an implication that rests: who moves, antecedent or consequent, for each sample.

The weight follows from beliefs alone, anew at each visit. A table has one column for each implication: the log-odds that beliefs
gave the weight on the consequent at the sample's latest visit, and 0 before the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dualogic.compile.implication import HALF, Beliefs, deny, divide, divide_believed, join_odds, possible_sides, rest
from dualogic.compile.threshold import deny_threshold, divide_threshold, find_odds
from dualogic.compile.tree import Level
from dualogic.numerics import is_transformed

RATE = 0.005
"""Of a running mean: about the latest two hundred steps count."""
LEAST = 0.2
"""Below this a consequent is not believed often enough to tell anything."""
CLOSED, OPEN = 0.06, 0.08
"""How often a consequent is believed without its antecedent, when all of the antecedent is evidence, and when none is."""
FULLY_OPEN = 1.001 * OPEN
FOLLOWS = 0.95
"""A consequent is believed as much as its antecedent from this ratio of the means on."""
PRIOR = 100.0
"""How many entries are taken to have told that a consequent is believed with its antecedent only, before there were any."""
PACES = (8, 2, 8, 2)
"""Of the mean belief in an antecedent, recent and lasting, and in its consequent: step ``t`` counts ``n / (t + n)``."""
RARE = 0.01
"""A mean belief below this, or above 1 less this, counts as this."""
CALM = 0.03
"""The fall that is taken for none, a difference of logarithms."""
HOLD_BACK = 300.0
"""How steeply a rule's pull falls with what exceeds it."""
RAREST = 1e-6
DOUBT = 1.0
"""The log-odds that a number which is off has against it, at most: how far it is off depends on its unit."""


class Stand(NamedTuple):
    """How the antecedents of a level stand beside their consequents."""

    share: Tensor | float  # how much of each is evidence
    rates: Tensor | None = None  # what :func:`odds_of_rates` adds to the odds of the weight on the consequent


TAUGHT = Stand(0.0)


@dataclasses.dataclass
class Leaning:
    """What happened at one level of implications; shapes are ``(batch, *lanes, *axes)``.

    Attributes:
        values: the costs of antecedent and consequent, ``(batch, 2, ...)``.
        beliefs: in them.
        odds: what they say about the weight on the consequent.
        weight: on the consequent.
        slopes: what the cost rises by with either; ``None`` if autograd is to find them.
        stored: the column, ``(batch, 1, ...)``; ``None`` until it is read.
    """

    values: Tensor
    beliefs: Beliefs
    odds: Tensor
    weight: Tensor
    slopes: tuple[Tensor, Tensor] | None = None
    stored: Tensor | None = None

    @property
    def result(self) -> Tensor:
        """Of the shape of the level's cost."""
        return self.weight


def lean(
    level: Level,
    values: Tensor,
    mask: Tensor | None,
    stand: Stand,
    remember: bool,
    believed: Leaning | None = None,
    sloped: bool = False,
) -> tuple[Tensor, Leaning | None]:
    """The cost of implications, with a gradient divided by their weights, and what their step needs.

    Args:
        level: of the operation ``">>"``.
        values: the costs of antecedent and consequent, ``(batch, 2, *lanes, *axes)``.
        mask: where these are finite; ``None`` for everywhere.
        stand: how the antecedents stand, to be broadcast against a cost.
        remember: whether a step follows.
        believed: what happened here with what is believed, which then says what the antecedent is and who gives way.
        sloped: without a gradient, but with the slopes that make one.
    """
    sides = values if mask is None else possible_sides(values, mask)
    share = stand.share
    if level.compares[0]:
        seen = _see_depths(sides.detach()) if believed is None else believed
        cost = divide_threshold(sides[:, 0], sides[:, 1], seen.weight, share, seen.values[:, 0])
        if mask is not None:
            cost = torch.where(mask[:, 1], cost, deny_threshold(sides[:, 0]))
        return cost, seen if remember and believed is None else None
    if believed is not None:
        antecedent, consequent = sides.unbind(1)
        known = believed.values[:, 0], believed.values[:, 1]
        cost = divide_believed((antecedent, consequent), known, believed.weight, share, level.logarithmic)
        if mask is not None:
            cost = torch.where(mask[:, 1], cost, deny(antecedent, share, level.logarithmic, known[0]))
        return cost, None
    both = sides.detach()
    beliefs = Beliefs.of(both, level.logarithmic)
    both_odds = beliefs.odds(both)
    second = both_odds[:, 1].clamp_min(-DOUBT) if level.compares[1] else both_odds[:, 1]
    odds = join_odds(both_odds[:, 0], second, share)
    odds = odds if stand.rates is None else odds + stand.rates
    weight = torch.sigmoid(odds)
    slopes = None
    if mask is None and (sloped or not (torch.is_grad_enabled() or is_transformed())):
        cost, slopes = rest(both, beliefs, weight, share, sloped)
    else:
        antecedent, consequent = sides.unbind(1)
        cost = divide(antecedent, consequent, weight, share, level.logarithmic)
        if mask is not None:
            cost = torch.where(mask[:, 1], cost, deny(antecedent, share, level.logarithmic))
    return cost, Leaning(both, beliefs, odds, weight, slopes) if remember else None


def _see_depths(values: Tensor) -> Leaning:
    """Where antecedents compare numbers, see :mod:`dualogic.compile.threshold`: they are no beliefs."""
    odds = find_odds(values)
    return Leaning(values, Beliefs(values, values), odds, torch.sigmoid(odds))


def follow(level: Level, seen: Leaning, exists: Tensor | None) -> Tensor:
    """What to add to the column of a level, ``(batch, 1, ...)``, for it to hold the latest odds.

    Args:
        level: of the operation ``">>"``.
        seen: from :func:`lean`, with what is stored.
        exists: where the implication is about something, ``(batch, *lanes, *axes)``; ``None`` for everywhere.
    """
    assert seen.stored is not None
    move = seen.odds.unsqueeze(1) - seen.stored
    if exists is not None:
        move = torch.where(exists.unsqueeze(1), move, 0.0)
    if level.shared:
        move = move.mean(tuple(2 + position for position in level.shared), keepdim=True)
    return level.unfit(move, level.sizes, 0.0) if level.ragged else move


def note(level: Level, seen: Leaning, exists: Tensor | None) -> Tensor:
    """What a batch tells about who knows: five sums over each sample's entries, for each implication, ``(batch, 5, lanes)``.

    They are the belief that the antecedent is false, that times the firm belief in the consequent, the same two where it is
    true, and the belief in the consequent.
    """
    denied, missing = seen.beliefs.doubts.unbind(1)
    believed, consequent = seen.beliefs.believed.unbind(1)
    firm = (consequent - missing).clamp_min_(0.0)
    known = torch.stack([denied, denied * firm, believed, believed * firm, consequent], 1)
    if exists is not None:
        known = known * exists.unsqueeze(1)
    axes = tuple(range(2 + level.lanes, known.dim()))
    known = known.sum(axes) if axes else known
    return known.flatten(2)


def start_known(mutual: Sequence[int], dtype: torch.dtype) -> Tensor:
    """For each implication, ``(11, implications)``: running means of the first four of :func:`note`, the highest share so far,
    how many entries there were, the strength by :func:`find_strength` as far as the antecedent is no evidence, and the means of
    :data:`PACES`. Of a ``mutual`` antecedent nothing is ever evidence.
    """
    known = torch.zeros(11, len(mutual), dtype=dtype)
    known[4], known[6] = FULLY_OPEN * torch.tensor(mutual, dtype=dtype), 1.0
    return known


def advance_known(
    known: Tensor,
    noted: Tensor,
    count: Tensor | int,
    steps: Tensor,
    paces: Tensor,
    share: float | None = None,
    single: bool = False,
    claiming: Tensor | None = None,
    plain: Tensor | bool = False,
    mutual: Tensor | bool = False,
) -> Tensor:
    """The state after a batch.

    The share is that of firm beliefs in the consequent that stand without the antecedent: where a consequent is believed only
    with it, the rule itself is what taught it. It is held at its highest, because a rule that opens late unlearns what it taught;
    so that a first small batch cannot open it for good, :data:`PRIOR` entries count against it.

    Args:
        known: from :func:`start_known`.
        noted: means over the batch of :func:`note`, ``(5, implications)``.
        count: of samples in the batch.
        steps: that were made before.
        paces: :data:`PACES` as a tensor.
        share: of all antecedents that is evidence after it; ``None`` to find out.
        single: whether each sample has one entry for each implication, neither more nor none.
        claiming: see :func:`find_strength`.
        plain: which implications are between Booleans alone, ``(implications,)``, or whether all are.
        mutual: in which both sides teach each other, likewise.
    """
    noted = noted.to(known.dtype)
    tiny = torch.finfo(known.dtype).tiny
    means = torch.lerp(known[:4], noted[:4], RATE)
    shares = means[1::2] / means[::2].clamp_min(tiny)  # without the antecedent, and with it
    denied, _, believed, _, consequent = noted.unbind()
    paces = paces.to(known.dtype)  # a quotient of whole numbers would have torch's default type
    rates = (paces / (steps + paces)).unsqueeze(1)
    latest = torch.stack([believed, believed, consequent, consequent])
    if single:
        seen = known[5] + count
    else:
        told = denied + believed
        seen = known[5] + count * told
        latest, rates = latest / told.clamp_min(tiny), rates * (told > 0)  # a batch may have no entry
    found = shares[0] / (shares.sum(0).clamp_min_(LEAST) + torch.full_like(seen, PRIOR) / seen)
    beliefs = torch.lerp(known[7:], latest, rates)
    highest = torch.maximum(known[4], found)
    if share != 0.0 and plain is not False:
        runs = feeds_itself(beliefs, seen)
        highest = torch.where(runs if plain is True else runs & plain, highest.clamp_min(FULLY_OPEN), highest)
    # What is evidence the rule cannot change, so a fall is not its doing.
    strength = torch.ones_like(seen) if share == 1.0 else find_strength(beliefs, seen, claiming, mutual)
    if share is None:
        strength = torch.lerp(strength, torch.ones_like(seen), _share(highest))
    return torch.cat([means, *(each.unsqueeze(0) for each in (highest, seen, strength)), beliefs])


def feeds_itself(beliefs: Tensor, seen: Tensor) -> Tensor:
    """Whether the belief in each antecedent rises although its consequent is believed as much already, ``(implications,)``.

    An antecedent that is evidence is read and not taught. Where it rises all the same by more than chance and :data:`CALM`, the
    rule may be teaching it through its consequent, as in ``likes(x, y) >> likes(y, x)``, whose sides are one output: then each
    wrong "yes" makes another. A consequent that is still to be learned is believed less.

    Args:
        beliefs: means of the belief in the antecedent, recent and lasting, and likewise in the consequent, ``(4, implications)``.
        seen: how many entries there were so far, ``(implications,)``.

    Example:
        >>> feeds_itself(torch.tensor([[0.3, 0.3], [0.2, 0.2], [0.3, 0.1], [0.3, 0.1]]), torch.tensor([1e6, 1e6]))
        tensor([ True, False])
    """
    recent, lasting, consequent, _ = beliefs.unbind()
    by_chance = (recent * (PACES[0] / seen)).sqrt()
    return (recent - by_chance > (1.0 + CALM) * lasting) & (consequent >= FOLLOWS * recent)


def find_strength(beliefs: Tensor, seen: Tensor, claiming: Tensor | None = None, mutual: Tensor | bool = False) -> Tensor:
    """How much of its pull each implication keeps, ``(implications,)``, where the belief in its antecedent falls.

    Labels settle how often an antecedent is believed. A rule that goes on lowering this is met by what the network calls things,
    not by what it knows: in the end it may call all of them the same. So a rule holds back while the recent mean of the belief is
    below the lasting one by more than chance and :data:`CALM`. Where classes are claimed, it also does while those of the others
    that claim classes are on average: a class that is claimed more often takes from the others. Booleans take nothing from each
    other. Where both sides teach each other one of them may fall, but not both.

    Args:
        beliefs: as for :func:`feeds_itself`.
        seen: how many entries there were so far, ``(implications,)``.
        claiming: 1 for each implication that claims classes, and otherwise 0, ``(implications,)``; ``None`` if fewer than two do.
        mutual: in which implications both sides teach each other, ``(implications,)``, or whether they do in all.

    Example:
        >>> find_strength(torch.tensor([[0.20], [0.21], [0.5], [0.5]]), torch.tensor([1e6])).round(decimals=2)
        tensor([0.0200])
    """
    excess = _find_fall(beliefs[:2], seen)
    if mutual is not False:
        both = torch.minimum(excess, _find_fall(beliefs[2:], seen))
        excess = both if mutual is True else torch.where(mutual, both, excess)
    if claiming is not None:
        theirs = excess * claiming
        excess = excess + claiming * (theirs.sum() - theirs) / (claiming.sum() - 1.0)
    return excess.mul_(-HOLD_BACK).exp_()


def _find_fall(beliefs: Tensor, seen: Tensor) -> Tensor:
    sure = beliefs.clamp_min(RAREST)
    recent, lasting = sure.log().unbind()
    by_chance = (sure[0] * seen).rsqrt()
    return torch.sub(lasting - recent, by_chance, alpha=PACES[0] ** 0.5).sub_(CALM).clamp_min_(0.0)


def odds_of_rates(known: Tensor, told_by: Tensor, share: Tensor | float) -> Tensor:
    """What is added to the log-odds of the weight on each consequent, ``(implications,)``, because some things are rare.

    A belief of 0.4 in what is true of one sample in twenty speaks for it, although it is below one half. So the log-odds of
    each side are counted from those of its mean belief. Where a class is one of many, the others are as rare, and this says
    nothing; so it is done for Booleans alone, and as far as the antecedent is no evidence.

    Args:
        known: from :func:`start_known`.
        told_by: 1 for each antecedent and consequent that is about Booleans alone, and otherwise 0; ``(2, implications)``.
        share: of the antecedents that is evidence.

    Example:
        >>> known = start_known([0], torch.float32)
        >>> known[7], known[9] = 0.05, 0.5  # the antecedent is rare, the consequent is not
        >>> odds_of_rates(known, torch.ones(2, 1), 0.0)
        tensor([2.9444])
    """
    rates = torch.logit(known[7::2], RARE) * told_by
    return torch.add(rates[0], rates[1], alpha=HALF).mul_(share - 1.0)


def share_of(known: Tensor) -> Tensor:
    """How much of each antecedent is evidence, ``(implications,)``: all of it until its consequent is seen to be known."""
    return _share(known[4])


def _share(highest: Tensor) -> Tensor:
    return ((highest - OPEN) / (CLOSED - OPEN)).clamp_(0.0, 1.0)


def is_all_evidence(known: Tensor) -> bool:
    """Whether all of each antecedent is, as far as that can be read without waiting."""
    return known.device.type == "cpu" and not is_transformed() and known[4].amax().item() <= CLOSED
