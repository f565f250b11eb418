"""A network in place of a table learns which branch suits which features, for samples it has not seen."""

import copy
import itertools

import pytest
import torch

import dualogic as dl

X, Y = dl.var("x"), dl.var("y")
RULE = (X <= 0) | (Y <= 0)


def samples(count, seed):
    """Two kinds: for one ``x <= 0`` is cheap, for the other ``y <= 0``; the kind is the sign of a hidden direction."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 8, generator=generator)
    direction = torch.tensor([1.0, -1.0, 0.5, 0.0, 0.0, 2.0, 0.0, -0.5])
    first = features @ direction > 0
    cheap, dear = 0.2 * torch.rand(count, generator=generator), 1 + torch.rand(count, generator=generator)
    x, y = torch.where(first, cheap, dear), torch.where(first, dear, cheap)
    return features, first, {"x": x.requires_grad_(), "y": y}


def train(logic, numbers):
    for number in numbers:
        features, _, tensors = samples(64, number)
        logic(features, **tensors).backward()
    return logic


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_unseen_samples_get_the_weights_of_their_kind(dtype):
    logic = dl.LogicLoss(RULE, table=dl.Amortised(features=8), dtype=dtype)
    features, first, tensors = samples(500, 10_000)
    assert torch.equal(logic.weights(features)["rule"], torch.full((500, 2), 0.5))
    train(logic, range(300)).eval()
    weights = logic.weights(features)["rule"][:, 0]
    right = torch.where(first, weights > 0.5, weights < 0.5)
    assert right.float().mean() > 0.95
    assert weights[first].mean() > 0.9
    assert weights[~first].mean() < 0.1
    # In eval() the weights serve, and nothing moves.
    before = copy.deepcopy(logic.state_dict())
    learned = logic(features, **tensors)
    shared = train(dl.LogicLoss(RULE, table=dl.Amortised(features=8)), range(0)).eval()(features, **tensors)
    assert logic(**tensors) <= learned < shared, "optimal duals, learned ones, equal ones, all with their own delta of 1 or less"
    assert all(torch.equal(value, before[name]) for name, value in logic.state_dict().items() if name != "_extra_state")


def test_it_has_no_parameters_of_the_users_and_resumes():
    whole = train(dl.LogicLoss(RULE, table=dl.Amortised(8, hidden=(16, 16))), range(20))
    assert not list(whole.parameters())
    assert not list(whole.buffers())
    first = train(dl.LogicLoss(RULE, table=dl.Amortised(8, hidden=(16, 16))), range(10))
    second = dl.LogicLoss(RULE, table=dl.Amortised(8, hidden=(16, 16), seed=3))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    third = copy.deepcopy(first)
    first.reset_()
    train(first, range(20))
    for other in (first, train(second, range(10, 20)), train(third, range(10, 20))):
        assert all(torch.equal(value, whole.state_dict()[name]) for name, value in other._table.state().items())


def test_the_step_is_the_gradient_of_the_regression():
    """Against autograd and torch's Adam on the same network."""
    options = dl.Amortised(8, hidden=(5, 6), rate=0.02)
    logic = dl.LogicLoss(RULE, table=options, dtype=torch.float64)
    sizes = (8, 5, 6, 2)
    layers = [torch.nn.Linear(a, b, dtype=torch.float64) for a, b in itertools.pairwise(sizes)]
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    with torch.no_grad():
        for own, value in zip(net.parameters(), logic._table.parameters):
            own.copy_(value)
    seen = []
    table = logic._table
    original = table.advance
    table.advance = lambda *given: seen.append(original(*given)) or seen[-1]
    adam = torch.optim.Adam(net.parameters(), lr=0.02, betas=(0.9, 0.99))
    for number in range(5):
        features, _, tensors = samples(32, number)
        tensors = {name: value.double() for name, value in tensors.items()}
        features = features.double()
        logic(features, **tensors)
        adam.zero_grad()
        output = net(features)
        assert (seen[-1].rows - output).abs().max() > 1e-3
        (0.5 * (output - seen[-1].rows).square().sum(1).mean()).backward()
        adam.step()
    for own, value in zip(net.parameters(), logic._table.parameters):
        torch.testing.assert_close(own.detach(), value)


def test_padded_operands_are_no_trouble():
    n = dl.axis("n", max=5)
    z, valid = dl.var("z", n), dl.mask("valid", n)
    logic = dl.LogicLoss((z <= 0).all(where=valid), table=dl.Amortised(3))
    mask = torch.tensor([[True, True, False], [True, False, False]])
    for _ in range(5):
        logic(torch.randn(2, 3), z=torch.rand(2, 3, requires_grad=True), valid=mask).backward()
    assert all(torch.isfinite(value).all() for value in logic._table.state().values())
    assert torch.isfinite(logic.weights(torch.randn(4, 3))["rule"]).all()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (None, r"needs the samples' features: logic\(features, ...\), a float tensor of shape \(2, 8\)"),
        (torch.tensor([1, 2]), "holds the samples' features, as floats; got torch.int64"),
        (torch.ones(2, 7), r"features must have shape \(2, 8\).*got \(2, 7\)"),
        (torch.full((2, 8), torch.nan), "features must be finite"),
    ],
)
def test_bad_features_are_refused_and_change_nothing(features, message):
    logic = dl.LogicLoss(RULE, table=dl.Amortised(8))
    before = copy.deepcopy(logic.state_dict())
    with pytest.raises(dl.errors.SampleIndexError, match=message):
        logic(features, x=torch.ones(2), y=torch.zeros(2))
    assert all(torch.equal(value, before[name]) for name, value in logic.state_dict().items() if name != "_extra_state")


def test_features_that_are_not_finite_do_not_reach_the_network_on_a_device():
    """What an accelerator does instead of raising at once."""
    table = dl.LogicLoss(RULE, table=dl.Amortised(8))._table
    flags = torch.zeros(2, dtype=torch.bool)
    features = torch.ones(3, 8)
    features[1, 4] = torch.inf
    rows, safe, good = table.fetch_checked(features, flags)
    assert flags.tolist() == [True, False]
    assert good.tolist() == [True, False, True]
    assert torch.isfinite(rows).all()
    assert torch.isfinite(safe).all()


def test_bad_options_and_the_text():
    with pytest.raises(dl.errors.OptionError, match="features and the sizes in hidden"):
        dl.Amortised(0)
    with pytest.raises(dl.errors.OptionError, match="rate must be"):
        dl.Amortised(4, rate=0.0)
    logic = dl.LogicLoss(RULE, table=dl.Amortised(8, hidden=(16,)))
    numbers = 3 * (8 * 16 + 16 + 16 * 2 + 2)
    assert f"2 dual variables from 8 features of a sample ({4 * numbers / 1000:.2f} kB in total, a network" in repr(logic)
    assert logic.memory().total == 4 * numbers
    assert logic.memory().per_sample == 0
