"""Two models beside each other: was the rule learned, or argued away?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from dualogic.diagnosis import verdict
from dualogic.diagnosis.report import ConnectiveReport, Finding, Judged, Report, RuleReport, ShortcutReport, plain
from dualogic.diagnosis.verdict import HALF, NEVER, class_name, percent, rises
from dualogic.errors import StateError

WORSE_ERRORS = 2.0  # standard errors by which rules must hold less often to be called worse; both models saw the same samples


@dataclasses.dataclass(frozen=True)
class RuleComparison(Judged):
    """What happened to one rule."""

    name: str  # of the rule
    text: str  # the rule
    label: int | None  # the class that the findings are about: the one with most violations before; `None` without labels
    before: RuleReport  # the report on the baseline
    after: RuleReport  # the report on the model
    findings: tuple[Finding, ...]  # what the change says, the most serious first


@dataclasses.dataclass(frozen=True)
class Comparison(Report):
    """A model against a baseline; made by :meth:`ShortcutReport.compare`."""

    before: ShortcutReport  # the report on the baseline
    after: ShortcutReport  # the report on the model
    rules: Mapping[str, RuleComparison]  # what happened to each rule, by name
    findings: tuple[Finding, ...] = ()  # what the change says of several rules together

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON: both reports, and the findings of each rule."""

        def judged(what: Any) -> dict[str, Any]:
            return {"findings": plain(what.findings), "verdict": what.verdict, "kind": what.kind}

        rules = {name: {"label": rule.label, **judged(rule)} for name, rule in self.rules.items()}
        return {"before": self.before.to_dict(), "after": self.after.to_dict(), "rules": rules, **judged(self)}


def compare(before: ShortcutReport, after: ShortcutReport) -> Comparison:
    """Compare reports on the same samples under the same rules; see :meth:`ShortcutReport.compare`."""
    if not isinstance(before, ShortcutReport):
        raise StateError(f"a report is compared with another report; got {type(before).__name__}")
    texts = [{name: rule.text for name, rule in report.rules.items()} for report in (before, after)]
    if texts[0] != texts[1]:
        raise StateError(f"the reports are about different rules: {texts[0]} and {texts[1]}; diagnose both models with the same")
    if (before.samples, before.tol, before.lead) != (after.samples, after.tol, after.lead):
        raise StateError(
            f"the reports differ in more than the model: {before.samples} and {after.samples} samples, tol {before.tol} and "
            f"{after.tol}, lead {before.lead} and {after.lead}; diagnose both models on the same samples with the same options"
        )
    rules = {name: _compare_rule(before.rules[name], after.rules[name], after.class_names) for name in after.rules}
    worse = _find_worse(before, after, "", "rules: all of them hold") if len(rules) > 1 else []
    return Comparison(before, after, rules, tuple(worse))


def _find_worse(before: Any, after: Any, path: str, what: str) -> list[Finding]:
    """Do rules hold less often than without them? Asked of reports on one rule, or on all."""
    first, second = before.satisfied, after.satisfied
    if first is None or second is None or first - second < NEVER:
        return []
    if not rises(1.0 - first, before.samples, 1.0 - second, after.samples, WORSE_ERRORS):
        return []
    sentence = f"worse than without the {what} on {percent(second)} of the samples, on {percent(first)} without"
    return [Finding(verdict.WORSE, sentence, path)]


