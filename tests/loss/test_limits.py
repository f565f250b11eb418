"""Numbers at the end of what is stored: refused before anything changes, with the cause named."""

import pytest
import torch

import dualogic as dl
from plain import plain

X, Y, Z = dl.var("x"), dl.var("y"), dl.var("z")
ONE_LEVEL = (X <= 0) | (Y <= 0)
TWO_LEVELS = ((X <= 0) | (Y <= 0)) & (X <= 5)
REFUSED = dl.errors.NonFiniteError


def state_of(logic):
    return {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}


def assert_sound(logic, before):
    for name, value in state_of(logic).items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("rule", [ONE_LEVEL, TWO_LEVELS], ids=["one level", "two levels"])
@pytest.mark.parametrize("delta", ["mean", "square", "exact"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("cost", [1e16, 1e25, 1e200])
def test_wide_inputs_do_not_ruin_a_row_of_a_narrower_table(rule, delta, dtype, cost):
    logic = dl.LogicLoss(rule, 2, method=plain(delta=delta), dtype=dtype)
    fine = {"x": torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True), "y": torch.tensor([1.0, 3.0])}
    logic(torch.tensor([0, 1]), **fine)
    before = state_of(logic)
    with pytest.raises(REFUSED, match=r"the cost of rule 'rule' is \d.*, not below 2\.587e\+15 for the sample at position 0"):
        logic(torch.tensor([0, 1]), x=torch.tensor([cost, 1.0], dtype=torch.float64, requires_grad=True), y=fine["y"])
    assert_sound(logic, before)
    assert torch.isfinite(logic(torch.tensor([0, 1]), **fine))
    assert torch.isfinite(logic.weights(torch.tensor([0]))["rule"]).all()


def test_a_wide_table_takes_wide_costs_and_so_does_an_evaluation():
    wide = {"x": torch.tensor([1e25], dtype=torch.float64, requires_grad=True), "y": torch.tensor([1.0])}
    logic = dl.LogicLoss(ONE_LEVEL, 2, dtype=torch.float64)
    assert torch.isfinite(logic(torch.tensor([0]), **wide))
    assert torch.isfinite(logic.weights(torch.tensor([0]))["rule"]).all()
    # Nothing is stored in an evaluation, so that the limit is that of the tensors.
    assert torch.isfinite(dl.LogicLoss(ONE_LEVEL, 2).eval()(**wide))


@pytest.mark.parametrize("method", ["uniform", "hard", "dual"])
def test_wide_costs_do_not_ruin_delta(method):
    logic = dl.LogicLoss(X <= 0, method=getattr(dl.methods, method.title())(delta="square"))
    with pytest.raises(REFUSED, match=r"1e\+50, not below"):
        logic(x=torch.tensor([1e50], dtype=torch.float64, requires_grad=True))
    assert logic.delta.tolist() == [1.0]


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}], ids=str)
def test_wide_costs_do_not_ruin_multipliers(options):
    logic = dl.LogicLoss(X <= 0, 2, method=dl.methods.PD2(**options))
    before = state_of(logic)
    with pytest.raises(REFUSED, match=r"position 1 would move by .*, past what can be stored"):
        logic(torch.tensor([0, 1]), x=torch.tensor([1.0, 1e60], dtype=torch.float64, requires_grad=True))
    assert_sound(logic, before)


@pytest.mark.parametrize("rule", ["softmax", "exponentiated"])
def test_a_step_past_what_can_be_stored_moves_nothing(rule):
    logic = dl.LogicLoss(ONE_LEVEL, 2, method=dl.methods.Dual(step=1e12, rule=rule))
    before = state_of(logic)
    with pytest.raises(REFUSED, match=r"sample at position 0 would move by .*give the method a smaller step"):
        logic(torch.tensor([1]), x=torch.tensor([3e15], requires_grad=True), y=torch.tensor([1e15]))
    assert_sound(logic, before)


@pytest.mark.parametrize("update", ["forward", "manual"])
def test_a_cost_that_had_no_weight_before_the_step_is_seen_after_it(update):
    method = dl.methods.Dual(delta="square", rule="exponentiated")
    logic = dl.LogicLoss((X <= 0) & (Y <= 0), 1, method=method, update=update)
    logic.load_state_dict({**logic.state_dict(), "table": torch.tensor([[0.0, 69.0]])})  # x has a weight of 1e-30
    before = state_of(logic)
    with pytest.raises(REFUSED, match=r"the cost of rule 'rule' is 9\.9\d*e\+24, not below .* because of x <= 0"):
        logic(torch.tensor([0]), x=torch.tensor([1e25], requires_grad=True), y=torch.tensor([-1.0]))
    assert_sound(logic, before)


# ---------------------------------------------------------------------- what is behind a cost that comes from no atom


def test_an_overflowing_product_is_called_one():
    x = dl.var("x", 3)
    logic = dl.LogicLoss((x <= 0).any(), method="dl2")
    message = (
        r"is inf .* although each of its atoms has a finite cost, at most 1e\+20 for x <= 0: joined, .* past what torch.float32"
    )
    with pytest.raises(REFUSED, match=message):
        logic(x=torch.full((1, 3), 1e20, requires_grad=True))


def test_a_sum_past_what_a_type_holds_is_not_blamed_on_a_mask_that_is_not_empty():
    x, valid = dl.var("x", 3), dl.mask("valid", 3)
    logic = dl.LogicLoss((x <= 0).any(where=valid) & (x <= 1).all(), method="dl2")
    with pytest.raises(REFUSED, match="joined, their costs are past") as caught:
        logic(x=torch.full((1, 3), 3e38, requires_grad=True), valid=torch.ones(1, 3, dtype=torch.bool))
    assert "where=" not in str(caught.value)
    with pytest.raises(REFUSED, match=r"an \.any\(where=\.\.\.\) has no entry left"):
        logic(x=torch.ones(1, 3, requires_grad=True), valid=torch.zeros(1, 3, dtype=torch.bool))


@pytest.mark.parametrize("samples", [3, None])
def test_a_row_that_is_not_finite_is_named(samples):
    logic = dl.LogicLoss(ONE_LEVEL, samples)
    logic._table.values[-1] = torch.nan
    with pytest.raises(REFUSED, match=r"because the (sample's )?row .* is not finite; load a checkpoint .* logic.reset_\(\)"):
        logic(None if samples is None else torch.tensor([2]), x=torch.tensor([2.0], requires_grad=True), y=torch.tensor([1.0]))
