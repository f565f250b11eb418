"""Rows of the table: duplicates, shared rows, empty batches, and what bad input gets."""

import math

import pytest
import torch

import dualogic as dl
from operations import LargestTensor
from plain import plain

X, Y = dl.var("x"), dl.var("y")
RULE = (X <= 0) | (Y <= 0)


def make(samples=10, **options):
    return dl.LogicLoss(RULE, num_samples=samples, dtype=torch.float64, **options)


def values(*pairs):
    x, y = torch.tensor(pairs, dtype=torch.float64).unbind(1)
    return {"x": x.requires_grad_(), "y": y.requires_grad_()}


def logits(logic):
    return logic.state_dict()["table"].clone()


def test_a_duplicate_moves_by_the_mean_of_its_occurrences():
    method = dl.methods.Dual(floor=1.0, ceiling=1.0)
    twice = make(method=method)
    twice(torch.tensor([4, 7, 4]), **values((1.0, 0.2), (0.3, 0.9), (0.5, 2.0)))
    first, second = make(method=method), make(method=method)
    first(torch.tensor([4]), **values((1.0, 0.2)))
    second(torch.tensor([4]), **values((0.5, 2.0)))
    torch.testing.assert_close(logits(twice)[4], (logits(first)[4] + logits(second)[4]) / 2)
    other = make(method=method)
    other(torch.tensor([7]), **values((0.3, 0.9)))
    torch.testing.assert_close(logits(twice)[7], logits(other)[7])
    assert (logits(twice)[[0, 1, 2, 3, 5, 6, 8, 9]] == 0).all()


def test_the_loss_of_duplicates_uses_the_moved_row():
    method = dl.methods.Dual(floor=1.0, ceiling=1.0)
    logic = make(method=method, reduction="none")
    batch = values((1.0, 0.2), (0.5, 2.0))
    loss = logic(torch.tensor([4, 4]), **batch)
    with logic.frozen():
        torch.testing.assert_close(loss, logic(torch.tensor([4, 4]), **batch))


def test_batch_order_does_not_matter():
    index = torch.tensor([3, 9, 0, 3])
    pairs = [(1.0, 0.2), (0.3, 0.9), (0.5, 2.0), (0.1, 0.4)]
    one, two = make(), make()
    order = torch.tensor([2, 0, 3, 1])
    for _ in range(3):
        loss = one(index, **values(*pairs))
        shuffled = two(index[order], **values(*(pairs[position] for position in order)))
        torch.testing.assert_close(loss, shuffled)
    torch.testing.assert_close(logits(one), logits(two))


def test_steps_do_not_depend_on_the_batch_size():
    method = dl.methods.Dual(floor=1.0, ceiling=1.0)
    one, two = make(method=method), make(method=method)
    one(torch.tensor([1, 2]), **values((1.0, 0.2), (0.3, 0.9)))
    two(torch.tensor([1]), **values((1.0, 0.2)))
    two(torch.tensor([2]), **values((0.3, 0.9)))
    torch.testing.assert_close(logits(one), logits(two))


def test_a_shared_row_moves_by_the_batch_mean():
    method = plain(floor=1.0, ceiling=1.0)
    shared = dl.LogicLoss(RULE, method=method, dtype=torch.float64)
    table = make(method=method)
    pairs = [(1.0, 0.2), (0.3, 0.9), (0.5, 2.0)]
    shared(**values(*pairs))
    table(torch.tensor([0, 1, 2]), **values(*pairs))
    torch.testing.assert_close(logits(shared)[0], logits(table)[:3].mean(0))
    assert shared.weights()["rule"].shape == (1, 2)
    shared.eval()
    weight = shared.weights()["rule"][0]
    batch = values((1.0, 0.2))
    expected = math.log(1.0)
    mu = weight[0] * 1.0 + weight[1] * 0.2
    expected = 0.5 * mu**2 + torch.special.log_ndtr(mu)
    torch.testing.assert_close(shared(**batch), expected)


def test_an_empty_batch_gives_a_zero_loss_with_a_gradient():
    for logic in (make(), make(method="hard"), dl.LogicLoss(RULE)):
        before = logic.delta.clone(), logits(logic)
        x = torch.zeros(0, requires_grad=True)
        loss = logic(torch.zeros(0, dtype=torch.long), x=x, y=torch.zeros(0))
        assert loss.item() == 0
        loss.backward()
        assert x.grad.shape == (0,)
        assert torch.equal(logic.delta, before[0])
        assert torch.equal(logits(logic), before[1])


