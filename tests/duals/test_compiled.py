"""Low-precision tables and networks on features compile into one graph; a table in host memory ends it and goes on."""

import pytest
import torch

import dualogic as dl

X, Y = dl.var("x", 3), dl.var("y", 3)
RULE = ((X <= 0) | (Y <= 0)).all()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # dynamo looks at it
@pytest.mark.parametrize(
    ("table", "dtype"),
    [("device", torch.bfloat16), ("device", torch.float16), ("host", torch.bfloat16), (dl.Amortised(3), torch.float32)],
    ids=str,
)
def test_compiled_steps_have_the_same_bits(table, dtype):
    torch._dynamo.reset()
    samples = 9 if isinstance(table, str) else None
    plain, other = (dl.LogicLoss(RULE, samples, dtype=dtype, table=table) for _ in range(2))
    compiled = torch.compile(other, backend="aot_eager", fullgraph=table != "host")
    for number in range(4):
        generator = torch.Generator().manual_seed(number)
        index = torch.randint(9, (5,), generator=generator) if samples else torch.randn(5, 3, generator=generator)
        tensors = {name: torch.rand(5, 3, generator=generator).requires_grad_() for name in "xy"}
        assert torch.equal(plain(index, **tensors), compiled(index, **tensors))
    for own, value in zip(plain._table.state().values(), other._table.state().values()):
        assert torch.equal(own, value)
        assert own.abs().max() > 0
