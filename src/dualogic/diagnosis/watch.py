"""What the looks of a monitor say: alarms, with the numbers behind them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from dualogic.diagnosis import verdict
from dualogic.diagnosis.accumulator import Diagnosis
from dualogic.diagnosis.alarm import AT_FLOOR, HELD_BACK, INFO, LOCKED_IN, NO_GRADIENT, WARNING, Alarm
from dualogic.diagnosis.assemble import assemble_part, assemble_rules
from dualogic.diagnosis.comparison import compare_elsewhere, judge_implication
from dualogic.diagnosis.report import ConnectiveReport, RuleReport
from dualogic.diagnosis.verdict import BOTH_WAYS, CONTRADICTED, FEW, FROZEN, HALF, NEVER, SWITCHED_OFF, TOO_WIDE, percent
from dualogic.diagnosis.window import LATE, Window
from dualogic.loss import LogicLoss
from dualogic.methods.distributional import DistributionalMethod

SETTLED = 10  # looks before anything but a missing gradient is judged
DENIAL = 0.95  # a rule that spends more of its pull than this on making its antecedent less true teaches nothing else
AGAINST = 0.15
"""A rule that spends this much of its pull on logarithms of belief against an antecedent that is never true holds it down."""
STILL = 0.25
"""A late pull of at least this fraction of the one at the start has not faded: the rule still works against something."""
EXCUSES = (SWITCHED_OFF, NO_GRADIENT, LOCKED_IN, FROZEN)
"""Alarms that explain why a rule stays violated, so that nothing is said against the rule itself."""
VISITS = 5  # visits of each sample before its weights are expected to have moved
ZERO = 1e-6  # a rule's gradient below this fraction of the one at the optimal duals is none
MILD = 0.5  # a floor of delta from which on it cannot make a rule pull more than about twice as hard as a loss of weight 1
LASTING = 35  # looks before what a rule does, or fails to do, is called lasting
STUCK = 0.05  # a fraction of broken units that fell by less than this over the latest looks has not fallen
MOSTLY = 0.7
"""A rule that spent at least this fraction of its pull where it asks for nothing is what brought its consequent there."""
CAME = 0.2  # the fraction of the units elsewhere on which the consequent must have come since it was there least
LARGE = 1.5  # a delta of at least this many times the median of the other rules' is large
RISEN = 1.1  # a task's loss this many times its lowest running mean has risen


def watch(diagnosis: Diagnosis, logic: LogicLoss, window: Window) -> Iterator[Alarm]:
    """Everything that the looks so far give reason to say, whether it was said before or not."""
    now, start = (assemble_rules(diagnosis, sums) for sums in (window.recent, window.start))
    for number, (name, rule) in enumerate(now.items()):
        if rule.satisfied is None:
            continue
        for part in rule.choices:
            if part.antecedent is not None and part.antecedent.holds is not None:
                keys = [(kept, part.path) for kept in ("counts", "elsewhere", "labels", "rule labels", "consequent labels")]
                least = None if part.elsewhere is None else part.elsewhere.holds
                window.keep_extremes(part.path, part.antecedent.holds, least, keys)
        found = [*_find_missing_gradient(rule, window)]
        if window.looks >= SETTLED:
            for part in rule.choices:
                if part.path in start[name].by_path and part.total:
                    judged = _watch_branches if part.antecedent is None else _watch_implication
                    found += judged(rule, part, start[name].by_path[part.path], window, diagnosis)
                    found += _watch_weights(rule, part, logic, window)
            found += _watch_strength(rule, number, window)
            found += _watch_contradiction(rule, number, window, {alarm.kind for alarm in found})
            found += _watch_delta(rule, number, logic, window)
        yield from found


def _find_missing_gradient(rule: RuleReport, window: Window) -> Iterator[Alarm]:
    sums = window.recent.get(("gradient", rule.name))
    if sums is None or (rule.violated or 0.0) <= NEVER:
        return
    here, best = sums.tolist()
    if best > 0 and here <= ZERO * best:
        found = f"violated on {percent(rule.violated)} of the samples, and its loss has no gradient with respect to any tensor"
        yield Alarm(NO_GRADIENT, rule.name, rule.name, found)


def _watch_implication(
    rule: RuleReport, part: ConnectiveReport, start: ConnectiveReport, window: Window, diagnosis: Diagnosis
) -> Iterator[Alarm]:
    antecedent = part.antecedent
    assert antecedent is not None
    yield from _watch_elsewhere(rule, part, window, diagnosis)
    labelled = antecedent.expected is not None
    if labelled and ((antecedent.expected or 0.0) < NEVER or (antecedent.read or 0.0) >= HALF):
        return  # by its labels the antecedent is rightly never true, or is still read
    share = None if ("pull", part.path) not in window.recent else window.ratio(("pull", part.path), 3, 4) or 0.0
    if share is None and ("gradient", rule.name) in window.recent and not labelled:
        return  # the consequent is given, so a rule that excludes its antecedent does what it should
    holds, violated = antecedent.holds or 0.0, (antecedent.holds or 0.0) - (antecedent.applied or 0.0)
    consequent = (start.operands[1].holds or 0.0, part.operands[1].holds or 0.0)
    before, after = 0.0, 0.0
    if share is not None:
        before, after = window.ratio(("pull", part.path), 0, 2, start=True) or 0.0, statistics.fmean(window.pulls[part.path])
    lasts = share is not None and window.counts["pull", part.path] >= LASTING and after >= STILL * before > 0
    gained = consequent[1] - consequent[0] > NEVER
    facts = (
        f"the antecedent {antecedent.text} less true (true for {percent(holds)} of the {part.counted}), and the consequent "
        f"{part.operands[1].text} has {'' if gained else 'not '}gained ({percent(consequent[0])} at the start, "
        f"{percent(consequent[1])} now)"
    )
    facts += _describe_evidence(window, part.path)
    still = f"the pull is still {after / before:.2g} times the one at the start, so something else works for it" if lasts else ""
    if share is not None and share >= DENIAL and not gained:
        facts = f"{percent(share)} of the rule's pull makes {facts}"
        if violated >= NEVER and violated * part.total >= FEW:
            message = f"{facts}; it is violated on {percent(violated)} and answers by arguing the antecedent away"
            yield Alarm(SWITCHED_OFF, rule.name, part.path, message)
            return
        if lasts:
            yield Alarm(SWITCHED_OFF, rule.name, part.path, f"{facts}; {still}")
            return
    elif lasts and holds < NEVER and _works_against(window, part.path) >= AGAINST:
        kind = BOTH_WAYS if gained else SWITCHED_OFF
        message = f"{percent(_works_against(window, part.path))} of the rule's pull, on logarithms, makes {facts}; {still}"
        yield Alarm(kind, rule.name, part.path, message)
        return
    rate, sums = window.peaks.get(part.path, (0.0, {}))
    peak = assemble_part(diagnosis, part.path, sums)
    fallen = rate >= NEVER and holds < HALF * rate
    if peak is None or not fallen or not verdict.rises(holds, part.total, rate, peak.total):
        return
    if (finding := judge_implication(peak, part, part.counted)) is None:
        return
    message = f"at its peak and now: {finding.sentence}{_describe_evidence(window, part.path)}"
    if finding.kind == SWITCHED_OFF and (share is None or share >= HALF or labelled):
        yield Alarm(SWITCHED_OFF, rule.name, part.path, message)
    elif finding.kind == BOTH_WAYS and (share is None or share >= verdict.SELDOM):
        yield Alarm(BOTH_WAYS, rule.name, part.path, message, INFO)


def _watch_elsewhere(rule: RuleReport, part: ConnectiveReport, window: Window, diagnosis: Diagnosis) -> Iterator[Alarm]:
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
    finding = verdict.judge_elsewhere(part)
    if finding is None and (found.holds or 0.0) - least >= CAME:
        finding = compare_elsewhere([(lowest, part)], "at its lowest", pulled=True)
    if finding is not None:
        yield Alarm(TOO_WIDE, rule.name, part.path, f"{finding.sentence}; {spent}")
    elif not found.labelled and (found.holds or 0.0) > HALF:
        often, seldom = percent(found.holds), percent(least)
        message = f"{verdict.describe_elsewhere(part)} holds on {often} of them, and never on fewer than {seldom}; {spent}"
        yield Alarm(TOO_WIDE, rule.name, part.path, message, INFO)


def _watch_contradiction(rule: RuleReport, number: int, window: Window, said: set[str]) -> Iterator[Alarm]:
    """Most units of which a rule asks something break it, by their labels, or by what the network says in spite of the rule.

    Not by the latter where what is ``said`` explains it; that a rule is held back does unless its delta is large as well.
    """
    deltas = window.latest["delta"].tolist()
    median = statistics.median(deltas[:number] + deltas[number + 1 :]) if len(deltas) > 2 else None
    large = median is not None and deltas[number] >= LARGE * median > 0
    implications: list[ConnectiveReport | None] = [part for part in rule.choices if part.antecedent is not None]
    for part in implications or [None]:
        path, counted = (rule.name, "samples") if part is None else (part.path, part.counted)
        antecedent = None if part is None else part.antecedent
        labels = antecedent or rule
        asked, rate = float(labels.labelled), labels.contradicted
        if rate is not None:
            message = f"by their labels, {percent(rate)} of the {counted} that the rule asks something of break it"
        else:
            asked, rate = float(rule.samples), rule.violated or 0.0
            if part is not None and antecedent is not None:
                if antecedent.kept is None or (antecedent.holds or 0.0) < NEVER:
                    continue
                asked, rate = (antecedent.holds or 0.0) * part.total, 1.0 - antecedent.kept
            before = window.keep_broken(path, rate)
            given = part is not None and ("pull", path) not in window.recent and ("gradient", rule.name) in window.recent
            excused = not said.isdisjoint(EXCUSES) or (HELD_BACK in said and not large)
            if window.looks < LASTING or excused or given or not (large or rate > before - STUCK):
                continue
            message = (
                f"{percent(rate)} of the {counted} that the rule asks something of break it, {percent(before)} {LATE} looks ago"
            )
        if median is not None:
            message += f"; its delta is {deltas[number]:.3g}, and {median:.3g} in the median of the other rules"
        if rate > HALF and asked >= FEW:
            yield Alarm(CONTRADICTED, rule.name, path, message)


def _watch_strength(rule: RuleReport, number: int, window: Window) -> Iterator[Alarm]:
    strength = float(window.latest["strength"][number]) if "strength" in window.latest else 1.0
    if strength < HALF and (rule.violated or 0.0) > NEVER:
        message = (
            f"it pulls at {percent(strength)} of its strength, because its antecedent is believed ever less, and is violated"
        )
        yield Alarm(HELD_BACK, rule.name, rule.name, f"{message} on {percent(rule.violated)} of the samples", INFO)


def _describe_evidence(window: Window, path: str) -> str:
    """How much of an antecedent the loss takes for evidence; nothing, for a method that does not say."""
    if ("evidence", path) not in window.latest:
        return ""
    share = float(window.latest["evidence", path])
    return f"; {percent(share)} of the antecedent is taken for evidence, which a rule does not teach"


def _works_against(window: Window, path: str) -> float:
    """The share of a rule's pull that lowers the logarithm of belief in its antecedent."""
    sums = window.recent["pull", path]
    both = float(sums[5] + sums[1])
    return float(sums[5]) / both if both > 0 else 0.0