def _compare_rule(before: RuleReport, after: RuleReport, names: Sequence[str] | None) -> RuleComparison:
    # Where the rule was broken most is where it had something to teach.
    shared = {label: part for label, part in before.classes.items() if label in after.classes}
    broken = {label: part.violated * part.samples for label, part in shared.items() if part.violated}
    label = max(broken, key=broken.__getitem__, default=None)
    first, second = (before, after) if label is None else (before.classes[label], after.classes[label])
    findings = _judge_change(first, second, "" if label is None else f" of {class_name(label, names)}")
    groups = [(before, after), *((part, after.classes[label]) for label, part in shared.items())]
    wide = set()
    for path in [part.path for part in after.choices if part.antecedent is not None]:
        pairs = [(old.by_path[path], new.by_path[path]) for old, new in groups if path in old.by_path]
        finding = compare_elsewhere(pairs) if pairs else None
        if finding is not None:
            findings.append(finding)
            wide.add(path)
    # What was satisfied by its consequent was so in too many places.
    findings = [finding for finding in findings if finding.kind != verdict.IN_KIND or finding.path not in wide]
    findings += _find_worse(before, after, before.name, "rule: it holds")
    return RuleComparison(before.name, before.text, label, before, after, verdict.rank(findings))


def _judge_change(before: RuleReport, after: RuleReport, whose: str) -> list[Finding]:
    if before.satisfied is None or after.satisfied is None:
        return [Finding(verdict.NO_SAMPLES, "no sample was counted", before.name)]
    found = []
    for part in after.choices:
        if (old := before.by_path.get(part.path)) is not None and part.total and old.total:
            judged = judge_implication if part.antecedent is not None else _judge_branches
            found.append(judged(old, part, f"{part.counted}{whose}"))
    if any(found):
        return [finding for finding in found if finding is not None]
    kind = verdict.VIOLATED if (after.violated or 0.0) > verdict.MUCH_VIOLATED else verdict.SATISFIED
    held = f"satisfied on {percent(before.satisfied)} of the samples{whose} before, on {percent(after.satisfied)} after"
    return [Finding(kind, held, after.name)]


def judge_implication(before: ConnectiveReport, after: ConnectiveReport, where: str) -> Finding | None:
    """Was it the antecedent that went, or the consequent that came?

    Fractions of the units: ``a`` antecedent true, ``q`` consequent true, ``v`` violated (the antecedent without the
    consequent). The rule was repaired by its consequent if this came, on at least half as many units as ``v`` fell by, where
    the antecedent holds or went; where it comes elsewhere, nothing is repaired.
    """
    first, second = before.antecedent, after.antecedent
    assert first is not None
    assert second is not None
    a_before, a_after = first.holds or 0.0, second.holds or 0.0
    if a_before < NEVER:
        return None
    v_before, v_after = a_before - (first.applied or 0.0), a_after - (second.applied or 0.0)
    repaired = v_before - v_after
    stayed = (second.applied or 0.0) - (first.applied or 0.0)
    went = max(min((after.together or 0.0) - (before.together or 0.0), a_before - a_after), 0.0)
    gained, lost = stayed + went >= HALF * repaired, a_after < HALF * a_before
    old, new = before.operands[1], after.operands[1]
    facts = (
        f"the antecedent {second.text} held on {percent(a_before)} of the {where} before, {percent(a_after)} after; "
        f"the consequent {new.text} on {percent(old.holds)} before, {percent(new.holds)} after"
    )
    rest = f", and is still violated on {percent(v_after)}" if v_after > verdict.MUCH_VIOLATED else ""
    counted = v_after > verdict.MUCH_VIOLATED or (v_after >= NEVER and round(v_after * after.total) >= verdict.FEW)
    if v_after > HALF * v_before and counted:
        kind, said = verdict.VIOLATED, f"violated on {percent(v_after)} of the {where}, {percent(v_before)} before; {facts}"
    elif repaired > 0 and gained and lost:
        kind, said = verdict.BOTH_WAYS, f"{facts}: the consequent was learned, and the antecedent lost on the way{rest}"
    elif repaired > 0 and gained:
        kind, said = verdict.IN_KIND, f"{facts}: the rule was satisfied by its consequent{rest}"
    elif repaired > 0 and a_before - a_after >= HALF * repaired and _is_marked(before, after, a_before, a_after):
        place = "" if lost else " where the rule was violated"
        kind, said = verdict.SWITCHED_OFF, f"{facts}: the rule was satisfied by switching the antecedent off{place}{rest}"
    else:
        return None
    return Finding(kind, said, after.path)


