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
    [("device", torch.bfloat16), ("device", torch.float16), ("host", torch.bfloat16)],
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


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("bad", ["index", "cost", "index elsewhere"])
def test_bad_occurrences_count_nowhere(bad, masked):
    """The last row, to which indices past the end are set, moves as if the bad occurrence were not there."""
    torch._dynamo.reset()
    valid = dl.mask("valid", 3)
    rule = ((X <= 0) | (Y <= 0)).all(where=valid) if masked else RULE
    alone, other = dl.LogicLoss(rule, 20), dl.LogicLoss(rule, 20)
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    generator = torch.Generator().manual_seed(0)
    values = {name: 0.5 + torch.rand(3, 3, generator=generator) for name in "xy"}
    if masked:
        values["valid"] = torch.tensor([[True, True, False]]).expand(3, 3)
    first = 3 if bad == "index elsewhere" else 19
    for step in range(2):
        good = {name: value[:2].clone() for name, value in values.items()}
        good["x"].requires_grad_()
        alone(torch.tensor([first, 7]), **good)
        every = {name: value.clone() for name, value in values.items()}
        if bad == "cost":
            every["x"][2] = torch.inf
        every["x"].requires_grad_()
        compiled(torch.tensor([first, 7, 19 if bad == "cost" else 77 + step]), **every)
    torch.testing.assert_close(other.state_dict()["table"], alone.state_dict()["table"], rtol=0, atol=0)
    assert torch.equal(other.delta, alone.delta)
    assert alone.state_dict()["table"].nan_to_num(neginf=0.0).abs().max() > 0
    with pytest.raises(dl.errors.DualogicError, match="a recent batch had"):
        other.check()
