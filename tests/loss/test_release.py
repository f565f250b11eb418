"""A step leaves nothing behind that waits for Python's search for cycles: its tensors may be gigabytes."""

import gc

import pytest
import torch

import dualogic as dl

X, Y = dl.var("x", 4), dl.boolean("y")
RULE = ((X <= 0.2) | (X >= 0.8)).all() & (Y >> (X[0] <= 0.5))


def garbage(step):
    """Tensors in cycles after five steps."""
    for _ in range(3):
        step()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(5):
            step()
        gc.collect()
        return [type(value).__name__ for value in gc.garbage if type(value) is torch.Tensor]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "method", ["dual", "uniform", "hard", "dl2", "pd1", "pd2", "godel", "product", "lukasiewicz", "ltn", "ste"]
)
def test_no_tensor_stays_in_a_cycle(method, training):
    logic = dl.LogicLoss(RULE, num_samples=6, method=method).train(training)

    def step():
        values = {"x": torch.rand(3, 4).requires_grad_(), "y": torch.rand(3).requires_grad_()}
        logic(torch.tensor([0, 5, 2]), **values).backward()

    assert garbage(step) == []


@pytest.mark.parametrize("method", ["semantic", "problog"])
def test_no_tensor_stays_in_a_cycle_of_a_circuit(method):
    p = dl.boolean("p", 4)
    logic = dl.LogicLoss(dl.ExactlyOne(*(p[i] for i in range(4))), method=method)
    assert garbage(lambda: logic(p=torch.rand(3, 4).requires_grad_()).backward()) == []
