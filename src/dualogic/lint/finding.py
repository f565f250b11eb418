"""What lint reports; as text, JSON and SARIF 2.1.0 (what code review tools read)."""

from __future__ import annotations

import collections
import dataclasses
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

SEVERITIES = ("info", "warning", "error")  # from harmless to hopeless


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of finding: how bad it is, and what it says in general."""

    severity: str
    summary: str


KINDS = {
    "unsatisfiable": Kind("error", "A rule that no output can satisfy"),
    "conflict": Kind("error", "Rules that cannot hold together"),
    "tautology": Kind("warning", "A rule that always holds"),
    "implied": Kind("warning", "A rule that follows from the other rules"),
    "vacuous": Kind("warning", "An implication whose antecedent can never hold"),
    "dead-branch": Kind("warning", "An alternative or a consequent that can never hold"),
    "loose": Kind("info", "A cost below the distance to the nearest output that satisfies the rule"),
    "zero-gradient": Kind("info", "No gradient at equal weights although the rule is violated"),
    "grouping": Kind("info", "A conjunction that ends in an implication, which Python may have grouped so"),
    "opaque": Kind("info", "Terms that the solver cannot see, treated as free numbers"),
    "unknown": Kind("info", "A question that was not answered"),
}
"""Every kind of finding, by name."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that lint found.

    Attributes:
        kind: a key of :data:`KINDS`.
        severity: ``"error"``, ``"warning"`` or ``"info"``.
        rules: the names of the rules concerned; first the one to look at, then those that it clashes with or follows from.
        message: one sentence, with the part of the rule in question.
        witness: an example in the rule's own symbols: numbers and truth values, a class by its index or name, class
            probabilities as a dictionary of those that are not 0, nested lists for symbols with axes. What it shows
            depends on the kind (see ``docs/lint.md``); empty where there is nothing to show.

    Example:
        >>> import dualogic as dl
        >>> f = dl.categorical("f", 10)
        >>> (finding,) = dl.lint((f == 6) & (f == 9))
        >>> finding.kind, finding.severity, finding.rules
        ('unsatisfiable', 'error', ('rule',))
    """

    kind: str
    severity: str
    rules: tuple[str, ...]
    message: str
    witness: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.severity}: {self.message} [{self.kind}]"


def found(kind: str, rules: tuple[str, ...], message: str, witness: dict[str, Any] | None = None) -> Finding:
    """A finding with the severity of its kind."""
    return Finding(kind, KINDS[kind].severity, rules, message, witness or {})


_LEVELS = {"info": "note", "warning": "warning", "error": "error"}


@dataclasses.dataclass(frozen=True)
class FileReport:
    """What was found in one rule file."""

    path: str  # the file
    lines: Mapping[str, int]  # the line of each rule
    findings: Sequence[Finding]  # empty if the file could not be read; shown by severity, then by line
    problem: str | None = None  # why it could not be read, or `None`

    @property
    def ordered(self) -> list[Finding]:
        """The findings, gravest first, in the order of the file."""
        return sorted(self.findings, key=lambda finding: (-SEVERITIES.index(finding.severity), self.line(finding)))

    def line(self, finding: Finding) -> int:
        """The line of the rule that a finding is about."""
        return next((self.lines[name] for name in finding.rules if name in self.lines), 1)


def to_text(reports: Sequence[FileReport]) -> str:
    """One line for each finding, an example below it, and a count."""
    lines: list[str] = []
    for report in reports:
        for finding in report.ordered:
            lines.append(f"{report.path}:{report.line(finding)}: {finding}")
            if finding.witness:
                shown = ", ".join(f"{name} = {_show(value)}" for name, value in finding.witness.items())
                lines.append(f"    example: {shown}")
    return "\n".join([*lines, summarise(reports)])


def summarise(reports: Sequence[FileReport]) -> str:
    """How many findings of each severity there are."""
    counts = collections.Counter(finding.severity for report in reports for finding in report.findings)
    numbers = [(counts[severity], _LEVELS[severity]) for severity in reversed(SEVERITIES)]
    found = [f"{number} {word}{'' if number == 1 else 's'}" for number, word in numbers if number]
    unread = sum(report.problem is not None for report in reports)
    found += [f"{unread} not read"] if unread else []
    return f"{len(reports)} file{'' if len(reports) == 1 else 's'}: {', '.join(found) or 'nothing found'}"


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{label}: {_show(number)}' for label, number in value.items())}}}"
    return str(value)


def to_json(reports: Sequence[FileReport]) -> str:
    """A list of files, each with its findings."""
    files = [
        {
            "file": report.path,
            "problem": report.problem,
            "findings": [{"line": report.line(finding), **dataclasses.asdict(finding)} for finding in report.ordered],
        }
        for report in reports
    ]
    return json.dumps(files, indent=2, ensure_ascii=False)


def to_sarif(reports: Sequence[FileReport], version: str) -> str:
    """A SARIF 2.1.0 log with one run."""
    kinds = list(KINDS)
    rules = [
        {
            "id": kind,
            "shortDescription": {"text": KINDS[kind].summary},
            "defaultConfiguration": {"level": _LEVELS[KINDS[kind].severity]},
        }
        for kind in kinds
    ]
    results = [
        {
            "ruleId": finding.kind,
            "ruleIndex": kinds.index(finding.kind),
            "level": _LEVELS[finding.severity],
            "message": {"text": finding.message},
            "locations": [_location(report, report.line(finding))],
            "relatedLocations": [
                {**_location(report, report.lines[name]), "message": {"text": f"rule {name!r}"}}
                for name in finding.rules[1:]
                if name in report.lines
            ],
            "properties": {"rules": list(finding.rules), "witness": finding.witness},
        }
        for report in reports
        for finding in report.ordered
    ]
    problems = [
        {"level": "error", "message": {"text": report.problem}, "locations": [_location(report, 1)]}
        for report in reports
        if report.problem is not None
    ]
    run = {
        "tool": {"driver": {"name": "dualogic", "version": version, "rules": rules}},
        "invocations": [{"executionSuccessful": not problems, "toolExecutionNotifications": problems}],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False)


def _location(report: FileReport, line: int) -> dict[str, Any]:
    uri = urllib.parse.quote(PurePath(report.path).as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
