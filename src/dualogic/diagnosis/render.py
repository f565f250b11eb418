"""Reports as Markdown (which rich shows too) and plain text, from the same headings, sentences and tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Union

from dualogic.diagnosis.comparison import Comparison
from dualogic.diagnosis.report import ConnectiveReport, Report, RuleReport, ShortcutReport
from dualogic.diagnosis.verdict import KINDS, REMEDIES, class_name, percent
from dualogic.errors import SymbolError

MANY = 5  # more rules than this are shown as one table
MOST_CONNECTIVES = 12
MOST_BRANCHES = 12  # what is shown of long rules; the dictionary form has everything


@dataclasses.dataclass(frozen=True)
class Heading:
    """A title; ``code`` is set in the font of programs."""

    text: str
    code: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of text under headers; the first column is text, the others are numbers, or text from ``words`` on."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int | None = None

    def is_text(self, place: int) -> bool:
        """Whether a column starts at its left edge."""
        return not place or (self.words is not None and place >= self.words)


Block = Union[Heading, str, Table]


def make_overview(report: Report) -> list[dict[str, Any]]:
    """One row for each rule, the most serious finding first, and among equals the rule that holds least often.

    Returns:
        Dictionaries of ``rule``, ``text``, ``samples``, ``holds`` (a fraction), ``vacuous`` (the fraction on which the antecedent
        of the first implication is false; ``None`` without one), ``cost``, ``kind`` and ``verdict``; against a baseline also
        ``before``, the fraction on which the rule held there.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> report = dl.diagnose({"kept": b, "broken": a >> b}, a=torch.ones(4), b=torch.tensor([1.0, 0.0, 0.0, 1.0]))
        >>> [(row["rule"], row["holds"], row["vacuous"]) for row in make_overview(report)]
        [('kept', 0.5, None), ('broken', 0.5, 0.0)]
    """
    rows = []
    for name, judged in report.rules.items():
        rule = judged if isinstance(judged, RuleReport) else judged.after
        row = {
            "rule": name,
            "text": rule.text,
            "samples": rule.samples,
            "holds": rule.satisfied,
            "vacuous": None if rule.antecedent is None else rule.antecedent.denied,
            "cost": rule.cost,
            "kind": judged.kind,
            "verdict": judged.verdict,
        }
        rows.append(row if isinstance(judged, RuleReport) else {**row, "before": judged.before.satisfied})
    ranks = {kind: rank for rank, kind in enumerate(KINDS)}
    return sorted(rows, key=lambda row: (ranks.get(row["kind"], len(KINDS)), -1.0 if row["holds"] is None else row["holds"]))


def show(report: Report) -> list[Block]:
    """What is shown of a report or a comparison: all of a few rules, one row for each of many."""
    blocks: list[Block] = []
    if len(report.rules) > 1:
        blocks.append(f"{_lead(report)}.")
        if isinstance(report, Comparison):
            old, new = percent(report.before.satisfied), percent(report.after.satisfied)
            blocks.append(f"All rules hold on {new} of the samples, {old} before.")
        elif isinstance(report, ShortcutReport):
            blocks.append(f"All rules hold on {percent(report.satisfied)} of the samples.")
    return blocks + (_glance(report) if len(report.rules) > MANY else show_details(report))


def show_details(report: Report, names: tuple[str, ...] = ()) -> list[Block]:
    """Everything about some rules, or about all; what to try is said once for each kind of finding."""
    blocks: list[Block] = []
    advised: set[str] = set()
    if unknown := [name for name in names if name not in report.rules]:
        raise SymbolError(f"there is no rule named {unknown[0]!r}; the rules are {', '.join(map(repr, report.rules))}")
    for name in names or report.rules:
        rule = report.rules[name]
        blocks.append(Heading(name, rule.text))
        for finding in rule.findings:
            advice = f" To try: {finding.advice}." if finding.advice and finding.kind not in advised else ""
            advised.add(finding.kind)
            blocks.append(_sentence(finding.sentence) + advice)
        if isinstance(report, Comparison):
            blocks.append(_measure_table([rule.before, rule.after], report.after.class_names))
        elif isinstance(report, ShortcutReport):
            blocks.append(_measure_table([rule], report.class_names))
            for part in rule.connectives[:MOST_CONNECTIVES]:
                blocks += _connective_blocks(part)
            if len(rule.connectives) > MOST_CONNECTIVES:
                blocks.append(f"... and {len(rule.connectives) - MOST_CONNECTIVES} more connectives.")
            blocks += [_worst_table(rule, report.class_names)] if rule.worst else []
    return blocks


def _lead(report: Report) -> str:
    """The verdict; of many rules it names the one on top of the table, unless it is about all together."""
    if len(report.rules) <= MANY or (report.findings and report.findings[0].kind == report.kind):
        return report.verdict
    rows = make_overview(report)
    alike = sum(row["kind"] == rows[0]["kind"] for row in rows)
    return f"{rows[0]['rule']}: {rows[0]['verdict']} ({alike} of {len(rows)} rules: {rows[0]['kind']})"


def _glance(report: Report) -> list[Block]:
    """One row for each rule, the worst first; then what to try, and how to see more."""
    called = "comparison" if isinstance(report, Comparison) else "report"
    rows = make_overview(report)
    before = ("before",) if "before" in rows[0] else ()
    headers = ("rule", *before, "holds", "vacuous", "verdict")
    shown = tuple((row["rule"], *(percent(row[key]) for key in (*before, "holds", "vacuous")), row["kind"]) for row in rows)
    blocks: list[Block] = [Table(headers, shown, words=len(headers) - 1)]
    kinds = dict.fromkeys(row["kind"] for row in rows)
    blocks += [f"{_sentence(kind)} To try: {REMEDIES[kind]}." for kind in kinds if kind in REMEDIES]
    return [*blocks, f"All about one rule: print({called}.details({rows[0]['rule']!r})); about all: print({called}.details())."]


def to_markdown(blocks: Sequence[Block]) -> str:
    """Markdown, with tables as GitHub reads them."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            lines += [f"### {block.text}", "", f"`{block.code}`", ""]
        elif isinstance(block, Table):
            lines.append(_markdown_row(block.headers))
            lines.append("|" + "".join("---|" if block.is_text(place) else "---:|" for place in range(len(block.headers))))
            lines += [*map(_markdown_row, block.rows), ""]
        else:
            lines += [block, ""]
    return "\n".join(lines).rstrip() + "\n"


