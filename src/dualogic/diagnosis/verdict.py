"""What the numbers say, in one sentence per finding.

A single report shows what a rule's satisfaction consists of. It cannot show what a network *would* have said without the
rule: an antecedent that is never true may be rightly so, and a consequent that holds everywhere too. That takes a baseline (see
:mod:`dualogic.diagnosis.comparison`) or labels of the symbols, which tell where either should be true.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence

from dualogic.diagnosis.report import ConnectiveReport, Finding, RuleReport

KINDS = (
    NO_SAMPLES := "no samples",
    WORSE := "worse than without the rule",
    CONTRADICTED := "contradicted by most samples",
    VIOLATED := "violated",
    SWITCHED_OFF := "antecedent switched off",
    TOO_WIDE := "applied too widely",
    NOT_READ := "antecedent not read",
    VACUOUS := "antecedent never true",
    TAKEN_OVER := "one branch took over",
    ONE_BRANCH := "one branch takes every sample",
    DISAGREE := "weights on a branch that does not hold",
    FROZEN := "weights frozen at uniform",
    BOTH_WAYS := "satisfied both ways",
    SATISFIED := "satisfied",
    IN_KIND := "satisfied in kind",
)
"""The most serious first."""

MUCH_VIOLATED = 0.1  # a rule that fails on more of the samples than this is called violated
CLASS_VIOLATED = 0.5  # so is one that fails on more of the samples of one class than this
NEVER = 0.01  # an antecedent that is true for fewer units than this is called never true ...
SELDOM = 0.1  # ... unless there is a class in which it is true for at least this fraction
EVERY = 0.99  # a branch that alone satisfies more of the satisfied units than this takes every one
UNIFORM = 0.999  # weights of a larger normalised entropy than this are called uniform
WIDELY = 0.1
"""Against a baseline, a consequent that came on at least this fraction of the units elsewhere is applied too widely."""
TOO_OFTEN = 0.25  # without one, it must hold there on this fraction more than the labels say: networks have biases of their own
SIGNIFICANT = 4.0  # standard errors by which a rate must have moved to be called different
FEW = 5  # units that must have been seen to be counted on
HALF = 0.5

EVIDENCE = (
    "mark the antecedent as evidence, which the rule reads and does not teach: dl.evidence(a) >> b, dl.Implies(a, b, "
    "evidence=True), or `b given a` in a rule file; if no label shows what the consequent asks for, such as class 6 of f, say so "
    "to the method: Dual(unlabelled={'f': [6]}); the default method='dual', if you used another"
)
REMEDIES = {
    WORSE: "a smaller weight=, another method=, or none of these rules; rules that contradict each other are found by dl.lint",
    CONTRADICTED: "correct the rule or leave it out; if it mostly holds, give it a spread (Dual(spread=1)) or a smaller weight=",
    SWITCHED_OFF: EVIDENCE,
    NOT_READ: EVIDENCE,
    TOO_WIDE: "a smaller weight=, or the default method='dual', which asks little where the antecedent is hardly believed",
}
"""What to try, by the kind of a finding."""


def judge(rule: RuleReport, class_names: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """Findings about one rule, the most serious first; there is always one."""
    if rule.satisfied is None:
        return (Finding(NO_SAMPLES, "no sample was counted", rule.name),)
    found = [*_find_violation(rule, class_names), *_find_contradiction(rule)]
    for part in rule.choices:
        found += _judge_choice(part, rule, class_names)
        found += _judge_weights(part)
    settled = (CONTRADICTED, VIOLATED, TOO_WIDE, NOT_READ, VACUOUS, ONE_BRANCH, SATISFIED, IN_KIND)
    if all(finding.kind not in settled for finding in found):
        found.append(Finding(SATISFIED, f"satisfied on {percent(rule.satisfied)} of the samples", rule.name))
    return rank(found)


def rank(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The most serious first."""
    return tuple(sorted(findings, key=lambda finding: KINDS.index(finding.kind)))


