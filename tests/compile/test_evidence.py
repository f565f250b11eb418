"""Evidence changes no value and no weight, and takes its share of the gradient into what it marks: nothing more, nothing less."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.compile.plan import compile_rules
from dualogic.kernels.fused_step import find_two_levels
from dualogic.methods import METHODS
from plain import plain

f, g = dl.categorical("f", 4, input="logits"), dl.categorical("g", 4)
a, b = dl.boolean("a"), dl.boolean("b", input="logits")
x, y, p, q = dl.var("x"), dl.var("y"), dl.var("p", 3), dl.var("q", 3)
n = dl.axis("n", max=4)
r, s, valid = dl.var("r", n), dl.var("s", n), dl.mask("valid", n)

SIDES = {
    "classes": ((g == 2), (f == 1)),
    "class sets": ((g != 2) & (f.isin([0, 3])), (f != 1)),
    "Booleans": (a | ~b, b & a),
    "real": ((x <= 1) & (y >= 0), (x + y == 0.5)),
    "quantified": ((p >= 0.2).any(), (p <= q).all()),
    "broadcast": ((x <= 1) | (p >= 0.5).all(), (q <= x).any()),
    "ragged": ((r >= 0.3).all(where=valid), (s <= r).any()),
    "an implication": (a >> (x <= 0.5), dl.Xor(a, y <= 0)),
    "the same atom": (x <= 0.25, (x <= 0.25) | (y <= 0)),
    "counted": (dl.AtMost(1, a, b, x <= 0.5), dl.ExactlyOne(a, b)),
}
SHARES = (1.0, 0.75)
COUNTING = ("semantic", "problog")


def apart(formula):
    """The formula about other symbols, of the same kinds, so that gradients through it can be told apart."""
    renamed = {name: renamed_symbol(symbol) for name, symbol in formula.symbols.items()}
    return dl.parse(str(formula), {**strategies.NAMES, "softened": strategies.softened, "evened": strategies.evened, **renamed})


def renamed_symbol(symbol):
    fields = {name: getattr(symbol, name) for name in symbol._names}
    return type(symbol)(**{**fields, "name": f"{symbol.name}_apart"})


def fixed_tensors(formula, seed=0):
    tensors = strategies.make_tensors(formula.symbols, {"n": 3, "l": 3}, 5, torch.Generator().manual_seed(seed))
    # Odd numbers, so that no two are equal.
    noise = torch.Generator().manual_seed(seed + 1)
    return {
        name: value * 0.23 + 0.07 * torch.rand(value.shape, generator=noise, dtype=value.dtype)
        if value.is_floating_point() and type(formula.symbols[name]).__name__ == "Variable"
        else value
        for name, value in tensors.items()
    }


def train(rule, method, tensors, steps=3):
    """Losses of each step, the weights, and the gradients of the last step."""
    logic = dl.LogicLoss(rule, num_samples=9, method=method, dtype=torch.float64)
    losses = []
    for _ in range(steps):
        leaves = {name: v.clone().requires_grad_() if v.is_floating_point() else v for name, v in tensors.items()}
        loss = logic(torch.arange(len(next(iter(leaves.values())))), **leaves)
        losses.append(loss.detach())
    floating = {name: leaf for name, leaf in leaves.items() if leaf.is_floating_point()}
    found = torch.autograd.grad(loss, list(floating.values()), allow_unused=True, materialize_grads=True)
    return torch.stack(losses), logic.weights(torch.arange(9)), dict(zip(floating, found))


def check(antecedent, consequent, share, method, tensors):
    rule = dl.Implies(antecedent, consequent, evidence=share)
    other = apart(antecedent)
    twice = {**tensors, **{f"{name}_apart": tensors[name] for name in antecedent.symbols}}
    split = dl.Implies(other, consequent, evidence=False)
    losses, weights, gradients = train(rule, method, tensors)
    same_losses, same_weights, parts = train(split, method, {name: twice[name] for name in split.symbols})
    torch.testing.assert_close(losses, same_losses, rtol=1e-9, atol=1e-12)
    assert weights.keys() == same_weights.keys()
    for path, weight in weights.items():
        torch.testing.assert_close(weight, same_weights[path], rtol=1e-9, atol=1e-12)
    for name, gradient in gradients.items():
        zero = torch.zeros_like(gradient)
        expected = parts.get(name, zero) + (1 - share) * parts.get(f"{name}_apart", zero)
        torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("method", [name for name in METHODS if name not in COUNTING])
def test_every_method_on_costs_or_degrees_honours_it(method, sides, share):
    antecedent, consequent = SIDES[sides]
    method = {"pd1": dl.methods.PD1(scale=4.0), "dual": plain()}.get(method, method)
    check(antecedent, consequent, share, method, fixed_tensors(antecedent & dl.level(consequent)))


side = st.one_of(strategies.formulas(depth=1, atom_count=3), strategies.quantified(depth=1))


@settings(max_examples=60)
@given(side, side, st.sampled_from(SHARES), st.sampled_from([plain(), "uniform", "hard", "dl2", "product"]), st.data())
def test_any_antecedent_of_any_rule(antecedent, consequent, share, method, data):
    tensors = data.draw(strategies.bindings(dl.level(antecedent) & dl.level(consequent), min_length=2))
    unsolvable = dl.Implies(antecedent, consequent).cost(**tensors).isinf().any()  # an empty .any(where=...), refused in training
    if not unsolvable:
        check(antecedent, consequent, share, method, tensors)


@pytest.mark.parametrize("class_cost", ["probability", "log"])
@pytest.mark.parametrize("sides", SIDES)
def test_values_are_the_same_to_the_last_bit_and_gradients_of_the_cost_are_not(sides, class_cost):
    antecedent, consequent = SIDES[sides]
    tensors = fixed_tensors(antecedent & dl.level(consequent))
    rules = [dl.Implies(antecedent, consequent, evidence=share) for share in (None, True, 0.75, False)]
    assert len({id(rule) for rule in rules}) == 4
    for rule in rules[1:]:
        assert torch.equal(rule.cost(class_cost, **tensors), rules[0].cost(class_cost, **tensors))
        assert torch.equal((~rule).cost(class_cost, **tensors), (~rules[0]).cost(class_cost, **tensors))
        for tol, lead in [(0.0, 0.0), (0.25, 0.1)]:
            assert torch.equal(rule.satisfied(tol, lead, **tensors), rules[0].satisfied(tol, lead, **tensors))
    live = {name: v.clone().requires_grad_() if v.is_floating_point() else v for name, v in tensors.items()}
    whole = dl.evidence(antecedent >> consequent).cost(class_cost, **live)
    assert not whole.requires_grad
    torch.testing.assert_close(whole, rules[0].cost(class_cost, **tensors))


@pytest.mark.parametrize("form", [dl.Formula.to_nnf, dl.Formula.to_cnf])
@pytest.mark.parametrize(
    ("antecedent", "consequent"),
    [
        *(SIDES[name] for name in ("classes", "class sets", "real", "quantified", "ragged")),
        (a | (x >= 1) & (y >= 0.5), b & (p >= 0).any()),
        (dl.Iff(a, x >= 0.5), b),
    ],
)
def test_normal_forms_keep_the_gradients(form, antecedent, consequent):
    # No atom stands on both sides: of two equal costs, either may get the gradient.
    rule = dl.Implies(antecedent, consequent, evidence=0.75)
    tensors = {name: v.requires_grad_() if v.is_floating_point() else v for name, v in fixed_tensors(rule).items()}
    leaves = [v for v in tensors.values() if v.requires_grad]
    gradients = [
        torch.autograd.grad(formula.cost(**tensors).sum(), leaves, allow_unused=True, materialize_grads=True)
        for formula in (rule, form(rule), ~~rule, dl.level(rule))
    ]
    for other in gradients[1:]:
        for one, two in zip(gradients[0], other):
            torch.testing.assert_close(one, two)


def test_markers_inside_markers_and_quantifiers_multiply():
    rule = dl.evidence((dl.evidence(p >= 0, 0.5) & ~dl.evidence(q <= 1, 0.0)).any(), 0.5)
    assert str(rule.to_nnf()) == "(evidence(p >= 0, 0.75) & evidence(q > 1, 0.5)).any()"
    assert str((~rule).to_nnf()) == "(evidence(p < 0, 0.75) | evidence(q <= 1, 0.5)).all()"
    live = torch.full((1, 3), -1.0, requires_grad=True)
    dl.evidence(dl.evidence(p >= 0, 0.5), 0.5).all().cost(p=live).backward()
    assert live.grad.sum() == -0.25


def test_a_method_has_a_default_for_antecedents_that_say_nothing():
    tensors = fixed_tensors(a & b & (x <= 0))
    rule = (a >> (x <= 0)) & ~(b >> a) & dl.Iff(a, b)
    marked = dl.Implies(a, x <= 0, evidence=True) & ~(b >> a) & dl.Iff(a, b)
    unmarked = dl.Implies(a, x <= 0, evidence=False) & ~(b >> a) & dl.Iff(a, b)

    def check_same(rule, other, method, other_method, steps=3):
        found = (train(formula, way, tensors, steps)[2].values() for formula, way in ((rule, method), (other, other_method)))
        for one, two in zip(*found):
            torch.testing.assert_close(one, two)

    for method in (dl.methods.Dual, dl.methods.Uniform, dl.methods.Hard):
        check_same(rule, marked, method(evidence=True), method(evidence=False))
        check_same(unmarked, rule, method(evidence=True), method(evidence=False))
    check_same(rule, marked, plain(), plain())
    check_same(rule, unmarked, dl.methods.Uniform(), dl.methods.Uniform())
    check_same(rule, unmarked, dl.methods.Dual.paper(), dl.methods.Dual.paper(evidence=False))
    with pytest.raises(AssertionError):
        check_same(rule, unmarked, plain(), plain())
    check_same(rule, marked, dl.methods.Dual(), dl.methods.Dual(), steps=1)  # nothing has been found out yet
    for wrong in (2, -0.1, "yes", float("nan"), None):
        with pytest.raises(dl.errors.OptionError, match=r"evidence of dl.methods.Dual must be True .*held back"):
            dl.methods.Dual(evidence=wrong)


@pytest.mark.parametrize("method", COUNTING)
def test_counting_refuses_what_it_cannot_honour(method):
    with pytest.raises(dl.errors.FormulaTypeError, match=rf"method '{method}'.*cannot honour evidence\(g == 2\).*'dual'"):
        dl.LogicLoss(dl.evidence(g == 2) >> (f == 1), method=method)
    tensors = fixed_tensors((g == 2) & (f == 1))
    losses = [dl.LogicLoss(rule, method=method)(**tensors) for rule in ((g == 2) >> (f == 1), dl.evidence(g == 2, 0) >> (f == 1))]
    assert losses[0] == losses[1]


def test_a_shared_network_is_taught_by_the_consequent_alone():
    network = torch.nn.Linear(5, 4)
    images, turned = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(0)).unbind()
    rule = dl.categorical("g", 4, input="logits") == 2, f == 1
    logic = [dl.LogicLoss(dl.Implies(*rule, evidence=True), num_samples=6), dl.LogicLoss(rule[0] >> rule[1], num_samples=6)]
    logic[0](torch.arange(6), f=network(images), g=network(turned)).backward()
    with torch.no_grad():
        seen = network(turned)
    expected = torch.autograd.grad(logic[1](torch.arange(6), f=network(images), g=seen), network.weight)
    torch.testing.assert_close(network.weight.grad, *expected)


def test_the_fused_step_takes_costs_that_hold_back_their_gradient():
    """The kernels return a gradient for the atoms' costs; what evidence holds back is held back behind it."""
    grid = dl.var("grid", 5, 2)
    rule = dl.And([dl.Implies(grid[i, 0] >= 0.1 * i, grid[i, 1] <= 0.5, evidence=0.75) for i in range(5)])
    plan = compile_rules([("rule", rule)], "log")
    levels = find_two_levels(plan)
    assert (levels.clauses, levels.atoms) == (5, 2)
    value = torch.ones(3, 5, 2, requires_grad=True)
    costs = levels.costs(plan.evaluate(plan.bind({"grid": value}, True)))
    (gradient,) = torch.autograd.grad(costs.sum(), value)
    assert torch.equal(gradient, torch.tensor([0.25, 1.0]).expand(3, 5, 2))


