"""What may be bound to a symbol, and what the error says otherwise."""

import numpy as np
import pytest
import torch

import dualogic as dl
from dualogic.errors import BindingError, OptionError, SymbolError

n = dl.axis("n", max=4)
x, p, r, s = dl.var("x"), dl.var("p", 3), dl.var("r", n), dl.var("s", n)
f, a, valid = dl.categorical("f", 3), dl.boolean("a"), dl.mask("valid", n)
simple, ragged = (x <= 1) & (p <= 1).all(), (r <= s).all(where=valid)
X, P = torch.zeros(2), torch.zeros(2, 3)
R, V = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)

CASES = {
    "missing": (simple, {"x": X}, SymbolError, r"no tensor was given for 'p'.*The rule needs: x=var\('x'\), p=var\('p', 3\)"),
    "unknown": (simple, {"x": X, "p": P, "q": P}, SymbolError, "'q' is not a symbol of the rule"),
    "both": (simple, {"x": X, "P": P}, SymbolError, "no tensor was given for 'p'; 'P' is not a symbol"),
    "no batch": (simple, {"x": torch.tensor(0.0), "p": P}, BindingError, r"'x' is declared as var\('x'\).*\(batch\); got \(\)"),
    "wrong size": (simple, {"x": X, "p": torch.zeros(2, 4)}, BindingError, r"var\('p', 3\).*\(batch, 3\); got \(2, 4\)"),
    "wrong rank": (simple, {"x": X, "p": torch.zeros(2, 3, 1)}, BindingError, r"got \(2, 3, 1\)"),
    "one column": (simple, {"x": torch.zeros(2, 1), "p": P}, BindingError, r"got \(2, 1\); drop the last axis"),
    "class indices": (f == 1, {"f": torch.tensor([0, 2])}, BindingError, r"got \(2,\); give .*one_hot\(classes, 3\)"),
    "batches": (simple, {"x": torch.zeros(3), "p": P}, BindingError, "same batch size: 'x' has 3 samples and 'p' has 2"),
    "complex": (simple, {"x": X.to(torch.complex64), "p": P}, BindingError, "'x' must be real; got torch.complex64"),
    "text": (simple, {"x": "zero", "p": P}, BindingError, "'x' must be bound to a tensor; got str"),
    "array turned round": (simple, {"x": X.numpy()[::-1], "p": P}, BindingError, "'x' must .*; got ndarray: .* stride .*copy"),
    "devices": (simple, {"x": X, "p": P.to("meta")}, BindingError, "one device: 'x' is on cpu and 'p' is on meta"),
    "NaN": (simple, {"x": torch.tensor([0.0, torch.nan]), "p": P}, BindingError, r"'x' contains NaN, first at position \[1\]"),
    "NaN in an axis": (simple, {"x": X, "p": P.index_fill(1, torch.tensor([2]), torch.nan)}, BindingError, r"position \[0, 2\]"),
    "lengths": (ragged, {"r": R, "s": torch.zeros(2, 2), "valid": V}, BindingError, "axis 'n' has length 3 in 'r' and 2 in 's'"),
    "nested": (
        ragged,
        {"r": torch.nested.nested_tensor([X, X], layout=torch.jagged), "s": R, "valid": V},
        BindingError,
        "'r' must be bound to a dense tensor, as from torch.nested.to_padded_tensor",
    ),
    "too long": (
        ragged,
        {"r": torch.zeros(2, 5), "s": torch.zeros(2, 5), "valid": V},
        BindingError,
        r"n \(1 to 4\).*got \(2, 5\)",
    ),
    "float mask": (
        ragged,
        {"r": R, "s": R, "valid": R},
        BindingError,
        "mask 'valid' must be bound to a bool tensor; got torch.float32",
    ),
    "logits as probs": (
        f == 1,
        {"f": torch.tensor([[2.0, -1.0, 0.0]])},
        BindingError,
        "input='probs', but its values lie between -1 and 2",
    ),
    "logit as prob": (
        a,
        {"a": torch.tensor([3.0])},
        BindingError,
        "apply softmax or sigmoid first, or declare it with input='logits'",
    ),
    "classes": (f == 1, {"f": torch.zeros(2, 4)}, BindingError, r"categorical\('f', 3.*\(batch, 3\); got \(2, 4\)"),
    "position": (r[3] <= 0, {"r": R}, BindingError, r"axis 'n' has length 3 in 'r', but r\[3\] needs at least 4"),
    "position from the end": (r[-3] <= 0, {"r": R[:, :2]}, BindingError, r"r\[-3\] needs at least 3"),
    "list of positions": ((r[[0, 2]] <= 0).all(), {"r": R[:, :2]}, BindingError, r"r\[\[0, 2\]\] needs at least 3"),
    "position of a slice": (r[1:][1] <= 0, {"r": R[:, :2]}, BindingError, "needs at least 3"),
    "maximum of nothing": (r[2:].max() <= 0, {"r": R[:, :2]}, BindingError, r"r\[2:\].max\(\) needs at least 3"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["cost", "satisfied"])
def test_refused_with_a_message(name, method):
    formula, tensors, error, message = CASES[name]
    with pytest.raises(error, match=message):
        getattr(formula, method)(**tensors)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0].shape == ()])
