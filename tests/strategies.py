"""Random formulas over a fixed vocabulary, and tensors to bind to them."""

import hypothesis.strategies as st
import torch

import dualogic as dl
from dualogic.formula.node import walk
from dualogic.formula.symbol import ClassExpression, Variable

N, L = dl.axis("n", max=4), dl.axis("l", max=3)
AXIS_LENGTHS = {"n": 4, "l": 3}

x, y, z = dl.var("x"), dl.var("y"), dl.var("z")
p, q, m = dl.var("p", 3), dl.var("q", 3), dl.var("m", 2, 3)
f, g = dl.categorical("f", 3), dl.categorical("g", 3)
w = dl.categorical("w", 4, shape=(2,), input="logits")
k = dl.categorical("k", 3, classes=["cat", 'a "dog" == \\', "owl"], input="logits")
a, b = dl.boolean("a"), dl.boolean("b", input="logits")
c = dl.boolean("c", 3)
r, s, u = dl.var("r", N), dl.var("s", N), dl.var("u", N, 2)
t, e = dl.categorical("t", 3, shape=(N,)), dl.boolean("e", N)
v = dl.var("v", L)
valid, alive = dl.mask("valid", N), dl.mask("alive", L)
one, vector, matrix = (
    dl.constant("one", 1.5),
    dl.constant("vector", [1, -0.5, 2]),
    dl.constant("matrix", [[1, 0], [1, 0.5], [0, -1]]),
)


def softened(value):
    return value * torch.relu(value)


def evened(value):
    return value - value % 2


SYMBOLS = {node.name: node for node in (x, y, z, p, q, m, f, g, w, k, a, b, c, r, s, u, t, e, v, valid, alive)}
NAMES = {
    **SYMBOLS,
    "one": one,
    "vector": vector,
    "matrix": matrix,
    "softened": lambda *terms: dl.apply(softened, *terms),
    "evened": lambda *terms: dl.apply(evened, *terms),
}
FUNCTIONS = [
    *("And", "Or", "Not", "Implies", "Iff", "Xor", "ExactlyOne", "AtMost", "level", "evidence"),
    *("lt", "gt", "ne", "le", "ge", "eq"),
]
NAMESPACE = {**NAMES, **{name: getattr(dl, name) for name in FUNCTIONS}, "abs": abs, "__builtins__": {}}
"""What the text of a formula is evaluated in."""

quarters = st.integers(-8, 8).map(lambda number: number / 4)
comparisons = st.sampled_from(["<=", "<", ">=", ">", "==", "!="])
_COMPARE = {"<=": dl.le, "<": dl.lt, ">=": dl.ge, ">": dl.gt, "!=": dl.ne}

# Terms by their axes; "n" and "l" stand for ragged ones, "n-1" for a sliced one.
LEAVES = {
    (): [
        x,
        y,
        z,
        p[0],
        p[2],
        q[1],
        m[0, 1],
        m[1, 2],
        p.sum(),
        q.max(),
        m.min(),
        m.sum(1)[0],
        p @ vector,
        one,
        f.probabilities[1],
    ],
    (3,): [p, q, m[0], m[1], m.sum(0), m.max(0), p[[2, 0, 1]], f.probabilities, q[None, :][0], vector],
    (2,): [m[:, 1], m[:, 2], m.sum(1), p[1:], q[:2], p[[2, 0]], q[::2], p @ matrix, m @ vector, w.probabilities[:, 1]],
    (2, 3): [m, m * one, m @ [[1, 0, 1], [0, 2, 0], [0, 0, -1]], p[None, :] + q[:2, None]],
    ("n",): [r, s, u[:, 0], u[:, 1], u.sum(1), u.max(-1), t.probabilities[:, 2]],
    ("n-1",): [r[1:], s[:-1], r[:-1], u[1:, 0], u[:-1].sum(1)],
    ("l",): [v],
    ("n", "l"): [r[:, None] + v[None, :], s[:, None] * v],
    ("n", 2): [u, u + r[:, None], t.probabilities[:, [0, 2]]],
}
CLASSES = {(): [f, g, k, w[0], w[1]], (2,): [w, w[[1, 0]]], ("n",): [t], ("n-1",): [t[1:], t[:-1]]}
BOOLEANS = {(): [a, b, c[0], c[2]], (3,): [c], (2,): [c[1:]], ("n",): [e], ("n-1",): [e[1:]]}
MASKS = {
    ("n",): [valid, ~valid],
    ("n-1",): [valid[1:], valid[1:] & valid[:-1]],
    ("l",): [alive],
    ("n", "l"): [valid[:, None] & alive, alive],
    ("n", 2): [valid[:, None]],
}
RELATIONS = {
    (): [
        f + g == w[0],
        f < g,
        f * 2 + g >= 3,
        w[0] + w[1] != f + 3,
        abs(w[0] - g) <= 1,
        f * g + f > w[1],
        dl.apply(evened, f) == g,
    ],
    (2,): [w > f, w + w[[1, 0]] == 3, w * 2 - f <= g],
    ("n",): [t + f <= 2, 2 - t < g, t * f == g],
    ("n-1",): [t[1:] + t[:-1] == 2, t[1:] >= t[:-1], t[1:] - t[:-1] != f - 1],
}
PLAIN = [(), (3,), (2,), (2, 3)]
RAGGED = [("n",), ("n-1",), ("l",), ("n", "l"), ("n", 2)]


