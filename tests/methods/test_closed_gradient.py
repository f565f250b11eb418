"""The gradient in closed form is that of the differentiable form, of whatever rule; so are second derivatives."""

import copy

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import dualogic as dl
from strategies import bindings, quantified

METHODS = [
    dl.methods.Dual(),
    dl.methods.Dual(evidence=0.25, local=False),
    dl.methods.Dual(class_cost="probability", first="equal", rule="exponentiated", evidence=False),
]
ROWS = torch.tensor([2, 0, 1, 3])


def train(logic, tensors, seed, closed):
    """Loss and gradients of a step from rows that have already moved."""
    logic = copy.deepcopy(logic)
    logic._program.closed = closed
    generator = torch.Generator().manual_seed(seed)
    logic._table.values.copy_(torch.randn(logic._table.values.shape, generator=generator))
    if "known" in logic._state:
        logic._state["known"][4] = torch.rand(logic._state["known"].shape[1], generator=generator) * 0.12
    leaves = {name: tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    loss = logic(ROWS[: len(next(iter(leaves.values())))], **leaves)
    moving = [leaf for leaf in leaves.values() if leaf.requires_grad]
    if not loss.requires_grad:
        return logic, loss, []
    return logic, loss, torch.autograd.grad(loss, moving, allow_unused=True, materialize_grads=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", METHODS, ids=["default", "divided", "former"])
@given(data=st.data(), seed=st.integers(0, 1000))
def test_losses_gradients_and_states_are_the_same(method, data, seed):
    rule = data.draw(quantified(shapes=[(3,), (2, 3)], masked=False))
    tensors = data.draw(bindings(rule))
    logic = dl.LogicLoss(rule, num_samples=4, method=method, dtype=torch.float64)
    assume(logic._program.closed)
    (one, loss, gradients), (two, expected, wanted) = (train(logic, tensors, seed, closed) for closed in (True, False))
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-10)
    for found, slope in zip(gradients, wanted):
        torch.testing.assert_close(found, slope, rtol=1e-7, atol=1e-9)
    for name, value in one.state_dict().items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, two.state_dict()[name], rtol=1e-9, atol=1e-10)


def test_most_rules_have_one_and_masked_ones_do_not():
    x, valid = dl.var("x", 3), dl.mask("valid", 3)
    a, b, c = (dl.boolean(name) for name in "abc")
    known = (x <= 0).any(), (x <= 0).all() | a, a >> (b | c), dl.Iff(a, b), dl.ExactlyOne(a, b, c)
    assert all(dl.LogicLoss(rule)._program.closed for rule in known)
    assert not any(dl.LogicLoss(rule)._program.closed for rule in ((x <= 0).any(where=valid), (a & b) >> c))


@pytest.mark.parametrize("rule", ["P >> (Q | R)", "(P | Q) & R"])
def test_second_derivatives(rule):
    symbols = {name: dl.boolean(name, input="logits") for name in "PQR"}
    logic = dl.LogicLoss(dl.parse(rule, symbols), num_samples=4, dtype=torch.float64, method=dl.methods.Dual(evidence=False))
    generator = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(4, generator=generator, dtype=torch.float64) for name in "PQR"}
    found = []
    for closed in (True, False):
        twin = copy.deepcopy(logic)
        twin._program.closed = closed
        leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
        first = torch.autograd.grad(twin(ROWS, **leaves), list(leaves.values()), create_graph=True)
        found.append(torch.autograd.grad(sum(slope.square().sum() for slope in first), list(leaves.values())))
    for one, other in zip(*found):
        assert other.abs().max() > 0
        torch.testing.assert_close(one, other)


def test_a_gradient_taken_after_the_next_step_is_that_of_its_own():
    """Neither rows nor delta nor the shares of evidence that a later step has written are read on the way back."""
    logic = dl.LogicLoss(dl.boolean("a") >> (dl.boolean("b") | dl.boolean("c")), dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    leaves = {name: torch.rand(4, generator=generator, dtype=torch.float64).requires_grad_() for name in "abc"}
    loss = logic(**leaves)
    early = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True, create_graph=False)
    for _ in range(20):
        logic(**leaves)
    late = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True)
    again = torch.autograd.grad(loss, list(leaves.values()), create_graph=True)
    for one, two, three in zip(early, late, again):
        assert torch.equal(one, two)
        torch.testing.assert_close(one, three)
