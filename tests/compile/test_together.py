"""Rules compiled together give what each gives by itself."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.compile.evaluate import decide, take_extreme
from dualogic.compile.plan import compile_rules

MODES = ("probability", "log", "truth", "degree")


def values(rules, mode, tensors):
    plan = compile_rules([(f"rule{number}", rule) for number, rule in enumerate(rules)], mode)
    bound = plan.bind({name: tensors[name] for name in plan.symbols}, True)
    return plan.fold(plan.evaluate(bound), decide if mode == "truth" else take_extreme)


def check(rules, tensors):
    for mode in MODES:
        together = values(rules, mode, tensors)
        assert together.shape == (len(next(iter(tensors.values()))), len(rules))
        for place, rule in enumerate(rules):
            torch.testing.assert_close(together[:, place], values([rule], mode, tensors)[:, 0], rtol=1e-9, atol=1e-12)
        for join in (dl.And, dl.Or):
            joined = join(*map(dl.level, rules))
            parts = [values([rule], mode, tensors)[:, 0] for rule in rules]
            largest = (join is dl.And) != (mode == "truth")
            expected = torch.stack(parts).amax(0) if largest else torch.stack(parts).amin(0)
            torch.testing.assert_close(values([joined], mode, tensors)[:, 0], expected, rtol=1e-9, atol=1e-12)


rule = st.one_of(strategies.formulas(depth=2), strategies.quantified(), strategies.atoms(()))


@settings(max_examples=150)
@given(st.lists(rule, min_size=2, max_size=6), st.data())
def test_random_rules(rules, data):
    check(rules, data.draw(strategies.bindings(dl.And(*map(dl.level, rules)))))


n = dl.axis("n", max=5)
x, y, z = dl.var("x"), dl.var("y"), dl.var("z")
p, q = dl.var("p", 4), dl.var("q", 4)
m, o = dl.var("m", 3, 4), dl.var("o", 3, 4)
r, s = dl.var("r", n), dl.var("s", n)
u = dl.var("u", n, 3)
f, g = dl.categorical("f", 5, input="logits"), dl.categorical("g", 5, input="logits")
h = dl.categorical("h", 5, shape=(3,), input="logits")
k = dl.categorical("k", 5, shape=(3,), input="logits")
i = dl.categorical("i", 3, shape=(n, 2))
a, b = dl.boolean("a", 4), dl.boolean("b", 4)
one, two = dl.constant("one", 1), dl.constant("two", 2)
first, second = dl.constant("first", [1, 2, 3, 4]), dl.constant("second", [4, 3, 2, 1])
valid, other = dl.mask("valid", n), dl.mask("other", n)


def cube(value):
    return value**3


GROUPS = {
    "signs and margins": [x <= 1, y >= 1, dl.lt(x, 2, margin=0.5), dl.gt(z, 0, margin=1), x > 0, y < 3],
    "unequal margins": [dl.ne(x, 1, margin=0.5), x != 2, dl.ne(y, 1, margin=2)],
    "symbols": [x + y <= z, y + z <= x, z + x <= y, x + x <= x],
    "numbers": [x * 2 <= 1, x * 3 <= 1, y * 2 <= 5],
    "number on the left": [2 - x <= 1, 3 - y <= 1, 2 - z >= 0],
    "same left, other right": [x <= 1, x <= 2, x >= 3],
    "scalar constants": [x <= one, y <= two, z <= one],
    "array constants": [(p <= first).all(), (q <= second).all(), (p <= second).all()],
    "positions": [p[place] <= place for place in (3, 1, 0, 2)],
    "a progression": [m[place, 1] <= 0 for place in range(3)],
    "a block": [m[row, column] <= 0 for row in range(3) for column in range(4)],
    "a transposed block": [m[row, column] <= 0 for column in range(4) for row in range(3)],
    "part of a block": [m[row, column] <= 0 for row in (1, 2) for column in (1, 2)],
    "a repeated position": [p[place] <= number for number, place in enumerate([0, 0, 1, 0, 3])],
    "positions in two symbols": [source[row, column] <= 0 for source in (m, o) for row in (0, 2) for column in (3, 1)],
    "positions under a slice": [(m[place, 1:] <= 0).all() for place in (2, 0)],
    "positions after a slice": [(m[1:, place] <= 0).any() for place in (3, 0, 1)],
    "positions of positions": [m[row][column] <= 0 for row in (0, 2) for column in (1, 3)],
    "positions of sums": [m.sum(0)[place] <= m.max(1)[2] for place in range(4)],
    "positions of different sums": [(m + o).sum(0)[place] <= (m * number).sum() for number, place in enumerate([0, 3, 1])],
    "lists": [(p[[2, 0]] <= 0).all(), (q[[2, 0]] <= 1).all()],
    "lists after positions": [(m[row, [3, 1]] <= 0).all() for row in (1, 0)],
    "lists before positions": [(m[[2, 0], column] <= 0).all() for column in (3, 1)],
    "new axes": [(p[None, :] <= p[:, None] + number).all() for number in (0, 1, 2)],
    "new axes and positions": [(m[row][None, :] <= o[:, row][:, None]).all() for row in (0, 2)],
    "operands of different rank": [((m <= number) | (p <= 0) | (x <= number)).all() for number in (0, 1)],
    "sum of different ranks": [(m + p * x <= number * y).any() for number in (1, 2)],
    "ragged positions": [r[place] <= 0 for place in (0, 2, -1)],
    "ragged positions of two": [
        source[place] <= number for number, (source, place) in enumerate(itertools.product((r, s), (0, -2)))
    ],
    "ragged rows": [(u[place] <= 0).all() for place in (1, -1)],
    "ragged columns": [(u[:, place] <= r).all() for place in (2, 0)],
    "masks": [(r <= 1).all(where=valid), (r <= 1).all(where=other), (s <= 0).all(where=valid), (r <= 2).all(where=~other)],
    "masks for any": [(r <= 1).any(where=valid), (r <= 1).any(where=other)],
    "joined masks": [(r <= 1).all(where=valid & other), (r <= 1).all(where=other & valid), (s <= 1).all(where=~valid & other)],
    "sliced masks": [(r[1:] <= 1).all(where=valid[1:]), (r[1:] <= 1).all(where=other[:-1])],
    "classes": [f == 1, f == 3, g == 3, g == 0],
    "other classes": [f != 1, f != 3, g != 3],
    "class sets": [f.isin([0, 1]), f.isin([2, 3, 4]), g.isin([0, 4]), ~f.isin([1, 2]), ~g.isin([0, 1, 2])],
    "indexed classes": [h[0] == 1, h[1] == 2, h[2] == 1, k[0] == 4],
    "indexed other classes": [h[0] != 1, h[1] != 2, k[1] != 2],
    "indexed class sets": [h[0].isin([0, 1]), h[2].isin([1, 2]), k[2].isin([1, 2])],
    "class axes": [(h == 1).all(), (h == 2).all(), (k == 1).all(), (k != 1).any(), (h != 1).any()],
    "sliced classes": [(h[1:] == 1).all(), (k[1:] == 0).all(), (h[1:][0] == 1), (h[1:][1] == 3), (k[1:][0] == 3)],
    "ragged classes": [(i[:, 0] == 1).all(), (i[:, 1] == 2).all(), (i[0] != 1).any(), (i[-1] != 1).any()],
    "compared classes": [f == g, h[0] == f, h[1] == g, h[0] == h[1], (h == k).all(), (h == f).any()],
    "probabilities": [f.probabilities[0] <= 0.1, g.probabilities[1] <= 0.2, f.probabilities[1] + f.probabilities[2] >= 1],
    "probabilities of indexed classes": [
        h[0].probabilities[1] <= 0.1,
        h[1].probabilities[2] <= 0.1,
        k[2].probabilities[0] >= 0.2,
    ],
    "probabilities of sliced classes": [
        (h[1:].probabilities[0, 1] <= 0.1),
        (h[1:][1].probabilities[2] <= 0.1),
        (h[1:][0].probabilities[2] <= 0.1),
    ],
    "probabilities beside classes": [(f == 1) | (f.probabilities[1] <= 0), (g == 2) | (g.probabilities[0] <= 0)],
    "Booleans": [a[0], ~a[1], b[2], ~b[3], a[3]],
    "Boolean axes": [a.all(), (~a).all(), b.any(), (~b).all()],
    "matrices": [
        ((p @ [[1, 0], [0, 1], [1, 1], [0, 0]]) <= 1).all(),
        ((q @ [[1, 0], [0, 1], [1, 1], [0, 0]]) <= 2).all(),
        p @ first <= 1,
        q @ first <= 1,
        p @ second <= 2,
    ],
    "functions": [dl.apply(cube, x) <= 1, dl.apply(cube, y) <= 1, dl.apply(cube, p[0]) >= dl.apply(cube, x)],
    "functions inside": [dl.apply(cube, p)[place] + place <= 1 for place in range(4)],
    "nested lanes": [((p[j] <= 0) & (q[j] <= 1)) | ((p[j] >= 1) & (x <= j)) for j in range(4)],
    "nested lanes, shared parts": [((x <= 0) & (q[j] <= 1)) | ((y >= 1) & (x <= 0)) for j in range(4)],
    "quantifiers in lanes": [(m[j] <= 0).all() | (o[:, j] <= 1).any() for j in range(3)],
    "quantifiers over levels": [((m <= j) & (p >= j)).any(0).all() for j in (0, 1)],
    "tied": [((m <= j) | (o <= j)).all(duals="tied") for j in (0, 1)],
    "tied under an axis": [((m <= j) | (o <= j)).all(0, duals="tied").any() for j in (0, 1)],
    "one with itself": [x <= 1, (x <= 1) & (x <= 1), ~(x <= 1)],
    "cardinalities": [dl.AtMost(1, *(p[j] <= j for j in group)) for group in ((0, 1, 2), (1, 2, 3))],
    "negations": [-p[0] + abs(q[1]) <= 1, -p[1] + abs(q[2]) <= 1, -q[0] + abs(q[1]) <= 2],
    "powers": [x**2 <= 1, y**2 <= 1, x**3 >= 0, 2**x <= 2, 2**y <= 1],
}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("length", [3, 5])
def test_groups_of_rules(name, length):
    rules = GROUPS[name]
    generator = torch.Generator().manual_seed(len(name))
    tensors = strategies.make_tensors(dl.And(*map(dl.level, rules)).symbols, {"n": length}, 3, generator)
    check(rules, tensors)
    check(rules[::-1], tensors)


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_rules_against_brute_force(name):
    from reference import each_sample, holds, price

    generator = torch.Generator().manual_seed(len(name))
    tensors = strategies.make_tensors(dl.And(*map(dl.level, GROUPS[name])).symbols, {"n": 4}, 3, generator)
    for mode in ("probability", "log", "truth"):
        together = values(GROUPS[name], mode, tensors)
        for place, formula in enumerate(GROUPS[name]):
            options = {} if mode == "truth" else {"class_cost": mode}
            expected = each_sample(holds if mode == "truth" else price, formula, tensors, **options)
            torch.testing.assert_close(together[:, place], torch.as_tensor(expected), rtol=1e-9, atol=1e-12)
