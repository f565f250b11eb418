import pytest
import torch
from torch import nn

import dualogic as dl
from dualogic.demo import load_split, training
from dualogic.demo.training import make_network, measure, train
from dualogic.errors import NonFiniteError


@pytest.fixture(scope="module")
def mixed():
    return load_split("mixed", seed=0)


class Fixed(nn.Module):
    """Answers every image upright with one class and turned with another, told apart by looking the image up."""

    def __init__(self, split, upright, turned):
        super().__init__()
        self.uprights = {tuple(image.flatten().tolist()) for image in split.held_out}
        self.upright, self.turned = upright, turned

    def forward(self, images):
        rows = [self.upright if tuple(image.flatten().tolist()) in self.uprights else self.turned for image in images]
        return torch.tensor(rows, dtype=torch.float32).log()


def _probabilities(**given):
    rest = (1 - sum(given.values())) / (10 - len(given))
    return [given.get(f"p{digit}", rest) for digit in range(10)]


@pytest.mark.parametrize(
    ("upright", "turned", "expected"),
    [
        (_probabilities(p6=0.9), _probabilities(p9=0.9), {"satisfied": 100, "p": 100, "not_p": 0, "q": 100}),
        (_probabilities(p0=0.9), _probabilities(p9=0.9), {"satisfied": 0, "p": 100, "not_p": 0, "q": 0}),
        (_probabilities(p0=0.9), _probabilities(p5=0.9), {"satisfied": 100, "p": 0, "not_p": 100, "q": 0}),
        # 9 leads by less than 0.1: neither P nor, in the paper's reading, not-P.
        (_probabilities(p0=0.9), _probabilities(p9=0.48, p5=0.42), {"satisfied": 0, "p": 0, "not_p": 0, "q": 0}),
    ],
)
def test_measures_of_known_answers(mixed, upright, turned, expected):
    found = measure(Fixed(mixed, upright, turned), mixed, None)
    assert {name: getattr(found, name) for name in expected} == expected


def test_accuracy_and_false_sixes_of_a_network_that_always_says_six(mixed):
    found = measure(Fixed(mixed, _probabilities(p6=0.9), _probabilities(p6=0.9)), mixed, None)
    share = (mixed.held_out_labels == 6).double().mean().item()
    assert found.accuracy == pytest.approx(100 * share)
    assert found.false_six == 100
    assert (found.weight_sixes, found.weight_others) == (None, None)


def test_weights_on_q_are_those_of_the_second_operand(mixed):
    logic = dl.LogicLoss(training.RULE, num_samples=len(mixed.pool), method="dual")
    sure_of_q, sure_of_nine = torch.full((1, 10), -5.0), torch.full((1, 10), -5.0)
    sure_of_q[0, 6] = sure_of_nine[0, 9] = 5.0
    sure_of_q.requires_grad_()  # as what a network says does
    sixes = mixed.pool_is_six.nonzero().squeeze(1)
    for _ in range(5):
        logic(sixes, f=sure_of_q.expand(len(sixes), 10), g=sure_of_nine.expand(len(sixes), 10))
    found = measure(make_network(0), mixed, logic)
    assert found.weight_sixes > 0.6
    assert found.weight_others == 0.5


def test_the_same_seed_gives_the_same_run(mixed):
    first, again = (train(mixed, "mixed", "dual", epochs=1, seed=0) for _ in range(2))
    other = train(mixed, "mixed", "dual", epochs=1, seed=1)
    assert first.history == again.history
    assert first.history != other.history


def test_without_the_rule_the_pool_does_not_matter(mixed):
    sixes = load_split("sixes", seed=0)
    assert train(mixed, "mixed", None, 1, 0).history == train(sixes, "sixes", None, 1, 0).history


def test_training_leaves_the_random_state_and_the_threads_alone(mixed):
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    train(mixed, "mixed", "uniform", epochs=1, seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_an_epoch_visits_every_image_once(mixed, monkeypatch):
    seen = {"labelled": [], "pool": []}
    original = training._loss

    def spy(network, logic, split, chosen, index):
        seen["labelled"] += chosen.tolist()
        seen["pool"] += index.tolist()
        return original(network, logic, split, chosen, index)

    monkeypatch.setattr(training, "_loss", spy)
    train(mixed, "mixed", "hard", epochs=1, seed=0)
    assert sorted(seen["labelled"]) == list(range(len(mixed.labelled)))
    assert sorted(seen["pool"]) == list(range(len(mixed.pool)))


def test_a_run_that_diverges_is_reported_and_not_raised(mixed, monkeypatch):
    calls = []

    def explode(*arguments):
        calls.append(arguments)
        raise NonFiniteError("an infinite cost")

    monkeypatch.setattr(training, "_loss", explode)
    run = train(mixed, "mixed", "dual", epochs=3, seed=0)
    assert (run.failure, len(run.history), len(calls)) == ("an infinite cost", 1, 1)


@pytest.mark.slow
def test_dual_learns_the_six_where_hard_does_not():
    small = load_split("sixes", seed=0)
    finals = {method: train(small, "sixes", method, epochs=10, seed=0).final for method in (None, "hard", "dual")}
    assert finals[None].q < 20
    assert finals["hard"].q < 20
    assert finals["hard"].satisfied > 80
    assert finals["dual"].q > 80
    assert finals["dual"].accuracy > finals[None].accuracy
