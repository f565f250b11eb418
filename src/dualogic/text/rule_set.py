"""Rules from text: a lone formula, and rule files with named rules and the symbols that they declare."""

from __future__ import annotations

import json
import keyword
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dualogic.errors import FormulaTypeError, SizeError, SymbolError
from dualogic.files import read_bytes, write_whole
from dualogic.formula.atom import Boolean
from dualogic.formula.connective import Formula, as_formula
from dualogic.formula.function import Application
from dualogic.formula.inspect import SYMBOLS, collect_symbols, has_name
from dualogic.formula.node import Node, walk
from dualogic.formula.number import NumberTable
from dualogic.formula.printing import format_number, format_rows, to_rope, to_text
from dualogic.formula.shape import Axis, Ragged, format_count
from dualogic.formula.symbol import Categorical, Mask, Variable
from dualogic.formula.term import Constant
from dualogic.text.expression import Reader
from dualogic.text.names import Group, collect_names
from dualogic.text.source import Place, Source
from dualogic.text.statement import Declarations
from dualogic.text.syntax import split, to_tree

MOST_BYTES = 4 << 20  # of a rule file; the largest that a person has written has a thousandth of it
Ranges = Mapping[str, tuple[float, float]]
TOO_DEEP = "this text is nested too deeply; name its parts with let"


def parse(text: str, symbols: Any = None) -> Formula:
    """Read one formula; ``parse(str(formula), formula)`` is the same object as ``formula``.

    The text has Python's meaning wherever Python can read it. Beyond that, comparisons need no parentheses beside a
    connective and may be chained (``0 <= x <= 1``), and ``and``, ``or``, ``not``, ``implies`` (or ``->``), ``iff`` and ``if ...
    then ...`` may be written as words. Classes may be compared by their bare names. See ``docs/rule-files.md``.

    Args:
        text: the formula.
        symbols: a mapping from names to symbols, constants, numbers, arrays, terms or functions of tensors (as in
            ``dl.apply``); a sequence of symbols, constants and functions; a formula, for all names in it; or the rules of
            a file, for all names declared there.

    Raises:
        ParseError: with the line, a mark under the place and what was expected there.
        MissingExtraError: without lark (``pip install -e '.[rules]'``).

    Example:
        >>> import dualogic as dl
        >>> f, g = dl.categorical("f", 10), dl.categorical("g", 10)
        >>> dl.parse("if g is 9 then f is 6", [f, g])
        (g == 9) >> (f == 6)
        >>> dl.parse("0 <= x <= 1 and not y > 2", [dl.var("x"), dl.var("y")])
        (x >= 0) & (x <= 1) & ~(y > 2)
        >>> dl.parse("if h is 9 then f is 6", [f, g])
        Traceback (most recent call last):
            ...
        dualogic.errors.ParseError: line 1, column 4: 'h' is not declared
          1 | if h is 9 then f is 6
            |    ^
        known names: f, g
    """
    if not isinstance(text, str):
        raise FormulaTypeError(f"dl.parse reads text; got {text!r} of type {type(text).__name__}")
    names = collect_names(symbols)
    source = Source(text)
    tree = to_tree(source, text, "expression")
    try:
        return Reader(source, names).read_formula(tree, "here")
    except RecursionError:
        raise source.error(Place(1, 1, 2), TOO_DEEP) from None


