"""Checks of what a user hands to :class:`~dualogic.LogicLoss` and to methods."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dualogic.errors import FormulaTypeError, OptionError, ShapeError, SymbolError, suggest
from dualogic.formula import shape as formula_shape
from dualogic.formula.connective import Formula, as_formula
from dualogic.formula.shape import as_int, format_shape

SMALLEST, LARGEST = 1e-12, 1e12
shorten = functools.partial(formula_shape.shorten, limit=120)
"""A text, cut off with dots if it is long."""


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Refuse an option outside of its choices."""
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def as_number(value: Any, what: str) -> float:
    """``value`` as a float; refuses what is not a number."""
    if not isinstance(value, (str, bytes, bool)):
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            return float(value)
    raise OptionError(f"{what} must be a number; got {value!r} of type {type(value).__name__}")


def check_size(value: float, what: str) -> None:
    """Refuse a finite number so large or so small that float32, in which losses are computed, has no square of it."""
    if math.isfinite(value) and value and not SMALLEST <= abs(value) <= LARGEST:
        raise OptionError(f"{what} must be 0 or between {SMALLEST:g} and {LARGEST:g} in size; got {value!r}")


def check_named(method: str, first: Any) -> None:
    """Refuse tensors that are given without their names, to a method of a formula whose first argument is an option."""
    if isinstance(first, Mapping) or bool(getattr(first, "shape", ())):
        raise OptionError(f"tensors are given by name (x=x), a mapping as rule.{method}(**tensors); got a {type(first).__name__}")


def check_finite(what: str, value: float, above: bool = False) -> None:
    """Refuse a number that is not finite, or below 0; or not ``above`` it."""
    if not (math.isfinite(value) and (value > 0 or (value == 0 and not above))):
        raise OptionError(f"{what} must be a finite number {'above' if above else 'of at least'} 0; got {value!r}")


def check_tolerances(tol: Any, lead: Any) -> tuple[float, float]:
    """``tol`` and ``lead`` of :meth:`dualogic.Formula.satisfied` as numbers."""
    relaxed, ahead = as_number(tol, "tol"), as_number(lead, "lead")
    if not relaxed >= 0:
        raise OptionError(f"tol must be at least 0; got {tol!r}")
    if not 0 <= ahead < 1:
        raise OptionError(f"lead must be at least 0 and below 1; got {lead!r}")
    return relaxed, ahead


def check_rules(rules: Any) -> dict[str, Formula]:
    """Rules by name; a lone formula is named ``"rule"``."""
    if isinstance(rules, (list, tuple)):
        raise FormulaTypeError(
            f"several rules need names, by which weights, reports and checkpoints call them: give a mapping, as in "
            f'{{"first": a >> b, "second": ...}}; got a {type(rules).__name__} of {len(rules)}'
        )
    if isinstance(rules, str):
        raise FormulaTypeError(
            f"rules are formulas; got the text {shorten(rules)!r}: read one rule with dl.parse(text, symbols), and a file with "
            f"dl.load_rules(path)"
        )
    if isinstance(rules, int) and not isinstance(rules, bool):
        raise FormulaTypeError(f"the rules come first, as in LogicLoss(rules, num_samples=1000); got {rules!r} in their place")
    named = {"rule": rules} if not isinstance(rules, Mapping) else dict(rules)
    if not named:
        raise FormulaTypeError("at least one rule is needed: give a formula, or a mapping from names to formulas")
    for name, formula in named.items():
        if not isinstance(name, str) or not name:
            raise SymbolError(f"rule names must be non-empty strings; got {name!r}")
        owner = name
        while owner.rpartition("/")[2].isdecimal():
            owner = owner.rpartition("/")[0]
            if owner in named:
                raise SymbolError(
                    f"the rule name {name!r} is also the path of a connective inside of rule {owner!r}, as weights(index) calls "
                    f"it; choose another name"
                )
        as_formula(formula, f"rule {name!r}")
        if formula.shape:
            raise ShapeError(
                f"rule {name!r} still has axes {format_shape(formula.shape)}: {shorten(str(formula))}; say with .all() or .any() "
                f"whether every entry must hold or at least one"
            )
    return named


def check_samples(num_samples: Any) -> int | None:
    """The number of samples as a plain int, or ``None``."""
    if num_samples is None:
        return None
    if (count := as_int(num_samples)) is None or count < 1:
        raise OptionError(f"num_samples must be a number of at least 1, or None for shared duals; got {num_samples!r}")
    return count


def check_offset(name: str, value: Any) -> int:
    """A count that may be 0, as a plain int."""
    if (count := as_int(value)) is None or count < 0:
        raise OptionError(f"{name} must be a whole number of at least 0; got {value!r}")
    return count


def check_weight(weight: Any, rules: Mapping[str, Formula]) -> dict[str, float]:
    """A factor for each rule, from one number or from a mapping."""
    if isinstance(weight, Mapping):
        for name in weight:
            if name not in rules:
                known = ", ".join(map(repr, rules))
                raise SymbolError(f"weight names the rule {name!r}, but the rules are {known}{suggest(str(name), rules)}")
        weights = {name: as_number(weight.get(name, 1.0), f"the weight of rule {name!r}") for name in rules}
    else:
        weights = dict.fromkeys(rules, as_number(weight, "weight, unless it maps rule names to numbers,"))
    for name, value in weights.items():
        check_finite(f"the weight of rule {name!r}", value)
        check_size(value, f"the weight of rule {name!r}")
    return weights
