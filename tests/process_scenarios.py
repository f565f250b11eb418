"""The same global batches for one process and for several: what tests/distributed runs in each process and compares."""

import dataclasses
from typing import Any

import torch
import torch.distributed as dist

import dualogic as dl

SAMPLES = 13
STEPS = 50
LONGEST = 11
FEATURES = 4

X, Y = dl.var("x"), dl.var("y")
RULES = {"either": (X <= 0) | (Y <= 0) | (X + Y <= 1), "both": (X <= 0.2) & ((Y <= 0.3) | (X - Y <= 0.1))}
SLOTS = dl.axis("n", max=FEATURES)
RAGGED = (dl.var("z", SLOTS) <= 0.25).any(where=dl.mask("valid", SLOTS))
A, B = dl.boolean("a", input="logits"), dl.boolean("b", input="logits")
IMPLICATIONS = {"belief": A >> B, "fact": (X > 0.5) >> A, "given": dl.evidence(B, 0.5) >> (Y <= 0.3)}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Options of a loss and for how long to train; ``table=None`` stands for a row shared by all samples."""

    method: Any
    table: str | None = "device"
    rules: Any = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: int = 20
    believe: bool = False  # what a teacher says, and two views of each sample
    part: bool | str = False  # rules on part of each batch; for "each", the first rule alone

    def make(self, together: bool, **changed: Any) -> dl.LogicLoss:
        options = {"dtype": torch.float64, **self.options, **changed}
        if together:
            options["process_group"] = "world"
            options.setdefault("table", self.table or "device")
        samples = None if self.table is None else SAMPLES
        return dl.LogicLoss(RULES if self.rules is None else self.rules, samples, self.method, **options)


METHODS = {
    "mean": dl.methods.Dual(step=0.5),
    "square": dl.methods.Dual(step=0.5, delta="square", rule="projected"),
    "exact": dl.methods.Dual(step=0.5, delta="exact", rule="exponentiated", warmup=5),
    "paper": dl.methods.Dual.paper(step=0.5),
    "pd1": dl.methods.PD1(scale=20.0),
    "pd2": dl.methods.PD2.released(),
}
LONG = ("mean", "exact", "pd2")
SCENARIOS = {
    **{f"{name}-replicated": Scenario(METHODS[name], steps=STEPS if name in LONG else 20) for name in METHODS},
    **{f"{name}-sharded": Scenario(METHODS[name], "sharded", steps=STEPS if name in LONG else 20) for name in METHODS},
    **{f"{name}-shared": Scenario(METHODS[name], None) for name in LONG},
    "host-replicated": Scenario("dual", options={"table": "host"}),
    "ragged-replicated": Scenario("dual", rules=RAGGED),
    "ragged-sharded": Scenario("dual", "sharded", rules=RAGGED),
    "hard-replicated": Scenario("hard"),
    "hard-sharded": Scenario("hard", "sharded"),
    "godel-shared": Scenario("godel", None),
    "sum-replicated": Scenario("dual", options={"reduction": "sum", "weight": {"either": 2.0}}),
    "none-sharded": Scenario("dual", "sharded", options={"reduction": "none"}),
    "bfloat16-replicated": Scenario("dual", options={"dtype": torch.bfloat16}),
    "bfloat16-sharded": Scenario("dual", "sharded", options={"dtype": torch.bfloat16}),
    "manual-replicated": Scenario("dual", options={"update": "manual"}),
    "manual-sharded": Scenario("dual", "sharded", options={"update": "manual"}),
    "part-replicated": Scenario("dual", part=True),
    "part-sharded": Scenario(METHODS["pd2"], "sharded", part=True),
    "part-shared": Scenario(METHODS["mean"], None, part=True),
    **{
        f"implications-{table}": Scenario(
            "dual", None if table == "shared" else table, rules=IMPLICATIONS, part=part, steps=STEPS
        )
        for table, part in (("device", False), ("sharded", True), ("shared", True))
    },
    **{f"each-{table}": Scenario("dual", table, part="each") for table in ("device", "sharded", None)},
    **{f"lone-{table}": Scenario("dual", table, rules=RULES["both"], part="each") for table in ("device", "sharded", None)},
    "believe-device": Scenario("dual", rules=IMPLICATIONS, believe=True),
    "believe-sharded": Scenario("dual", "sharded", rules=IMPLICATIONS, believe=True, part="each"),
    "believe-shared": Scenario("dual", None, rules=IMPLICATIONS, believe=True, part=True),
    "hard-believe": Scenario("hard", believe=True),
    "part-ragged": Scenario("dual", "sharded", rules=RAGGED, options={"reduction": "sum"}, part=True),
}

OF_THREE = [name for name in SCENARIOS if name.split("-")[0] in ("exact", "pd2", "ragged", "bfloat16", "implications")]
"""What three processes run: enough for what a third process can break."""


def global_batch(step: int) -> dict[str, torch.Tensor]:
    """Indices with repetitions, features and masks; every tenth batch is empty."""
    generator = torch.Generator().manual_seed(step)
    size = 0 if step % 10 == 9 else LONGEST
    valid = torch.rand(size, FEATURES, generator=generator) < 0.7
    valid[:, 0] = True
    return {
        "index": torch.randint(SAMPLES, (size,), generator=generator),
        "features": torch.randn(size, FEATURES, generator=generator, dtype=torch.float64),
        "valid": valid,
        "where": (torch.rand(size, generator=generator) < 0.6) & (step % 10 != 4),
    }


def part_of(batch: dict[str, torch.Tensor], step: int, rank: int, size: int) -> dict[str, torch.Tensor]:
    """A process's part: of random length, and now and then empty."""
    generator = torch.Generator().manual_seed(1000 + step)
    length = len(batch["index"])
    cuts = torch.randint(length + 1, (size - 1,), generator=generator).sort().values.tolist()
    if step % 7 == 3:
        cuts[0] = 0
    bounds = [0, *cuts, length]
    return {name: value[bounds[rank] : bounds[rank + 1]] for name, value in batch.items()}