class RuleSet(Mapping[str, Formula]):
    """Rules by name, in order, with what they declare; made by :func:`load_rules` and :func:`parse_rules`, or from formulas.

    Args:
        rules: formulas by name.
        names: as below, like the rest; by default the symbols, axes and named constants of the formulas.

    Attributes:
        symbols: what tensors are bound to, by name.
        names: everything that the file declares, with constants, groups, axes and lets; ``dl.parse(text, rules)`` reads
            further formulas with them.
        lines: the line of each rule, counted from 1.
        ranges: ``(low, high)`` for the variables that were declared with a range; ``dl.lint`` takes them into account.
        path: the file, or ``None``.
    """

    def __init__(
        self,
        rules: Mapping[str, Formula],
        names: Mapping[str, Any] | None = None,
        lines: Mapping[str, int] | None = None,
        path: str | None = None,
        ranges: Ranges | None = None,
    ) -> None:
        if not isinstance(rules, Mapping) or not all(isinstance(name, str) for name in rules):
            raise FormulaTypeError(f'a RuleSet needs names: {{"first": a >> b}}; got a {type(rules).__name__}, {rules!r:.99}')
        self._rules = {name: as_formula(formula, f"rule {name!r}") for name, formula in rules.items()}
        self.names: Mapping[str, Any] = collect_declared(self._rules.values()) if names is None else names
        self.symbols: Mapping[str, Node] = {name: value for name, value in self.names.items() if isinstance(value, SYMBOLS)}
        self.lines: Mapping[str, int] = lines or {}
        self.ranges: Ranges = dict(ranges or {})
        self.path = path

    def __getitem__(self, name: str) -> Formula:
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a rule file that :func:`load_rules` reads as the same rules, symbols and ranges.

        Constants, axes, masks and groups are declared in it; names that ``let`` gave to terms are written out.

        Args:
            path: of the file; one that is there is replaced when the new one is complete.

        Raises:
            SymbolError: for a rule that calls a function of Python, and for names that a file cannot tell apart.
            ParseError: for what a rule file cannot say, such as a rule with axes; nothing is written then.
            SizeError: for a text that is too long to be read again.

        Example:
            >>> import dualogic as dl, pathlib, tempfile
            >>> a, b = dl.boolean("a"), dl.boolean("b", input="logits")
            >>> file = pathlib.Path(tempfile.mkdtemp(), "my.rules")
            >>> dl.RuleSet({"both": dl.Iff(a, b), "never both": ~(a & b)}).save(file)
            >>> print(file.read_text(), end="")
            bool a
            bool b from logits
            <BLANKLINE>
            rule both: Iff(a, b)
            rule "never both": ~(a & b)
        """
        # Parts that are shared are written out at every place, which might never end.
        length = sum(to_rope(formula).length for formula in self.values())
        if length <= MOST_BYTES:
            text = write_rules(self, self.names, self.ranges)
            content = text.encode()
            length = len(content)
        if length > MOST_BYTES:
            raise _unwritable(path, f"it would have {format_count(length)} bytes")
        again = _read(Source(text, os.fspath(path)), None)
        for name in self:
            if again.get(name) is not self[name]:
                raise _unwritable(path, f"rule {name!r} would be read as another rule")
        with write_whole(Path(path)) as file:
            file.write(content)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {formula.brief()}" for name, formula in self._rules.items())
        return f"RuleSet({shown})"


def _unwritable(path: str | os.PathLike[str], what: str) -> SizeError:
    return SizeError(f"the rules cannot be written to {os.fspath(path)}: {what}; split them, or keep them in Python")


def load_rules(path: str | os.PathLike[str], symbols: Any = None) -> RuleSet:
    r"""Read a rule file, as described in ``docs/rule-files.md``.

    Args:
        path: the file, in UTF-8.
        symbols: names that the file may use without declaring them, as in :func:`dualogic.parse`: large constants, and
            functions of tensors.

    Returns:
        A mapping from the names of the rules to formulas, to be given to ``dl.LogicLoss`` as it is.

    Raises:
        ParseError: with the file, the line, a mark under the place and what was expected there.
        DataError: if it is no regular file, or much too large for one that rules are written in.
        MissingExtraError: without lark (``pip install -e '.[rules]'``).

    Example:
        >>> import dualogic as dl, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "weather.rules")
        >>> _ = file.write_text("bool rain, wet\nrule wet_in_rain: if rain then wet\n")
        >>> dl.load_rules(file)
        RuleSet(wet_in_rain: rain >> wet)
    """
    return _read(_open(Path(path), os.fspath(path)), symbols)


def parse_rules(text: str, symbols: Any = None) -> RuleSet:
    """Read the text of a rule file; see :func:`load_rules`.

    Example:
        >>> import dualogic as dl
        >>> rules = dl.parse_rules('''
        ...     class pet: {cat, dog, owl}
        ...     group furry = {cat, dog}
        ...     bool flies
        ...     rule no_wings: if pet in furry then not flies
        ... ''')
        >>> rules
        RuleSet(no_wings: pet.isin(["cat", "dog"]) >> ~flies)
        >>> list(rules.symbols)
        ['pet', 'flies']
    """
    if not isinstance(text, str):
        raise FormulaTypeError(f"dl.parse_rules reads text; got {text!r} of type {type(text).__name__}")
    return _read(Source(_plain(text)), symbols)


def _open(path: Path, name: str) -> Source:
    content = read_bytes(path, MOST_BYTES)
    try:
        return Source(_decode(content), name)
    except UnicodeDecodeError as error:
        before = _decode(content[: error.start], "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        source = Source(_decode(content, "replace"), name)
        reason = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        raise source.error(Place(line, column, column + 1), reason, "save the file as UTF-8") from None


def _decode(content: bytes, errors: str = "strict") -> str:
    return _plain(content.decode("utf-8", errors))


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _read(source: Source, symbols: Any) -> RuleSet:
    declarations = Declarations(source, collect_names(symbols))
    for line, text in split(source):
        tree = to_tree(source, text, "statement")
        try:
            declarations.read(tree)
        except RecursionError:
            raise source.error(Place(line, 1, 2), TOO_DEEP) from None
    if not declarations.rules:
        raise source.error(Place(1, 1, 2), "there is no rule here", "write: rule NAME: FORMULA")
    return RuleSet(declarations.rules, declarations.names, declarations.rule_lines, source.path, declarations.ranges)


def collect_declared(formulas: Iterable[Formula]) -> dict[str, Any]:
    """What a file has to declare before it can state formulas: their axes, symbols and named constants, by name."""
    nodes = walk(*formulas)
    symbols = collect_symbols(nodes)
    axes = {size.axis.name: size.axis for symbol in symbols.values() for size in symbol.shape if isinstance(size, Ragged)}
    constants = {node.name: node for node in nodes if isinstance(node, Constant) and node.name is not None}
    for name in axes.keys() & (symbols.keys() | constants.keys()):
        raise SymbolError(f"{name!r} names both an axis and something else, which a rule file cannot tell apart; rename one")
    return {**axes, **symbols, **constants}


def write_rules(rules: Mapping[str, Formula], names: Mapping[str, Any], ranges: Ranges) -> str:
    """The text of a rule file: it declares axes, symbols with their ranges, constants and groups, and states rules."""
    for name, formula in rules.items():
        for node in walk(formula):
            if isinstance(node, (Application, NumberTable)) and has_name(node):
                raise SymbolError(
                    f"rule {name!r} calls the function {node.name!r}, which a rule file cannot hold: keep the rule in Python, or "
                    f"write the file by hand and give the function to dl.load_rules(path, symbols=[...])"
                )
    axes_first = sorted(names.values(), key=lambda value: not isinstance(value, Axis))
    declared = [line for value in axes_first for line in _declaration(value, ranges)]
    stated = [f"rule {_word(name)}: {to_text(formula, None)}" for name, formula in rules.items()]
    return "\n".join([*declared, "", *stated, ""])


def _declaration(value: Any, ranges: Ranges) -> list[str]:
    if isinstance(value, Axis):
        return [f"axis {value.name}: max {value.max}"]
    if isinstance(value, Group):
        members = [json.dumps(member, ensure_ascii=False) for member in value]  # in quotes, as a group may have the same name
        return [f"group {value.name} = {{{', '.join(members)}}}"]
    if isinstance(value, Constant) and value.name is not None:
        return [f"constant {value.name} = {format_rows(value.rows())}"]
    if isinstance(value, Variable):
        bounds = f" in [{', '.join(format_number(float(end)) for end in ranges[value.name])}]" if value.name in ranges else ""
        return [f"var {value.name}{_sizes(value, ': ')}{bounds}"]
    if isinstance(value, Mask):
        return [f"mask {value.name}{_sizes(value, ': ')}"]
    source = " from logits" if isinstance(value, (Categorical, Boolean)) and value.input == "logits" else ""
    if isinstance(value, Categorical):
        classes = f"{{{', '.join(map(_word, value.classes))}}}" if value.classes else value.size
        return [f"class {value.name}: {classes}{_sizes(value, ' for each ')}{source}"]
    return [f"bool {value.name}{_sizes(value, ': ')}{source}"] if isinstance(value, Boolean) else []


def _sizes(symbol: Any, before: str) -> str:
    for size in symbol.shape:
        if isinstance(size, Ragged) and size.trim:
            raise SymbolError(f"{symbol.name!r} has an axis of length {size!r}, which a rule file cannot declare")
    return before + ", ".join(map(str, symbol.shape)) if symbol.shape else ""


def _word(text: str) -> str:
    plain = text.isascii() and text.isidentifier() and not keyword.iskeyword(text)
    return text if plain else json.dumps(text, ensure_ascii=False)
