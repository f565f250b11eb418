import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from dualogic import LogicLoss
from dualogic_paper.data.graphs import make_graphs, measure_distances
from dualogic_paper.runner import Config, Machine, train
from dualogic_paper.tasks import TASKS, Paths
from dualogic_paper.tasks.paths import make_rules, make_swaps, swap_nodes, unswap_nodes

CPU = torch.device("cpu")
SMALL = Paths(nodes=5, width=8, training=6, held_out=4, batch=4, epochs=1)


class Oracle(nn.Module):
    """Knows the distances from the first node, and counts how often it is asked."""

    calls = 0

    def forward(self, adjacency):
        self.calls += 1
        return measure_distances(adjacency)[:, 0]


def _problem(task=SMALL):
    return task.make_problem(0, None, CPU)


@pytest.fixture
def problem():
    return _problem()


def test_the_defaults_are_the_papers():
    problem = TASKS["paths"]().make_problem(0, None, CPU)
    assert [len(part) for part in problem.versions.values()] == [300, 150, 150]
    assert [tuple(layer.weight.shape) for layer in problem.make_network() if isinstance(layer, nn.Linear)] == [
        (1000, 225),
        (1000, 1000),
        (1000, 1000),
        (15, 1000),
    ]
    assert str(problem.rules["rule"]) == "(d == e[:, 0]).all() & (d[None, :] <= d[:, None] + e).all()"
    assert not len(problem.unlabelled)


@settings(max_examples=20, deadline=None)
@given(nodes=st.integers(1, 7), seed=st.integers(0, 1000))
def test_swapping_asking_and_undoing_gives_all_distances(nodes, seed):
    adjacency, distances = make_graphs(3, seed, nodes)
    swaps = make_swaps(nodes)
    versions = swap_nodes(adjacency, swaps)
    torch.testing.assert_close(versions[:, 0], adjacency)
    answers = Oracle()(versions.flatten(0, 1)).unflatten(0, (3, nodes))
    torch.testing.assert_close(unswap_nodes(answers, swaps), distances)


def test_an_oracle_has_no_error_and_meets_the_rule(problem):
    oracle = Oracle()
    loss, bound = problem.outputs(oracle, problem.labelled[:4], problem.labelled[2:])
    assert loss == 0
    assert oracle.calls == 1
    torch.testing.assert_close(problem.rules["rule"].cost(**bound), torch.zeros(4))
    found = problem.evaluate(oracle, "test")
    assert {found.pop(key) for key in ("mse", "mae", "train_mse", "train_mae", "dead")} == {0.0}
    assert set(found.values()) == {100.0}


def test_the_rule_sees_the_same_prediction_as_the_task(problem):
    network = problem.make_network()
    loss, bound = problem.outputs(network, problem.labelled[:3], problem.labelled)
    plain, nothing = problem.outputs(network, problem.labelled[:3], None)
    assert not nothing
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(bound["d"], network(problem.versions["training"][:, 0]))
    torch.testing.assert_close(bound["d"], bound["e"][:, 0])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(0.5, 5))
def test_satisfaction_is_the_papers_definition(seed, scale):
    e = scale * torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(seed))
    d = e[:, 0]
    expected = torch.tensor(
        [
            [
                bool((d[b, k] - e[b, k, 0]).abs() <= 1 and all(d[b, j] <= d[b, k] + e[b, k, j] + 1 for j in range(4)))
                for k in range(4)
            ]
            for b in range(2)
        ]
    )
    assert (make_rules(4)["satisfied"].satisfied(tol=1.0, d=d, e=e) == expected).all()
    assert expected[:, 0].all()


def test_measures_are_means_over_graphs_and_nodes(problem):
    network = nn.Sequential(nn.Flatten(), nn.Linear(25, 5))
    found = problem.evaluate(network, "validation")
    with torch.no_grad():
        difference = network(problem.versions["validation"][:, 0]) - problem.distances["validation"]
        training = network(problem.versions["training"][:, 0]) - problem.distances["training"]
    assert found["mse"] == pytest.approx(difference.square().mean().item())
    assert found["train_mae"] == pytest.approx(training.abs().mean().item())
    assert found["satisfied"] <= min(found["symmetric"], found["triangle"]) <= 100
    assert found["satisfied"] >= 100 / 5


def test_outputs_that_never_wake_are_counted(problem):
    network = problem.make_network()
    with torch.no_grad():
        network[-2].bias[:] = 10.0
        network[-2].bias[[0, 2, 3]] = -10.0
    assert problem.evaluate(network, "test")["dead"] == 2


def test_the_first_outputs_are_near_the_mean_distance():
    task = Paths(training=40, held_out=20)
    problem = _problem(task)
    found = problem.evaluate(problem.make_network(), "validation")
    assert found["dead"] == 0
    assert found["mse"] < problem.distances["validation"].square().mean()
    letter = _problem(dataclasses.replace(task, first_output=0.0)).make_network()
    assert letter[-2].bias.unique().numel() == 15


def test_graphs_follow_their_own_seed_and_parts_do_not_overlap():
    tasks = (SMALL, SMALL, dataclasses.replace(SMALL, graphs=1))
    first, again, other = (_problem(task).versions for task in tasks)
    assert all(torch.equal(first[part], again[part]) for part in first)
    assert not torch.equal(first["test"], other["test"])
    whole = torch.cat([part[:, 0].flatten(1) for part in first.values()])
    assert len(whole.unique(dim=0)) == 6 + 4 + 4


def test_a_step_reads_nothing_back_from_the_device(problem):
    network = problem.make_network()
    with FakeTensorMode(allow_non_fake_inputs=True):
        # A fake tensor has no values: whatever depends on one raises.
        chosen, pool = torch.zeros(3, dtype=torch.long), torch.zeros(4, dtype=torch.long)
        loss, bound = problem.outputs(network, chosen, pool)
    assert loss.shape == ()
    assert bound["e"].shape == (4, 5, 5)


def test_inspection_divides_the_weights(problem):
    network = problem.make_network()
    logic = LogicLoss(problem.rules, 6)
    found = problem.inspect(network, logic, problem.labelled)
    assert found["symmetry_weight"] == found["triangle_weight"] == 0.5
    assert found["symmetry_largest_weight"] == pytest.approx(1 / 5)
    assert found["triangle_largest_weight"] == pytest.approx(1 / 25)
    assert found["cost"] >= 0
    without = problem.inspect(network, None, problem.labelled)
    assert without.items() <= found.items()
    assert "symmetry_weight" not in without


@pytest.mark.parametrize("method", Paths.arms)
def test_every_arm_runs(method, tmp_path):
    task = dataclasses.replace(Paths().make_smoke(tmp_path), epochs=1)
    result = train(Config(task, method), Machine(accelerator="cpu"))
    assert result.failure is None
    assert {column.key for column in Paths.columns} <= set(result.test)


def test_training_lowers_the_error():
    task = dataclasses.replace(SMALL, nodes=5, width=32, training=64, held_out=32, batch=16, epochs=60, learning_rate=3e-3)
    result = train(Config(task, "none"), Machine(accelerator="cpu"))
    assert result.test["mse"] < result.history[0]["mse"]
    assert result.last["train_mse"] < 0.5 * result.history[0]["train_mse"]
