"""``dl.lint``."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from typing import Any

from dualogic.arguments import as_number, check_rules
from dualogic.errors import MissingExtraError, OptionError, SizeError, SymbolError, how_to_install
from dualogic.formula.connective import Formula, Implication, Junction
from dualogic.formula.inspect import SYMBOLS, collect_symbols
from dualogic.formula.node import Node, children, walk
from dualogic.formula.shape import format_count, max_shape
from dualogic.formula.symbol import Categorical, Variable
from dualogic.formula.term import Constant, Number
from dualogic.lint.finding import SEVERITIES, Finding, found
from dualogic.normalize.nnf import check_depth

TIMEOUT = 3.0
GROUND_LIMIT = 100_000
COPIES_LIMIT = 2_000  # of the places of a formula that is mostly copies of its parts


def lint(rules: Any, *, ranges: Mapping[str, Any] | None = None, timeout: float = TIMEOUT) -> list[Finding]:
    """Find what is wrong with rules before a network is trained with them.

    A z3 solver looks for rules that cannot hold, clash, or say nothing, and for parts of them that can never hold; the cost is
    compared with the distance to the nearest output that satisfies the rule (Theorem 2), and its gradient at equal weights
    is looked at. A sound rule set gives nothing above ``"info"``. See ``docs/lint.md``.

    Args:
        rules: a formula, a mapping from names to formulas, or the rules of a file (``dl.load_rules``).
        ranges: for real-valued symbols by name, ``(low, high)``; ``None`` is an open end. Beside those of the rule file.
        timeout: seconds for each question to the solver; what takes longer is reported as ``"unknown"``.

    Returns:
        Findings, the gravest first.

    Raises:
        SizeError: for a formula that is nested too deeply.
        MissingExtraError: without z3 (``pip install -e '.[lint]'``).

    Example:
        >>> import dualogic as dl
        >>> v = dl.var("v")
        >>> for finding in dl.lint({"low": v <= 0.5, "high": v >= 0.7}):
        ...     print(finding)
        error: rules 'low' and 'high' cannot hold together [conflict]
        >>> dl.lint((v >= 0) & (v <= 1))
        []
        >>> dl.lint((v >= 0) & (v <= 1), ranges={"v": (0, 1)})[0].kind
        'tautology'
    """
    named = check_rules(rules)
    for formula in named.values():
        check_depth(formula)
    declared = getattr(rules, "ranges", {}) if isinstance(rules, Mapping) else {}  # a formula may have others
    limits = {**check_ranges(named, declared, strict=False), **check_ranges(named, ranges or {})}
    seconds = as_number(timeout, "timeout")
    if not (math.isfinite(seconds) and seconds > 0):
        raise OptionError(f"timeout must be a number of seconds above 0; got {timeout!r}")
    if importlib.util.find_spec("z3") is None:
        raise MissingExtraError(f"dl.lint needs z3, which is not installed; {how_to_install('lint')}")
    return sorted(_check(named, limits, seconds), key=lambda finding: -SEVERITIES.index(finding.severity))


def _check(rules: dict[str, Formula], ranges: dict[str, tuple[float | None, float | None]], timeout: float) -> list[Finding]:
    from dualogic.lint.gradient import check_gradient
    from dualogic.lint.logic import LogicCheck
    from dualogic.lint.looseness import check_looseness
    from dualogic.lint.world import Prover, World

    size = ground_size(rules)
    copies = _copies(walk(*rules.values()))
    if copies or size > GROUND_LIMIT:
        written = format_count(copies or size)
        limit = GROUND_LIMIT if not copies or copies > GROUND_LIMIT else COPIES_LIMIT
        message = f"nothing was checked: written out, the rules have {written} parts, more than {limit:,}"
        return [found("unknown", tuple(rules), message)]
    world = World(rules.values(), ranges)
    findings = LogicCheck(rules, world, Prover(world, timeout)).run()
    idle = {finding.rules[0] for finding in findings if finding.kind in ("unsatisfiable", "tautology")}
    for name, formula in rules.items():
        if name in idle:
            continue
        try:
            findings += check_looseness(name, formula, ranges, timeout) + check_gradient(name, formula, ranges)
        except SizeError as error:
            findings.append(found("unknown", (name,), f"the cost of rule {name!r} was not looked at: {error}"))
    for name, formula in rules.items():
        findings += _check_grouping(name, formula)
        if terms := [f"`{node.brief()}`" for node in walk(formula) if id(node) in world.opaque]:
            what = "a free number" if len(terms) == 1 else "free numbers"
            findings.append(found("opaque", (name,), f"rule {name!r}: the solver takes {', '.join(terms)} for {what}"))
    return findings


def _check_grouping(name: str, formula: Formula) -> list[Finding]:
    """``a & b >> c`` is ``a & (b >> c)`` in Python, which may not be what was meant."""
    for node in walk(formula):
        if not isinstance(node, Junction) or node.operation != "&" or not isinstance(node.operands[-1], Implication):
            continue
        if not all(isinstance(operand, Implication) for operand in node.operands):
            message = (
                f"rule {name!r}: `{node.brief()}` asks for its first part in any case; if that belongs to the condition, put "
                f"all of the condition in parentheses: (a & b) >> c"
            )
            return [found("grouping", (name,), message)]
    return []


def ground_size(rules: Mapping[str, Formula]) -> int:
    """How many formulas, terms and classes the rules have once their axes are written out."""
    leaves = (*SYMBOLS, Number, Constant)
    nodes = walk(*rules.values())
    classes = sum(node.size * math.prod(max_shape(node.shape)) for node in nodes if isinstance(node, Categorical))
    return classes + sum(math.prod(max_shape(node.shape)) for node in nodes if not isinstance(node, leaves))


def _copies(nodes: list[Node]) -> int:
    """The most parts of a term, or of a formula that is mostly copies, where what they share is written out; 0 if it is few.

    The solver does so with sums, and each place of a rule that should be able to hold is asked about.
    """
    sizes: dict[int, int] = {}
    for node in nodes:
        same = [child for child in children(node) if isinstance(child, Formula) is isinstance(node, Formula)]
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in same)
    formulas = [node for node in nodes if isinstance(node, Formula)]
    most = max((sizes[id(node)] for node in formulas), default=0)
    terms = max((sizes[id(node)] for node in nodes if not isinstance(node, Formula)), default=0)
    return max(terms if terms > GROUND_LIMIT else 0, most if most > max(COPIES_LIMIT, 10 * len(formulas)) else 0)


def check_ranges(
    rules: Mapping[str, Formula], ranges: Mapping[str, Any], strict: bool = True
) -> dict[str, tuple[float | None, float | None]]:
    """The ranges as pairs of numbers or ``None``; ``strict`` refuses names that no rule uses."""
    symbols = collect_symbols(walk(*rules.values()))
    checked: dict[str, tuple[float | None, float | None]] = {}
    for name, limits in ranges.items():
        if name not in symbols and not strict:
            continue
        if name not in symbols:
            raise SymbolError(f"ranges names {name!r}, which is no symbol of the rules; they have {', '.join(symbols)}")
        if not isinstance(symbols[name], Variable):
            raise SymbolError(f"ranges gives limits for {name!r}, but only a variable made by dl.var has numbers to limit")
        if not isinstance(limits, (tuple, list)) or len(limits) != 2:
            raise OptionError(f"the range of {name!r} must be a pair (low, high); got {limits!r}")
        low, high = (None if limit is None else as_number(limit, f"a limit of {name!r}") for limit in limits)
        low, high = (None if limit is None or math.isinf(limit) else limit for limit in (low, high))
        if low is not None and high is not None and not low <= high:
            raise OptionError(f"the range of {name!r} is empty: {limits!r}")
        checked[name] = (low, high)
    return checked
