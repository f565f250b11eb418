"""What formulas mean, from the specification alone: formulas as nested tuples, evaluated number by number in plain Python.

A formula is drawn as a tuple, built with the library's public functions, and evaluated here; nothing here reads the library's
nodes. A tuple is ``(kind, axes, ...)``; axes are sizes, and ``"n"`` for the ragged one. Numbers are quarters, so that sums and
products are exact and ties occur.
"""

import functools
import itertools
import math
import operator

import torch

import dualogic as dl

N = dl.axis("n", max=4)
VARIABLES = {"x": (), "y": (), "p": (3,), "q": (3,), "m": (2, 3), "u": (2,), "r": ("n",), "s": ("n",)}
CLASSES = {
    "f": ((), 3, "probs"),
    "g": ((), 3, "probs"),
    "k": ((), 4, "logits"),
    "h": ((3,), 3, "probs"),
    "t": (("n",), 3, "logits"),
}
BOOLEANS = {"a": ((), "probs"), "b": ((), "logits"), "c": ((3,), "probs"), "e": (("n",), "probs"), "d": ((2,), "logits")}
MASKS = {"valid": ("n",), "alive": ("n",)}
SHAPES = [(), (), (), (3,), (2,), ("n",), (2, 3)]
WEIGHTS = (1.0, -0.5, 2.0)


def declared(axes):
    return tuple(N if size == "n" else size for size in axes)


SYMBOLS = {
    **{name: dl.var(name, *declared(axes)) for name, axes in VARIABLES.items()},
    **{name: dl.categorical(name, size, shape=declared(axes), input=kind) for name, (axes, size, kind) in CLASSES.items()},
    **{name: dl.boolean(name, *declared(axes), input=kind) for name, (axes, kind) in BOOLEANS.items()},
    **{name: dl.mask(name, *declared(axes)) for name, axes in MASKS.items()},
}

# ---------------------------------------------------------------------- drawing


def draw_term(choose, axes, depth=1):
    leaves = [name for name, own in VARIABLES.items() if own == axes]
    kind = choose.choice(["leaf", "leaf", "plus", "minus", "times", "half", "abs", "negative", "square"] if depth else ["leaf"])
    if axes == () and choose.random() < 0.3:
        return draw_scalar(choose)
    if kind == "leaf":
        return ("variable", axes, choose.choice(leaves))
    if kind in ("abs", "negative", "square", "half"):
        return (kind, axes, draw_term(choose, axes, depth - 1))
    other = axes if choose.random() < 0.6 else ()
    parts = [draw_term(choose, axes, depth - 1), draw_term(choose, other, depth - 1)]
    choose.shuffle(parts)
    return (kind, axes, *parts)


def draw_scalar(choose):
    """A number from a symbol with axes."""
    kind = choose.choice(["entry", "sum", "max", "min", "dot", "last", "probability"])
    if kind == "entry":
        return (kind, (), choose.choice("pq"), choose.randrange(-3, 3))
    if kind == "dot":
        return (kind, (), choose.choice("pq"))
    if kind == "last":
        return ("entry", (), choose.choice("rs"), choose.choice([0, -1]))
    if kind == "probability":
        return (kind, (), choose.choice("fgk"), choose.randrange(3))
    return ("reduce", (), kind, choose.choice("pqrmu"))


def draw_atom(choose, axes):
    kinds = ["compare"] * 3
    kinds += ["class", "classes"] * any(own == axes for own, _, _ in CLASSES.values())
    kinds += ["truth"] * any(own == axes for own, _ in BOOLEANS.values()) + ["same"] * (axes == ())
    kind = choose.choice(kinds)
    if kind == "truth":
        return (kind, axes, choose.choice([name for name, (own, _) in BOOLEANS.items() if own == axes]))
    if kind == "same":
        return (kind, axes, "f", "g", choose.random() < 0.5)
    if kind in ("class", "classes"):
        name = choose.choice([name for name, (own, _, _) in CLASSES.items() if own == axes])
        size = CLASSES[name][1]
        count = 1 if kind == "class" else choose.randrange(1, size)
        return ("class", axes, name, tuple(sorted(choose.sample(range(size), count))), choose.random() < 0.3)
    sign = choose.choice(["<=", "<", ">=", ">", "==", "!="])
    right = choose.randrange(-8, 9) / 4 if choose.random() < 0.5 else draw_term(choose, choose.choice([axes, ()]))
    margin = choose.choice([0.0, 0.0, 0.25, 1.0]) if sign in ("<", ">", "!=") else 0.0
    return ("compare", axes, sign, draw_term(choose, axes), right, margin)


