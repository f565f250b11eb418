"""On a GPU: tables off the device give what one on it gives, and no step waits.

Skipped without CUDA; run on a GPU machine with ``python -m pytest tests/duals/test_on_a_gpu.py``.
"""

import contextlib
import copy
import warnings

import pytest
import torch

import dualogic as dl
from dualogic.duals.rounding import to_storage

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

X, Y = dl.var("x", 40), dl.var("y", 40)
RULE = ((X <= 0) | (Y <= 0)).all()


def batches(steps, samples=50, size=16):
    for number in range(steps):
        generator = torch.Generator().manual_seed(number)
        x, y = torch.rand(2, size, 40, generator=generator) * 2
        yield torch.randint(samples, (size,), generator=generator), {"x": x.cuda().requires_grad_(), "y": y.cuda()}


@contextlib.contextmanager
def no_waiting():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["host", "mapped"])
@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_any_place_gives_the_same_as_the_device(kind, dtype, ahead):
    here, there = (dl.LogicLoss(RULE, 50, dtype=dtype, table=table).to("cuda") for table in ("device", kind))
    steps = list(batches(60))
    for number, (index, tensors) in enumerate(steps):
        if ahead and number % ahead == 0:
            for later, _ in steps[number : number + 2 * ahead]:
                there.prefetch(later)
        torch.testing.assert_close(here(index, **tensors), there(index, **tensors), rtol=1e-4, atol=1e-5)
    own, other = here.state_dict()["table"], there.state_dict()["table"]
    assert other.device.type == "cpu"
    # A float32 difference in the last place may tip a rounding, and no more than that.
    spacing = 1e-5 if dtype is torch.float32 else torch.finfo(dtype).eps
    torch.testing.assert_close(own.cpu(), other, rtol=2 * spacing, atol=2 * spacing)
    assert other.abs().max() > 0
    twin = copy.deepcopy(there)
    index, tensors = steps[0]
    torch.testing.assert_close(twin(index, **tensors), there(index, **tensors))


@pytest.mark.parametrize("prefetch", [False, True])
def test_a_step_with_its_index_on_the_host_does_not_wait(prefetch):
    logic = dl.LogicLoss(RULE, 50, dtype=torch.bfloat16, table="host").to("cuda")
    steps = list(batches(30))
    for index, tensors in steps[:5]:
        logic(index, **tensors).backward()
    torch.cuda.synchronize()
    with no_waiting():
        for number in range(5, 29):
            if prefetch:
                logic.prefetch(steps[number + 1][0])
            logic(steps[number][0], **steps[number][1]).backward()
    torch.cuda.synchronize()
    assert logic._table.state()["table"].abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_has_the_same_bits_as_on_a_cpu(dtype):
    rows, index, step = 4 * torch.randn(64, 500), torch.randint(10**6, (64,)), torch.tensor(123)
    rows[0, :50] = -torch.inf
    rows[1] *= 1e-6
    here = to_storage(rows, dtype, step, index)
    assert torch.equal(to_storage(rows.cuda(), dtype, step.cuda(), index.cuda()).cpu(), here)


def test_a_low_precision_step_does_not_wait():
    table = dl.LogicLoss(RULE, 50, dtype=torch.bfloat16).to("cuda")
    for number, (index, tensors) in enumerate([(index.cuda(), tensors) for index, tensors in batches(20)]):
        with no_waiting() if number >= 5 else contextlib.nullcontext():
            table(index, **tensors).backward()
    assert torch.isfinite(table.weights(index)["rule"]).all()