def _watch_branches(
    rule: RuleReport, part: ConnectiveReport, start: ConnectiveReport, window: Window, diagnosis: Diagnosis
) -> Iterator[Alarm]:
    for position, operand in enumerate(part.operands, start=1):
        key = ("nearest", part.path)
        before, after = window.ratio(key, position, 0, start=True), window.ratio(key, position, 0)
        if before is not None and after is not None and after > verdict.EVERY and before < 1.0 - verdict.MUCH_VIOLATED:
            message = (
                f"the branch {operand.text} is the nearest one for {percent(after)} of the {part.counted}, {percent(before)} at "
                f"the start: it took over"
            )
            yield Alarm(verdict.TAKEN_OVER, rule.name, part.path, message)


def _watch_weights(rule: RuleReport, part: ConnectiveReport, logic: LogicLoss, window: Window) -> Iterator[Alarm]:
    if part.weights is None or part.weights.entropy is None:
        return
    steps, batch = float(window.latest["steps"]) - getattr(logic.method, "warmup", 0), float(window.latest["batch"])
    visits = steps * batch / logic.num_samples if logic.num_samples else steps
    if visits < VISITS:
        return
    heaviest = max(part.operands, key=lambda operand: operand.weight or 0.0)
    if part.weights.entropy > verdict.UNIFORM and (rule.violated or 0.0) > verdict.MUCH_VIOLATED:
        message = (
            f"violated on {percent(rule.violated)} of the samples, and the dual weights of {part.text} are still equal after "
            f"{visits:.0f} visits of each sample (entropy {part.weights.entropy:.4f} of 1)"
        )
        yield Alarm(FROZEN, rule.name, part.path, message, WARNING if getattr(logic.method, "step", 1.0) else INFO)
    elif (heaviest.weight or 0.0) > verdict.EVERY and (rule.violated or 0.0) > NEVER:
        if ("evidence", part.path) in window.latest and heaviest is part.operands[-1]:
            return  # an implication that rests: where its antecedent is believed, teaching the consequent alone is what it is for
        message = (
            f"violated on {percent(rule.violated)} of the samples, while the branch {heaviest.text} has a mean dual weight of "
            f"{heaviest.weight:.3f}: the other branches get no gradient"
        )
        yield Alarm(LOCKED_IN, rule.name, part.path, message)


def _watch_delta(rule: RuleReport, number: int, logic: LogicLoss, window: Window) -> Iterator[Alarm]:
    method = logic.method
    if not isinstance(method, DistributionalMethod):
        return
    spread = method.spread if isinstance(method.spread, float) else dict(method.spread).get(rule.name, 0.0)
    delta = float(window.latest["delta"][number])
    if spread >= method.floor or method.floor >= MILD or delta > method.floor * (1.0 + 1e-3):
        return  # at a spread of its own a rule that is met is left alone
    message = f"delta is at its floor of {method.floor:g}, so the rule's gradient is multiplied by about {1 / method.floor:.3g}"
    task = window.ratio("task", 1, 0)
    if task is not None and window.lowest is not None and task > RISEN * window.lowest and window.lowest > 0:
        message += f", and the task's loss has risen from {window.lowest:.3g} to {task:.3g}"
        yield Alarm(AT_FLOOR, rule.name, rule.name, message, WARNING)
    else:
        yield Alarm(AT_FLOOR, rule.name, rule.name, f"{message}; the mean cost is {rule.cost or 0.0:.3g}", INFO)