@st.composite
def terms(draw, shape=(), depth=1):
    """A term with exactly these axes."""
    term = draw(st.sampled_from(LEAVES[shape]))
    for _ in range(draw(st.integers(0, depth))):
        kind = draw(st.sampled_from(["add", "subtract", "multiply", "absolute", "negate", "number", "power", "apply"]))
        other = draw(st.sampled_from(LEAVES[draw(st.sampled_from([shape, ()]))]))
        if kind == "add":
            term = term + other
        elif kind == "subtract":
            term = other - term
        elif kind == "multiply":
            term = term * other
        elif kind == "absolute":
            term = abs(term)
        elif kind == "negate":
            term = -term
        elif kind == "number":
            term = term / draw(st.sampled_from([2, -4, 0.5])) + draw(quarters)
        elif kind == "power":
            term = term**2
        elif not any(isinstance(size, str) for size in shape):
            term = dl.apply(softened, term)
    return term


@st.composite
def real_atoms(draw, shape=(), operations=comparisons, margins=True):
    left = draw(terms(shape))
    if not any(isinstance(node, (Variable, ClassExpression)) for node in walk(left)):
        left = left * x
    right = draw(st.one_of(quarters, terms(shape), terms(())))
    operation = draw(operations)
    if margins and operation in ("<", ">", "!=") and draw(st.booleans()):
        return _COMPARE[operation](left, right, margin=draw(st.sampled_from([0.25, 0.5, 1.0])))
    return {"==": dl.eq, **_COMPARE}[operation](left, right)


@st.composite
def atoms(draw, shape=()):
    """A comparison, a class or a Boolean with exactly these axes."""
    kinds = ["real", "real"] + ["class"] * (shape in CLASSES) + ["boolean"] * (shape in BOOLEANS)
    kind = draw(st.sampled_from(kinds))
    if kind == "real":
        return draw(real_atoms(shape))
    if kind == "boolean":
        return draw(st.sampled_from(BOOLEANS[shape]))
    expression = draw(st.sampled_from(CLASSES[shape]))
    size = expression.symbol.size
    choice = draw(st.sampled_from(["equal", "unequal", "among", "compare", "relate"]))
    if choice == "relate":
        return draw(st.sampled_from(RELATIONS[shape]))
    if choice == "compare":
        return {(): f == g, (2,): w != w[[1, 0]], ("n",): t == f, ("n-1",): t[1:] == t[:-1]}[shape]
    if choice == "among":
        return expression.isin(draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=size - 1)))
    label = draw(st.integers(0, size - 1))
    return expression == label if choice == "equal" else expression != label


def join(draw, parts):
    """One connective over formulas."""
    kind = draw(st.sampled_from(["and", "or", "implies", "iff", "xor", "one", "most", "level", "evidence"]))
    first, second = parts[0], parts[1]
    if kind == "and":
        return dl.And(*parts)
    if kind == "or":
        return dl.Or(*parts)
    if kind == "implies":
        return first >> second
    if kind == "evidence":
        return dl.Implies(first, second, evidence=draw(st.sampled_from([True, False, 0.75])))
    if kind == "iff":
        return dl.Iff(first, second)
    if kind == "xor":
        return dl.Xor(first, second)
    if kind == "one":
        return dl.ExactlyOne(*parts)
    if kind == "most":
        return dl.AtMost(draw(st.integers(0, len(parts) - 1)), *parts)
    return dl.level(dl.And(*parts)) & dl.level(first)


