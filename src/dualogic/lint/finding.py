"""What lint reports."""

from __future__ import annotations

import dataclasses
from typing import Any

SEVERITIES = ("info", "warning", "error")
"""From harmless to hopeless."""


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
