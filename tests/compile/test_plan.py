"""Properties of compiled plans: size, levels, independence from the moment of compilation."""

import itertools
import random

import pytest
import torch

import dualogic as dl
from dualogic.compile.evaluate import take_extreme
from dualogic.compile.instructions import find_pattern
from dualogic.compile.plan import compile_rules
from operations import assert_linear


def plan_of(formula, mode="probability"):
    return compile_rules([("rule", formula)], mode)


def random_clauses(count, seed=0):
    p, generator = dl.var("p", 500), random.Random(seed)
    clauses = []
    for _ in range(count):
        places = generator.sample(range(500), 3)
        atoms = [p[i] <= generator.random() if generator.random() < 0.5 else p[i] >= generator.random() for i in places]
        clauses.append(dl.Or(*atoms))
    return dl.And(clauses)


def test_ten_thousand_clauses_compile_quickly_into_few_operations():
    def prepare(count):
        rule = random_clauses(count, seed=count)  # a rule of its own: plans are kept
        return lambda: plan_of(rule)

    assert_linear(prepare, 1000)
    plan = plan_of(random_clauses(10_000))
    assert len(plan.instructions) <= 10
    assert len(plan.levels) == 2
    assert plan.width == 10_000 * 4


def test_many_clauses_have_the_right_value():
    rule, values = random_clauses(200), torch.rand(7, 500)
    costs = torch.stack([clause.cost(p=values) for clause in rule.operands]).amax(0)
    torch.testing.assert_close(rule.cost(p=values), costs)


def test_clauses_over_many_symbols_and_classes_are_few_operations():
    symbols = [dl.categorical(f"f{number}", 10, input="logits") for number in range(20)]
    rule = dl.And([(f == i) >> (g == (i + 1) % 10) for f, g in itertools.permutations(symbols, 2) for i in range(10)])
    plan = plan_of(rule, "log")
    assert len(plan.instructions) < 60
    assert len(plan.levels) == 2


def test_levels_of_an_implication():
    """The outer weights of ``(g == 9) >> (f == 6)`` stand between its two sides (design: Levels)."""
    f, g = dl.categorical("f", 10), dl.categorical("g", 10)
    rule = (g == 9) >> (f == 6)
    outer, inner = plan_of(rule).levels
    assert (outer.operands, outer.paths, inner.operands, inner.paths) == (2, ("rule",), 9, ("rule/0",))
    (only,) = plan_of(rule, "log").levels
    assert only.operands == 2


def test_a_chain_is_one_level_and_an_equality_none():
    x, y, z = dl.var("x"), dl.var("y"), dl.var("z")
    (level,) = plan_of((x <= 0) | (y <= 0) | (z <= 0)).levels
    assert level.operands == 3
    assert plan_of(x == 1).levels == ()
    assert [level.operands for level in plan_of(dl.level((x <= 0) | (y <= 0)) | (z <= 0)).levels] == [2, 2]


def test_plans_are_cached():
    x = dl.var("x")
    assert plan_of(x <= 1) is plan_of(dl.var("x") <= 1)


@pytest.mark.parametrize("context", [torch.inference_mode, torch.no_grad])
def test_a_plan_made_without_gradients_can_be_trained_with(context):
    f = dl.categorical(f"f_{context.__name__}", 4, shape=3)
    rule = (f.isin([1, 2]) | (f.probabilities @ [1.0, 2.0, 3.0, 4.0] <= 1)).all()
    values = torch.rand(2, 3, 4).softmax(-1)
    with context():
        rule.cost("log", **{f.name: values})
        rule.satisfied(**{f.name: values})
    leaf = values.clone().requires_grad_()
    rule.cost("log", **{f.name: leaf}).sum().backward()
    assert leaf.grad.abs().sum() > 0


def test_the_default_device_and_dtype_do_not_matter():
    p = dl.var("default_p", 4)
    rule = dl.And([p[i] <= i for i in (3, 0, 2)]) & (p @ [1, 2, 3, 4] <= 1)
    previous = torch.get_default_dtype()
    torch.set_default_device("meta")
    torch.set_default_dtype(torch.float64)
    try:
        plan = plan_of(rule)
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(previous)
    assert all(constant.device.type == "cpu" for constant in plan._constants)
    values = torch.rand(3, 4)
    assert rule.cost(default_p=values).dtype == torch.float32


def test_a_shared_sub_term_is_computed_once():
    p = dl.var("p", 100)
    s = p @ torch.rand(100, 20)
    plan = plan_of(((s == 0) | (s == 1)).all())
    assert sum(type(instruction).__name__ == "WithConstant" for instruction in plan.instructions) == 1


@pytest.mark.parametrize(
    "positions",
    [
        [[0]],
        [[5]],
        [[0, 1, 2, 3]],
        [[4, 3]],
        [[0, 2], [4, 6]],
        [[0, 1], [4, 5]],
        [[1, 2], [5, 6]],
        [[0, 4], [1, 5]],
        [[0, 3, 6]],
        [[2, 0, 1]],
        [[0, 0]],
        [[3, 7], [4, 8], [5, 9], [6, 10]],
    ],
)
def test_positions_are_read_as_given(positions):
    """Whatever pattern is recognised, reading by it gives the positions."""
    from dualogic.compile.binding import Bound
    from dualogic.compile.instructions import Context, Gather

    wanted = torch.tensor(positions)
    span, stride = find_pattern(wanted)
    constants = [] if span or stride else [wanted.flatten()]
    gather = Gather(0, 1, tuple(wanted.shape), 0 if constants else None, span, stride)
    values = torch.arange(12.0).expand(2, 12)
    context = Context(Bound({}, 2, torch.float32, torch.device("cpu")), constants)
    assert torch.equal(gather.run([values], context)[0], wanted.float())


def test_a_cost_that_is_not_finite_names_rule_and_atom():
    x, y, p = dl.var("x"), dl.var("y"), dl.var("p", 7)
    rules = {"fine": x <= 1, "broken": (x / y <= 1) & (p / y >= p[0]).all() & (x <= 3), "last": (p <= 1).all()}
    plan = compile_rules(list(rules.items()), "probability")
    bound = plan.bind({"x": torch.ones(2), "y": torch.tensor([1.0, 0.0]), "p": torch.ones(2, 7)}, True)
    registers = plan.evaluate(bound)
    with pytest.raises(
        dl.errors.NonFiniteError, match=r"rule 'broken' is inf for the sample at position 1, because of x / y <= 1"
    ):
        plan.refuse_non_finite(plan.fold(registers, take_extreme), registers)


def test_an_atom_of_another_rule_is_not_blamed():
    n = dl.axis("n", max=3)
    r, x, valid = dl.var("r", n), dl.var("x"), dl.mask("valid", n)
    rules = {"empty": (r <= 0).any(where=valid), "infinite": x <= 0}
    plan = compile_rules(list(rules.items()), "probability")
    bound = plan.bind({"r": torch.ones(1, 3), "x": torch.tensor([torch.inf]), "valid": torch.zeros(1, 3).bool()}, True)
    registers = plan.evaluate(bound)
    with pytest.raises(dl.errors.NonFiniteError, match=r"rule 'empty' is inf.*has no entry left"):
        plan.refuse_non_finite(plan.fold(registers, take_extreme), registers)
