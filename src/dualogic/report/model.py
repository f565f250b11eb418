"""What the page shows, as plain values for JSON; the page's script only draws."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dualogic.diagnosis import Comparison, RuleReport, class_name, make_overview
from dualogic.diagnosis.report import SampleReport, plain
from dualogic.errors import StateError
from dualogic.report.headline import SEVERITY, TONES, Headline, describe_untaught, explain, write_headline
from dualogic.report.reading import Record, find_baseline
from dualogic.report.summary import ALL, POOL, list_findings, summarize

RECORDED = "recorded measures"  # stands for the rule where a run kept what its task measured on the pool, and no diagnosis
NO_BASELINE = (
    "a run without the rule on the same samples, among these or beside this one; so the verdict cannot say what the network did "
    "without the rule"
)
_POOL_KEY = re.compile(r"pool/(?P<branch>.+?)_(?P<kind>weight|holds)(?:_(?P<group>.+))?")


def make_model(records: Sequence[Record]) -> dict[str, Any]:
    """Everything that the page shows: the rules with the worst first, the runs, and the ``group`` that is shown first."""
    names = _name_runs(records)
    baselines = [find_baseline(record, records) for record in records]
    comparisons = list(map(_compare, records, baselines))
    headlines = list(map(_judge, records, comparisons))
    shown = list(map(_show_run, records, names, headlines, baselines, comparisons))
    rules, groups = _sort_rules(_list_rules(records), shown), _list_groups(records)
    worst = min(headlines, key=lambda headline: SEVERITY.index(headline.tone))
    return {
        "title": records[0].about.get("title", records[0].task),
        "task": records[0].task,
        **_lead(names, headlines),
        "rules": rules,
        "groups": groups,
        "group": ALL if worst.label is None else str(worst.label),
        "runs": shown,
    }


def _lead(names: Sequence[str], headlines: Sequence[Headline]) -> dict[str, str]:
    """The one sentence at the top: about the run with the most serious verdict."""
    worst = min(range(len(names)), key=lambda position: SEVERITY.index(headlines[position].tone))
    headline = headlines[worst]
    if len(names) == 1:
        return {"tone": headline.tone, "verdict": headline.sentence}
    alike = [name for name, other in zip(names, headlines) if other.tone == headline.tone]
    one = len(alike) == 1
    what = {
        "shortcut": "took a shortcut",
        "broken": "does not satisfy the rule" if one else "do not satisfy the rule",
        "both ways": "satisfied the rule both ways",
        "learned": "satisfied the rule as meant",
        "unclear": "leaves the verdict open" if one else "leave the verdict open",
        "no rule": "was taught no rule" if one else "were taught no rule",
        "no verdict": "has no verdict" if one else "have no verdict",
    }[headline.tone]
    which = "" if one or len(alike) == len(names) else f" ({'; '.join(alike)})"
    sentence = headline.sentence[:1].lower() + headline.sentence[1:]
    return {"tone": headline.tone, "verdict": f"{len(alike)} of {len(names)} runs {what}{which}: in {names[worst]}, {sentence}"}


def _compare(record: Record, baseline: Record | None) -> Comparison | None:
    after, before = record.report, None if baseline is None else baseline.report
    if after is None or before is None:
        return None
    with contextlib.suppress(StateError):  # about other rules, or other samples
        return after.compare(before)
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
    options = ", ".join(f"{key}={value}" for key, value in record.config["options"].items())
    return str(record.about.get("label") or (f"{record.method}[{options}]" if options else record.method))


def _show_run(
    record: Record, name: str, headline: Headline, baseline: Record | None, comparison: Comparison | None
) -> dict[str, Any]:
    lacking = record.taught and record.diagnosis is not None and baseline is None
    shown: dict[str, Any] = plain(
        {
            "name": name,
            "tone": headline.tone,
            "kind": headline.kind,
            "sentence": headline.sentence,
            "details": list(headline.details),
            "against": None if baseline is None else f"the run without a rule, {baseline.about.get('name') or _place(baseline)}",
            "facts": _list_facts(record),
            "missing": [*record.missing, *([NO_BASELINE] if lacking else [])],
            "curves": _find_curves(record),
            "steps": [*(record.diagnosis or {}).get("history", []), *_recorded_steps(record)],
            "findings": list_findings((record.diagnosis or {}).get("history", [])),
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
    rows = make_overview(record.report if comparison is None or not record.taught else comparison)
    return {
        row["rule"]: {
            **{key: row[key] for key in ("holds", "vacuous", "kind")},
            "tone": TONES.get(row["kind"], "unclear") if record.taught else "no rule",
        }
        for row in rows
    }


def _place(record: Record) -> str:
    return "/".join(record.path.parts[-3:])


def _list_facts(record: Record) -> list[list[str]]:
    """Label and value of what a reader wants to know about a run: what it wrote, or what can be read from its numbers."""
    result = record.result or {}
    facts = list(result.get("facts") or [])
    if not facts:
        options = record.config["options"]
        facts = [["method", result.get("method") or record.method]]
        facts += [["options", ", ".join(f"{key}={value}" for key, value in options.items())]] if options else []
        facts += [[name, str(value)] for name, value in record.config["task"].items() if name == "epochs"]
        facts += [["training", f"{result['seconds']:.0f} s"]] if result else []
        facts += [[f"test {name}", f"{value:.4g}"] for name, value in (result.get("test") or {}).items()]
    if result.get("failure"):
        facts.append(["stopped early", str(result["failure"])])
    return [*facts, ["seed", str(record.seed)], ["folder", _place(record)]]


def _find_curves(record: Record) -> dict[str, list[list[Any]]]:
    """Points (epoch, value) of losses, each delta, and what else was measured for the page."""
    wanted = ("delta/", "measure/")
    keys = dict.fromkeys(key for row in record.history for key in row if key.endswith("_loss") or key.startswith(wanted))
    curves = {key: [[row["epoch"], row[key]] for row in record.history if key in row] for key in keys}
    # What there is not stands still: the loss of no rule at 0, and the delta of a method without one at 1.
    still = {key: 1 if key.startswith("delta/") else 0 for key in keys if not key.startswith("measure/")}
    return {key: points for key, points in curves.items() if any(value != still.get(key) for _, value in points)}


def _recorded_steps(record: Record) -> list[dict[str, Any]]:
    """What the task measured on the pool by itself, in the form of a diagnosis."""
    if record.diagnosis is not None:
        return []
    steps = []
    for row in record.history:
        groups: dict[str, dict[str, dict[str, Any]]] = {}
        for key, value in row.items():
            match = _POOL_KEY.fullmatch(key)
            if match:
                branches = groups.setdefault(match["group"] or ALL, {}).setdefault(match["branch"], {})
                branches[match["kind"]] = value / 100 if match["kind"] == "holds" else value
        if groups:
            found = {}
            for group, branches in groups.items():
                holds, weights = ([values.get(key) for values in branches.values()] for key in ("holds", "weight"))
                found[group] = {"parts": {RECORDED: {"holds": holds, "weights": weights}}}
            steps.append({"epoch": row["epoch"], POOL: {RECORDED: found}})
    return steps


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


def _list_rules(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Rules with their connectives and the branches of each."""
    rules: dict[str, dict[str, Any]] = {}
    for record in records:
        for name, rule in ({} if record.report is None else record.report.rules).items():
            rules.setdefault(name, {"name": name, "text": rule.text, "parts": _list_parts(rule, record.kept["words"])})
    branches = dict.fromkeys(
        match["branch"]
        for record in records
        if record.diagnosis is None
        for row in record.history
        for match in map(_POOL_KEY.fullmatch, row)
        if match
    )
    if branches:
        part = {"path": RECORDED, "kind": "or", "text": "what the task measured on the pool", "counted": "samples"}
        rules[RECORDED] = {
            "name": RECORDED,
            "text": "of runs without diagnosis.json",
            "parts": [{**part, "branches": list(branches), "meanings": [None] * len(branches)}],
        }
    return list(rules.values())