def draw_formula(choose, axes=(), depth=3):
    if depth == 0 or choose.random() < 0.15:
        return draw_atom(choose, axes)
    kinds = ["and", "or", "not", "implies", "iff", "xor", "one", "most", "level", "evidence"]
    kind = choose.choice([*kinds, *["all", "any"] * 3] if axes == () else kinds)
    if kind in ("all", "any"):
        inner = choose.choice(SHAPES[3:])
        mask = choose.choice([None, "valid", "alive"]) if inner == ("n",) else None
        body = draw_formula(choose, inner, depth - 1)
        if inner == (2, 3) and choose.random() < 0.5:
            dim = choose.randrange(2)
            first = (kind, (inner[1 - dim],), body, (dim,), None)
            return (choose.choice(["all", "any"]), (), first, (0,), None)
        return (kind, (), body, tuple(range(len(inner))), mask)
    if kind in ("not", "level"):
        return (kind, axes, draw_formula(choose, axes, depth - 1))
    count = choose.choice([2, 2, 3]) if kind in ("and", "or", "one", "most") else 2
    shapes = [axes, *(axes if choose.random() < 0.7 else () for _ in range(count - 1))]
    choose.shuffle(shapes)
    parts = [draw_formula(choose, each, depth - 1) for each in shapes]
    if kind == "most":
        return (kind, axes, choose.randrange(count), *parts)
    return (kind, axes, *parts)


def draw_sample(choose, length):
    """A value for every symbol; ``length`` is that of the ragged axis."""

    def fill(axes, one):
        if not axes:
            return one()
        return [fill(axes[1:], one) for _ in range(length if axes[0] == "n" else axes[0])]

    def classes(size, kind):
        if kind == "logits":
            return lambda: [choose.randrange(-8, 9) / 4 for _ in range(size)]

        def one():
            counts = [choose.randrange(1, 9) for _ in range(size)]
            return [count / sum(counts) for count in counts]

        return one

    def truth(kind):
        return lambda: choose.randrange(-8, 9) / 4 if kind == "logits" else choose.randrange(1, 16) / 16

    return {
        **{name: fill(axes, lambda: choose.randrange(-8, 9) / 4) for name, axes in VARIABLES.items()},
        **{name: fill(axes, classes(size, kind)) for name, (axes, size, kind) in CLASSES.items()},
        **{name: fill(axes, truth(kind)) for name, (axes, kind) in BOOLEANS.items()},
        **{name: fill(axes, lambda: choose.random() < 0.6) for name, axes in MASKS.items()},
    }


def to_tensors(samples, names):
    """Samples of one length, bound for the named symbols."""
    kinds = {name: torch.bool if name in MASKS else torch.float64 for name in names}
    return {name: torch.tensor([sample[name] for sample in samples], dtype=kind) for name, kind in kinds.items()}


# ---------------------------------------------------------------------- the library's

COMPARE = {"<=": dl.le, "<": dl.lt, ">=": dl.ge, ">": dl.gt, "==": dl.eq, "!=": dl.ne}
PLAIN = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq, "!=": operator.ne}
JOIN = {"and": dl.And, "or": dl.Or, "not": dl.Not, "implies": dl.Implies, "iff": dl.Iff, "xor": dl.Xor, "one": dl.ExactlyOne}


def build_term(node):
    if isinstance(node, float):
        return node
    kind, _, *rest = node
    if kind == "variable":
        return SYMBOLS[rest[0]]
    if kind == "entry":
        return SYMBOLS[rest[0]][rest[1]]
    if kind == "dot":
        return SYMBOLS[rest[0]] @ list(WEIGHTS)
    if kind == "probability":
        return SYMBOLS[rest[0]].probabilities[rest[1]]
    if kind == "reduce":
        return getattr(SYMBOLS[rest[1]], rest[0])()
    parts = [build_term(part) for part in rest]
    unary = {"abs": abs, "negative": operator.neg, "square": lambda value: value**2, "half": lambda value: value / 2}
    binary = {"plus": operator.add, "minus": operator.sub, "times": operator.mul}
    return {**unary, **binary}[kind](*parts)