def _is_marked(before: ConnectiveReport, after: ConnectiveReport, first: float, second: float) -> bool:
    """Whether an antecedent holds so much less often that it was lost, and did not just change on some units."""
    chance = not rises(1.0 - first, before.total, 1.0 - second, after.total, WORSE_ERRORS)
    return first - second >= verdict.SELDOM * first or not chance


def _judge_branches(before: ConnectiveReport, after: ConnectiveReport, where: str) -> Finding | None:
    for first, second in zip(before.operands, after.operands):
        old, new = _share_alone(first.alone, before.none), _share_alone(second.alone, after.none)
        if old is not None and new is not None and new > verdict.EVERY and old < 1.0 - verdict.MUCH_VIOLATED:
            sentence = (
                f"the branch {second.text} alone satisfied {percent(old)} of the satisfied {where} before, {percent(new)} after: "
                f"it took over"
            )
            return Finding(verdict.TAKEN_OVER, sentence, after.path)
    return None


def _share_alone(alone: float | None, none: float | None) -> float | None:
    return None if alone is None or none is None or none >= 1.0 else alone / (1.0 - none)


def compare_elsewhere(
    pairs: Sequence[tuple[ConnectiveReport, ConnectiveReport]], when: str = "before", pulled: bool = False
) -> Finding | None:
    """Did the consequent come where no rule asks for it?

    By labels: it is also wrong there more often than before, and so is the network about it. Without them, some of what came may
    be right, because a network that learns a rule also knows its consequent where it does not read the antecedent. So units are
    left out of account that lost their antecedent, and half as many as a rule asks of (in each class, if classes are known: as
    many, because what a rule says of some samples of a class may well be true of the others).

    ``pairs`` are the implication before and after; for all samples, followed by each class if classes are known. If the rule was
    seen to pull it there (``pulled``), all units count. ``when`` is a word for what is compared with.
    """
    before, after = pairs[0]
    first, second = before.elsewhere, after.elsewhere
    if first is None or second is None or first.holds is None or second.holds is None:
        return None
    if second.holds - first.holds < verdict.WIDELY or not rises(first.holds, first.units, second.holds, second.units):
        return None
    labelled = ""
    if first.wrongly is not None and second.wrongly is not None:
        errors = [each.wrongly + (each.missed or 0.0) for each in (first, second) if each.wrongly is not None]
        worse = second.wrongly - first.wrongly >= verdict.WIDELY and errors[1] > errors[0]
        if not worse or not rises(first.wrongly, first.labelled, second.wrongly, second.labelled):
            return None
        labelled = (
            f"; by their labels it is wrong on {percent(second.wrongly)} of them, {percent(first.wrongly)} {when}, and right to "
            f"hold on {percent(second.expected)}"
        )
    elif not pulled:
        spared = HALF if len(pairs) == 1 else 1.0
        if sum(max(_count_came(*pair, spared), 0.0) for pair in pairs[1:] or pairs) < verdict.WIDELY * second.units:
            return None
    where, now, then = verdict.describe_elsewhere(after), percent(second.holds), percent(first.holds)
    sentence = f"{where} holds on {now} of them, {then} {when}{labelled}: the rule is applied too widely"
    return Finding(verdict.TOO_WIDE, sentence, after.path)


def _count_came(before: ConnectiveReport, after: ConnectiveReport, spared: float) -> float:
    """On how many units the consequent came, beyond those that the rule can account for."""
    first, second = before.elsewhere, after.elsewhere
    if first is None or second is None or not before.total or not after.total:
        return 0.0
    asked = [1.0 - (each.share or 0.0) for each in (first, second)]
    risen = (second.share or 0.0) * (second.holds or 0.0) - (first.share or 0.0) * (first.holds or 0.0)
    return after.total * (risen - max(asked[0] - asked[1], 0.0) - spared * max(asked))
