"""Teach neural networks logical rules without letting them cheat.

Declare symbols (:func:`var`, :func:`categorical`, :func:`boolean`), join comparisons of them with ``& | ~ >>``, and add
:class:`LogicLoss` to the training loss. Modules that need more than torch are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dualogic import errors, methods
from dualogic.diagnosis import Monitor, ShortcutReport, diagnose
from dualogic.duals.options import Mapped
from dualogic.errors import ShortcutWarning
from dualogic.formula.atom import boolean, eq, ge, gt, le, lt, ne
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import evidence
from dualogic.formula.function import apply
from dualogic.formula.join import And, AtMost, ExactlyOne, Iff, Implies, Not, Or, Xor, level
from dualogic.formula.shape import axis
from dualogic.formula.symbol import categorical, mask, var
from dualogic.formula.term import constant
from dualogic.lint import Finding, lint
from dualogic.loss import LogicLoss
from dualogic.report.recorder import Recorder
from dualogic.text.parsing import parse
from dualogic.text.rule_set import RuleSet, load_rules, parse_rules

if TYPE_CHECKING:
    from dualogic import data, metrics

__version__ = "0.1.0"

__all__ = [
    "And",
    "AtMost",
    "ExactlyOne",
    "Finding",
    "Formula",
    "Iff",
    "Implies",
    "LogicLoss",
    "Mapped",
    "Monitor",
    "Not",
    "Or",
    "Recorder",
    "RuleSet",
    "ShortcutReport",
    "ShortcutWarning",
    "Xor",
    "apply",
    "axis",
    "boolean",
    "categorical",
    "constant",
    "data",
    "diagnose",
    "eq",
    "errors",
    "evidence",
    "ge",
    "gt",
    "le",
    "level",
    "lint",
    "load_rules",
    "lt",
    "mask",
    "methods",
    "metrics",
    "ne",
    "parse",
    "parse_rules",
    "var",
]

_ON_DEMAND = {"data", "metrics"}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return importlib.import_module(f"dualogic.{name}")
    raise AttributeError(f"module 'dualogic' has no attribute {name!r}")