def test_reductions_and_weights():
    pairs = [(1.0, 0.2), (0.3, 0.9)]
    rules = {"a": RULE, "b": X <= 0.5}

    def loss(**options):
        logic = dl.LogicLoss(rules, method="hard", dtype=torch.float64, **options)
        return logic(**values(*pairs))

    each = loss(reduction="none")
    assert each.shape == (2,)
    torch.testing.assert_close(loss(), each.mean())
    torch.testing.assert_close(loss(reduction="sum"), each.sum())
    alone = dl.LogicLoss(RULE, method="hard", dtype=torch.float64)(**values(*pairs))
    other = dl.LogicLoss(X <= 0.5, method="hard", dtype=torch.float64)(x=values(*pairs)["x"])
    torch.testing.assert_close(loss(weight={"a": 2.0, "b": 0.5}), (2 * alone + 0.5 * other) / 2)
    torch.testing.assert_close(loss(weight=3.0), 3 * (alone + other) / 2)
    torch.testing.assert_close(loss(weight={"b": 0.0}), alone / 2)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (None, dl.errors.SampleIndexError, r"training with num_samples=10 needs the samples' indices"),
        (torch.tensor([3, 10]), dl.errors.SampleIndexError, r"sample index 10 is out of range for num_samples=10"),
        (torch.tensor([-1, 1]), dl.errors.SampleIndexError, r"sample index -1 is out of range"),
        (torch.tensor([1.0, 2.0]), dl.errors.SampleIndexError, r"index must hold integers; got torch.float32"),
        (torch.tensor([True, False]), dl.errors.SampleIndexError, r"index must hold integers; got torch.bool"),
        (torch.tensor([1]), dl.errors.SampleIndexError, r"index must have shape \(2,\)"),
        (torch.tensor([[1, 2]]), dl.errors.SampleIndexError, r"index must have shape \(2,\)"),
    ],
)
def test_a_bad_index_is_refused_and_changes_nothing(index, error, message):
    logic = make()
    logic(torch.tensor([1, 2]), **values((1.0, 0.2), (0.3, 0.9)))
    before = logits(logic), logic.delta.clone()
    with pytest.raises(error, match=message):
        logic(index, **values((1.0, 0.2), (0.3, 0.9)))
    assert torch.equal(logits(logic), before[0])
    assert torch.equal(logic.delta, before[1])


@pytest.mark.parametrize("samples", [10, None])
def test_a_cost_that_is_not_finite_names_rule_and_sub_formula_and_changes_nothing(samples):
    z = dl.var("z", 3)
    rules = {"fine": (z <= 1).all(), "quotient": (z[0] <= 1) | (1 / z[2] <= 2) | (z[1] == 0)}
    logic = dl.LogicLoss(rules, num_samples=samples)
    index = torch.tensor([0, 1])
    logic(index, z=torch.ones(2, 3, requires_grad=True) * 2)
    before = logits(logic), logic.delta.clone()
    bad = torch.tensor([[2.0, 2.0, 2.0], [2.0, 2.0, 0.0]], requires_grad=True)
    with pytest.raises(
        dl.errors.NonFiniteError, match=r"rule 'quotient' is (inf|nan) for the sample at position 1.*1 / z\[2\] <= 2"
    ):
        logic(index, z=bad)
    assert torch.equal(logits(logic), before[0])
    assert torch.equal(logic.delta, before[1])


def test_a_nan_in_a_bound_tensor_names_it():
    logic = make()
    with pytest.raises(dl.errors.BindingError, match=r"bound to 'y' contains NaN, first at position \[1\]"):
        logic(torch.tensor([1, 2]), x=torch.ones(2), y=torch.tensor([0.0, math.nan]))
    assert (logits(logic) == 0).all()


