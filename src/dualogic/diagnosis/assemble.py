"""From sums to a report."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from dualogic.diagnosis.outline import Connective, to_text
from dualogic.diagnosis.report import (
    AntecedentReport,
    ConnectiveReport,
    ElsewhereReport,
    OperandReport,
    RuleReport,
    SampleReport,
    ShortcutReport,
    WeightReport,
)
from dualogic.diagnosis.verdict import judge

if TYPE_CHECKING:
    from dualogic.diagnosis.accumulator import Diagnosis

Sums = Mapping[Hashable, Tensor]


def assemble(diagnosis: Diagnosis) -> ShortcutReport:
    """The report on what a diagnosis has counted."""
    tally = diagnosis._tally
    by_label = {label: assemble_rules(diagnosis, tally.by_label[label]) for label in sorted(tally.by_label)}
    rules: dict[str, RuleReport] = {}
    for number, (name, total) in enumerate(assemble_rules(diagnosis, tally.total).items()):
        classes = {label: reports[name] for label, reports in by_label.items()}
        kept = zip(diagnosis._worst.costs[:, number].tolist(), diagnosis._worst.facts[:, number].tolist())
        worst = tuple(
            SampleReport(position, index if index >= 0 else None, label if label >= 0 else None, cost, bool(holds))
            for cost, (position, index, label, holds) in kept
        )
        whole = dataclasses.replace(total, classes=classes, worst=worst)
        rules[name] = dataclasses.replace(whole, findings=judge(whole, diagnosis.classes))
    together = float(tally.total["together"]) if "together" in tally.total else 0.0
    return ShortcutReport(
        diagnosis.samples,
        rules,
        diagnosis.tol,
        diagnosis.lead,
        diagnosis.class_cost,
        diagnosis.classes,
        _share(together, diagnosis.samples),
    )


def assemble_rules(diagnosis: Diagnosis, sums: Sums) -> dict[str, RuleReport]:
    """What sums say about each rule, without classes, worst samples and findings."""
    reports: dict[str, RuleReport] = {}
    for number, (name, formula) in enumerate(diagnosis.rules.items()):
        samples, satisfied, undecided, cost, infinite = sums["rules"][number].tolist() if "rules" in sums else [0.0] * 5
        known, broken = _read(sums, name, "broken", 2)
        connectives = [assemble_part(diagnosis, part.path, sums) for part in diagnosis._parts[name]]
        reports[name] = RuleReport(
            name=name,
            text=str(formula),
            samples=int(samples),
            satisfied=_share(satisfied, samples),
            undecided=_share(undecided, samples),
            cost=_share(cost, samples - infinite),
            connectives=tuple(part for part in connectives if part is not None),
            labelled=int(known),
            contradicted=_share(broken, known),
        )
    return reports


def assemble_part(diagnosis: Diagnosis, path: str, sums: Sums) -> ConnectiveReport | None:
    """What sums say about one connective; ``None`` if they are not about it."""
    level, lane = diagnosis._places[path]
    if level not in sums:
        return None
    elsewhere = sums["elsewhere", level][lane].tolist() if ("elsewhere", level) in sums else None
    return _connective(diagnosis._outline[path], sums[level][lane].tolist(), elsewhere, sums)


def _connective(part: Connective, counts: list[float], elsewhere: list[float] | None, sums: Sums) -> ConnectiveReport:
    report = functools.partial(ConnectiveReport, part.path, part.kind, part.text, part.counted, int(counts[0]))
    if part.kind in ("all", "any"):
        units, empty, entries, holding = counts
        return report(entries=int(entries), holding=_share(holding, entries), empty=_share(empty, units))
    units, together, none, true, applied, *each = counts
    count = len(part.operands)
    hits, alone = each[:count], each[count:]
    operands = []
    for position, text in enumerate(part.operands):
        holding = units - hits[position] if part.kind == "and" else hits[position]
        operands.append(OperandReport(text, _share(holding, units), _share(alone[position], units)))
    weighing = None
    if part.path in sums:
        operands, weighing = _weigh(operands, sums[part.path].tolist())
    report = functools.partial(report, tuple(operands), _share(together, units), _share(none, units), weights=weighing)
    if part.antecedent is None:
        return report()
    known, expected, as_expected = _read(sums, part.path, "labels", 3)
    labelled, contradicted = _read(sums, part.path, "rule labels", 2)
    antecedent = AntecedentReport(
        text=to_text(part.antecedent),
        holds=_share(true, units),
        applied=_share(applied, units),
        denied=_share(hits[0], units),
        undecided=_share(units - true - hits[0], units),
        expected=_share(expected, known),
        read=_share(as_expected, expected),
        labelled=int(labelled),
        contradicted=_share(contradicted, labelled),
    )
    if elsewhere is None:
        return report(antecedent=antecedent)
    known, says, expected, both = _read(sums, part.path, "consequent labels", 4)
    found = ElsewhereReport(
        units=int(elsewhere[0]),
        share=_share(elsewhere[0], int(units)),
        holds=_share(elsewhere[1], elsewhere[0]),
        labelled=int(known),
        expected=_share(expected, known),
        wrongly=_share(says - both, known),
        missed=_share(expected - both, known),
    )
    return report(antecedent=antecedent, elsewhere=found)


def _read(sums: Sums, path: str, name: str, count: int) -> list[float]:
    """What the labels say of an implication; zeros where there are none."""
    return sums[path, name].tolist() if (path, name) in sums else [0.0] * count


def _weigh(operands: list[OperandReport], sums: list[float]) -> tuple[list[OperandReport], WeightReport]:
    units, entropy, decided, *each = sums
    count = len(operands)
    weight, alone, weight_alone, chosen, rightly = (each[start : start + count] for start in range(0, 5 * count, count))
    weighed = [
        dataclasses.replace(
            operand,
            weight=_share(weight[place], units),
            weight_alone=_share(weight_alone[place], alone[place]),
            chosen=_share(chosen[place], units),
            chosen_rightly=_share(rightly[place], units),
        )
        for place, operand in enumerate(operands)
    ]
    return weighed, WeightReport(_share(entropy, units), _share(sum(rightly), decided))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
