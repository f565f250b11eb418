"""Arithmetic and order of classes, against the enumeration of all classes."""

import itertools
import operator

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import dualogic as dl
import reference
from dualogic.compile.convolution import program_of
from dualogic.formula.relation import ClassRelation

A, B, C = dl.categorical("a", 4), dl.categorical("b", 3), dl.categorical("c", 4, input="logits")
S, D = dl.categorical("s", 7), dl.categorical("d", 3, shape=(4,), input="logits")
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def doubled(number):
    return number * 2 % 5


@st.composite
def numbers(draw, depth=3):
    """A number made of classes, in which classes may occur several times."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from([A, B, C, D[0], D[3]]))
    left = draw(numbers(depth - 1))
    kind = draw(st.sampled_from(["+", "+", "-", "*", "times", "plus", "minus", "abs", "table", "power"]))
    if kind in "+-*":
        return {"+": operator.add, "-": operator.sub, "*": operator.mul}[kind](left, draw(numbers(depth - 1)))
    if kind == "table":
        return dl.apply(doubled, left)
    if kind == "power":
        return left**2
    number = draw(st.integers(-3, 3))
    return {"times": number * left, "plus": left + number, "minus": number - left, "abs": abs(left)}[kind]


@st.composite
def relations(draw, depth=3):
    try:
        formula = draw(st.sampled_from(COMPARE))(draw(numbers(depth)), draw(st.one_of(st.integers(-4, 12), numbers(depth))))
        formula.cost(**bind(formula, 1, 0))
    except dl.errors.SymbolError:  # it holds for all classes or for none
        return A + B == S
    return formula if isinstance(getattr(formula, "operand", formula), ClassRelation) else D[0] <= A * 2 - B


def bind(formula, batch, seed, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, symbol in formula.symbols.items():
        logits = scale * torch.randn(batch, *symbol.shape, symbol.size, generator=generator, dtype=torch.float64)
        tensors[name] = logits if symbol.input == "logits" else logits.softmax(-1)
    return tensors


@settings(max_examples=80, deadline=None)
@given(relations(), st.integers(0, 1000))
def test_costs_and_truth_are_those_of_an_enumeration(formula, seed):
    tensors = bind(formula, 3, seed)
    for rule in (formula, ~formula):
        for class_cost in ("log", "probability"):
            expected = reference.each_sample(reference.price, rule, tensors, class_cost=class_cost)
            assert rule.cost(class_cost, **tensors).numpy() == pytest.approx(expected, rel=1e-9, abs=1e-9)
        expected = reference.each_sample(reference.holds, rule, tensors, lead=0.2)
        assert (rule.satisfied(lead=0.2, **tensors).numpy() == expected).all()


@settings(max_examples=40, deadline=None)
@given(relations(), st.integers(0, 1000))
def test_counting_methods_give_the_probability(formula, seed):
    tensors = bind(formula, 3, seed)
    expected = formula.cost("log", **tensors)
    for method in ("semantic", "problog"):
        cost = dl.LogicLoss(formula, method=method, reduction="none")(**tensors)
        torch.testing.assert_close(cost.squeeze(-1), expected, rtol=1e-6, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.lists(relations(1), min_size=2, max_size=3), st.integers(0, 1000), st.sampled_from([dl.And, dl.Or, dl.Implies, dl.Xor]))
def test_relations_that_share_classes_are_counted_exactly(parts, seed, join):
    parts = parts if join in (dl.And, dl.Or) else parts[:2]
    rule = join(*parts)
    try:
        loss = dl.LogicLoss(rule, method="problog", reduction="none")
    except dl.errors.OptionError:
        return  # it cannot hold
    tensors = bind(rule, 2, seed)
    total = torch.zeros(2, dtype=torch.float64)
    leaves = list(dict.fromkeys(leaf for node in parts for leaf in getattr(node, "operand", node).leaves))
    tables = {leaf: reference_table(leaf, tensors) for leaf in leaves}
    for labels in itertools.product(*(range(leaf.symbol.size) for leaf in leaves)):
        world = {
            leaf: torch.nn.functional.one_hot(torch.tensor([label]), leaf.symbol.size) for leaf, label in zip(leaves, labels)
        }
        if rule.satisfied(**as_world(rule, world)).item():
            total += torch.stack([tables[leaf][:, label] for leaf, label in zip(leaves, labels)]).prod(0)
    torch.testing.assert_close(loss(**tensors).squeeze(-1), -total.log(), rtol=1e-6, atol=1e-6)


def reference_table(leaf, tensors):
    values = tensors[leaf.symbol.name]
    values = values.softmax(-1) if leaf.symbol.input == "logits" else values
    return values if not leaf.symbol.shape else values[:, leaf.items[0][1]]


def as_world(rule, world):
    """Tensors in which every class is sure."""
    tensors = {}
    for name, symbol in rule.symbols.items():
        tensor = torch.zeros(1, *symbol.shape, symbol.size)
        tensor[..., 0] = 1.0
        for leaf, row in world.items():
            if leaf.symbol is symbol:
                if symbol.shape:
                    tensor[:, leaf.items[0][1]] = row.float()
                else:
                    tensor[:] = row.float()
        tensors[name] = tensor * 50 if symbol.input == "logits" else tensor
    return tensors


@settings(max_examples=50, deadline=None)
@given(relations())
def test_text_and_nodes(formula):
    assert dl.parse(str(formula), formula) is formula
    assert (~formula).to_cnf() is (~formula).to_nnf()
    symbols = dict(formula.symbols)
    assert eval(str(formula), {**symbols, "abs": abs, "doubled": lambda n: dl.apply(doubled, n)}) is formula


def test_a_long_sum_is_a_chain_of_convolutions():
    digits = [dl.categorical(f"x{place}", 10, input="logits") for place in range(12)]
    total = dl.categorical("total", 109)
    rule = sum(digits) == total
    work = program_of(rule, False).work
    assert sum(len(step.places[0]) for step in work) < 20_000  # of 10^12 combinations
    tensors = bind(rule, 2, 0, scale=1.0)
    known = {name: tensors[name].softmax(-1) for name in tensors if name != "total"}
    distribution = torch.ones(2, 1, dtype=torch.float64)
    for name in known:
        added = torch.zeros(2, distribution.shape[1] + 9, dtype=torch.float64)
        for digit in range(10):
            added[:, digit : digit + distribution.shape[1]] += distribution * known[name][:, digit : digit + 1]
        distribution = added
    expected = (distribution * tensors["total"]).sum(-1)
    torch.testing.assert_close(1 - rule.cost(**tensors), expected)
    cost = dl.LogicLoss(rule, method="semantic", reduction="none")(**tensors).squeeze(-1)
    torch.testing.assert_close(cost, -expected.log())


def test_gradients():
    tensors = {name: tensor.requires_grad_() for name, tensor in bind(A * 2 + B == C + S, 2, 0).items()}
    names = list(tensors)
    for rule in (A * 2 + B == C + S, A * 2 + B < C + S, A * 2 + B != C + S):
        for cost in ("log", "probability"):
            assert torch.autograd.gradcheck(
                lambda *values, rule=rule, cost=cost: rule.cost(cost, **dict(zip(names, values))), tuple(tensors.values())
            )


@pytest.mark.parametrize("size", [10.0, 1e3, 1e6, 1e20, float("inf")])
@pytest.mark.parametrize("make", [lambda: C + D[0] == 5, lambda: C + D[0] < 5, lambda: C + D[0] != 0, lambda: C * D[0] >= 6])
def test_finite_gradients_at_the_extremes(make, size):
    rule = make()
    c, d = torch.zeros(1, 4), torch.zeros(1, 4, 3)
    for label in range(4):
        far = torch.where(torch.arange(4) == label, 0.0, -size)
        leaf, other = (c + far).requires_grad_(), (d + torch.where(torch.arange(3) == min(label, 2), 0.0, -size)).requires_grad_()
        for class_cost in ("log", "probability"):
            cost = rule.cost(class_cost, c=leaf, d=other)
            if cost.isfinite().all():
                slopes = torch.autograd.grad(cost.sum(), (leaf, other))
                assert all(slope.isfinite().all() for slope in slopes)
            else:
                assert size == float("inf")
                assert class_cost == "log"
                assert not rule.satisfied(c=leaf, d=other).any()


def test_an_unlikely_sum_still_teaches():
    logits = torch.tensor([[400.0, 0.0, 0.0, -400.0]], requires_grad=True)
    for rule in (C + A == 6, C + A > 5):
        for loss in (
            rule.cost("log", c=logits, a=torch.full((1, 4), 0.25)),
            dl.LogicLoss(rule, method="problog")(c=logits, a=torch.full((1, 4), 0.25)),
        ):
            (slope,) = torch.autograd.grad(loss.sum(), logits)
            torch.testing.assert_close(slope, torch.tensor([[1.0, 0.0, 0.0, -1.0]]))


def test_axes():
    n = dl.axis("n", max=5)
    t, valid = dl.categorical("t", 3, shape=(n,)), dl.mask("valid", n)
    rule = (t[1:] + t[:-1] <= 2).all(where=valid[1:])
    tensors = {"t": torch.rand(4, 3, 3).softmax(-1), "valid": torch.tensor([[True, True, False]]).expand(4, 3)}
    expected = (t[0] + t[1] <= 2).cost("log", t=tensors["t"])
    torch.testing.assert_close(rule.cost("log", **tensors), expected)
    torch.testing.assert_close(dl.LogicLoss(rule, method="problog", reduction="none")(**tensors).squeeze(-1), expected)
    for rule in (D[:, None] < D[None, :], D + D[0] == 2):
        with pytest.raises(dl.errors.ShapeError, match="are the same class at some positions"):
            rule.cost(d=torch.zeros(1, 4, 3))
    with pytest.raises(dl.errors.ShapeError, match="count from the start"):
        (t[0] < t[-1]).cost(t=tensors["t"])


def test_what_cancels_out_is_refused():
    for rule in (A + B - A == B + 0, A - A < 1 + A - A - B * 0):
        with pytest.raises(dl.errors.SymbolError, match="holds for all classes or for none"):
            rule.cost(a=torch.ones(1, 4) / 4, b=torch.ones(1, 3) / 3)


def test_too_much_to_count():
    many = [dl.categorical(f"x{place}", 10) for place in range(7)]
    weighted = sum(digit * 7**place for place, digit in enumerate(many[:6]))
    with pytest.raises(dl.errors.SizeError, match="shares classes with other parts of its rule"):
        dl.LogicLoss((weighted <= 40_000) & (many[0] < many[5]), method="problog")
    circle = sum(many[place] * many[(place + 1) % 7] for place in range(7))
    with pytest.raises(dl.errors.SizeError, match=r"< 9 needs a sum over 10,000,000 combinations"):
        (circle < 9).cost(**{digit.name: torch.full((1, 10), 0.1) for digit in many})


def test_every_method_takes_a_relation_as_evidence_and_with_duals():
    rule = dl.Implies(A + B == 3, C < 2, evidence=True)
    tensors = {name: tensor.float().requires_grad_() for name, tensor in bind(rule, 5, 1).items()}
    loss = dl.LogicLoss(rule, num_samples=5)
    slopes = torch.autograd.grad(loss(torch.arange(5), **tensors), list(tensors.values()), allow_unused=True)
    taught = {name: slope is not None and bool(slope.any()) for name, slope in zip(tensors, slopes)}
    assert taught == {"a": False, "b": False, "c": True}
    for method in dl.methods.METHODS:
        learned = dl.LogicLoss(A + B == C, num_samples=5, method=method)
        given = {name: tensor.float().requires_grad_() for name, tensor in bind(A + B == C, 5, 2).items()}
        learned(torch.arange(5), **given).backward()
        assert all(tensor.grad.isfinite().all() and tensor.grad.any() for tensor in given.values())


def test_same_form_is_computed_together():
    xs = [dl.categorical(f"x{place}", 4) for place in range(6)]
    rule = dl.And(*(xs[place] + xs[place + 1] <= 4 for place in range(0, 6, 2)))
    tensors = bind(rule, 2, 0)
    parts = torch.stack([part.cost("log", **{name: tensors[name] for name in part.symbols}) for part in rule.operands])
    torch.testing.assert_close(rule.cost("log", **tensors), parts.amax(0))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
@pytest.mark.parametrize("method", ["dual", "problog"])
def test_compiles_into_one_graph(method):
    rules = {"sum": A + B == S, "order": (A < B) >> (S >= 3)}
    tensors = {name: tensor.float() for name, tensor in bind(dl.And(*rules.values()), 4, 0).items()}
    logic = dl.LogicLoss(rules, num_samples=4, method=method)
    expected = dl.LogicLoss(rules, num_samples=4, method=method)(torch.arange(4), **tensors)
    compiled = torch.compile(logic, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(torch.arange(4), **tensors), expected)


def test_stored_duals_of_a_table_are_loaded():
    rule = (dl.apply(doubled, A) == B) | (A < B)
    tensors = {name: tensor.float() for name, tensor in bind(rule, 4, 0).items()}
    first, second = (dl.LogicLoss(rule, num_samples=4) for _ in range(2))
    first(torch.arange(4), **tensors)
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second(torch.arange(4), **tensors), first(torch.arange(4), **tensors))