def build(node):
    kind, _, *rest = node
    if kind == "compare":
        sign, left, right, margin = rest
        left, right = build_term(left), build_term(right)
        return COMPARE[sign](left, right, margin=margin) if margin else PLAIN[sign](left, right)
    if kind == "class":
        name, labels, negated = rest
        if len(labels) == 1:
            return SYMBOLS[name] != labels[0] if negated else SYMBOLS[name] == labels[0]
        found = SYMBOLS[name].isin(list(labels))
        return ~found if negated else found
    if kind == "same":
        left, right = SYMBOLS[rest[0]], SYMBOLS[rest[1]]
        return left != right if rest[2] else left == right
    if kind == "truth":
        return SYMBOLS[rest[0]]
    if kind in ("all", "any"):
        body, dims, mask = rest
        return getattr(build(body), kind)(dims, where=None if mask is None else SYMBOLS[mask])
    if kind == "most":
        return dl.AtMost(rest[0], *map(build, rest[1:]))
    if kind == "level":
        return dl.level(dl.And(build(rest[0]), build(rest[0])))
    if kind == "evidence":
        return dl.Implies(build(rest[0]), build(rest[1]), evidence=True)
    return JOIN[kind](*map(build, rest))


# ---------------------------------------------------------------------- values


def size_of(axis, sample):
    return len(sample["valid"]) if axis == "n" else axis


def entry(value, position):
    for place in position:
        value = value[place]
    return value


def fit(position, axes):
    """The position of a part with fewer axes, which are the last ones."""
    return position[len(position) - len(axes) :]


def below(node, position, evaluate):
    return node if isinstance(node, float) else evaluate(node, fit(position, node[1]))


def number(node, sample, position=()):
    """The value of a term at a position of its axes."""
    kind, _, *rest = node
    if kind == "variable":
        return entry(sample[rest[0]], position)
    if kind == "entry":
        return sample[rest[0]][rest[1]]
    if kind == "dot":
        return sum(weight * value for weight, value in zip(WEIGHTS, sample[rest[0]]))
    if kind == "probability":
        return probabilities(rest[0], sample, ())[rest[1]]
    if kind == "reduce":
        values = sample[rest[1]]
        flat = [value for row in values for value in row] if isinstance(values[0], list) else values
        return {"sum": sum, "max": max, "min": min}[rest[0]](flat)
    first, *others = (below(part, position, lambda part, place: number(part, sample, place)) for part in rest)
    if kind in ("abs", "negative", "square", "half"):
        return {"abs": abs(first), "negative": -first, "square": first * first, "half": first / 2}[kind]
    return {"plus": first + others[0], "minus": first - others[0], "times": first * others[0]}[kind]


def probabilities(name, sample, position):
    values = entry(sample[name], position)
    if CLASSES[name][2] == "probs":
        return values
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def chance(name, sample, position):
    value = entry(sample[name], position)
    return 1 / (1 + math.exp(-value)) if BOOLEANS[name][1] == "logits" else value


def inner_positions(node, sample, position):
    """Where a quantifier looks, without what its mask leaves out."""
    _, _, body, dims, mask = node
    ranges, outer = [], iter(position)
    for dim, axis in enumerate(body[1]):
        ranges.append(range(size_of(axis, sample)) if dim in dims else [next(outer)])
    return [place for place in itertools.product(*ranges) if mask is None or entry(sample[mask], place)]