def tensors_of(scenario: Scenario, part: dict[str, torch.Tensor], theta: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a small network makes of the features."""
    output = torch.nn.functional.softplus(part["features"] @ theta)
    if scenario.rules is RAGGED:
        return {"z": output, "valid": part["valid"]}
    if scenario.rules is IMPLICATIONS:
        return dict(zip("xyab", (*output[:, :2].unbind(1), *(3 * part["features"] @ theta)[:, 2:].unbind(1))))
    return {"x": output[:, 0], "y": output[:, 1]}


def train(scenario: Scenario, logic: dl.LogicLoss, theta: torch.Tensor, steps: range, together: bool) -> dict[str, Any]:
    """Train ``theta`` (in place) on global batches, or on this process's parts of them with averaged gradients, as DDP does."""
    rank, size = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)
    losses, deltas = [], []
    for step in steps:
        batch = global_batch(step)
        part = part_of(batch, step, rank, size) if together else batch
        theta.grad = None
        index = part["index"] if logic.num_samples else None
        # A process that takes all of its part need not say so.
        where = part["where"] if scenario.part and not part["where"].all() else None
        where = {next(iter(logic.rules)): where} if scenario.part == "each" and where is not None else where
        tensors, beliefs = tensors_of(scenario, part, theta), None
        if scenario.believe:
            beliefs = tensors_of(scenario, part, new_theta())
            tensors = {name: torch.cat([value, 1.5 * value]) for name, value in tensors.items()}
        loss = logic(index, where=where, believe=beliefs, **tensors)
        total = loss.sum() * (size if loss.dim() else 1)
        total.backward()
        if logic.update == "manual":
            logic.step()
        mean = total.detach().clone()
        if together:
            dist.all_reduce(mean)
            dist.all_reduce(theta.grad)
            mean, theta.grad = mean / size, theta.grad / size
        with torch.no_grad():
            theta -= 0.02 * theta.grad
        losses.append(mean)
        deltas.append(logic.delta.clone())
    known = logic.state_dict().get("known", torch.zeros(0)).clone()
    found = {"loss": torch.stack(losses), "delta": torch.stack(deltas), "theta": theta.detach().clone(), "known": known}
    return {**found, "table": whole(logic)}


def whole(logic: dl.LogicLoss) -> torch.Tensor:
    """All rows of a table, wherever they live, or all of a network's parameters; called by all processes."""
    saved = logic.state_dict()
    if "table" not in saved:
        return torch.cat([value.flatten() for name, value in saved.items() if name.startswith("table.")])
    return saved["table"].full_tensor() if hasattr(saved["table"], "full_tensor") else saved["table"].clone()


def new_theta() -> torch.Tensor:
    return torch.randn(FEATURES, FEATURES, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
