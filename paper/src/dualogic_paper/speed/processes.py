"""Two gloo processes against one: the same loss, delta, duals and trained parameters after 50 steps in float64.

Half of the way, the two save a checkpoint, which three processes load (those with a table held by all into shards, and the other
way round) and train on. The processes meet in a file.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor

import dualogic as dl
from dualogic_paper.speed.report import entry

SAMPLES, BATCH, FEATURES, CLASSES, GROUPS, STEPS = 200, 24, 8, 20, 5, 50
TABLES = {"device": "sharded", "sharded": "device"}  # how two processes hold the table, and how the three do that go on


def make(**options: Any) -> dl.LogicLoss:
    membership = torch.eye(GROUPS).repeat_interleave(CLASSES // GROUPS, 0)
    mass = dl.var("p", CLASSES) @ dl.constant("membership", membership)
    return dl.LogicLoss(((mass == 0) | (mass == 1)).all(), SAMPLES, dtype=torch.float64, **options)


def train(logic: dl.LogicLoss, theta: Tensor, steps: range, rank: int = 0, size: int = 1) -> dict[str, Tensor]:
    """Gradient steps on this process's part of each batch, with gradients averaged as DDP does."""
    losses = []
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        index = torch.randperm(SAMPLES, generator=generator)[:BATCH]
        features = torch.randn(BATCH, FEATURES, generator=generator, dtype=torch.float64)
        part = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        theta.grad = None
        loss = logic(index[part], p=(features[part] @ theta).softmax(-1))
        loss.backward()
        loss, slope = loss.detach().clone(), theta.grad
        assert slope is not None
        if size > 1:
            for value in (loss, slope):
                dist.all_reduce(value)
                value /= size
        with torch.no_grad():
            theta -= 0.1 * slope
        losses.append(loss)
    table = logic.state_dict()["table"]
    table = table.full_tensor() if hasattr(table, "full_tensor") else table.clone()
    return {"loss": torch.stack(losses), "delta": logic.delta, "table": table, "theta": theta.detach().clone()}


def new_theta() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(FEATURES, CLASSES, generator=generator, dtype=torch.float64).requires_grad_()


def work(rank: int, size: int, folder: Path) -> dict[str, dict[str, Tensor]]:
    """What one of several processes does: two save after half of the steps, three load and go on."""
    found = {}
    for table, other in TABLES.items():
        theta, place = new_theta(), folder / table
        logic = make(process_group="world", table=table if size == 2 else other)
        if size == 2:
            first = train(logic, theta, range(STEPS // 2), rank, size)
            dcp.save({"logic": logic.state_dict(), "theta": theta.detach()}, checkpoint_id=place)
            second = train(logic, theta, range(STEPS // 2, STEPS), rank, size)
            found[table] = {**second, "loss": torch.cat([first["loss"], second["loss"]])}
        else:
            state = {"logic": logic.state_dict(), "theta": theta.detach()}
            dcp.load(state, checkpoint_id=place)
            logic.load_state_dict(state["logic"])
            found[table] = train(logic, theta, range(STEPS // 2, STEPS), rank, size)
    return found


def start(rank: int, size: int, folder: Path) -> None:
    """One of several processes; leaves what it found in a file."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / f'meet-{size}'}", rank=rank, world_size=size)
    torch.save(work(rank, size, folder), folder / f"found-{size}-{rank}.pt")
    dist.destroy_process_group()
    os._exit(0)  # gloo's threads may outlive the group for a moment, and Python's way out would then abort


def launch(size: int, folder: Path) -> list[dict[str, dict[str, Tensor]]]:
    """Start the processes, on the CPU, wait, and read what each found."""
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        torch.multiprocessing.spawn(start, (size, folder), nprocs=size)
    finally:
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        os.environ.update({} if before is None else {"CUDA_VISIBLE_DEVICES": before})
    return [torch.load(folder / f"found-{size}-{rank}.pt") for rank in range(size)]


def difference(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """The largest difference, relative to the largest number of the same kind."""
    return max(
        float((value - expected[name][-len(value) :] if name == "loss" else value - expected[name]).abs().max())
        / float(expected[name].abs().max())
        for name, value in found.items()
    )


def compare(device: str) -> dict[str, Any]:
    """The largest relative difference of two processes, and of three that go on from two, to one."""
    expected = train(make(), new_theta(), range(STEPS))
    assert expected["table"].abs().max() > 0
    results = {}
    with tempfile.TemporaryDirectory() as name:
        for size, figure in ((2, "processes"), (3, "processes_checkpoint")):
            worlds = launch(size, Path(name))
            detail = {
                f"{table if size == 2 else TABLES[table]} table": max(difference(found[table], expected) for found in worlds)
                for table in TABLES
            }
            results[figure] = entry(figure, max(detail.values()), detail)
    return results
