"""A rule that is applied too widely: its consequent came where no rule asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from dualogic.diagnosis.chance import rises
from dualogic.diagnosis.report import ConnectiveReport, Finding
from dualogic.diagnosis.verdict import HALF, TOO_WIDE, WIDELY, describe_elsewhere, percent


def compare_elsewhere(
    pairs: Sequence[tuple[ConnectiveReport, ConnectiveReport]], when: str = "before", pulled: bool = False
) -> Finding | None:
    """Did the consequent come where no rule asks for it?

    By labels: it is also wrong there more often than before, and so is the network about it. Without them, some of what came may
    be right, because a network that learns a rule also knows its consequent where it does not read the antecedent. So units are
    left out of account that lost their antecedent, and half as many as a rule asks of (in each class, if classes are known: as
    many, because what a rule says of some samples of a class may well be true of the others).

    Args:
        pairs: the implication before and after; for all samples, followed by each class if classes are known.
        when: a word for what is compared with.
        pulled: the rule was seen to pull it there, so that all units count.
    """
    before, after = pairs[0]
    first, second = before.elsewhere, after.elsewhere
    if first is None or second is None or first.holds is None or second.holds is None:
        return None
    risen = second.holds - first.holds
    if risen < WIDELY or not rises(first.holds, first.units, second.holds, second.units):
        return None
    labelled = ""
    if first.wrongly is not None and second.wrongly is not None:
        errors = [each.wrongly + (each.missed or 0.0) for each in (first, second) if each.wrongly is not None]
        worse = second.wrongly - first.wrongly >= WIDELY and errors[1] > errors[0]
        if not worse or not rises(first.wrongly, first.labelled, second.wrongly, second.labelled):
            return None
        labelled = (
            f"; by their labels it is wrong on {percent(second.wrongly)} of them, {percent(first.wrongly)} {when}, and right to "
            f"hold on {percent(second.expected)}"
        )
    elif not pulled:
        spared = HALF if len(pairs) == 1 else 1.0
        if sum(max(_count_came(*pair, spared), 0.0) for pair in pairs[1:] or pairs) < WIDELY * second.units:
            return None
    now, then = percent(second.holds), percent(first.holds)
    sentence = f"{describe_elsewhere(after)} holds on {now} of them, {then} {when}{labelled}: the rule is applied too widely"
    return Finding(TOO_WIDE, sentence, after.path)


def _count_came(before: ConnectiveReport, after: ConnectiveReport, spared: float) -> float:
    """On how many units the consequent came, beyond those that the rule can account for."""
    first, second = before.elsewhere, after.elsewhere
    if first is None or second is None or not before.total or not after.total:
        return 0.0
    asked = [1.0 - (each.share or 0.0) for each in (first, second)]
    risen = (second.share or 0.0) * (second.holds or 0.0) - (first.share or 0.0) * (first.holds or 0.0)
    return after.total * (risen - max(asked[0] - asked[1], 0.0) - spared * max(asked))
