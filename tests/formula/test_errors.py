"""What cannot mean anything is refused when it is written, with what to do instead."""

import math

import numpy as np
import pytest
import torch

import dualogic as dl
from dualogic.errors import DualogicError, FormulaTypeError, OptionError, ShapeError, SizeError, SymbolError

N = dl.axis("n", max=5)
x, y, p, m, r = dl.var("x"), dl.var("y"), dl.var("p", 3), dl.var("m", 2, 3), dl.var("r", N)
many, others = dl.categorical("many", 2000), dl.categorical("others", 2000)
f, named = dl.categorical("f", 10), dl.categorical("named", 2, classes=["cat", "dog"])
a, valid = dl.boolean("a"), dl.mask("valid", N)


def chained():
    return 0 <= x <= 1


def use_and():
    return (x <= 1) and (y <= 1)


def use_or():
    return (x <= 1) or (y <= 1)


def use_if():
    return 1 if x <= 1 else 0


CASES = {
    "chained comparison": (chained, FormulaTypeError, r"chained comparison.*\(a <= x\) & \(x <= b\)|\(a <= x\) & \(x <= b\)"),
    "chained equality": (lambda: 0 == x == 1, FormulaTypeError, "no truth value before tensors are bound"),
    "comparison of a comparison": (lambda: (x <= 1) <= 2, FormulaTypeError, "cannot be compared as numbers are"),
    "and": (use_and, FormulaTypeError, "Write '&' for 'and'"),
    "or": (use_or, FormulaTypeError, r"'\|' for 'or'"),
    "if": (use_if, FormulaTypeError, "no truth value before tensors are bound"),
    "not": (lambda: not (x <= 1), FormulaTypeError, "'~' for 'not'"),
    "truth of a term": (lambda: bool(x), FormulaTypeError, "the term x has no truth value.*compare it"),
    "truth of a class": (lambda: bool(f), FormulaTypeError, "f has no truth value; compare it with a class"),
    "truth of a mask": (lambda: bool(valid), FormulaTypeError, "pass it as where="),
    "plain bool right": (lambda: (x <= 1) & True, FormulaTypeError, r"a plain bool \(True\).*where a formula is expected"),
    "plain bool left": (lambda: False | (x <= 1), FormulaTypeError, r"a plain bool \(False\)"),
    "plain bool in And": (lambda: dl.And(x <= 1, 3 < 4), FormulaTypeError, "plain bool.*between Python values"),
    "plain bool implied": (lambda: (x <= 1) >> True, FormulaTypeError, r"Implies \(>>\)"),
    "numpy bool": (lambda: np.bool_(True) & (x <= 1), FormulaTypeError, "expected a formula"),
    "number as formula": (lambda: (x <= 1) & 3, FormulaTypeError, "expected a formula.*Put comparisons in parentheses"),
    "missing parentheses": (lambda: x <= 1 & y, FormulaTypeError, "put each one in parentheses"),
    "negated term": (lambda: ~x, FormulaTypeError, "join formulas, but x is a term"),
    "mask as formula": (lambda: (r <= 1) & valid, FormulaTypeError, "got the mask valid.*pass it as where="),
    "formula as mask": (lambda: (r <= 1).all(where=r <= 0), FormulaTypeError, "expected a mask made by dl.mask"),
    "tensor as mask": (lambda: (r <= 1).all(where=torch.ones(5)), FormulaTypeError, "expected a mask made by dl.mask"),
    "bool in a term": (lambda: x + True, FormulaTypeError, r"a plain bool \(True\)"),
    "string in a term": (lambda: x <= "1", FormulaTypeError, "expected a term, a number or an array"),
    "None in a term": (lambda: x == None, FormulaTypeError, "expected a term, a number or an array"),  # noqa: E711
    "classes in no order": (lambda: dl.categorical("q", 2, classes={"cat", "dog"}), SymbolError, "must be a list, in.*got a set"),
    "classes by index": (lambda: dl.categorical("q", 2, classes={"b": 1, "a": 0}), SymbolError, "must be a list, in.*got a dict"),
    "torch's largest": (lambda: torch.maximum(x, y) <= 1, FormulaTypeError, r"dl.apply\(torch.maximum, x, y\)"),
    "torch's sum": (lambda: torch.sum(p) <= 1, FormulaTypeError, r"write p.sum\(\)"),
    "class in other letters": (lambda: named == "Cat", SymbolError, "no class 'Cat'; its .*; did you mean 'cat'"),
    "mean": (lambda: p.mean() <= 1, FormulaTypeError, r"p has .*\.sum\(\).*dl.apply\(function, p\)"),
    "rest of a division": (lambda: x % 2 == 0, FormulaTypeError, r"dl.apply\(function, x\)"),
    "whole division": (lambda: 1 // x == 0, FormulaTypeError, r"dl.apply\(function, x\)"),
    "hat as a power": (lambda: x ^ 2, FormulaTypeError, r"x has \+ - \* / \*\*"),
    "function of math": (lambda: math.exp(x) <= 1, FormulaTypeError, r"dl.apply\(function, x\)"),
    "rounding": (lambda: round(x) <= 1, FormulaTypeError, r"dl.apply\(function, x\)"),
    "hat between formulas": (lambda: a ^ (x <= 1), FormulaTypeError, r"AtMost\(k, a, x <= 1\).*dl.Xor\(a, b\)"),
    "hat after a number": (lambda: f ^ 2, FormulaTypeError, r"has \+ - \* \*\* and abs"),
    "largest truth": (a.max, FormulaTypeError, "no number that can be added"),
    "mask as an axis": (lambda: (r <= 1).all(valid), FormulaTypeError, r"given by name: \.all\(where=valid\)"),
    "NaN in a rule": (lambda: x <= math.nan, FormulaTypeError, "must be finite; got nan"),  # noqa: PLW0177
    "infinity in a rule": (lambda: x <= math.inf, FormulaTypeError, "must be finite; got inf"),
    "NaN in an array": (lambda: p <= [0, math.nan, 1], FormulaTypeError, "must be finite"),
    "ragged array": (lambda: m <= [[1, 2], [3]], ShapeError, "rectangular"),
    "formula as a number": (lambda: (x <= 1) + 1, FormulaTypeError, "no number.*To count how many hold write dl.AtMost"),
    "number times a truth value": (lambda: 2 * a, FormulaTypeError, "a is true or false"),
    "sum of truth values": (lambda: sum([a, a]), FormulaTypeError, "a is true or false.*dl.ExactlyOne"),
    "sum along an axis": (lambda: dl.boolean("z", 3).sum() <= 1, FormulaTypeError, r"z is true or false.*dl.AtMost\(k, z\)"),
    "threshold of a truth value": (lambda: a > 0.5, FormulaTypeError, "needs no threshold, so write b for 'b is true'"),
    "exclusive or of three": (lambda: dl.Xor(a, ~a, x <= 1), FormulaTypeError, "Xor joins two.*got 3.*ExactlyOne"),
    "at most one of unknown many": (lambda: dl.AtMost(1, r <= 1), FormulaTypeError, "at most one write .*where=pair"),
    "formula in a term": (lambda: x + (y <= 1), FormulaTypeError, "not a real-valued term"),
    "formula compared with a term": (lambda: (x <= 1) == x, FormulaTypeError, "a formula cannot be compared"),
    "number compared with a truth value": (
        lambda: x == a,
        FormulaTypeError,
        r"got a against x: a truth value.*Iff\(b, x >= 1\)",
    ),
    "class compared with a term": (lambda: f == x, FormulaTypeError, "f is a class; it cannot be compared with x"),
    "names in order": (lambda: named <= 1, FormulaTypeError, r"have names \(cat, dog\), which are no numbers.*without classes="),
    "names in arithmetic": (lambda: f + named, FormulaTypeError, "the classes of named have names"),
    "class and a fraction": (lambda: f + 0.5, FormulaTypeError, "a class counts as a whole number.*got 0.5"),
    "class and a term": (lambda: f <= x, FormulaTypeError, "x is a real-valued term.*.probabilities"),
    "quotient of a class": (lambda: (f + f) / 2, FormulaTypeError, "which has .*dl.apply"),
    "class with a margin": (lambda: dl.lt(f, 3, margin=1.0), OptionError, "classes, which take no margin"),
    "sum that cannot be": (lambda: f * 2 + 1 == 42, SymbolError, r"never holds: f \* 2 \+ 1 is 1 to 19"),
    "sum that must be": (lambda: f + f >= 0, SymbolError, "always holds: f . f is 0 to 18"),
    "power below 0": (lambda: f ** (-1), FormulaTypeError, "must be one from 0 to 53"),
    "part of a number": (lambda: (f + f)[0], FormulaTypeError, "index the classes inside f . f"),
    "numbers joined": (lambda: (f + 1) & (f == 2), FormulaTypeError, "is a number; put each comparison in parentheses"),
    "number as a truth value": (lambda: bool(f + 1), FormulaTypeError, "compare it, as in f . 1 == 0"),
    "chain of a number": (lambda: dl.lt(f < 3, f), FormulaTypeError, "a formula cannot be compared"),
    "table of another shape": (lambda: dl.apply(lambda n: n[:1], f, name="t"), FormulaTypeError, "must return one of that shape"),
    "table of fractions": (lambda: dl.apply(lambda n: n / 2, f, name="t"), FormulaTypeError, "whole numbers; it returned 0.5"),
    "too many values": (lambda: many * 2000 + others, SizeError, "has 4,000,000 combinations of values.*a carry that is a class"),
    "numbers too large": (lambda: (f + 1) ** 20 == 1, SizeError, "can be as large as 1e.20"),
    "class out of range": (lambda: f == 10, SymbolError, "class 10 is out of range for 'f', whose classes are 0 to 9"),
    "negative class": (lambda: f != -1, SymbolError, "class -1 is out of range"),
    "class out of range in a set": (lambda: f.isin([1, 12]), SymbolError, "class 12 is out of range"),
    "fractional class": (lambda: f == 1.5, FormulaTypeError, "class index or name; got 1.5"),
    "bool class": (lambda: f == True, FormulaTypeError, "class index or name; got True"),  # noqa: E712
    "unknown class name": (lambda: named == "cow", SymbolError, "no class 'cow'; its classes are cat, dog"),
    "nameless classes": (lambda: f == "cat", SymbolError, "has no class names.*classes="),
    "empty set": (lambda: f.isin([]), SymbolError, "no class never holds"),
    "full set": (lambda: named.isin([0, 1]), SymbolError, "every class always holds"),
    "set of one number": (lambda: f.isin(3), FormulaTypeError, "needs a list of classes; got 3. For one class write f == 3"),
    "different classes": (lambda: f == named, SymbolError, "different classes"),
    "shapes": (lambda: p <= dl.var("q", 4), ShapeError, r"\(3,\) and \(4,\) cannot be broadcast together in p <= q"),
    "shapes in a term": (lambda: p + dl.var("q", 4), ShapeError, r"in p \+ q"),
    "shapes in a formula": (lambda: (p <= 1) & (dl.var("q", 4) <= 1), ShapeError, "cannot be broadcast.*index with None"),
    "shapes in an implication": (lambda: (p <= 1) >> (dl.var("q", 4) <= 1), ShapeError, ">>"),
    "shapes in Iff": (lambda: dl.Iff(p <= 1, dl.var("q", 4) <= 1), ShapeError, "Iff"),
    "ragged lengths": (lambda: r[1:] <= r, ShapeError, r"\(n - 1,\) and \(n,\)"),
    "matrix product": (lambda: p @ [[1, 2]], ShapeError, "last axis is as long as the constant's first"),
    "matrix product of terms": (lambda: m @ p, FormulaTypeError, "right side of @ must be a constant"),
    "matrix product from the left": (lambda: np.ones((2, 3)) @ p, FormulaTypeError, "stands on the right of @"),
    "mask too large": (lambda: (x <= 1).all(where=valid), ShapeError, "no axis to reduce"),
    "mask with more axes": (lambda: (p <= 1).all(where=dl.mask("k", 2, 3)), ShapeError, "the mask has axes"),
    "mask of another axis": (lambda: (p <= 1).all(where=valid), ShapeError, "cannot be broadcast"),
    "unknown dim": (lambda: (p <= 1).all(1), ShapeError, "dim 1 does not exist in p <= 1.*batch axis does not count"),
    "dim twice": (lambda: (m <= 1).all((0, -2)), ShapeError, "names an axis twice"),
    "dim of a wrong type": (lambda: m.sum("0"), FormulaTypeError, "dim must be an int"),
    "nothing to reduce": (x.sum, ShapeError, "no axis to reduce"),
    "unknown duals": (lambda: (p <= 1).all(duals="none"), OptionError, "'each' or 'tied'"),
    "index too deep": (lambda: p[0, 0], ShapeError, "1 declared axes.*2 are indexed; the batch axis is not indexed"),
    "index out of range": (lambda: p[3], ShapeError, "position 3 is outside of an axis of size 3 in p"),
    "index of a scalar": (lambda: x[0], ShapeError, "has 0 declared axes"),
    "index by a name": (lambda: p["a"], FormulaTypeError, r"ints, slices, lists of ints.*got 'a'; keep .*p\[place\['a'\]\]"),
    "index by too few bools": (lambda: p[[True, False]], ShapeError, "2 bools cannot select from an axis of size 3"),
    "bools that select nothing": (lambda: p[[False] * 3], ShapeError, "selects nothing"),
    "bools of a ragged axis": (lambda: r[[True] * 5], FormulaTypeError, "ints, slices, lists of ints"),
    "two lists": (lambda: m[[0, 1], [0, 1]], ShapeError, "only one list.*two steps"),
    "list beside an int": (lambda: dl.var("d", 2, 3, 4)[0, :, [1, 2]], ShapeError, "numpy moves the axis"),
    "empty list": (lambda: p[[]], ShapeError, "selects nothing"),
    "empty slice": (lambda: p[2:1], ShapeError, "is empty"),
    "backwards slice of a ragged axis": (lambda: r[::-1], ShapeError, "positive step"),
    "slice of a ragged axis": (lambda: r[:3], ShapeError, "depends on the bound tensor"),
    "slice that leaves nothing": (lambda: r[5:], ShapeError, "leaves nothing"),
    "two ellipses": (lambda: m[..., ...], ShapeError, r"one '\.\.\.' only"),
    "index of a formula": (lambda: ((p <= 1) & a)[0], FormulaTypeError, "index the terms inside"),
    "loop over a formula": (lambda: list(p <= 1), FormulaTypeError, "cannot be looped over"),
    "loop over a term": (lambda: list(p), FormulaTypeError, "cannot be looped over"),
    "loop over a class": (lambda: list(f), FormulaTypeError, "cannot be looped over"),
    "python sum over a term": (lambda: sum(p), FormulaTypeError, "cannot be looped over"),
    "constants only": (lambda: dl.constant("c", [1, 2]).sum() <= 3, FormulaTypeError, "compares constants only"),
    "negative margin": (lambda: dl.lt(x, 1, margin=-1), OptionError, "finite number of at least 0; got -1"),
    "margin of a wrong type": (lambda: dl.lt(x, 1, margin="1"), OptionError, "finite number of at least 0; got '1'"),
    "empty And": (dl.And, FormulaTypeError, "at least one formula"),
    "empty Or": (lambda: dl.Or([]), FormulaTypeError, "at least one formula"),
    "AtMost without a number": (lambda: dl.AtMost(a, x <= 1), FormulaTypeError, "needs a number first"),
    "AtMost of too many": (lambda: dl.AtMost(2, a, x <= 1), OptionError, "says nothing; leave it out"),
    "negative AtMost": (lambda: dl.AtMost(-1, a, x <= 1), OptionError, "at least 0; got -1"),
    "AtMost of a multitude": (
        lambda: dl.AtMost(5, [dl.var("w", 100)[i] <= 0 for i in range(100)]),
        SizeError,
        r"stands for 1,192,052,400 clauses.*p.sum\(\) <= 5",
    ),
    "unknown input": (lambda: dl.boolean("b", input="prob"), SymbolError, "'probs' or 'logits'; got 'prob'"),
    "one class": (lambda: dl.categorical("c", 1), SymbolError, "at least two classes; got k=1"),
    "wrong number of names": (lambda: dl.categorical("c", 3, classes=["a", "b"]), SymbolError, "3 different non-empty names"),
    "repeated names": (lambda: dl.categorical("c", 2, classes=["a", "a"]), SymbolError, "2 different non-empty names"),
    "size zero": (lambda: dl.var("v", 0), ShapeError, "positive sizes or dl.axis.*batch axis is implied"),
    "size of a wrong type": (lambda: dl.var("v", 2.5), ShapeError, "positive sizes"),
    "shape as a tuple": (lambda: dl.var("v", (2, 3)), ShapeError, r"got \(2, 3\)"),
    "axis without a length": (lambda: dl.axis("n", max=0), ShapeError, "at least 1; got max=0"),
    "name of a wrong type": (lambda: dl.var(3), SymbolError, "Python identifier"),
    "name with a space": (lambda: dl.var("a b"), SymbolError, "Python identifier.*by keyword"),
    "keyword as a name": (lambda: dl.var("lambda"), SymbolError, "Python identifier"),
    "name that Python reads as another": (
        lambda: dl.var("\N{MICRO SIGN}"),
        SymbolError,
        "write '\N{GREEK SMALL LETTER MU}' for the variable",
    ),
    "accent by itself": (lambda: dl.axis("e\u0301", max=2), SymbolError, "write '\u00e9' for the axis"),
    "not a function": (lambda: dl.apply(3, x), FormulaTypeError, "needs a function first"),
    "function without terms": (lambda: dl.apply(torch.sigmoid), FormulaTypeError, "at least one term"),
    "function that loses the batch": (lambda: dl.apply(torch.sum, p), ShapeError, "first axis is the batch"),
    "function that fails": (
        lambda: dl.apply(torch.nn.functional.embedding, p, name="embed"),
        ShapeError,
        "failed.*declare them with dl.apply",
    ),
    "unknown class cost": (lambda: (x <= 1).cost("square", x=[0.0]), OptionError, "'probability', 'log'; got 'square'"),
    "negative tolerance": (lambda: (x <= 1).satisfied(tol=-1, x=[0.0]), OptionError, "at least 0; got -1"),
    "lead of one": (lambda: (x <= 1).satisfied(lead=1, x=[0.0]), OptionError, "below 1; got 1"),
    "axes in a loss": (lambda: dl.LogicLoss(p <= 1), ShapeError, r"still has axes \(3,\).*\.all\(\) or \.any\(\)"),
    "bool in a loss": (lambda: dl.LogicLoss({"r": 1 < 2}), FormulaTypeError, "a plain bool.*rule 'r'"),
    "term in a loss": (lambda: dl.LogicLoss(x), FormulaTypeError, "expected a formula in rule 'rule'"),
    "clash in a loss": (lambda: dl.LogicLoss({"a": x <= 1, "b": dl.boolean("x")}), SymbolError, "declared twice"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_with_a_message(name):
    make, error, message = CASES[name]
    with pytest.raises(error, match=message) as caught:
        make()
    if name != "formula as a number":
        assert isinstance(caught.value, DualogicError)


RESERVED = ["index", "where", "tol", "lead", "class_cost", "labels", "rules"]


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("declare", [dl.var, lambda name: dl.categorical(name, 3), dl.boolean, dl.mask])
def test_reserved_names(name, declare):
    with pytest.raises(SymbolError, match=f"'{name}' cannot name a .*reserved.*choose another name, such as '{name}_'"):
        declare(name)


def test_errors_are_also_the_built_in_ones():
    with pytest.raises(TypeError):
        bool(x <= 1)
    with pytest.raises(ValueError, match="out of range"):
        f == 10  # noqa: B015


def test_long_formulas_do_not_drown_their_error():
    wide = dl.var("wide", 1000)
    with pytest.raises(FormulaTypeError) as caught:
        bool(dl.And([wide[i] <= 1 for i in range(1000)]))
    assert len(str(caught.value)) < 1000