def test_unknown_missing_and_misshapen_tensors():
    logic = make()
    index = torch.tensor([1, 2])
    with pytest.raises(dl.errors.SymbolError, match="'z' is not a symbol of the rule"):
        logic(index, x=torch.ones(2), y=torch.ones(2), z=torch.ones(2))
    with pytest.raises(dl.errors.SymbolError, match="no tensor was given for 'y'"):
        logic(index, x=torch.ones(2))
    with pytest.raises(dl.errors.BindingError, match=r"'y' is declared as var\('y'\).*got \(2, 1\)"):
        logic(index, x=torch.ones(2), y=torch.ones(2, 1))
    with pytest.raises(dl.errors.BindingError, match="same batch size"):
        logic(index, x=torch.ones(2), y=torch.ones(3))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rules": dl.var("p", 3) <= 1}, dl.errors.ShapeError, r"still has axes \(3,\).*\.all\(\) or \.any\(\)"),
        ({"rules": True}, dl.errors.FormulaTypeError, "a plain bool"),
        ({"rules": {}}, dl.errors.FormulaTypeError, "at least one rule"),
        ({"rules": {"": RULE}}, dl.errors.SymbolError, "non-empty strings"),
        ({"rules": RULE, "num_samples": 0}, dl.errors.OptionError, "num_samples must be"),
        ({"rules": RULE, "num_samples": 2.5}, dl.errors.OptionError, "num_samples must be"),
        ({"rules": RULE, "method": "magic"}, dl.errors.OptionError, "method must be one of 'dual'"),
        ({"rules": RULE, "update": "never"}, dl.errors.OptionError, "update must be"),
        ({"rules": RULE, "reduction": "max"}, dl.errors.OptionError, "reduction must be"),
        ({"rules": RULE, "dtype": torch.int32}, dl.errors.OptionError, "dtype must be"),
        ({"rules": RULE, "dtype": torch.float8_e5m2}, dl.errors.OptionError, "of at least 16 bits"),
        ({"rules": RULE, "weight": -1}, dl.errors.OptionError, "weight of rule 'rule'"),
        ({"rules": RULE, "weight": {"other": 1}}, dl.errors.SymbolError, "weight names the rule 'other'"),
        ({"rules": {"a": X <= 0, "b": (dl.var("x", 2) <= 0).all()}}, dl.errors.SymbolError, "'x' is declared twice"),
    ],
)
def test_bad_arguments_fail_at_construction(arguments, error, message):
    with pytest.raises(error, match=message):
        dl.LogicLoss(**arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_cost": "square"}, "class_cost must be one of 'probability', 'log'"),
        ({"delta": "median"}, "delta must be one of"),
        ({"floor": 0.0}, "0 < floor <= ceiling"),
        ({"floor": 2.0, "ceiling": 1.0}, "0 < floor <= ceiling"),
        ({"step": -0.1}, "dual step must be at least 0"),
        ({"rule": "newton"}, "rule must be one of"),
        ({"warmup": -1}, "warmup"),
    ],
)
def test_bad_options_fail_at_construction(options, message):
    with pytest.raises(dl.errors.OptionError, match=message):
        dl.methods.Dual(**options)


def test_step_without_a_forward_or_in_the_wrong_mode():
    with pytest.raises(dl.errors.StateError, match='update="manual"'):
        make().step()
    with pytest.raises(dl.errors.StateError, match="nothing to apply"):
        make(update="manual").step()


def test_ragged_rows_give_padded_operands_no_weight():
    n = dl.axis("n", max=5)
    z, valid = dl.var("z", n), dl.mask("valid", n)
    logic = dl.LogicLoss((z <= 0).all(where=valid), num_samples=4)
    index = torch.tensor([0, 2])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    for _ in range(3):
        logic(index, z=torch.rand(2, 3, requires_grad=True), valid=mask)
    weights = logic.weights(torch.arange(4))["rule"]
    assert weights.shape == (4, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(4))
    assert (weights[0, 2:] == 0).all()
    assert (weights[0, :2] > 0).all()
    assert weights[2].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    torch.testing.assert_close(weights[1], torch.full((5,), 0.2))
    # An entry that appears later starts at an equal footing.
    logic(index, z=torch.rand(2, 3, requires_grad=True), valid=torch.ones(2, 3, dtype=torch.bool))
    assert (logic.weights(index)["rule"][:, :3] > 0).all()


def test_what_an_operand_learned_outlives_a_mask_that_hides_it():
    n = dl.axis("n", max=2)
    z, valid = dl.var("z", n), dl.mask("valid", n)
    logic = dl.LogicLoss((z <= 0).all(where=valid), num_samples=1, method=dl.methods.Dual(step=5.0))
    index, value = torch.tensor([0]), torch.tensor([[1.0, 3.0]])
    logic(index, z=value.requires_grad_(), valid=torch.tensor([[True, True]]))
    learned = logic.weights(index)["rule"]
    assert learned[0, 1] > 0.99
    logic(index, z=torch.zeros(1, 2, requires_grad=True), valid=torch.tensor([[True, False]]))
    logic(index, z=torch.zeros(1, 2, requires_grad=True), valid=torch.tensor([[True, True]]))
    torch.testing.assert_close(logic.weights(index)["rule"], learned)


