"""One of several processes: ``python worker.py RANK SIZE FOLDER`` runs every check of its world and saves what it found.

Two processes save checkpoints in FOLDER, which three processes load afterwards.
"""

import copy
import os
import pickle
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

import dualogic as dl
from process_scenarios import FEATURES, OF_THREE, RULES, SAMPLES, SCENARIOS, STEPS, Scenario, new_theta, train, whole

CHECKPOINTS = {
    "exact-sharded": "device",
    "mean-replicated": "sharded",
    "pd2-sharded": "sharded",
    "implications-sharded": "device",
}
"""Scenarios that two processes save after half of their steps, and the table that three processes load them into."""


def scenarios(rank: int, size: int, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in SCENARIOS if size == 2 else OF_THREE:
        scenario = SCENARIOS[name]
        logic, theta = scenario.make(together=True), new_theta()
        found[name] = train(scenario, logic, theta, range(scenario.steps), together=True)
        index = torch.arange(rank, SAMPLES, size)
        if logic.num_samples and logic._program.width:
            found[name]["asked"] = index
            found[name]["weights"] = logic.weights(index)
            found[name]["rows"] = logic._table.values.shape[0]
    return found


def checkpoints(rank: int, size: int, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, other_table in CHECKPOINTS.items():
        scenario = SCENARIOS[name]
        theta = new_theta()
        if size == 2:
            logic = scenario.make(together=True)
            train(scenario, logic, theta, range(STEPS // 2), together=True)
            dcp.save({"logic": logic.state_dict(), "theta": theta.detach()}, checkpoint_id=folder / name)
        else:
            logic = scenario.make(together=True, table=other_table)
            state = {"logic": logic.state_dict(), "theta": theta.detach()}
            dcp.load(state, checkpoint_id=folder / name)
            logic.load_state_dict(state["logic"])
            found[name] = train(scenario, logic, theta, range(STEPS // 2, STEPS), together=True)
    return found


class Whole(nn.Module):
    """A network with buffers, and a rule."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.BatchNorm1d(FEATURES), nn.Linear(FEATURES, 2))
        self.logic = dl.LogicLoss(RULES, SAMPLES, **options)

    def forward(self, index: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        x, y = self.net(features).unbind(1)
        return self.logic(index, x=x, y=y)


def model_checkpoints(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """Rules inside of a model, through the model-level functions of torch.distributed.checkpoint."""
    torch.manual_seed(0)
    model = Whole(process_group=True, table="sharded", method=dl.methods.Dual(delta="mean"))
    if size == 2:
        model(torch.tensor([rank, 7, 12]), torch.randn(3, FEATURES, generator=torch.Generator().manual_seed(rank))).backward()
        dcp.save(get_model_state_dict(model), checkpoint_id=folder / "model")
        return {"table": whole(model.logic), "delta": model.logic.delta}
    state = get_model_state_dict(model)
    dcp.load(state, checkpoint_id=folder / "model")
    set_model_state_dict(model, state)
    return {"table": whole(model.logic), "delta": model.logic.delta}


def plain_checkpoints(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """A whole tensor loads into blocks, and blocks into a whole tensor, also without files."""
    scenario = SCENARIOS["mean-sharded"]
    blocks = scenario.make(together=True)
    train(scenario, blocks, new_theta(), range(5), together=True)
    replicated = Scenario(scenario.method).make(together=True)
    replicated.load_state_dict(blocks.state_dict())
    again = scenario.make(together=True)
    again.load_state_dict(replicated.state_dict())
    third = scenario.make(together=True)
    third.load_state_dict(blocks.state_dict())
    return {"tables": [whole(logic) for logic in (blocks, replicated, again, third)]}


def message_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except dl.errors.DualogicError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def failures(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """What each process raises if the last one has a problem; and that all go on together afterwards."""
    return {table: failures_of(table, last=rank == size - 1) for table in ("device", "sharded")}


def failures_of(table: str, last: bool) -> dict[str, Any]:
    logic = dl.LogicLoss((dl.var("x") <= 0) | (1 / dl.var("y") <= 1), SAMPLES, process_group=True, table=table)
    index, x, y = torch.tensor([1, 2]), torch.ones(2, requires_grad=True), torch.full((2,), 0.25)
    logic(index, x=x, y=y)
    before = whole(logic), logic.delta.clone()
    found: dict[str, Any] = {
        "index": message_of(lambda: logic([1, SAMPLES if last else 2], x=x, y=y)),
        "cost": message_of(lambda: logic(index, x=x, y=torch.zeros(2) if last else y)),
        "shape": message_of(lambda: logic(index, x=x, y=y[:1] if last else y)),
    }
    if table == "sharded":
        found["weights"] = message_of(lambda: logic.weights([SAMPLES if last else 0]))
    bounded = dl.LogicLoss(dl.var("x") <= 0, SAMPLES, "pd1", process_group=True, table=table)
    found["degree"] = message_of(lambda: bounded(index, x=torch.full((2,), 9.0 if last else 0.5, requires_grad=True)))
    found["unchanged"] = torch.equal(before[0], whole(logic)) and torch.equal(before[1], logic.delta)
    logic._guard.flags[1] = last
    found["flag"] = message_of(logic.check)
    logic(index, x=x, y=y)
    found["goes on"] = not torch.equal(before[0], whole(logic))
    return found


def evaluation(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """One process may evaluate alone, unless it needs rows of others."""
    found = {}
    batch = {"x": torch.tensor([0.5, 2.0]), "y": torch.tensor([1.0, 0.2])}
    logic = dl.LogicLoss(RULES, SAMPLES, process_group=True).eval()
    blocks = dl.LogicLoss(RULES, SAMPLES, process_group=True, table="sharded").eval()
    if rank == 0:
        found = {"index": logic([0, 12], **batch), "optimal": blocks(**batch)}
    return {**found, "blocks": blocks([rank, 12], **batch)}


def copies(rank: int, size: int, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("exact-replicated", "exact-sharded"):
        scenario = SCENARIOS[name]
        logic, theta = scenario.make(together=True), new_theta()
        train(scenario, logic, theta, range(5), together=True)
        twins = {"copied": copy.deepcopy(logic), "pickled": pickle.loads(pickle.dumps(logic)), "self": logic}
        found[name] = {
            how: train(scenario, twin, theta.detach().clone().requires_grad_(), range(5, 10), together=True)
            for how, twin in twins.items()
        }
    group = dist.new_group([0, 1])
    if rank < 2:
        logic = dl.LogicLoss(RULES, SAMPLES, process_group=group, table="sharded")
        logic([rank, 5], x=torch.tensor([1.0, 2.0], requires_grad=True), y=torch.tensor([0.5, 1.0]))
        found["group"] = whole(copy.deepcopy(logic)), logic._table.values.shape[0]
        found["refused"] = message_of(lambda: pickle.dumps(logic))
    else:
        found["refused"] = message_of(lambda: dl.LogicLoss(RULES, SAMPLES, process_group=group))
    return found


def wrappers(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """Tables that differ between processes (no process group) must still differ after everything that moves buffers."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim.swa_utils import AveragedModel

    def fresh() -> Whole:
        torch.manual_seed(rank)
        model = Whole()
        model.logic._table.values.fill_(rank + 0.25)
        model.net[1].running_mean.fill_(rank)
        return model

    def look(model: Whole) -> dict[str, Any]:
        return {"table": model.logic.state_dict()["table"].clone(), "delta": model.logic.delta.clone()}

    found: dict[str, Any] = {}
    index, features = torch.tensor([0, 3]), torch.eye(2, FEATURES)

    model = fresh()
    wrapped = DistributedDataParallel(model)
    model.net[1].running_mean.fill_(rank)
    with model.logic.frozen():
        wrapped(index, features).backward()  # broadcasts buffers first
    found["ddp"] = {**look(model), "buffer": model.net[1].running_mean.clone()}

    model = fresh().half()
    found["half"] = {**look(model), "buffer": model.net[1].running_mean.clone()}

    model = fresh()
    averaged = AveragedModel(model, use_buffers=True)
    model.logic._table.values.add_(1)
    model.net[1].running_mean.add_(1)
    averaged.update_parameters(model)
    model.logic._table.values.add_(1)
    model.net[1].running_mean.add_(1)
    averaged.update_parameters(model)
    found["averaged"] = {**look(model), "copy": look(averaged.module), "buffer": averaged.module.net[1].running_mean.clone()}

    model = fresh()
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (size,)))
    with model.logic.frozen():
        model(index, features).backward()
    found["fsdp"] = {**look(model), "parameter": type(model.net[0].weight).__name__}
    return found


def empty_blocks(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """Four rows in blocks of two leave nothing to a third process, which still takes part."""
    logic = dl.LogicLoss(RULES, 4, process_group=True, table="sharded", dtype=torch.float64)
    x, y = torch.tensor([[1.0, 2.0, 0.5], [0.3, 0.4, 2.0]], dtype=torch.float64)
    logic([rank, 3, 0], x=x.requires_grad_(), y=y)
    dcp.save({"logic": logic.state_dict()}, checkpoint_id=folder / "empty")
    other = dl.LogicLoss(RULES, 4, process_group=True, table="sharded", dtype=torch.float64)
    state = {"logic": other.state_dict()}
    dcp.load(state, checkpoint_id=folder / "empty")
    other.load_state_dict(state["logic"])
    return {"rows": logic._table.values.shape[0], "saved": whole(logic), "loaded": whole(other)}


def growth(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """Ids that the processes meet apart get the same rows, and tables that are too small for them grow together."""
    found: dict[str, Any] = {}
    for table in ("device", "sharded"):
        logic = dl.LogicLoss(RULES, 2, process_group=True, table=table, dtype=torch.float64)
        ids = dl.data.IdMap(logic=logic, process_group=True)
        for step in range(3):
            names = [f"{step}", f"{rank}", f"{step}-{rank}"]
            x = torch.linspace(0.2, 0.9, 3, dtype=torch.float64) + 0.1 * rank + 0.2 * step
            logic(ids(names), x=x.requires_grad_(), y=x.detach() + 0.3)
        found[table] = {"ids": ids.state_dict(), "table": whole(logic)}
        found["refused"] = message_of(lambda ids=ids: ids([1.5 if rank else "0"]))
    return found


CHECKS = {
    2: (scenarios, checkpoints, model_checkpoints, failures, evaluation, copies, wrappers, growth),
    3: (scenarios, checkpoints, model_checkpoints, plain_checkpoints, failures, copies, empty_blocks, growth),
}


def main() -> None:
    rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting{size}", rank=rank, world_size=size)
    found = {check.__name__: check(rank, size, folder) for check in CHECKS[size]}
    torch.save(found, folder / f"found-{size}-{rank}.pt")
    dist.barrier()


if __name__ == "__main__":
    status = 1
    try:
        main()
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not a normal exit: gloo's threads may outlive the interpreter and abort it.
    os._exit(status)