@st.composite
def formulas(draw, base=None, depth=4, atom_count=6):
    """A formula without axes: at most ``atom_count`` distinct atoms under at most ``depth`` connectives."""
    pool = draw(st.lists(base if base is not None else atoms(()), min_size=1, max_size=atom_count))

    def build(level):
        if level == 0 or draw(st.integers(0, 3)) == 0:
            leaf = draw(st.sampled_from(pool))
            return ~leaf if draw(st.booleans()) else leaf
        node = join(draw, [build(level - 1) for _ in range(draw(st.integers(2, 3)))])
        return ~node if draw(st.integers(0, 3)) == 0 else node

    return build(draw(st.integers(0, depth)))


@st.composite
def monotone_formulas(draw, base, depth=3):
    """``&`` and ``|`` only, over the given atoms."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(base)
    parts = draw(st.lists(monotone_formulas(base, depth - 1), min_size=2, max_size=3))
    return draw(st.sampled_from([dl.And, dl.Or]))(*parts)


@st.composite
def quantified(draw, shapes=None, depth=2, masked=True):
    """A formula without axes, with quantifiers inside."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(atoms(()))
    if draw(st.booleans()):
        return join(draw, draw(st.lists(quantified(shapes, depth - 1, masked), min_size=2, max_size=2)))
    shape = draw(st.sampled_from(shapes if shapes is not None else PLAIN[1:] + RAGGED))
    operand = draw(open_formulas(shape, depth - 1))
    mask = None
    if masked and shape in MASKS and draw(st.booleans()):
        mask = draw(st.sampled_from(MASKS[shape]))
    quantify = draw(st.sampled_from(["all", "any"]))
    if len(shape) == 2 and draw(st.booleans()):
        dim = draw(st.integers(0, 1))
        return getattr(getattr(operand, quantify)(dim, where=mask), draw(st.sampled_from(["all", "any"])))()
    tied = draw(st.sampled_from(["each", "each", "tied"]))
    formula = getattr(operand, quantify)(where=mask, duals=tied)
    return ~formula if draw(st.integers(0, 3)) == 0 else formula


@st.composite
def open_formulas(draw, shape, depth=1):
    """A formula with exactly these axes, whose parts may have fewer."""
    if depth == 0 or draw(st.booleans()):
        return draw(atoms(shape))
    fewer = [shape, ()] + [shape[1:]] * (shape[1:] in LEAVES)
    parts = [draw(open_formulas(shape, depth - 1)), draw(atoms(draw(st.sampled_from(fewer))))]
    return join(draw, draw(st.permutations(parts)))


@st.composite
def bindings(draw, formula, batch=None, dtype=torch.float64, min_length=1):
    """Tensors for all symbols of a formula, of quarters, so that arithmetic is exact and ties occur."""
    lengths = {name: draw(st.integers(min_length, longest)) for name, longest in AXIS_LENGTHS.items()}
    samples = draw(st.integers(1, 4)) if batch is None else batch
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31 - 1)))
    return make_tensors(formula.symbols, lengths, samples, generator, dtype)


def make_tensors(symbols, lengths, batch, generator, dtype=torch.float64):
    tensors = {}
    for name, symbol in symbols.items():
        sizes = [size if isinstance(size, int) else lengths[size.axis.name] - size.trim for size in symbol.shape]
        kind = type(symbol).__name__
        if kind == "Mask":
            tensors[name] = torch.rand(batch, *sizes, generator=generator) > 0.4
            continue
        if kind == "Categorical":
            sizes = [*sizes, symbol.size]
        numbers = torch.randint(-8, 9, (batch, *sizes), generator=generator).to(dtype) / 4
        if kind == "Categorical" and symbol.input == "probs":
            counts = numbers.abs() * 4 + 1
            numbers = counts / counts.sum(-1, keepdim=True)
        elif kind == "Boolean" and symbol.input == "probs":
            numbers = (numbers + 2) / 4 * 0.875 + 0.0625
        tensors[name] = numbers
    return tensors