def test_markers_cost_no_operations_and_unmarked_rules_nothing():
    symbols = [dl.categorical(f"f{number}", 10, input="logits") for number in range(8)]
    pairs = [(one, two) for one in symbols for two in symbols if one is not two]
    rules = [dl.And([dl.Implies(one == 3, two == 4, evidence=share) for one, two in pairs]) for share in (None, True)]
    bare, marked = (compile_rules([("rule", rule)], "log") for rule in rules)
    assert len(marked.instructions) == len(bare.instructions)
    assert compile_rules([("rule", rules[0])], "log") is bare
    assert [leaf.share for leaf in bare.leaves] == [0.0, 0.0]
    assert [leaf.share for leaf in marked.leaves] == [1.0, 0.0]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("mode", ["log", "probability", "degree"])
def test_atoms_that_teach_nothing_record_no_graph(sides, mode):
    antecedent, consequent = SIDES[sides]
    rule = dl.Implies(antecedent, consequent, evidence=True)
    plan = compile_rules([("rule", rule)], mode)
    live = {name: value.requires_grad_(value.is_floating_point()) for name, value in fixed_tensors(rule).items()}
    registers = plan.evaluate(plan.bind(live, True))
    assert {leaf.share for leaf in plan.leaves} == {0.0, 1.0}
    for leaf in plan.leaves:
        assert registers[leaf.operand[0]].requires_grad == (leaf.share == 0.0)