def to_text(blocks: Sequence[Block]) -> str:
    """Plain text with aligned columns."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            lines += [f"{block.text}: {block.code}"]
        elif isinstance(block, Table):
            widths = [max(map(len, column)) for column in zip(block.headers, *block.rows)]
            sides = ["<" if block.is_text(place) else ">" for place in range(len(widths))]
            for row in (block.headers, *block.rows):
                cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths))
                lines.append(f"  {'  '.join(cells)}".rstrip())
            lines.append("")
        else:
            lines += [f"  {block}", ""]
    return "\n".join(lines).rstrip()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _measures(rule: RuleReport) -> dict[str, float | None]:
    """The columns of a rule's table: satisfied, and how its first choice is met."""
    found = {"satisfied": rule.satisfied, "undecided": rule.undecided}
    part = next(iter(rule.choices), None)
    if part is None:
        return found
    if part.antecedent is not None:
        antecedent, consequent = part.antecedent, part.operands[1]
        found |= {"antecedent": antecedent.holds, "with it": antecedent.applied, "vacuous": antecedent.denied}
        found[consequent.text] = consequent.holds
    elif len(part.operands) <= 3:
        found |= {f"{operand.text} alone": operand.alone for operand in part.operands}
    return {**found, "together": part.together}


def _measure_table(rules: Sequence[RuleReport], class_names: Sequence[str] | None) -> Table:
    """The measures on all samples and in each class; of two reports, before and after in each cell."""
    # Nothing is undecided unless a lead was asked for.
    decided = not any(rule.undecided for rule in rules)
    headers = [header for header in _measures(rules[-1]) if not (header == "undecided" and decided)]
    shared = [label for label in rules[0].classes if label in rules[-1].classes]
    groups = [("all", rules), *((class_name(label, class_names), [rule.classes[label] for rule in rules]) for label in shared)]
    rows = []
    for title, parts in groups:
        count = [str(parts[0].samples)] if len(rules) == 1 else []
        measures = [*map(_measures, parts)]
        cells = [", ".join(percent(each.get(header)) for each in measures) for header in headers]
        rows.append((title, *count, *cells))
    return Table((*(("", "samples") if len(rules) == 1 else ("before, after",)), *headers), tuple(rows))


def _connective_blocks(part: ConnectiveReport) -> list[Block]:
    what = f"{part.path}: {part.kind} over {part.total} {part.counted}"
    if part.entries is not None:
        empty = f"; {percent(part.empty)} have none" if part.empty else ""
        return [f"{what}: holds on {percent(part.holding)} of {part.entries} entries{empty}."]
    single = "alone" if part.kind != "and" else "fails alone"
    headers = [what, "holds", single]
    rows = [[operand.text, percent(operand.holds), percent(operand.alone)] for operand in part.operands[:MOST_BRANCHES]]
    if part.weights is not None:
        headers += ["dual weight", f"dual weight where {single}", "chosen", "rightly"]
        for row, operand in zip(rows, part.operands):
            row += [*map(_number, (operand.weight, operand.weight_alone))]
            row += [*map(percent, (operand.chosen, operand.chosen_rightly))]
    blocks: list[Block] = [Table(tuple(headers), tuple(map(tuple, rows)))]
    if len(part.operands) > MOST_BRANCHES:
        blocks.append(f"... and {len(part.operands) - MOST_BRANCHES} more operands.")
    if part.weights is not None:
        blocks.append(
            f"Entropy of the dual weights: {_number(part.weights.entropy)} of 1; the choice agrees with what "
            f"{'fails' if part.kind == 'and' else 'holds'} on {percent(part.weights.agreement)}."
        )
    return blocks


def _worst_table(rule: RuleReport, class_names: Sequence[str] | None) -> Table:
    rows = []
    for sample in rule.worst:
        name = f"sample {sample.position if sample.index is None else sample.index}"
        label = "-" if sample.label is None else class_name(sample.label, class_names)
        rows.append((name, label, f"{sample.cost:.4g}", "yes" if sample.satisfied else "no"))
    return Table(("largest cost", "class", "cost", "satisfied"), tuple(rows))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