def holds(node, sample, tol=0.0, lead=0.0, position=()):
    """Whether a formula is satisfied at a position of its axes."""

    def inner(part):
        return holds(part, sample, tol, lead, fit(position, part[1]))

    kind, _, *rest = node
    if kind == "compare":
        sign, left, right, _ = rest
        difference = functools.reduce(
            operator.sub, (below(side, position, lambda part, place: number(part, sample, place)) for side in (left, right))
        )
        relaxed = {"<=": difference <= tol, ">=": -difference <= tol, "==": abs(difference) <= tol}
        opposite = {"<": ">=", ">": "<=", "!=": "=="}
        return relaxed[sign] if sign in relaxed else not relaxed[opposite[sign]]
    if kind == "class":
        name, labels, negated = rest
        values = probabilities(name, sample, position)
        others = max(value for label, value in enumerate(values) if label not in labels)
        return (max(values[label] for label in labels) - others > lead) != negated
    if kind == "same":
        pairs = [[("class", (), name, (label,), False) for name in rest[:2]] for label in range(3)]
        return any(all(map(inner, pair)) for pair in pairs) != rest[2]
    if kind == "truth":
        value = chance(rest[0], sample, position)
        return value - (1 - value) > lead
    if kind in ("all", "any"):
        found = (holds(rest[0], sample, tol, lead, place) for place in inner_positions(node, sample, position))
        return all(found) if kind == "all" else any(found)
    bound = rest.pop(0) if kind == "most" else 1
    parts = [inner(part) for part in rest]
    return {
        "and": all(parts),
        "or": any(parts),
        "level": parts[0],
        "not": not parts[0],
        "implies": not parts[0] or parts[-1],
        "evidence": not parts[0] or parts[-1],
        "iff": parts[0] == parts[-1],
        "xor": parts[0] != parts[-1],
        "one": sum(parts) == 1,
        "most": sum(parts) <= bound,
    }[kind]


def cost(node, sample, class_cost="probability", positive=True, position=()):
    """The cost of a formula, or of its negation, at a position: max over *and*, min over *or*."""

    def inner(part, sign=True):
        return cost(part, sample, class_cost, positive == sign, fit(position, part[1]))

    def both(*parts):
        return max(parts) if positive else min(parts)

    def either(*parts):
        return min(parts) if positive else max(parts)

    kind, _, *rest = node
    if kind == "compare":
        return compare_cost(rest, sample, positive, position)
    if kind == "class":
        name, labels, negated = rest
        values = probabilities(name, sample, position)
        kept = [value for label, value in enumerate(values) if (label in labels) == (positive != negated)]
        return -math.log(sum(kept)) if class_cost == "log" else min(1 - value for value in kept)
    if kind == "same":
        pairs = [[("class", (), name, (label,), False) for name in rest[:2]] for label in range(3)]
        sign = not rest[2]
        joined = [[inner(part, sign) for part in pair] for pair in pairs]
        holding = positive == sign
        return min(map(max, joined)) if holding else max(map(min, joined))
    if kind == "truth":
        value = chance(rest[0], sample, position)
        value = value if positive else 1 - value
        return -math.log(value) if class_cost == "log" else 1 - value
    if kind in ("all", "any"):
        found = [cost(rest[0], sample, class_cost, positive, place) for place in inner_positions(node, sample, position)]
        return max(found, default=0.0) if (kind == "all") == positive else min(found, default=math.inf)
    if kind == "and":
        return both(*map(inner, rest))
    if kind == "or":
        return either(*map(inner, rest))
    if kind == "level":
        return inner(rest[0])
    if kind == "not":
        return inner(rest[0], False)
    if kind in ("implies", "evidence"):
        return either(inner(rest[0], False), inner(rest[1]))
    if kind in ("iff", "xor"):
        left, right = rest
        sign = kind == "iff"
        ways = [("implies", node[1], left, right), ("implies", node[1], right, left)]
        together = [cost(way, sample, class_cost, positive == sign, position) for way in ways]
        return max(together) if positive == sign else min(together)
    bound, parts = (rest[0], rest[1:]) if kind == "most" else (1, rest)
    found = [either(*(inner(part, False) for part in some)) for some in itertools.combinations(parts, bound + 1)]
    return both(*found, either(*map(inner, parts))) if kind == "one" else both(*found)


def compare_cost(rest, sample, positive, position):
    sign, left, right, margin = rest
    if not positive:
        sign, margin = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}[sign], 0.0
    value, limit = (below(side, position, lambda part, place: number(part, sample, place)) for side in (left, right))
    difference = value - limit
    if sign == "==":
        return abs(difference)
    if sign == "!=":
        return max(margin - abs(difference), 0.0)
    return max((difference if sign in ("<", "<=") else -difference) + margin, 0.0)