@pytest.mark.parametrize("share", SHARES)
def test_a_class_that_is_ruled_out_leaves_the_alternatives(share):
    logits = torch.tensor([[0.0, -torch.inf, 0.0, 0.0]], requires_grad=True)
    rule = dl.evidence(f == 1, share) | (x <= 0)
    assert rule.cost("log", f=logits, x=torch.tensor([2.0])) == 2
    assert dl.evidence(f == 1, share).cost("log", f=logits) == torch.inf


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
@pytest.mark.parametrize("share", SHARES)
def test_compiles_into_one_graph(share):
    torch._dynamo.reset()
    rule = dl.Implies(*SIDES["classes"], evidence=share)
    tensors = fixed_tensors(rule)
    gradients = []
    for prepare in (lambda logic: logic, lambda logic: torch.compile(logic, backend="aot_eager", fullgraph=True)):
        logic = prepare(dl.LogicLoss(rule, num_samples=9, dtype=torch.float64))
        live = {name: value.clone().requires_grad_() for name, value in tensors.items()}
        logic(torch.arange(5), **live).backward()
        gradients.append([torch.zeros(5, 4) if leaf.grad is None else leaf.grad for leaf in live.values()])
    for one, two in zip(*gradients):
        torch.testing.assert_close(one, two, check_dtype=False)
