"""Exact model counting: against pysdd's own counts, brute force, and each other."""

import builtins
import itertools
import random

import pytest
import torch

import dualogic as dl
from dualogic.circuits.circuit import Circuit
from dualogic.circuits.network import factor_out, from_sdd
from dualogic.circuits.sdd import Compiler
from dualogic.circuits.vocabulary import ABSENT
from dualogic.errors import FormulaTypeError, MissingExtraError, OptionError, ShapeError, SizeError
from dualogic.methods.counting import _compile

sdd = pytest.importorskip("pysdd.sdd", reason="the methods 'semantic' and 'problog' count models with pysdd")

COUNT = 12
v = dl.boolean("v", COUNT)


def random_formula(rng, depth, literals):
    """A formula over ``v``, and the same as a pysdd node."""
    if depth == 0 or rng.random() < 0.1:
        number = rng.randrange(COUNT)
        formula, node = v[number], literals[number]
        return (~formula, -node) if rng.random() < 0.5 else (formula, node)
    parts = [random_formula(rng, depth - 1, literals) for _ in range(rng.choice([2, 2, 3]))]
    formulas, nodes = zip(*parts)
    kind = rng.choice(["and", "or", "implies", "iff", "xor", "not"])
    if kind == "and":
        result = nodes[0]
        for node in nodes[1:]:
            result = result & node
        return dl.And(*formulas), result
    if kind == "or":
        result = nodes[0]
        for node in nodes[1:]:
            result = result | node
        return dl.Or(*formulas), result
    (left, right), (first, second) = formulas[:2], nodes[:2]
    if kind == "implies":
        return left >> right, -first | second
    if kind == "not":
        return ~left, -first
    same = (first & second) | (-first & -second)
    return (dl.Iff(left, right), same) if kind == "iff" else (dl.Xor(left, right), -same)


def random_cases(number):
    rng = random.Random(7)
    cases = []
    while len(cases) < number:
        manager = sdd.SddManager.from_vtree(sdd.Vtree(var_count=COUNT, vtree_type=rng.choice(["right", "left", "balanced"])))
        formula, node = random_formula(rng, 4, list(manager.vars))
        if not (node.is_true() or node.is_false()):
            cases.append((formula, node, manager))
    return cases


CASES = random_cases(25)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_model_counts_are_those_of_pysdd(number):
    formula, node, manager = CASES[number]
    half = torch.full((1, COUNT), 0.5, dtype=torch.float64)
    loss = dl.LogicLoss(formula, method="semantic")(v=half)
    assert 2**COUNT * loss.neg().exp().item() == pytest.approx(manager.global_model_count(node), rel=1e-9)


