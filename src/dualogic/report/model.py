"""What the page shows, as plain values for JSON; the page's script only draws."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dualogic.diagnosis import Comparison, RuleReport, class_name, make_overview
from dualogic.diagnosis.report import SampleReport, plain
from dualogic.errors import StateError
from dualogic.report.headline import SEVERITY, TONES, Headline, describe_untaught, explain, write_headline
from dualogic.report.reading import Record, find_baseline
from dualogic.report.summary import ALL, list_findings, summarize

NO_BASELINE = (
    "a run without the rule on the same samples, among these or beside this one (recorded by dl.Recorder with the rule itself in "
    "the place of the loss); so the verdict cannot say what the network did without the rule"
)
LEADS = {
    "shortcut": ("took a shortcut", "took a shortcut"),
    "broken": ("went wrong", "went wrong"),
    "both ways": ("satisfied the rule both ways", "satisfied the rule both ways"),
    "learned": ("satisfied the rule as meant", "satisfied the rule as meant"),
    "unclear": ("leaves the verdict open", "leave the verdict open"),
    "no rule": ("was taught no rule", "were taught no rule"),
    "no verdict": ("has no verdict", "have no verdict"),
}
"""What one run, or several, of each tone did."""


def make_model(records: Sequence[Record]) -> dict[str, Any]:
    """Everything that the page shows: the rules with the worst first, the runs, and the ``group`` that is shown first."""
    names = _name_runs(records)
    baselines = [find_baseline(record, records) for record in records]
    comparisons = list(map(_compare, records, baselines))
    headlines = list(map(_judge, records, comparisons))
    shown = list(map(_show_run, records, names, headlines, baselines, comparisons))
    worst = min(headlines, key=lambda headline: SEVERITY.index(headline.tone))
    return {
        "title": records[0].about.get("title", records[0].task),
        "task": records[0].task,
        "tone": worst.tone,
        "verdict": _lead(names, headlines, worst),
        "rules": _list_rules(records, shown, worst.rule),
        "groups": _list_groups(records),
        "group": ALL if worst.label is None else str(worst.label),
        "runs": shown,
    }


def _lead(names: Sequence[str], headlines: Sequence[Headline], worst: Headline) -> str:
    """The one sentence at the top: about the run with the most serious verdict."""
    if len(names) == 1:
        return worst.sentence
    alike = [name for name, other in zip(names, headlines) if other.tone == worst.tone]
    one, several = LEADS[worst.tone]
    which = "" if len(alike) in (1, len(names)) else f" ({'; '.join(alike)})"
    sentence = worst.sentence[:1].lower() + worst.sentence[1:]
    return f"{len(alike)} of {len(names)} runs {one if len(alike) == 1 else several}{which}: in {alike[0]}, {sentence}"


def _compare(record: Record, baseline: Record | None) -> Comparison | None:
    if baseline is not None and record.report is not None and baseline.report is not None:
        with contextlib.suppress(StateError):  # about other rules, or other samples
            return record.report.compare(baseline.report)
    return None


def _judge(record: Record, comparison: Comparison | None) -> Headline:
    if record.report is None:
        return Headline("no verdict", "", "This run kept no diagnosis, so there is no verdict.")
    if not record.taught:
        return describe_untaught(record.report)
    return write_headline(record.report, comparison, record.kept["words"])


def _name_runs(records: Sequence[Record]) -> list[str]:
    """Short names that tell the runs apart: as they are named, or label and seed; with a number where that is not enough."""
    names: list[str] = []
    for record in records:
        plain = record.method if [other.method for other in records].count(record.method) == 1 else _label(record)
        name = record.about.get("name") or f"{plain}, seed {record.seed}"
        repeat = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({repeat + 1})" if repeat else name)
    return names


def _label(record: Record) -> str:
    options = ", ".join(f"{key}={value}" for key, value in record.options.items())
    return str(record.about.get("label") or (f"{record.method}[{options}]" if options else record.method))


def _show_run(
    record: Record, name: str, headline: Headline, baseline: Record | None, comparison: Comparison | None
) -> dict[str, Any]:
    lacking = record.taught and (record.reports or record.points) and baseline is None
    shown: dict[str, Any] = plain(
        {
            "name": name,
            **plain(headline),
            "against": None if baseline is None else f"the run without a rule, {baseline.about.get('name') or _place(baseline)}",
            "facts": _list_facts(record),
            "missing": [*record.missing, *([NO_BASELINE] if lacking else [])],
            "curves": _find_curves(record),
            "steps": record.points,
            "findings": list_findings(record.points),
            "final": {part: summarize(report) for part, report in record.reports.items()},
            "overview": _glance(record, comparison),
            "failures": _list_failures(record),
        }
    )
    return shown


def _glance(record: Record, comparison: Comparison | None) -> dict[str, Any]:
    """One row for each rule, the worst first: how often it holds, how often vacuously, and the verdict."""
    if record.report is None:
        return {}
    return {
        row["rule"]: {
            **{key: row[key] for key in ("holds", "vacuous", "kind")},
            "tone": TONES.get(row["kind"], "unclear") if record.taught else "no rule",
        }
        for row in make_overview(comparison or record.report)
    }


def _place(record: Record) -> str:
    return "/".join(record.path.parts[-3:])


def _list_facts(record: Record) -> list[list[str]]:
    """Label and value of what a reader wants to know about a run."""
    result = record.result or {}
    facts = [*(result.get("facts") or [["method", _label(record)]])]
    if result.get("failure"):
        facts.append(["stopped early", result["failure"]])
    return [*facts, ["seed", str(record.seed)], ["folder", _place(record)]]


def _find_curves(record: Record) -> dict[str, list[list[Any]]]:
    """Points (epoch, value) of losses, each delta, and what else was measured for the page."""
    wanted = ("delta/", "measure/")
    keys = dict.fromkeys(key for row in record.history for key in row if key.endswith("_loss") or key.startswith(wanted))
    curves = {key: [[row["epoch"], row[key]] for row in record.history if key in row] for key in keys}
    # What there is not stands still: the loss of no rule at 0, and the delta of a method without one at 1.
    still = {key: 1 if key.startswith("delta/") else 0 for key in keys if not key.startswith("measure/")}
    return {key: points for key, points in curves.items() if any(value != still.get(key) for _, value in points)}


def _list_failures(record: Record) -> dict[str, list[dict[str, Any]]]:
    """By rule, the samples that break it, the largest cost first."""
    found = record.kept

    def show(sample: SampleReport) -> dict[str, Any]:
        return {
            "sample": sample.position,
            "label": None if sample.label is None else str(sample.label),
            "cost": sample.cost if math.isfinite(sample.cost) else "infinite",
            "caption": found["captions"].get(str(sample.position), ""),
            "picture": found["pictures"].get(str(sample.position)),
        }

    rules = {} if record.report is None else record.report.rules
    return {name: [show(sample) for sample in rule.worst if not sample.satisfied] for name, rule in rules.items()}


def _list_rules(records: Sequence[Record], runs: Sequence[Mapping[str, Any]], first: str | None) -> list[dict[str, Any]]:
    """Rules with their connectives and the branches of each.

    The worst first: the one that the verdict is about; then by their best place in the tables of the taught runs, or of all.
    """
    rules: dict[str, dict[str, Any]] = {}
    for record in records:
        for name, rule in ({} if record.report is None else record.report.rules).items():
            rules.setdefault(name, {"name": name, "text": rule.text, "parts": _list_parts(rule, record.kept["words"])})
    tables = [list(run["overview"]) for run in runs if run["tone"] != "no rule"] or [list(run["overview"]) for run in runs]
    places = {name: [table.index(name) for table in tables if name in table] for name in rules}
    return sorted(rules.values(), key=lambda rule: (rule["name"] != first, min(places[rule["name"]], default=len(rules))))


def _list_parts(rule: RuleReport, words: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            **{key: getattr(part, key) for key in ("path", "kind", "text", "counted")},
            "branches": [operand.text for operand in part.operands],
            "meanings": explain(part, words),
        }
        for part in rule.connectives
        if part.operands
    ]


def _list_groups(records: Sequence[Record]) -> list[dict[str, str]]:
    """Key and name of each class."""
    labels: dict[int, str] = {}
    for report in (report for record in records for report in record.reports.values()):
        labels |= {label: class_name(label, report.class_names) for rule in report.rules.values() for label in rule.classes}
    return [{"key": ALL, "name": "all samples"}, *({"key": str(label), "name": labels[label]} for label in sorted(labels))]
