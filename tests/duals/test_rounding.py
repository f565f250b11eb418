"""Low-precision tables: small steps are not lost, and the rounding is a pure function of step, row and column."""

import copy
import io

import pytest
import torch

import dualogic as dl
from dualogic.duals.rounding import random_bits, to_storage
from plain import PLAIN

LOW = [torch.bfloat16, torch.float16]
X, Y = dl.var("x"), dl.var("y")
RULE = (X <= 0) | (Y <= 0)


def step(number):
    return torch.tensor(number)


@pytest.mark.parametrize("dtype", LOW)
def test_plain_rounding_stalls_and_stochastic_rounding_arrives(dtype):
    """200 steps of a tenth of the spacing at a logit of 4, in 512 columns."""
    move = torch.finfo(dtype).eps * 4 / 10
    index = torch.tensor([3])
    exact = torch.full((1, 512), 4.0)
    plain, stochastic = exact.to(dtype), exact.to(dtype)
    for number in range(200):
        exact = exact + move
        plain = (plain.float() + move).to(dtype)
        stochastic = to_storage(stochastic.float() + move, dtype, step(number), index)
    assert (plain == 4.0).all()
    travelled = (exact - 4.0).mean()
    assert travelled > 0
    assert (stochastic.float() - 4.0).mean() == pytest.approx(travelled.item(), rel=0.03)
    # The columns do not go astray together, and none is left behind.
    spread = (stochastic.float() - exact).abs().max()
    assert 0 < spread < 0.8 * travelled


def test_a_loss_with_a_bfloat16_table_follows_the_float32_one_in_the_mean():
    """512 samples with the same costs start at logits of 8 and 4, where bfloat16 numbers are 0.06 and 0.03 apart."""
    samples, start = 512, torch.tensor([[8.0, 4.0]])
    method = dl.methods.Dual(**{**PLAIN, "floor": 1.0, "ceiling": 1.0, "rule": "exponentiated", "step": 0.002})
    wide = dl.LogicLoss(RULE, 1, method)
    narrow = dl.LogicLoss(RULE, samples, method, dtype=torch.bfloat16)
    wide._table.values.copy_(start)
    narrow._table.values.copy_(start)
    plain = start.to(torch.bfloat16)
    for _ in range(300):
        before = wide._table.values.clone()
        wide(torch.tensor([0]), x=torch.tensor([1.2]), y=torch.tensor([0.0]))
        narrow(torch.arange(samples), x=torch.full((samples,), 1.2), y=torch.zeros(samples))
        plain = (plain.float() + wide._table.values - before).to(torch.bfloat16)
    assert torch.equal(plain.float(), start), "plain rounding loses every step"
    moved = (wide._table.values - start)[0]
    assert moved[0] < -0.02
    assert moved[1] > 20 * 0.03125
    found = narrow._table.values.float() - start
    noise = found.std(0) / samples**0.5
    assert (noise < 0.02).all()
    assert ((found.mean(0) - moved).abs() < 4 * noise).all()


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("value", [4.008, -4.008, 1e-3, 0.3, 255.3, -7e-5, 3e-6, 2.1e-8, 0.999999])
def test_the_expectation_is_exact_and_only_neighbours_occur(dtype, value):
    rows = torch.full((1, 1 << 16), value)
    rounded = to_storage(rows, dtype, step(7), torch.tensor([5]))
    kinds = rounded.unique().double()
    assert len(kinds) <= 2
    assert kinds.min() <= rows[0, 0].double() <= kinds.max()
    gap = (kinds.max() - kinds.min()).item()
    nearest = torch.tensor(value).to(dtype)
    assert gap == 0 or nearest.double() in kinds
    assert rounded.double().mean().item() == pytest.approx(rows[0, 0].item(), abs=max(gap / 60, 1e-12))


@pytest.mark.parametrize("dtype", LOW)
def test_exact_numbers_and_infinities_survive(dtype):
    exact = torch.tensor([[0.0, -0.0, 1.0, -2.5, 96.0, 2.0**-20, -torch.inf, torch.inf]])
    for number in range(50):
        assert torch.equal(to_storage(exact, dtype, step(number), torch.tensor([number])).float(), exact)


def test_float16_stays_at_its_largest_number_instead_of_overflowing():
    rows = torch.tensor([[1e6, -1e6, 65519.0]])
    assert to_storage(rows, torch.float16, step(0), None).tolist() == [[65504.0, -65504.0, 65504.0]]


def test_markers_of_padded_operands_survive_in_a_low_precision_table():
    n = dl.axis("n", max=5)
    z, valid = dl.var("z", n), dl.mask("valid", n)
    logic = dl.LogicLoss((z <= 0).all(where=valid), num_samples=4, dtype=torch.bfloat16)
    index, mask = torch.tensor([0, 2]), torch.tensor([[True, True, False], [True, False, False]])
    for _ in range(5):
        logic(index, z=torch.rand(2, 3, requires_grad=True), valid=mask)
    assert (logic._table.values[0, 2:] == -torch.inf).all()
    assert torch.isfinite(logic._table.values[[1, 3]].float()).all()
    assert (logic.weights(index)["rule"][0, 2:] == 0).all()


def test_random_bits_are_uniform_and_unrelated():
    bits = random_bits(step(3), torch.arange(256), 256, 16)
    assert bits.min() >= 0
    assert bits.max() < 2**16
    counts = torch.bincount((bits >> 10).flatten().long(), minlength=64).double()
    expected = bits.numel() / 64
    assert ((counts - expected) ** 2 / expected).sum() < 120  # chi-squared with 63 degrees: mean 63, standard deviation 11
    unit = bits.double() / 2**16 - 0.5
    later = random_bits(step(4), torch.arange(256), 256, 16).double() / 2**16 - 0.5
    for other in (later, unit.roll(1, 0), unit.roll(1, 1), unit.T):
        # The correlation of 65,536 independent pairs has standard deviation 1/256.
        assert abs((unit * other).mean().item() * 12) < 5 / 256


def test_duplicates_and_orders_round_alike():
    rows = torch.rand(3, 50)[[0, 1, 0, 2]]
    index = torch.tensor([4, 9, 4, 0])
    rounded = to_storage(rows, torch.bfloat16, step(1), index)
    assert torch.equal(rounded[0], rounded[2])
    order = torch.tensor([3, 1, 0, 2])
    assert torch.equal(to_storage(rows[order], torch.bfloat16, step(1), index[order]), rounded[order])
    assert not torch.equal(to_storage(rows, torch.bfloat16, step(2), index), rounded)


@pytest.mark.parametrize("samples", [6, None])
@pytest.mark.parametrize("dtype", LOW)
def test_a_resumed_run_has_the_same_bits(samples, dtype):
    def train(logic, numbers):
        for number in numbers:
            generator = torch.Generator().manual_seed(number)
            x, y = torch.rand(2, 4, generator=generator) * 2
            logic(torch.randint(6, (4,), generator=generator), x=x.requires_grad_(), y=y)

    whole = dl.LogicLoss(RULE, samples, dtype=dtype)
    train(whole, range(12))
    first = dl.LogicLoss(RULE, samples, dtype=dtype)
    train(first, range(6))
    stream = io.BytesIO()
    torch.save(first.state_dict(), stream)
    stream.seek(0)
    second = dl.LogicLoss(RULE, samples, dtype=dtype)
    second.load_state_dict(torch.load(stream, weights_only=True))
    for resumed in (copy.deepcopy(first), second):
        train(resumed, range(6, 12))
        assert resumed._table.values.dtype is dtype
        assert torch.equal(resumed._table.values, whole._table.values)
