"""Random formulas against brute force (``reference.py``)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from reference import each_sample, holds, price

LEVELS = [(0.0, 0.0), (0.25, 0.1)]


def check(formula, tensors):
    """``satisfied`` and ``cost`` are what the definitions say."""
    for tol, lead in LEVELS:
        expected = each_sample(holds, formula, tensors, tol=tol, lead=lead)
        assert np.array_equal(formula.satisfied(tol=tol, lead=lead, **tensors).numpy(), expected)
        assert np.array_equal((~formula).satisfied(tol=tol, lead=lead, **tensors).numpy(), ~expected)
    for class_cost in ("probability", "log"):
        expected = each_sample(price, formula, tensors, class_cost=class_cost)
        np.testing.assert_allclose(formula.cost(class_cost, **tensors).numpy(), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=200)
@given(strategies.formulas(), st.data())
def test_formulas_without_axes(formula, data):
    check(formula, data.draw(strategies.bindings(formula)))


@settings(max_examples=200)
@given(strategies.quantified(), st.data())
def test_formulas_with_quantifiers(formula, data):
    check(formula, data.draw(strategies.bindings(formula)))


@given(
    st.sampled_from(strategies.PLAIN[1:] + strategies.RAGGED).flatmap(lambda shape: strategies.open_formulas(shape, 2)), st.data()
)
def test_formulas_with_open_axes(formula, data):
    check(formula, data.draw(strategies.bindings(formula)))


non_strict = strategies.real_atoms((), st.sampled_from(["<=", ">=", "=="]))


@given(strategies.monotone_formulas(non_strict), st.data())
def test_cost_is_zero_exactly_where_satisfied(formula, data):
    tensors = data.draw(strategies.bindings(formula))
    assert torch.equal(formula.cost(**tensors) == 0, formula.satisfied(**tensors))


@given(strategies.real_atoms((), st.sampled_from(["<", ">", "!="])), st.data())
def test_strict_atoms_by_margin(formula, data):
    tensors = data.draw(strategies.bindings(formula))
    free, holding = formula.cost(**tensors) == 0, formula.satisfied(**tensors)
    if formula.margin:
        assert not (free & ~holding).any(), "no cost promises that a strict atom with a margin holds"
    else:
        assert not (~free & holding).any(), "without a margin a satisfied strict atom costs nothing"


@given(strategies.formulas(strategies.real_atoms(), depth=3), st.data())
def test_negation_is_the_complement_even_at_infinities(formula, data):
    tensors = data.draw(strategies.bindings(formula))
    for name in set(tensors) & set("xyzpqm"):
        tensors[name][torch.rand_like(tensors[name]) < 0.3] = torch.inf
    for tol, lead in LEVELS:
        assert torch.equal((~formula).satisfied(tol, lead, **tensors), ~formula.satisfied(tol, lead, **tensors))


def upper_bounds():
    """Atoms in which every term is only bounded from above."""
    term = st.sampled_from([strategies.x, strategies.y, strategies.z])
    return st.builds(lambda left, right: left <= right, term, st.integers(0, 3))


@settings(max_examples=300)
@given(strategies.monotone_formulas(upper_bounds(), 2), strategies.monotone_formulas(upper_bounds(), 2))
def test_theorem_2_with_one_polarity(first, second):
    """``a`` entails ``b`` exactly if ``a`` costs at least as much everywhere (notes on Theorem 2)."""
    axis = torch.arange(-1.0, 5.0, 0.5, dtype=torch.float64)
    grid = dict(zip("xyz", torch.cartesian_prod(axis, axis, axis).unbind(1)))

    def value(formula, method):
        return getattr(formula, method)(**{name: grid[name] for name in formula.symbols})

    entails = bool((value(second, "satisfied") | ~value(first, "satisfied")).all())
    dearer = bool((value(first, "cost") >= value(second, "cost")).all())
    assert entails == dearer


def test_theorem_2_is_not_promised_in_general():
    """``(v <= 0 or v >= 10) and v >= 2`` is equivalent to ``v >= 10``, but costs less at ``v = 1``."""
    v = dl.var("v")
    loose, tight = ((v <= 0) | (v >= 10)) & (v >= 2), v >= 10
    grid = torch.arange(-5.0, 15.0, 0.25)
    assert torch.equal(loose.satisfied(v=grid), tight.satisfied(v=grid))
    one = torch.tensor([1.0])
    assert (loose.cost(v=one).item(), tight.cost(v=one).item()) == (1.0, 9.0)
    # The converse always holds: a higher cost everywhere gives entailment.
    assert (tight.cost(v=grid) >= loose.cost(v=grid)).all()


@settings(max_examples=50)
@given(
    strategies.formulas(depth=3).filter(lambda formula: "evidence" not in str(formula)),  # whose gradient is by design another
    st.data(),
    st.sampled_from(["probability", "log"]),
)
def test_gradients(formula, data, class_cost):
    tensors = data.draw(strategies.bindings(formula, batch=2))
    # Away from kinks and ties, where a cost has no derivative.
    inputs = {}
    for name, tensor in tensors.items():
        noise = torch.rand_like(tensor) * 0.05 + 0.003
        inputs[name] = (tensor * 0.93 + noise).requires_grad_()
    names = list(inputs)
    assert torch.autograd.gradcheck(
        lambda *values: formula.cost(class_cost, **dict(zip(names, values))), tuple(inputs.values()), eps=1e-7, atol=1e-4
    )


@settings(max_examples=50)
@given(strategies.quantified() | strategies.formulas(), st.data(), st.sampled_from(["probability", "log"]))
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_transforms_of_torch(formula, data, class_cost):
    """``torch.vmap`` over batches of one, and ``torch.func.grad``."""
    tensors = data.draw(strategies.bindings(formula))
    single = {name: tensor.unsqueeze(1) for name, tensor in tensors.items()}
    costs = torch.vmap(lambda bound: formula.cost(class_cost, **bound))(single)
    torch.testing.assert_close(costs.squeeze(1), formula.cost(class_cost, **tensors), equal_nan=True)
    held = torch.vmap(lambda bound: formula.satisfied(**bound))(single)
    assert torch.equal(held.squeeze(1), formula.satisfied(**tensors))

    def total(numbers):
        return formula.cost(class_cost, **tensors | numbers).sum()

    numbers = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items() if tensor.is_floating_point()}
    found = torch.func.grad(total)({name: tensor.detach() for name, tensor in numbers.items()})
    expected = torch.autograd.grad(total(numbers), list(numbers.values()), materialize_grads=True)
    for gradient, other in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(gradient, other, equal_nan=True)


@pytest.mark.parametrize("batch", [0, 1, 37])
def test_batch_sizes(batch):
    formula = ((strategies.p <= 1) | (strategies.f == 1)).all() & (strategies.x < strategies.y)
    generator = torch.Generator().manual_seed(0)
    tensors = strategies.make_tensors(formula.symbols, {}, batch, generator)
    assert formula.cost(**tensors).shape == (batch,)
    assert formula.satisfied(**tensors).shape == (batch,)
    if batch:
        check(formula, tensors)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(dtype):
    formula = (strategies.p.sum() <= 1) & (strategies.f == 1)
    generator = torch.Generator().manual_seed(0)
    tensors = strategies.make_tensors(formula.symbols, {}, 5, generator)
    rounded = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    cost = formula.cost(**rounded)
    assert cost.dtype == torch.promote_types(dtype, torch.float32)
    exact = formula.cost(**{name: tensor.double() for name, tensor in rounded.items()})
    torch.testing.assert_close(cost.double(), exact, atol=1e-6, rtol=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(formula.cost(**rounded), cost)


def test_integers_and_lists_may_be_bound():
    x = dl.var("x", 2)
    assert (x <= 1).cost(x=torch.tensor([[1, 3]])).tolist() == [[0.0, 2.0]]
    assert (x <= 1).cost(x=[[1, 3]]).tolist() == [[0.0, 2.0]]
