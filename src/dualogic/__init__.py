"""Teach neural networks logical rules without letting them cheat.

Declare symbols (:func:`var`, :func:`categorical`, :func:`boolean`), join comparisons of them with ``& | ~ >>``, and add
:class:`LogicLoss` to the training loss. What a training loop does not need is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dualogic import errors, methods
from dualogic.duals.factory import Mapped
from dualogic.errors import ShortcutWarning
from dualogic.formula.atom import boolean, eq, ge, gt, le, lt, ne
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import evidence
from dualogic.formula.function import apply
from dualogic.formula.join import And, AtMost, ExactlyOne, Iff, Implies, Not, Or, Xor, level
from dualogic.formula.shape import axis
from dualogic.formula.symbol import categorical, mask, var
from dualogic.formula.term import constant
from dualogic.loss import LogicLoss

if TYPE_CHECKING:
    from dualogic import data, metrics
    from dualogic import diagnosis as diagnosis
    from dualogic import report as report
    from dualogic import text as text
    from dualogic.diagnosis import Monitor, ShortcutReport, diagnose
    from dualogic.lint import Finding, lint
    from dualogic.report.recorder import Recorder
    from dualogic.text.rule_set import RuleSet, load_rules, parse, parse_rules

__version__ = "0.1.0"

__all__ = ["And", "AtMost", "ExactlyOne", "Finding", "Formula", "Iff", "Implies", "LogicLoss", "Mapped", "Monitor"]
__all__ += ["Not", "Or", "Recorder", "RuleSet", "ShortcutReport", "ShortcutWarning", "Xor", "apply", "axis"]
__all__ += ["boolean", "categorical", "constant", "data", "diagnose", "eq", "errors", "evidence", "ge", "gt", "le"]
__all__ += ["level", "lint", "load_rules", "lt", "mask", "methods", "metrics", "ne", "parse", "parse_rules", "var"]

_ON_DEMAND = {
    **dict.fromkeys(("data", "diagnosis", "metrics", "report", "text"), ""),
    **dict.fromkeys(("Monitor", "ShortcutReport", "diagnose"), "diagnosis"),
    **dict.fromkeys(("Finding", "lint"), "lint"),
    "Recorder": "report.recorder",
    **dict.fromkeys(("RuleSet", "load_rules", "parse", "parse_rules"), "text.rule_set"),
}
"""The module that holds each name; nothing for a module itself."""
_GUESSED = {
    **dict.fromkeys(("ForAll", "Forall", "Exists"), "rule.all() for all entries and rule.any() for some"),
    **dict.fromkeys(("Equiv", "Equivalent"), "dl.Iff(a, b)"),
    "Imply": "dl.Implies(a, b) or a >> b",
    "AtLeast": "dl.AtMost(1, ~a, ~b, ~c) for at least two of three (at most one is false), and dl.Or(a, b, c) for at least one",
}
"""What to write for names that do not exist."""


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        instead = f"; write {_GUESSED[name]}" if name in _GUESSED else ""
        raise AttributeError(f"module 'dualogic' has no attribute {name!r}{instead}")
    if not _ON_DEMAND[name]:
        return importlib.import_module(f"dualogic.{name}")
    found = globals()[name] = getattr(importlib.import_module(f"dualogic.{_ON_DEMAND[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
