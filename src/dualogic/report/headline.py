"""The verdict on a run in one sentence, in the words of its task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from dualogic.diagnosis import Comparison, ConnectiveReport, RuleReport, ShortcutReport, class_name, percent, verdict

TONES = {
    verdict.WORSE: "broken",
    verdict.CONTRADICTED: "broken",
    verdict.VIOLATED: "broken",
    verdict.TOO_WIDE: "broken",
    verdict.SWITCHED_OFF: "shortcut",
    verdict.TAKEN_OVER: "shortcut",
    verdict.IN_KIND: "learned",
    verdict.BOTH_WAYS: "both ways",
}
"""How a verdict is marked; the rest are "unclear"."""
SEVERITY = ("shortcut", "broken", "both ways", "unclear", "learned", "no rule", "no verdict")
"""The tones, the most serious first; a run that was taught no rule is judged by none."""


@dataclasses.dataclass(frozen=True)
class Headline:
    """A verdict."""

    tone: str  # one of `SEVERITY`
    kind: str  # of the finding that it is made from; see diagnosis/verdict.py
    sentence: str  # the verdict
    details: tuple[str, ...] = ()  # all findings, as the diagnosis words them
    label: int | None = None  # the class that it is about; `None` for all samples
    rule: str | None = None  # the rule that it is about; `None` for all


def write_headline(report: ShortcutReport, comparison: Comparison | None, words: Mapping[str, str]) -> Headline:
    """The most serious finding in the task's own words; what a comparison with the run without the rule says goes first.

    ``words`` tell what it means to make a part of the rule true, by its text.
    """
    found = comparison or report
    judged = {name: rule.findings for name, rule in found.rules.items()}
    kind = found.kind
    details = [each.sentence for findings in (found.findings, *judged.values()) for each in findings]
    details += [each.sentence for rule in report.rules.values() for each in rule.findings]
    listed = tuple(map(_sentence, dict.fromkeys(details)))
    if found.findings and found.findings[0].kind == kind:  # of all rules together
        return Headline(TONES.get(kind, "unclear"), kind, _sentence(found.verdict), listed)
    name = next((name for name, findings in judged.items() if findings and findings[0].kind == kind), None)
    if name is None:
        return Headline("unclear", kind, "There is no rule.")
    finding = judged[name][0]
    tone, sentence, label = TONES.get(kind, "unclear"), finding.sentence, None
    if comparison is not None:
        compared = comparison.rules[name]
        label = compared.label
        before, after = (rule if label is None else rule.classes[label] for rule in (compared.before, compared.after))
        old, new = before.by_path.get(finding.path), after.by_path.get(finding.path)
        where = "" if label is None else f" of {class_name(label, report.class_names)}"
        if old is not None and new is not None and new.antecedent is not None:
            sentence = _compare(kind, old, new, where if words else where and f" on samples{where}", words) or sentence
        elif finding.path == name and kind in (verdict.VIOLATED, verdict.SATISFIED):
            held = f"on {percent(before.satisfied)} of the samples{where} untaught, on {percent(after.satisfied)} taught"
            sentence = f"the rule holds {held}"
    elif kind == verdict.NOT_READ:
        tone, sentence, label = _not_read(report.rules[name], finding.path, words, report.class_names) or (tone, sentence, label)
    prefix = f"{name}: " if len(judged) > 1 else ""
    return Headline(tone, kind, prefix + _sentence(sentence), listed, label, name)


def _compare(kind: str, before: ConnectiveReport, after: ConnectiveReport, where: str, words: Mapping[str, str]) -> str | None:
    assert before.antecedent is not None
    assert after.antecedent is not None
    antecedent, consequent = (words.get(text, f"making {text} true") for text in (after.antecedent.text, after.operands[1].text))
    held = f"{percent(before.antecedent.holds)} without the rule, {percent(after.antecedent.holds)} with it"
    learned = f"{percent(before.operands[1].holds)} without, {percent(after.operands[1].holds)} with"
    if kind in (verdict.SWITCHED_OFF, verdict.BOTH_WAYS):
        denied = f"{_how_often(after.antecedent.holds)} {antecedent}"
        return _deny(kind == verdict.BOTH_WAYS, denied, held, consequent, learned, where)
    if kind == verdict.IN_KIND:
        return f"the rule is satisfied as meant: by {consequent}{where} ({learned}), while {antecedent} goes on ({held})"
    if kind == verdict.VIOLATED:
        return f"the rule is not satisfied: {antecedent}{where} goes on ({held}) without {consequent} ({learned})"
    return None


def _not_read(
    rule: RuleReport, path: str, words: Mapping[str, str], class_names: tuple[str, ...] | None
) -> tuple[str, str, int] | None:
    """Without a baseline: where the labels say that the antecedent is true, what does the network say?"""
    parts = {label: part.by_path[path] for label, part in rule.classes.items() if path in part.by_path}
    wanted = {
        label: part.antecedent.expected * part.total
        for label, part in parts.items()
        if part.antecedent is not None and part.antecedent.expected
    }
    if not wanted:
        return None
    label = max(wanted, key=wanted.__getitem__)
    part = parts[label]
    assert part.antecedent is not None
    where = f"{'' if words else ' on samples'} of {class_name(label, class_names)}"
    antecedent, consequent = (words.get(text, f"making {text} true") for text in (part.antecedent.text, part.operands[1].text))
    denied, held = f"{_how_often(part.antecedent.read)} {antecedent}", percent(part.antecedent.read)
    both = (part.operands[1].holds or 0.0) >= verdict.HALF
    sentence = _deny(both, denied, held, consequent, percent(part.operands[1].holds), where)
    return "both ways" if both else "shortcut", sentence, label


def _deny(both: bool, denied: str, held: str, consequent: str, learned: str, where: str) -> str:
    if both:
        return f"the rule is satisfied both ways: by {consequent}{where} ({learned}), and by {denied} ({held})"
    return f"the rule is satisfied by {denied}{where} ({held}), not by {consequent} ({learned})"


def describe_untaught(report: ShortcutReport) -> Headline:
    """For a run without a rule, which is there to be compared with."""
    details = tuple(_sentence(found.sentence) for rule in report.rules.values() for found in rule.findings)
    return Headline("no rule", report.kind, _sentence(f"no rule was taught: {report.verdict}"), details)


def _how_often(share: float | None) -> str:
    share = share or 0.0
    if share < verdict.NEVER:
        return "never"
    return "almost never" if share < verdict.SELDOM else "less often"


def explain(part: ConnectiveReport, words: Mapping[str, str]) -> list[str | None]:
    """What each operand means, in the task's words; that of a negated antecedent is what it negates."""
    known = [words.get(operand.text) for operand in part.operands]
    if part.antecedent is not None and part.antecedent.text in words:
        known[0] = f"not {words[part.antecedent.text]}"
    return known


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