@pytest.mark.parametrize("method", ["semantic", "problog"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_weighted_counts_and_derivatives_are_those_of_pysdd(number, method):
    formula, node, manager = CASES[number]
    p = (torch.rand(1, COUNT, generator=torch.Generator().manual_seed(number), dtype=torch.float64) * 0.9 + 0.05).requires_grad_()
    loss = dl.LogicLoss(formula, method=method)(v=p)
    loss.backward()
    counter = node.wmc(log_mode=False)
    for position, literal in enumerate(manager.vars):
        counter.set_literal_weight(literal, p[0, position].item())
        counter.set_literal_weight(-literal, 1 - p[0, position].item())
    count = counter.propagate()
    assert loss.neg().exp().item() == pytest.approx(count, rel=1e-9)
    for position, literal in enumerate(manager.vars):
        derivative = counter.literal_derivative(literal) - counter.literal_derivative(-literal)
        assert p.grad[0, position].item() == pytest.approx(-derivative / count, abs=1e-9)


@pytest.mark.parametrize("number", range(0, len(CASES), 5))
def test_both_forms_of_the_circuit_agree(number):
    """Dividing by one weight of each variable changes the network and not its value or gradient."""
    _, node, _ = CASES[number]
    network = from_sdd([node, node.negate()], COUNT)
    divided = factor_out(network, 10**6)
    p = torch.rand(9, COUNT, generator=torch.Generator().manual_seed(number), dtype=torch.float64) * 0.9 + 0.05
    inputs = [value.requires_grad_() for value in (p.log(), (1 - p).log())]
    plain, other = Circuit(network)(*inputs), Circuit(divided)(*inputs)
    torch.testing.assert_close(plain, other)
    torch.testing.assert_close(plain.exp().sum(1), torch.ones(9, dtype=torch.float64))
    assert torch.autograd.gradcheck(Circuit(network), inputs)
    # Along changes that keep the two weights' sum at 1 the derivatives agree.
    weights = torch.rand(9, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    slopes = []
    for value in (plain, other):
        rise, fall = torch.autograd.grad((value * weights).sum(), inputs, retain_graph=True)
        slopes.append(rise / p - fall / (1 - p))
    torch.testing.assert_close(*slopes)
    torch.testing.assert_close(Circuit(divided).of_probabilities(p), plain)


def test_exactly_one_of_many_is_one_sum():
    """The circuit of the benchmark is flat, and right where probabilities are extreme."""
    many = dl.boolean("many", 100)
    rule = dl.ExactlyOne(*(many[i] for i in range(100)))
    _, circuit = _compile((("rule", rule),), dl.methods.Semantic())
    assert circuit.flat
    p = torch.full((3, 100), 1e-6)
    p[0, 3], p[1, :2] = 1 - 1e-6, 1 - 1e-6
    p.requires_grad_()
    loss = dl.LogicLoss(rule, method="semantic", reduction="none")(many=p)
    exact = p.detach().double()
    expected = -((1 - exact).log().sum(1) + (exact / (1 - exact)).sum(1).log())
    torch.testing.assert_close(loss.double(), expected, atol=1e-4, rtol=1e-5)
    loss.sum().backward()
    assert torch.isfinite(p.grad).all()


@pytest.mark.parametrize(("vtree", "count"), [("right", 120), ("left", 120), ("balanced", 1000)])
def test_many_variables(vtree, count):
    many = dl.boolean("many", count)
    p = torch.full((1, count), 1e-3)
    rule = dl.AtMost(1, *(many[i] for i in range(count)))
    loss = dl.LogicLoss(rule, method=dl.methods.Semantic(vtree=vtree))(many=p)
    q = torch.tensor(1e-3, dtype=torch.float64)
    expected = -(count * (1 - q).log() + (1 + count * q / (1 - q)).log())
    assert loss.item() == pytest.approx(expected.item(), abs=1e-4)


def test_a_vtree_too_deep_for_the_stack_is_refused():
    many = dl.boolean("many", 200)
    with pytest.raises(SizeError, match="too deep for pysdd"):
        dl.LogicLoss(many.any(), method=dl.methods.Semantic(vtree="right"))


def test_exclusive_classes_differ_from_independent_ones():
    """The case that tells ``semantic`` from ``problog``: two classes of one categorical."""
    f = dl.categorical("f", 3)
    p = torch.tensor([[0.5, 0.2, 0.3]])
    both = {
        method: dl.LogicLoss((f == 0) | (f == 1), method=method)(f=p).neg().exp().item() for method in ("semantic", "problog")
    }
    assert both == {"semantic": pytest.approx(1 - 0.5 * 0.8), "problog": pytest.approx(0.7)}
    never = (f == 0) & (f == 1)
    assert dl.LogicLoss(never, method="semantic")(f=p).neg().exp().item() == pytest.approx(0.1)
    with pytest.raises(OptionError, match="rule 'rule' cannot hold"):
        dl.LogicLoss(never, method="problog")


def test_exactly_one_class_as_theory():
    """Weight of the one-hot assignments that satisfy the rule, by hand."""
    f = dl.categorical("f", 3)
    p = [0.5, 0.2, 0.3]
    hot = [p[k] * (1 - p[(k + 1) % 3]) * (1 - p[(k + 2) % 3]) for k in range(3)]
    loss = dl.LogicLoss(f.isin([0, 1]), method=dl.methods.Semantic(exactly_one=True))(f=torch.tensor([p]))
    assert loss.neg().exp().item() == pytest.approx(hot[0] + hot[1])


f, g = dl.categorical("f", 4), dl.categorical("g", 4)
t = dl.categorical("t", 3, shape=(2,))
a, b = dl.boolean("a"), dl.boolean("b", 2)
MIXED = {
    "implication": (g == 1) >> (f == 2),
    "sets": f.isin([0, 2]) & (g != 3) | a,
    "equal": (f == g) >> a,
    "axes": ((t == 1) | b).all() & (t != 2).any(),
    "cardinality": dl.AtMost(1, f == 0, g == 0, a, b[1]),
    "neighbours": dl.Xor(t[0] == t[1], b[0]) | (t == 0).all(),
}


def enumerate_models(rule, tensors):
    """The rule's probability by going through all classes and truth values, judged by ``satisfied``."""
    classes = {name: isinstance(symbol, type(f)) for name, symbol in rule.symbols.items()}
    choices = []
    for name, tensor in tensors.items():
        values = tensor.shape[-1] if classes[name] else 2
        entries = tensor.numel() // values if classes[name] else tensor.numel()
        choices.append(list(itertools.product(range(values), repeat=entries)))
    total = 0.0
    for chosen in itertools.product(*choices):
        weight, bound = 1.0, {}
        for (name, tensor), values in zip(tensors.items(), chosen):
            values = torch.tensor(values)
            if classes[name]:
                table = tensor.reshape(-1, tensor.shape[-1])
                weight *= table[torch.arange(len(values)), values].prod().item()
                bound[name] = torch.nn.functional.one_hot(values, tensor.shape[-1]).float().reshape(tensor.shape)
            else:
                flat = tensor.reshape(-1)
                weight *= torch.where(values == 1, flat, 1 - flat).prod().item()
                bound[name] = values.float().reshape(tensor.shape)
        total += weight * rule.satisfied(**bound).item()
    return total


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("name", MIXED)
def test_problog_is_the_probability_by_enumeration(name, logits):
    rule = MIXED[name]
    generator = torch.Generator().manual_seed(11)
    tensors = {}
    for symbol in rule.symbols:
        shape = {"f": (1, 4), "g": (1, 4), "t": (1, 2, 3), "a": (1,), "b": (1, 2)}[symbol]
        raw = torch.randn(shape, generator=generator, dtype=torch.float64)
        tensors[symbol] = (raw.softmax(-1) if symbol in "fgt" else raw.sigmoid(), raw)
    expected = enumerate_models(rule, {symbol: pair[0] for symbol, pair in tensors.items()})
    if logits:
        twins = {
            "f": dl.categorical("f", 4, input="logits"),
            "g": dl.categorical("g", 4, input="logits"),
            "t": dl.categorical("t", 3, shape=(2,), input="logits"),
            "a": dl.boolean("a", input="logits"),
            "b": dl.boolean("b", 2, input="logits"),
        }
        rule = eval(str(rule), {**twins, "AtMost": dl.AtMost, "Xor": dl.Xor})
    loss = dl.LogicLoss(rule, method="problog")(**{symbol: pair[int(logits)] for symbol, pair in tensors.items()})
    assert loss.neg().exp().item() == pytest.approx(expected, rel=1e-9)


def test_several_rules_share_a_circuit():
    rules = {"one": MIXED["implication"], "two": MIXED["sets"]}
    p = {name: torch.randn(5, 4, generator=torch.Generator().manual_seed(3)).softmax(-1) for name in "fg"}
    p["a"] = torch.linspace(0.1, 0.9, 5)
    logic = dl.LogicLoss(rules, method="semantic", reduction="none")
    together = logic(**p)
    apart = [
        dl.LogicLoss(rule, method="semantic", reduction="none")(**{name: p[name] for name in rule.symbols})
        for rule in rules.values()
    ]
    torch.testing.assert_close(together, (apart[0] + apart[1]) / 2)


n = dl.axis("n", max=4)
e, h, valid = dl.boolean("e", n), dl.categorical("h", 3, shape=(n,)), dl.mask("valid", n)


@pytest.mark.parametrize("method", ["semantic", "problog"])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_ragged_and_masked_quantifiers(method, length):
    """A rule over a ragged axis is worth what the rule written out for the entries that exist is worth."""
    generator = torch.Generator().manual_seed(length)
    tensors = {"e": torch.rand(1, length, generator=generator), "h": torch.rand(1, length, 3, generator=generator).softmax(-1)}
    mask = torch.tensor([[True, False, True, True][:length]])
    rule = (e | (h == 1)).all(where=valid) & ((h[1:] == 2) & e[:-1]).any()
    E, H = dl.boolean("e", length), dl.categorical("h", 3, shape=(length,))
    kept = [i for i in range(length) if mask[0, i]]
    written = dl.And(*(E[i] | (H[i] == 1) for i in kept), dl.Or(*((H[i + 1] == 2) & E[i] for i in range(length - 1))))
    found = dl.LogicLoss(rule, method=method)(**tensors, valid=mask)
    torch.testing.assert_close(found, dl.LogicLoss(written, method=method)(**tensors))


@pytest.mark.parametrize("method", ["semantic", "problog"])
@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_entries_that_a_mask_leaves_out_are_not_taught_when_none_is_left(method, kind):
    some, mask = dl.boolean("some", 3, input=kind), dl.mask("mask", 3)
    classes = dl.categorical("classes", 4, shape=(3,), input=kind)
    other = dl.boolean("other", input=kind)
    first, second = torch.full((2, 3), 0.4), torch.full((2, 3, 4), 0.25)
    left = torch.tensor([[False, False, False], [False, True, False]])
    for rule, value in ((some.any(where=mask), first), ((classes == 1).any(where=mask), second)):
        name = next(iter(set(rule.symbols) - {"mask"}))
        value = value.clone().requires_grad_()
        with pytest.raises(
            dl.errors.NonFiniteError, match=r"is inf for the sample at position 0: an \.any\(where=\.\.\.\) has no"
        ):
            dl.LogicLoss(rule, method=method)(**{name: value}, mask=left)
        # As on an accelerator, where the error comes later: the sample teaches nothing, and the others what they should.
        logic = dl.LogicLoss(rule, method=method)
        costs = logic._program.evaluate(logic._program.plan.bind({name: value, "mask": left}, True))
        assert torch.isinf(costs[0, 0])
        (slope,) = torch.autograd.grad(costs.sum(), value)
        assert (slope[0] == 0).all()
        assert (slope[1, [0, 2]] == 0).all()
        assert (slope[1, 1] != 0).any()
        # An alternative takes over, however unlikely it is.
        never = torch.tensor([0.0, 0.0] if kind == "probs" else [-400.0, -400.0], requires_grad=True)
        loss = dl.LogicLoss(rule | other, method=method)(**{name: value}, mask=left, other=never)
        slope, pull = torch.autograd.grad(loss, [value, never])
        assert (slope[0] == 0).all()
        assert torch.isfinite(pull).all()


@pytest.mark.parametrize("method", ["semantic", "problog"])
def test_an_axis_cut_to_nothing_teaches_nothing(method):
    short = dl.axis("short", max=3)
    entry = dl.boolean("entry", short)
    value = torch.full((1, 1), 0.4, requires_grad=True)
    with pytest.raises(dl.errors.NonFiniteError, match="over an axis that was cut to nothing"):
        dl.LogicLoss(entry[1:].any(), method=method)(entry=value)


def test_both_forms_of_a_circuit_with_fixed_variables_agree():
    _, node, _ = CASES[3]
    network, fixed = from_sdd([node], COUNT), frozenset({0, 2})
    divided = factor_out(network, 10**6, fixed)
    generator = torch.Generator().manual_seed(5)
    p = torch.rand(16, COUNT, generator=generator, dtype=torch.float64) * 0.9 + 0.05
    sides = [p.log(), (1 - p).log()]
    for number in fixed:
        holds = torch.rand(16, generator=generator) > 0.5
        sides[0][:, number] = torch.where(holds, 0.0, ABSENT).double()
        sides[1][:, number] = torch.where(holds, ABSENT, 0.0).double()
    torch.testing.assert_close(Circuit(network)(*sides), Circuit(divided)(*sides))


def test_the_end_of_a_ragged_axis_is_unknown():
    with pytest.raises(ShapeError, match=r"counts from the end of the ragged axis .* writes every entry out"):
        dl.LogicLoss(e[-1] | e[0], method="semantic")


@pytest.mark.parametrize("largest", [30.0, 160.0])
def test_logits_keep_their_precision(largest):
    """At p = 1 - 1e-13, and where 1 - p is no longer a float32, the negation's probability is still known, and its gradient."""
    k = dl.categorical("k", 3, input="logits")
    logits = torch.tensor([[largest, 0.0, 0.0]], requires_grad=True)
    for method in ("semantic", "problog"):
        loss = dl.LogicLoss(k != 0, method=method)(k=logits)
        assert loss.item() == pytest.approx(largest - torch.tensor(2.0).log().item(), rel=1e-6)
        (grad,) = torch.autograd.grad(loss, logits)
        torch.testing.assert_close(grad, torch.tensor([[1.0, -0.5, -0.5]]))


def test_a_tautology_costs_nothing():
    p = torch.tensor([0.3], requires_grad=True)
    loss = dl.LogicLoss(a | ~a, method="semantic")(a=p)
    loss.backward()
    assert loss.item() == 0
    assert p.grad.item() == 0


@pytest.mark.parametrize("vtree", ["balanced", "right", "left"])
def test_any_vtree_gives_the_same(vtree):
    p = torch.rand(4, COUNT, generator=torch.Generator().manual_seed(0))
    reference = dl.LogicLoss(CASES[0][0], method="semantic")(v=p)
    torch.testing.assert_close(dl.LogicLoss(CASES[0][0], method=dl.methods.Semantic(vtree=vtree))(v=p), reference)


def test_guards():
    with pytest.raises(SizeError, match="more than max_nodes=20 nodes"):
        dl.LogicLoss(dl.AtMost(5, *(v[i] for i in range(COUNT))), method=dl.methods.Semantic(max_nodes=20))
    big = dl.boolean("big", 600, 600)
    with pytest.raises(SizeError, match="ground formulas"):
        dl.LogicLoss(big.all(), method="problog")
    with pytest.raises(OptionError, match="vtree must be one of"):
        dl.methods.Semantic(vtree="round")
    with pytest.raises(FormulaTypeError, match="counts the satisfying assignments"):
        dl.LogicLoss(f.probabilities.sum() <= 1, method="semantic")


def test_missing_extra(monkeypatch):
    real = builtins.__import__

    def hide(name, *arguments, **options):
        if name.startswith("pysdd"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", hide)
    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[sdd\]'"):
        Compiler(2)
