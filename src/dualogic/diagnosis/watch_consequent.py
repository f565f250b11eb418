"""What the looks of a monitor say about consequents: applied too widely, or contradicted by most samples."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator

from dualogic.diagnosis.accumulator import Diagnosis
from dualogic.diagnosis.alarm import INFO, Alarm, make_alarm
from dualogic.diagnosis.assemble import assemble_part
from dualogic.diagnosis.comparison import compare_elsewhere
from dualogic.diagnosis.report import ConnectiveReport, RuleReport
from dualogic.diagnosis.verdict import CONTRADICTED, FEW, HALF, NEVER, TOO_WIDE, describe_elsewhere, judge_elsewhere, percent
from dualogic.diagnosis.window import LATE, Window

LASTING = 35  # looks before what a rule does, or fails to do, is called lasting
STUCK = 0.05  # a fraction of broken units that fell by less than this over the latest looks has not fallen
MOSTLY = 0.7
"""A rule that spent at least this fraction of its pull where it asks for nothing is what brought its consequent there."""
CAME = 0.2  # the fraction of the units elsewhere on which the consequent must have come since it was there least
LARGE = 1.5  # a delta of at least this many times the median of the other rules' is large


def watch_elsewhere(rule: RuleReport, part: ConnectiveReport, window: Window, diagnosis: Diagnosis) -> Iterator[Alarm]:
    """The consequent came where no rule asks for it, and it was this rule that pulled it there."""
    if window.looks < LASTING or part.path not in window.troughs:
        return
    wide, pull = window.whole[("wide", part.path)].tolist() if ("wide", part.path) in window.whole else (0.0, 0.0)
    if not pull or wide < MOSTLY * pull:
        return  # what came, if anything, is what labels or other rules taught
    lowest = assemble_part(diagnosis, part.path, window.troughs[part.path][1])
    assert lowest is not None
    spent = f"{percent(wide / pull)} of its pull so far went there, where it asks for nothing"
    found = part.elsewhere
    assert found is not None
    # By labels it may be wrong there from the start on; without them, that it was there from the start is only mentioned.
    least = 0.0 if lowest.elsewhere is None else lowest.elsewhere.holds or 0.0
    finding = judge_elsewhere(part)
    if finding is None and (found.holds or 0.0) - least >= CAME:
        finding = compare_elsewhere([(lowest, part)], "at its lowest", pulled=True)
    if finding is not None:
        yield make_alarm(TOO_WIDE, rule.name, part.path, f"{finding.sentence}; {spent}")
    elif not found.labelled and (found.holds or 0.0) > HALF:
        often, seldom = percent(found.holds), percent(least)
        message = f"{describe_elsewhere(part)} holds on {often} of them, and never on fewer than {seldom}; {spent}"
        yield make_alarm(TOO_WIDE, rule.name, part.path, message, INFO)


def watch_contradiction(rule: RuleReport, number: int, window: Window, excused: bool) -> Iterator[Alarm]:
    """Most units of which a rule asks something break it, by their labels, or by what the network says in spite of the rule."""
    deltas = window.latest["delta"].tolist()
    median = statistics.median(deltas[:number] + deltas[number + 1 :]) if len(deltas) > 2 else None
    large = median is not None and deltas[number] >= LARGE * median > 0
    for found in _find_broken(rule):
        if found.labelled:
            message = f"by their labels, {percent(found.rate)} of the {found.counted} that the rule asks something of break it"
        else:
            before = window.keep_broken(found.path, found.rate)
            given = found.implies and ("pull", found.path) not in window.recent and ("gradient", rule.name) in window.recent
            if window.looks < LASTING or excused or given or not (large or found.rate > before - STUCK):
                continue
            message = (
                f"{percent(found.rate)} of the {found.counted} that the rule asks something of break it, {percent(before)} "
                f"{LATE} looks ago"
            )
        if median is not None:
            message += f"; its delta is {deltas[number]:.3g}, and {median:.3g} in the median of the other rules"
        if found.rate > HALF and found.asked >= FEW:
            yield make_alarm(CONTRADICTED, rule.name, found.path, message)


@dataclasses.dataclass(frozen=True)
class _Broken:
    """How often a rule, or one implication of it, is broken where it asks for something; by the labels, if they are there."""

    path: str
    counted: str
    asked: float
    rate: float
    labelled: bool
    implies: bool


def _find_broken(rule: RuleReport) -> Iterator[_Broken]:
    implications = [part for part in rule.choices if part.antecedent is not None]
    if not implications and rule.contradicted is not None:
        yield _Broken(rule.name, "samples", float(rule.labelled), rule.contradicted, True, False)
    elif not implications:
        yield _Broken(rule.name, "samples", float(rule.samples), rule.violated or 0.0, False, False)
    for part in implications:
        found = part.antecedent
        assert found is not None
        if found.contradicted is not None:
            yield _Broken(part.path, part.counted, float(found.labelled), found.contradicted, True, True)
        elif found.kept is not None and (found.holds or 0.0) >= NEVER:
            yield _Broken(part.path, part.counted, (found.holds or 0.0) * part.total, 1.0 - found.kept, False, True)