def _sort_rules(rules: list[dict[str, Any]], runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The worst first: by their best place in the tables of the runs that were taught, or else of all."""
    tables = [list(run["overview"]) for run in runs if run["tone"] != "no rule"] or [list(run["overview"]) for run in runs]
    places = {rule["name"]: [table.index(rule["name"]) for table in tables if rule["name"] in table] for rule in rules}
    return sorted(rules, key=lambda rule: min(places[rule["name"]], default=len(rules)))


def _list_parts(rule: RuleReport, words: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "path": part.path,
            "kind": part.kind,
            "text": part.text,
            "counted": part.counted,
            "branches": [operand.text for operand in part.operands],
            "meanings": explain(part, words),
        }
        for part in rule.connectives
        if part.operands
    ]


def _list_groups(records: Sequence[Record]) -> list[dict[str, str]]:
    """Key and name of each class, and of each group of recorded measures."""
    groups = {ALL: "all samples"}
    labels: dict[int, str] = {}
    for record in records:
        for report in record.reports.values():
            labels |= {label: class_name(label, report.class_names) for rule in report.rules.values() for label in rule.classes}
    groups |= {str(label): labels[label] for label in sorted(labels)}
    for record in records:
        for step in _recorded_steps(record):
            groups |= {group: group.replace("_", " ") for group in step[POOL][RECORDED] if group not in groups}
    return [{"key": key, "name": name} for key, name in groups.items()]
