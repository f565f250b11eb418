"""From sums to a report."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from dualogic.diagnosis.outline import to_text
from dualogic.diagnosis.report import (
    AntecedentReport,
    ConnectiveReport,
    ElsewhereReport,
    OperandReport,
    RuleReport,
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
    for name, total in assemble_rules(diagnosis, tally.total).items():
        classes = {label: reports[name] for label, reports in by_label.items()}
        whole = dataclasses.replace(total, classes=classes, worst=tuple(diagnosis._worst[name]))
        rules[name] = dataclasses.replace(whole, findings=judge(whole, diagnosis.classes))
    return ShortcutReport(
        diagnosis.samples,
        rules,
        diagnosis.tol,
        diagnosis.lead,
        diagnosis.class_cost,
        diagnosis.classes,
        _share(float(tally.total.get("together", 0.0)), diagnosis.samples),
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
    if ("counts", path) not in sums:
        return None
    part, counts = diagnosis._outline[path], sums["counts", path].tolist()
    report = functools.partial(ConnectiveReport, path, part.kind, part.text, part.counted, int(counts[0]))
    if part.kind in ("all", "any"):
        units, empty, entries, holding = counts
        return report(entries=int(entries), holding=_share(holding, entries), empty=_share(empty, units))
    units, together, none, true, applied, *each = counts
    hits, alone = each[: len(part.operands)], each[len(part.operands) :]
    held = [units - hit for hit in hits] if part.kind == "and" else hits
    shares = zip(part.operands, held, alone)
    operands = [OperandReport(text, _share(holding, units), _share(single, units)) for text, holding, single in shares]
    operands, weights = _weigh(operands, sums["weights", path].tolist()) if ("weights", path) in sums else (operands, None)
    report = functools.partial(report, tuple(operands), _share(together, units), _share(none, units), weights=weights)
    if part.antecedent is None:
        return report()
    known, expected, as_expected = _read(sums, path, "labels", 3)
    labelled, contradicted = _read(sums, path, "rule labels", 2)
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
    apart, holding = _read(sums, path, "elsewhere", 2)
    known, says, expected, both = _read(sums, path, "consequent labels", 4)
    elsewhere = ElsewhereReport(
        units=int(apart),
        share=_share(apart, int(units)),
        holds=_share(holding, apart),
        labelled=int(known),
        expected=_share(expected, known),
        wrongly=_share(says - both, known),
        missed=_share(expected - both, known),
    )
    return report(antecedent=antecedent, elsewhere=elsewhere)


def _read(sums: Sums, path: str, name: str, count: int) -> list[float]:
    """Sums of some name; zeros where there are none, because there are no labels."""
    return sums[name, path].tolist() if (name, path) in sums else [0.0] * count


def _weigh(operands: list[OperandReport], sums: list[float]) -> tuple[list[OperandReport], WeightReport]:
    units, entropy, decided, *each = sums
    columns = [each[start :: len(operands)] for start in range(len(operands))]
    weighed = [
        dataclasses.replace(
            operand,
            weight=_share(weight, units),
            weight_alone=_share(weight_alone, alone),
            chosen=_share(chosen, units),
            chosen_rightly=_share(rightly, units),
        )
        for operand, (weight, alone, weight_alone, chosen, rightly) in zip(operands, columns)
    ]
    return weighed, WeightReport(_share(entropy, units), _share(sum(each[-len(operands) :]), decided))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