def test_the_loss_refuses_the_same(name):
    formula, tensors, error, message = CASES[name]
    logic = dl.LogicLoss(formula, num_samples=3)
    before = {key: value.clone() for key, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
    with pytest.raises(error, match=message):
        logic(torch.tensor([0, 1]), **tensors)
    after = logic.state_dict()
    assert all(torch.equal(value, after[key]) for key, value in before.items())


@pytest.mark.parametrize("method", ["cost", "satisfied"])
def test_tensors_are_given_by_name(method):
    for given in (X, {"x": X}):
        with pytest.raises(OptionError, match=rf"tensors are given by name \(x=x\).*rule\.{method}\(\*\*tensors\); got a \w+$"):
            getattr(x <= 1, method)(given)
    with pytest.raises(SymbolError, match=r"give \*\*\{name: tensors\[name\] for name in rule.symbols\}"):
        getattr(x <= 1, method)(x=X, other=X)


def test_a_tolerance_may_be_a_scalar_of_numpy_or_torch():
    for tol in (np.float64(0.1), torch.tensor(0.1)):
        assert (x <= 1).satisfied(tol, x=torch.tensor([1.05, 1.2])).tolist() == [True, False]
    with pytest.raises(OptionError, match=r"^tol must be a number; got 'x'"):
        (x <= 1).satisfied(tol="x", x=X)


def test_masks_may_be_integers():
    values = torch.tensor([[2.0, 0.0, 0.0]])
    assert (r <= 1).all(where=valid).cost(r=values, valid=torch.tensor([[0, 1, 1]])).tolist() == [0.0]


def test_large_whole_numbers_are_told_apart():
    start, end = dl.var("start"), dl.var("end")
    morning = torch.tensor([1_700_000_000, 1_700_000_000])  # seconds since 1970
    times = {"start": morning, "end": morning + torch.tensor([60, -60])}
    assert (start < end).satisfied(**times).tolist() == [True, False]
    assert (start < end).cost(**times).tolist() == [0.0, 60.0]
    assert (start < end).cost(start=times["start"] % 1000, end=times["end"] % 1000).dtype is torch.float32
    belief = torch.full((2,), 0.5, requires_grad=True)
    dl.LogicLoss((start < end) >> a)(**times, a=belief).backward()
    assert belief.grad is not None
    assert belief.grad.ne(0).tolist() == [True, False]


def test_probabilities_may_be_rounded():
    rounded = torch.tensor([[1.004, -0.001, 0.0]], dtype=torch.bfloat16)
    assert (f == 0).satisfied(f=rounded).item()
    assert (f == 0).cost("log", f=rounded).item() == 0


def test_infinite_values_are_allowed():
    assert (x <= 1).satisfied(x=torch.tensor([torch.inf, -torch.inf])).tolist() == [False, True]


def test_a_large_finite_sum_is_not_mistaken_for_nan():
    big = torch.full((2,), 3e38)
    assert (x >= 1).satisfied(x=big).all()