@pytest.mark.parametrize("rule", ["softmax", "exponentiated", "projected"])
def test_ragged_and_padded_batches_agree(rule):
    """A sample's duals do not depend on how far its batch is padded."""
    n = dl.axis("n", max=6)
    z, valid = dl.var("z", n), dl.mask("valid", n)
    formula = ((z <= 0) | (z >= 1)).all(where=valid)
    tight, padded = (
        dl.LogicLoss(formula, num_samples=3, method=dl.methods.Dual(rule=rule, step=0.1), dtype=torch.float64) for _ in range(2)
    )
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        value = torch.rand(2, 4, generator=generator, dtype=torch.float64)
        mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
        longer = torch.cat([value, torch.rand(2, 2, generator=generator, dtype=torch.float64)], 1)
        index = torch.tensor([2, 0])
        loss = tight(index, z=value.requires_grad_(), valid=mask)
        other = padded(index, z=longer.requires_grad_(), valid=torch.cat([mask, torch.zeros(2, 2, dtype=torch.bool)], 1))
        torch.testing.assert_close(loss, other)
    for path, value in tight.weights(index).items():
        if path == "rule":
            torch.testing.assert_close(value, padded.weights(index)[path])
        torch.testing.assert_close(value.sum(-1), torch.ones_like(value.sum(-1)))


def test_an_empty_any_cannot_be_satisfied_and_an_alternative_takes_over():
    n = dl.axis("n", max=3)
    z, valid = dl.var("z", n), dl.mask("valid", n)
    alone = dl.LogicLoss((z <= 0).any(where=valid), num_samples=1)
    nothing = torch.zeros(1, 2, dtype=torch.bool)
    value = torch.ones(1, 2, requires_grad=True)
    with pytest.raises(dl.errors.NonFiniteError, match=r"\.any\(where=\.\.\.\) has no entry left"):
        alone(torch.tensor([0]), z=value, valid=nothing)
    joined = dl.LogicLoss((z <= 0).any(where=valid) | (z[0] <= 0.5), num_samples=1)
    joined(torch.tensor([0]), z=value, valid=nothing).backward()
    assert value.grad[0, 0] > 0
    assert value.grad[0, 1] == 0


@pytest.mark.parametrize("samples", [10, None])
@pytest.mark.parametrize("rule", ["softmax", "exponentiated", "projected"])
@pytest.mark.parametrize("size", [1e12, 1e14, 1e16, 1e20, 1e30])
def test_a_cost_whose_square_overflows_does_not_reach_the_table(samples, rule, size):
    method = plain(rule=rule, floor=1e-4)
    logic = dl.LogicLoss(RULE, num_samples=samples, method=method)
    for x in (1.0, 1e-9):  # the second brings delta down to 1e-4
        logic(torch.tensor([1, 2]), x=torch.full((2,), x), y=torch.full((2,), 2 * x))
    tensors = {"x": torch.tensor([size, 1.0]), "y": torch.tensor([2 * size, 1.0])}
    if size > 1e15:
        with pytest.raises(dl.errors.NonFiniteError, match=r"cost of rule 'rule' is .*e\+.* at position 0, because of x <= 0"):
            logic(torch.tensor([1, 2]), **tensors)
    elif size > 1e13 and rule != "projected":
        with pytest.raises(dl.errors.NonFiniteError, match=r"position 0 would move by 2\.\d+e\+35, past what can be stored"):
            logic(torch.tensor([1, 2]), **tensors)
    else:
        logic(torch.tensor([1, 2]), **tensors)
    weights = logic.weights(torch.arange(10))["rule"]
    torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))
    assert torch.isfinite(logic.delta).all()


def test_a_large_cost_is_fine_in_float64_and_for_methods_without_squares():
    wide = {"x": torch.tensor([1e30], dtype=torch.float64), "y": torch.tensor([1e30], dtype=torch.float64)}
    assert torch.isfinite(dl.LogicLoss(RULE, dtype=torch.float64)(**wide))
    assert torch.isfinite(dl.LogicLoss(RULE, method="dl2")(x=torch.tensor([1e18]), y=torch.tensor([1e18])))


def test_duplicates_in_a_large_batch_take_linear_memory():
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(0, 10, (60_000,), generator=generator)  # a matrix of the batch against itself is 3.6 GB and more
    x, y = torch.rand(2, 60_000, dtype=torch.float64, generator=generator) + 0.1
    method = dl.methods.Dual(floor=1.0, ceiling=1.0)
    logic = make(method=method)
    with LargestTensor() as largest:
        logic(index, x=x, y=y)
    assert 60_000 <= largest.elements <= 10 * 60_000
    for sample in range(10):
        mine = index == sample
        one = make(samples=None, method=method)  # a shared row moves by the mean over its batch
        one(x=x[mine], y=y[mine])
        torch.testing.assert_close(logits(logic)[sample], logits(one)[0])
