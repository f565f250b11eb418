"""Batch norm and ReLU by few kernels equal PyTorch's own operations."""

import pytest
import torch

from dualogic_paper.models.norm import BatchNormReLU, usable

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("shape", [(6, 70, 5), (3, 24, 8), (64, 128, 16)])
def test_kernels_equal_the_reference(shape, residual, dtype):
    torch.manual_seed(0)
    batch, channels, size = shape
    there, here = (BatchNormReLU(channels).to(device) for device in ("cuda", "cpu"))
    with torch.no_grad():
        here.weight.uniform_(0.5, 2.0)
        here.bias.normal_()
    there.load_state_dict(here.state_dict())
    inputs = [(2 * torch.randn(batch, channels, size, size) + 1).to(dtype) for _ in range(3)]
    found = []
    for norm, device in ((there, "cuda"), (here, "cpu")):
        images, added, slope = (each.to(device).contiguous(memory_format=torch.channels_last) for each in inputs)
        if device == "cpu":
            images, added, slope = (each.float() for each in (images, added, slope))
        images.requires_grad_()
        added.requires_grad_()
        assert usable(images) == (device == "cuda")
        result = norm(images, added if residual else None)
        result.backward(slope)
        measures = [result, images.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]
        found.append([each.detach().float().cpu() for each in [*measures, *([added.grad] if residual else [])]])
    tolerance = 1e-3 if dtype is torch.float32 else 3e-2
    for value, expected in zip(*found):
        wrong = (value - expected).abs() > tolerance * (expected.abs() + expected.abs().max())
        # A sum that rounds to the other side of zero has a gradient there, or none.
        assert wrong.sum() <= 1e-5 * wrong.numel()
    assert there.num_batches_tracked.item() == 1
