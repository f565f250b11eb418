"""A recorded walk does what the walk does, to the bit, and refuses to record what it could not repeat."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualogic.compile import straight_writer
from dualogic.compile.straight import Straight, Unrecordable

ONE = [
    lambda a: a.exp(),
    lambda a: 1.0 - a,
    lambda a: a.unsqueeze(1).expand(-1, 2, -1).sum(1),
    lambda a: torch.softmax(a, 1),
    lambda a: a.detach(),
    lambda a: (a + 0.5).clamp_(0.0, 1.0),
    lambda a: a.to(a.dtype),
    lambda a: a.view(a.shape[0], 1, -1).unbind(1)[0],
    lambda a: torch.where(a > 0.5, a, -torch.inf).clamp_min(-9.0),
]
TWO = [
    lambda a, b: a * b,
    lambda a, b: torch.stack([a, b], 1)[:, 0],
    lambda a, b: torch.lerp(a, b, 0.25),
    lambda a, b: torch.cat([a, b], 1).narrow(1, 1, a.shape[1]).mul_(2.0),
    lambda a, b: torch.addcmul(a, a, b, value=-1.0),
    lambda a, b: torch.cat([a * b, a - b], 1).narrow(1, 2, a.shape[1]),
    lambda a, b: torch.stack([(a + b).mul_(a), -b], 2).mul_(0.5).sum(2),
    lambda a, b: join_difference(a - b),
    lambda a, b: join_twice(a + b, a * b),
]


def join_difference(a):
    return torch.cat([a.unsqueeze(1), -a.unsqueeze(1)], 1).sigmoid().sum(1) + a


def join_twice(a, b):
    return torch.stack([a, b], 1).exp().sum(1) * torch.cat([a, -b], 1).tanh().narrow(1, 0, a.shape[1])


STEPS = st.lists(
    st.tuples(st.integers(0, len(ONE) + len(TWO) - 1), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12
)


def walk_by(steps, few=False):
    def walk(*given):
        known = list(given)
        for kind, first, second in steps:
            a, b = known[first % len(known)], known[second % len(known)]
            known.append(ONE[kind](a) if kind < len(ONE) else TWO[kind - len(ONE)](a, b))
        return known[-1:] if few else known[len(given) :][::-1], lambda slope: [
            None,
            slope * known[-1],
            (slope + known[0]).neg_(),
        ]

    return walk


def make(seed, count=2):
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(3, 4, generator=generator) for _ in range(count)]


@given(STEPS, st.integers(0, 1000), st.booleans())
def test_the_same_bits(steps, seed, few):
    walk = walk_by(steps, few)
    line = Straight(walk, make(0), [])
    given, slope = make(seed + 1), torch.full((3, 4), 0.3)
    before = [tensor.clone() for tensor in given]
    expected, later = walk(*given)
    for _ in range(2):
        found, kept = line.first(given)
        assert len(found) == len(expected)
        assert all(map(torch.equal, found, expected))
        for _ in range(2):  # a backward pass may be made twice
            for slope_found, slope_wanted in zip(line.second(kept, slope), later(slope)):
                assert slope_found is slope_wanted is None or torch.equal(slope_found, slope_wanted)
    assert all(map(torch.equal, given, before))


@given(st.lists(st.integers(0, 4), min_size=5, max_size=9))
def test_runs_overlap(order):
    """What a run keeps for its backward pass stays as it is while others run, and is used again once nobody holds it."""

    def walk(x):
        power = x.exp()
        return [power.sum()], lambda slope: [slope * power * power[:, :1]]

    line = Straight(walk, [torch.zeros(3, 4)], [])
    kept = {}
    for number, place in enumerate(order):
        x = torch.full((3, 4), number / 10)
        found, run = line.first([x])
        kept[place] = (run, x)
        assert torch.equal(found[0], x.exp().sum())
        for run, seen in kept.values():
            (slope,) = line.second(run, torch.tensor(2.0))
            assert torch.equal(slope, 2 * seen.exp() * seen.exp()[:, :1])


def test_a_part_of_a_gradient_lies_among_zeros():
    def walk(x):
        leaf = x.detach().requires_grad_()
        total = (leaf.select(1, 1).abs() * leaf.narrow(1, 2, 2).sum(1)).sum()  # an index makes more operations in torch 2.4
        return [total.detach()], lambda slope: torch.autograd.grad(total, leaf, slope)

    line = Straight(walk, [torch.ones(3, 4)], [])
    second = line.source.split("def second")[1]
    assert second.count("copy_") == 1  # of the sum's, which is no tensor of its own; the other is written where it lies
    assert "zero" not in second
    for seed in range(3):
        (x,) = make(seed)[:1]
        found, kept = line.first([x])
        expected, later = walk(x)
        assert torch.equal(found[0], expected[0])
        assert torch.equal(line.second(kept, torch.tensor(3.0))[0], later(torch.tensor(3.0))[0])


@pytest.mark.parametrize("most", [0, 2**23])
def test_what_is_joined_is_written_where_it_lies(most, monkeypatch):
    monkeypatch.setattr(straight_writer, "MOST_KEPT", most)

    def walk(x, y):
        weights = join_difference(x - y)
        return [weights], lambda slope: [torch.stack([slope * x, slope * y], 1).cos(), weights]

    line = Straight(walk, make(0), [])
    assert ("cat" in line.source, "stack" in line.source) == (not most, not most)
    for seed in range(1, 4):
        (expected,), later = walk(*make(seed))
        (found,), kept = line.first(make(seed))
        assert torch.equal(found, expected)
        assert all(map(torch.equal, line.second(kept, found), later(found)))


@pytest.mark.parametrize("few", [0, 1024])
def test_only_what_is_needed_is_done_and_let_go(few, monkeypatch):
    monkeypatch.setattr(straight_writer, "FEW", few)

    def walk(x, y):
        x.exp()
        return [(x[:, 0] * x[:, 0] + x.to(x.dtype)[:, 0]).detach()], lambda slope: [slope]

    line = Straight(walk, make(0), [])
    assert (line.source.count("= as_strided("), line.source.count("copy_")) == ((0, 1) if few else (1, 0))
    assert line.source.count("out=") == 1
    assert not any(name in line.source for name in ("exp", "detach", "to_"))
    assert line.source.count("del ") == (0 if few else 1)


ELSEWHERE = torch.ones(3, 4)


@pytest.mark.parametrize(
    ("walk", "why"),
    [
        (lambda x: [x * x.sum().item()], "reads a tensor"),
        (lambda x: [x if x.sum() > 0 else -x], "reads a tensor"),
        (lambda x: [x + len(x.tolist())], "tolist reads a tensor"),
        (lambda x: [x.add_(1.0)], "add_ writes into a tensor"),
        (lambda x: [x.view(-1).mul_(2.0)], "mul_ writes into a tensor"),
        (lambda x: [x.clone().__setitem__(0, 1.0)], "writes into a tensor"),
        (lambda x: [torch.add(x, x, out=torch.empty(3, 4))], "writes into a tensor"),
        (lambda x: [x + ELSEWHERE], "from elsewhere"),
    ],
)
def test_what_cannot_be_repeated_is_refused(walk, why):
    with pytest.raises(Unrecordable, match=why):
        Straight(lambda x: (walk(x), lambda slope: [slope]), [torch.zeros(3, 4)], [])


def test_what_comes_later_may_not_change_what_was_kept():
    def walk(x):
        kept = x + 1.0
        return [kept], lambda slope: [kept.mul_(slope)]

    with pytest.raises(Unrecordable, match="mul_ writes into a tensor"):
        Straight(walk, [torch.zeros(2)], [])


def test_fixed_tensors_may_be_read():
    line = Straight(lambda x: ([x + ELSEWHERE], lambda slope: [slope * ELSEWHERE]), [torch.zeros(3, 4)], [ELSEWHERE])
    assert torch.equal(line.first([torch.ones(3, 4)])[0][0], torch.full((3, 4), 2.0))
