"""Two and three processes against one: the same duals, delta, loss and gradients, also across checkpoints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp

import dualogic as dl
from process_scenarios import OF_THREE, RULES, SAMPLES, SCENARIOS, STEPS, Scenario, new_theta, train

pytestmark = pytest.mark.xdist_group("distributed")
HERE = Path(__file__).parent


def launch(size, folder):
    """Run ``worker.py`` in ``size`` processes that meet through a file; what each of them found."""
    paths = os.pathsep.join([str(Path(dl.__file__).parents[1]), str(HERE.parent)])
    command = [sys.executable, str(HERE / "worker.py")]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(folder)],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        said = [process.communicate(timeout=900)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(process.returncode == 0 for process in processes), "\n".join(said)
    return [torch.load(folder / f"found-{size}-{rank}.pt", weights_only=False) for rank in range(size)]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="session")
def two(folder):
    return launch(2, folder)


@pytest.fixture(scope="session")
def three(two, folder):
    return launch(3, folder)  # loads what two saved


@pytest.fixture(scope="session")
def worlds(two, three):
    return {2: two, 3: three}


@pytest.fixture(scope="session")
def alone():
    """What one process finds, by scenario."""
    losses = {name: scenario.make(together=False) for name, scenario in SCENARIOS.items()}
    results = {
        name: train(SCENARIOS[name], logic, new_theta(), range(SCENARIOS[name].steps), together=False)
        for name, logic in losses.items()
    }
    return losses, results


def assert_same(found, expected):
    for name in ("loss", "delta", "theta", "known", "table"):
        torch.testing.assert_close(found[name], expected[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("size", "name"), [*((2, name) for name in SCENARIOS), *((3, name) for name in OF_THREE)])
def test_several_processes_equal_one(size, name, worlds, alone):
    losses, expected = alone
    for found in worlds[size]:
        assert_same(found["scenarios"][name], expected[name])
        if "weights" in found["scenarios"][name]:
            weights = losses[name].weights(found["scenarios"][name]["asked"])
            for path, value in found["scenarios"][name]["weights"].items():
                torch.testing.assert_close(value, weights[path], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_scenarios_learn_something(name, alone):
    result = alone[1][name]
    assert result["loss"].unique().numel() > len(result["loss"]) // 2
    assert name.startswith(("hard", "godel")) or bool(result["table"].isfinite().logical_and(result["table"] != 0).any())


@pytest.mark.parametrize("name", OF_THREE)
def test_all_replicas_are_bitwise_equal(name, worlds):
    for world in worlds.values():
        for found in world[1:]:
            for key in ("delta", "known", "table"):
                assert torch.equal(found["scenarios"][name][key], world[0]["scenarios"][name][key])


def test_shards_partition_the_rows(worlds):
    assert [found["scenarios"]["exact-sharded"]["rows"] for found in worlds[2]] == [7, 6]
    assert [found["scenarios"]["exact-sharded"]["rows"] for found in worlds[3]] == [5, 5, 3]
    assert [found["scenarios"]["exact-replicated"]["rows"] for found in worlds[3]] == [SAMPLES] * 3


@pytest.mark.parametrize("name", ["exact-sharded", "mean-replicated", "pd2-sharded", "implications-sharded"])
def test_saved_by_two_processes_and_loaded_by_three(name, three, alone):
    expected = {key: value[STEPS // 2 :] if key in ("loss", "delta") else value for key, value in alone[1][name].items()}
    for found in three:
        assert_same(found["checkpoints"][name], expected)


@pytest.mark.parametrize("name", ["exact-sharded", "mean-replicated", "pd2-sharded", "implications-sharded"])
def test_saved_by_two_processes_and_loaded_by_one(name, two, folder, alone):
    scenario = SCENARIOS[name]
    logic, theta = scenario.make(together=False), new_theta()
    state = {"logic": logic.state_dict(), "theta": theta.detach()}
    with pytest.warns(UserWarning, match="assuming the intent is to load in a single process"):
        dcp.load(state, checkpoint_id=folder / name, no_dist=True)
    logic.load_state_dict(state["logic"])
    result = train(scenario, logic, theta, range(STEPS // 2, STEPS), together=False)
    expected = {key: value[STEPS // 2 :] if key in ("loss", "delta") else value for key, value in alone[1][name].items()}
    assert_same(result, expected)


def test_a_process_without_rows_takes_part(three):
    assert [found["empty_blocks"]["rows"] for found in three] == [2, 2, 0]
    x, y = torch.tensor([[1.0, 2.0, 0.5], [0.3, 0.4, 2.0]], dtype=torch.float64).repeat(1, 3)
    logic = dl.LogicLoss(RULES, 4, dtype=torch.float64)
    logic([0, 3, 0, 1, 3, 0, 2, 3, 0], x=x.requires_grad_(), y=y)
    for found in three:
        torch.testing.assert_close(found["empty_blocks"]["saved"], logic.state_dict()["table"], rtol=1e-9, atol=1e-12)
        assert torch.equal(found["empty_blocks"]["loaded"], found["empty_blocks"]["saved"])


def test_a_model_with_rules_saved_by_two_and_loaded_by_three(worlds):
    saved = worlds[2][0]["model_checkpoints"]
    assert bool((saved["table"] != 0).any())
    for found in worlds[3]:
        assert torch.equal(found["model_checkpoints"]["table"], saved["table"])
        assert torch.equal(found["model_checkpoints"]["delta"], saved["delta"])


@pytest.mark.parametrize("size", [2, 3])
def test_ids_get_the_same_rows_and_tables_grow_together(size, worlds):
    logic = dl.LogicLoss(RULES, 2, dtype=torch.float64)
    ids = dl.data.IdMap(logic=logic)
    for step in range(3):
        names = [name for rank in range(size) for name in (f"{step}", f"{rank}", f"{step}-{rank}")]
        x = torch.cat([torch.linspace(0.2, 0.9, 3, dtype=torch.float64) + 0.1 * rank + 0.2 * step for rank in range(size)])
        logic(ids(names), x=x.requires_grad_(), y=x.detach() + 0.3)
    assert logic.num_samples > 2
    for rank, found in enumerate(worlds[size]):
        for table in ("device", "sharded"):
            assert found["growth"][table]["ids"] == ids.state_dict()
            torch.testing.assert_close(found["growth"][table]["table"], logic.state_dict()["table"], rtol=1e-9, atol=1e-12)
        assert found["growth"]["refused"].startswith("SampleIndexError: an id must be" if rank else "StateError: process 1 of")


def test_whole_tables_load_into_shards_and_back(three):
    for found in three:
        first, *others = found["plain_checkpoints"]["tables"]
        assert bool((first != 0).any())
        assert all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("table", ["device", "sharded"])
def test_an_error_in_one_process_is_raised_in_all_and_changes_nothing(size, table, worlds):
    own = {
        "index": "SampleIndexError: sample index 13 is out of range",
        "cost": "NonFiniteError: the cost of rule 'rule' is ",
        "shape": "BindingError",
        "degree": "OptionError: method 'pd1' needs truth values in [0, 1]",
        "flag": "NonFiniteError: a recent batch had an infinite or NaN cost for rule 'rule'",
    }
    if table == "sharded":
        own["weights"] = "SampleIndexError: sample index 13 is out of range"
    *others, last = (found["failures"][table] for found in worlds[size])
    for name, message in own.items():
        assert last[name].startswith(message)
        for other in others:
            assert other[name].startswith(f"StateError: process {size - 1} of {size} met an error in its part of the batch")
    for found in (*others, last):
        assert found["unchanged"]
        assert found["goes on"]


def test_one_process_may_evaluate_alone(two):
    batch = {"x": torch.tensor([0.5, 2.0]), "y": torch.tensor([1.0, 0.2])}
    logic = Scenario("dual").make(together=False, dtype=torch.float32).eval()
    torch.testing.assert_close(two[0]["evaluation"]["index"], logic([0, 12], **batch))
    torch.testing.assert_close(two[0]["evaluation"]["optimal"], logic(**batch))
    for rank, found in enumerate(two):
        torch.testing.assert_close(found["evaluation"]["blocks"], logic([rank, 12], **batch))


@pytest.mark.parametrize("name", ["exact-replicated", "exact-sharded"])
def test_copies_go_on_like_their_original(name, worlds):
    for world in worlds.values():
        for found in world:
            for how in ("copied", "pickled"):
                assert torch.equal(found["copies"][name][how]["table"], found["copies"][name]["self"]["table"])


def test_groups_smaller_than_the_world(three):
    first, second, outsider = (found["copies"] for found in three)
    assert torch.equal(first["group"][0], second["group"][0])
    assert [first["group"][1], second["group"][1]] == [7, 6]
    assert first["group"][0].abs().sum(1).nonzero().flatten().tolist() == [0, 1, 5]
    assert "cannot be pickled" in first["refused"]
    assert "that this process belongs to" in outsider["refused"]


def test_what_moves_buffers_leaves_tables_alone(two):
    for rank, found in enumerate(two):
        seen = found["wrappers"]
        mine = torch.full_like(seen["ddp"]["table"], rank + 0.25)
        for wrapper in ("ddp", "half", "fsdp"):
            assert torch.equal(seen[wrapper]["table"], mine)
            assert seen[wrapper]["table"].dtype is torch.float32
            assert seen[wrapper]["delta"].dtype is torch.float32
        assert torch.equal(seen["averaged"]["table"], mine + 2)
        assert torch.equal(seen["averaged"]["copy"]["table"], mine)
        # The same wrappers do reach buffers and parameters.
        assert seen["half"]["buffer"].dtype is torch.float16
        assert torch.equal(seen["averaged"]["buffer"], torch.full_like(seen["averaged"]["buffer"], rank + 1.5))
        assert seen["fsdp"]["parameter"] == "DTensor"
    # They were 0 and 1 before the broadcast.
    torch.testing.assert_close(two[0]["wrappers"]["ddp"]["buffer"], two[1]["wrappers"]["ddp"]["buffer"])
