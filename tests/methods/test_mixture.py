"""Weights of what a mask leaves out: whatever stands there, they are as they were, however deep they are."""

import pytest
import torch

import dualogic as dl

n = dl.axis("n", max=4)
X, Y, Z, VALID, INNER = dl.var("x", n), dl.var("y", n), dl.var("z", n, 3), dl.mask("valid", n), dl.mask("inner", n, 3)
RULES = {
    "or in all": ((X <= 0) | (Y <= 0)).all(where=VALID),
    "and in any": ((X <= 0) & (Y <= 0)).any(where=VALID),
    "any in all": (Z <= 0).any(-1).all(where=VALID),
    "all in any in all": ((Z <= 0).all(-1) | (X <= 0)).all(where=VALID),
    "masks in masks": ((Z <= 0).all(-1, where=INNER) | (X <= 0)).all(where=VALID),
    "implication in all": ((Y <= 0.7) >> (X <= 0)).all(where=VALID),
    "implication in and in any": (((Y <= 0.7) >> (X <= 0)) & (Z <= 0).any(-1)).any(where=VALID),
    "implied alternatives in all": ((Y <= 0.7) >> ((X <= 0) | (Y <= 0))).all(where=VALID),
    "beside another": ((X <= 0) | (Y <= 0)).all(where=VALID) & (X[0] <= 1),
}
METHODS = {
    "local": dl.methods.Dual(),
    "gradient": dl.methods.Dual(local=False),
    "exponentiated": dl.methods.Dual(rule="exponentiated"),
    "projected": dl.methods.Dual(rule="projected"),
    "both ways": dl.methods.Dual(evidence=False),
    "sharing": dl.methods.Dual(share=0.25),
    "sharing, projected": dl.methods.Dual(rule="projected", share=0.25),
    "paper": dl.methods.Dual.paper(),
}
INDEX = torch.tensor([0, 1])
MASK = torch.tensor([[True, True, False, True], [True, False, False, False]])


def tensors(rule, seed, mask, garbage=None):
    generator = torch.Generator().manual_seed(seed)
    found = {name: 0.2 + torch.rand(2, 4, *shape, generator=generator) for name, shape in (("x", ()), ("y", ()), ("z", (3,)))}
    if garbage is not None:
        for value in found.values():
            value[~mask] = garbage
    found["valid"] = mask
    found["inner"] = torch.rand(2, 4, 3, generator=generator) > 0.3
    found["x"].requires_grad_()
    found["z"].requires_grad_()
    return {name: found[name] for name in rule.symbols}


def nested(logic):
    """The weights of connectives that stand once for each entry of the axis, ``(2, 4, k)`` each."""
    return {path: value for path, value in logic.weights(INDEX).items() if value.dim() == 3}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_weights_of_padding_are_not_trained(rule, method):
    logic = dl.LogicLoss(rule, 2, method)
    everything = torch.ones(2, 4, dtype=torch.bool)
    for seed in range(3):
        logic(INDEX, **tensors(rule, seed, everything))
    before = nested(logic)
    assert before
    assert all((value[~MASK].std() > 0).item() for value in before.values()), "so that there is something to lose"
    for seed in range(3, 6):
        logic(INDEX, **tensors(rule, seed, MASK))
    for path, value in nested(logic).items():
        assert torch.equal(value[~MASK], before[path][~MASK]), path
        assert not torch.equal(value[MASK], before[path][MASK]), path


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_stands_in_padding_does_not_matter(rule, method):
    found = []
    for garbage in (0.0, -3.0, 1e9):
        logic = dl.LogicLoss(rule, 2, method)
        losses = [logic(INDEX, **tensors(rule, seed, MASK, garbage)) for seed in range(3)]
        found.append((torch.stack(losses), logic.state_dict()["table"], logic.delta))
    for one in found[1:]:
        assert all(torch.equal(mine, first) for mine, first in zip(one, found[0]))