def most_serious(findings: Iterable[Sequence[Finding]]) -> str:
    """The kind of the most serious finding of several rules."""
    kinds = [found[0].kind for found in findings if found]
    return min(kinds, key=KINDS.index) if kinds else NO_SAMPLES


def summarize(findings: Mapping[str, Sequence[Finding]]) -> str:
    """The most serious finding of several rules in one sentence, with the name of its rule if there are several."""
    worst = most_serious(findings.values())
    named = [(name, found[0]) for name, found in findings.items() if found and found[0].kind == worst]
    if not named:
        return "no rule"
    name, finding = named[0]
    if len(findings) == 1:
        return finding.sentence
    others = f" ({len(named)} of {len(findings)} rules: {worst})" if len(named) > 1 else ""
    return f"{name}: {finding.sentence}{others}"


def rises(before: float, count_before: int, after: float, count_after: int, errors: float = SIGNIFICANT) -> bool:
    """Whether a rate went up by more than chance; a handful of units is never enough."""
    # One more of either kind than was seen, so that a rate of 0 or 1 has an error.
    first, second = ((rate * count + 1) / (count + 2) for rate, count in ((before, count_before), (after, count_after)))
    error = math.sqrt(first * (1 - first) / (count_before + 2) + second * (1 - second) / (count_after + 2))
    return second - first > errors * error


def percent(fraction: float | None) -> str:
    """``"97.5 %"``; a dash where there is nothing to divide by."""
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def class_name(label: int, class_names: Sequence[str] | None) -> str:
    """``"class 6"``, or the name of the class."""
    return f"class {class_names[label] if class_names and 0 <= label < len(class_names) else label}"


def _find_violation(rule: RuleReport, class_names: Sequence[str] | None) -> Iterable[Finding]:
    violated = rule.violated or 0.0
    classes = {label: part.violated or 0.0 for label, part in rule.classes.items()}
    label, worst = max(classes.items(), key=operator.itemgetter(1), default=(0, 0.0))
    if violated <= MUCH_VIOLATED and worst <= CLASS_VIOLATED:
        return
    sentence = f"violated on {percent(violated)} of the samples"
    if worst > violated:
        sentence += f", and on {percent(worst)} of {class_name(label, class_names)}"
    conjunction = next((part for part in rule.connectives if part.kind == "and" and part.total), None)
    if conjunction is not None:
        weakest = min(conjunction.operands, key=lambda operand: operand.holds or 0.0)
        sentence += f"; the part that fails most is {weakest.text}, on {percent(1.0 - (weakest.holds or 0.0))}"
    yield Finding(VIOLATED, sentence, rule.name)


def _find_contradiction(rule: RuleReport) -> Iterable[Finding]:
    """A rule that is wrong by the labels, whatever the model says."""
    if rule.contradicted is not None and rule.contradicted > HALF and rule.labelled >= FEW:
        sentence = f"by their labels, {percent(rule.contradicted)} of the samples break the rule"
        yield Finding(CONTRADICTED, sentence, rule.name)
    for part in rule.choices:
        found = part.antecedent
        if found is not None and found.contradicted is not None and found.contradicted > HALF and found.labelled >= FEW:
            sentence = (
                f"by the labels, {part.operands[1].text} is false on {percent(found.contradicted)} of the {found.labelled} "
                f"{part.counted} on which {found.text} is true"
            )
            yield Finding(CONTRADICTED, sentence, part.path)


def _judge_choice(part: ConnectiveReport, rule: RuleReport, class_names: Sequence[str] | None) -> Iterable[Finding]:
    if part.none is None:
        return
    held = 1.0 - part.none
    antecedent = part.antecedent
    if antecedent is not None and antecedent.holds is not None:
        wide = judge_elsewhere(part)
        # How often it is true in each class.
        found = {label: each.by_path[part.path].antecedent for label, each in rule.classes.items() if part.path in each.by_path}
        shares = {label: each.holds or 0.0 for label, each in found.items() if each is not None}
        true = f"the antecedent {antecedent.text} is true for {percent(antecedent.holds)} of the {part.counted}"
        if wide is not None:
            yield wide
        if antecedent.expected is not None and antecedent.expected >= NEVER and (antecedent.read or 0.0) < HALF:
            expected, read = percent(antecedent.expected), percent(antecedent.read)
            sentence = (
                f"the antecedent {antecedent.text} is true for {expected} of the {part.counted} by their labels, and the model "
                f"makes it so on {read} of these; on the others the rule holds by not reading it"
            )
            yield Finding(NOT_READ, sentence, part.path)
        elif antecedent.holds < NEVER and antecedent.expected is not None and antecedent.expected < NEVER:
            rightly = f"{percent(antecedent.expected)} by their labels: the rule asks for almost nothing, rightly"
            yield Finding(SATISFIED, f"{true}, and for {rightly}", part.path)
        elif antecedent.holds < NEVER and max(shares.values(), default=0.0) < SELDOM:
            place = ", in every class" if shares else ""
            if any(shares.values()):
                label = max(shares, key=shares.__getitem__)
                place = f" (at most {percent(shares[label])} of any class, in {class_name(label, class_names)})"
            remedy = "whether it was switched off only a baseline or labels of its symbols can tell"
            yield Finding(VACUOUS, f"{true}{place}, so the rule asks for almost nothing; {remedy}", part.path)
        elif (antecedent.kept or 0.0) > 1.0 - MUCH_VIOLATED and wide is None:
            kept = f"{percent(antecedent.kept)} of these {part.operands[1].text} holds"
            yield Finding(IN_KIND, f"{true}, and for {kept}", part.path)
        return
    for operand in part.operands:
        if held and (operand.alone or 0.0) > EVERY * held:
            sentence = (
                f"the branch {operand.text} alone satisfies {percent((operand.alone or 0.0) / held)} of the {part.counted} that "
                f"satisfy {part.text}; this may be rightly so, which only a baseline can tell"
            )
            yield Finding(ONE_BRANCH, sentence, part.path)


def judge_elsewhere(part: ConnectiveReport) -> Finding | None:
    """By the labels of the consequent: does it hold more often than it should, where no rule asks for it?"""
    found = part.elsewhere
    if found is None or found.expected is None or found.wrongly is None or found.missed is None:
        return None
    says = found.expected + found.wrongly - found.missed
    if says - found.expected < TOO_OFTEN or not rises(found.expected, found.labelled, says, found.labelled):
        return None
    sentence = (
        f"{describe_elsewhere(part)} holds on {percent(says)} of them, and by their labels on {percent(found.expected)} (wrongly "
        f"on {percent(found.wrongly)}): the rule is applied too widely, unless the model says so without it too"
    )
    return Finding(TOO_WIDE, sentence, part.path)


def describe_elsewhere(part: ConnectiveReport) -> str:
    """``"the antecedent a does not hold on 96.0 % of the samples, and the consequent b"``, where no rule asks for it."""
    assert part.antecedent is not None
    assert part.elsewhere is not None
    where = f"{percent(part.elsewhere.share)} of the {part.counted}"
    return f"the antecedent {part.antecedent.text} does not hold on {where}, and the consequent {part.operands[1].text}"


def _judge_weights(part: ConnectiveReport) -> Iterable[Finding]:
    if part.weights is None or part.weights.entropy is None:
        return
    if part.weights.entropy > UNIFORM:
        yield Finding(FROZEN, f"the dual weights of {part.text} are still equal: they have chosen nothing", part.path)
    elif part.weights.agreement is not None and part.weights.agreement < HALF:
        sentence = f"where the duals of {part.text} chose, the chosen branch holds on only {percent(part.weights.agreement)}"
        yield Finding(DISAGREE, sentence, part.path)
