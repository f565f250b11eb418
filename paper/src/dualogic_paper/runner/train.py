"""The training loop, on Lightning Fabric."""

import contextlib
import copy
import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dualogic import LogicLoss
from dualogic.diagnosis import Events
from dualogic.errors import BindingError, DataError, NonFiniteError, OptionError
from dualogic.report import POOL, VALIDATION, thin
from dualogic_paper.arms import make_control
from dualogic_paper.origin import describe_machine, find_commit, find_date
from dualogic_paper.runner.batches import Batches, count_steps, mix_seed
from dualogic_paper.runner.config import Config, Machine
from dualogic_paper.runner.diagnosis import diagnose_end, diagnose_epoch
from dualogic_paper.runner.folder import CHECKPOINT, DIAGNOSIS, DUALS, METRICS, MODEL, RESULT, RunFolder
from dualogic_paper.runner.step import CapturedStep, Step, Teacher
from dualogic_paper.runner.stored import FACTS, Result, first_line, list_facts

INSPECTIONS = 20  # how often, in a run, the duals are set beside what holds on the pool
WARM_UP_SHARE = 0.1
OnEpoch = Callable[[int, dict[str, float]], None]


def train(config: Config, machine: Machine, folder: RunFolder | None = None, on_epoch: OnEpoch | None = None) -> Result:
    """Train one network and measure it; go on where an earlier call with the same folder was stopped, bit for bit on a CPU: each
    epoch is a pure function of the state at its start, the seed and its number.
    """
    from lightning.fabric import Fabric

    if folder is not None:
        folder.open(config)
    strategy = "auto" if machine.devices == 1 else "ddp_spawn"
    fabric: Any = Fabric(accelerator=machine.accelerator, devices=machine.devices, strategy=strategy, precision=config.precision)
    if machine.devices == 1:
        return Result(**_train(fabric, config, machine, folder, on_epoch))
    return Result(**fabric.launch(functools.partial(_train, config=config, machine=machine, folder=folder, on_epoch=None)))


def _train(fabric: Any, config: Config, machine: Machine, folder: RunFolder | None, on_epoch: OnEpoch | None) -> dict[str, Any]:
    # A dictionary, because Fabric brings plain containers back from other processes, and no frozen dataclass.
    devices = [fabric.device] if fabric.device.type == "cuda" else []
    if devices:
        torch.set_float32_matmul_precision("high")  # as convolutions have it by default
        torch.backends.cudnn.benchmark = machine.compile
    with torch.random.fork_rng(devices):
        loop = Loop(fabric, config, machine, folder)
        loop.resume()
        failure = loop.run(on_epoch)
        with loop.plain():
            return dataclasses.asdict(loop.finish(failure))


@dataclasses.dataclass
class Progress:
    """Where a run stands; together with network, optimizer and duals, all that a checkpoint holds."""

    epoch: int = 0
    best: float = math.nan
    best_epoch: int = -1
    seconds: float = 0.0
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    diagnoses: list[dict[str, Any]] = dataclasses.field(default_factory=list)


class Loop:
    """One run in one process."""

    def __init__(self, fabric: Any, config: Config, machine: Machine, folder: RunFolder | None) -> None:
        self.fabric, self.config, self.machine, self.folder = fabric, config, machine, folder
        task, device = config.task, fabric.device
        torch.manual_seed(mix_seed(config.seed))
        self.problem = task.make_problem(config.seed, machine.data, device)
        labelled, unlabelled = self.problem.labelled, self.problem.unlabelled
        self.pool = labelled if task.rule_on == "labelled" else unlabelled
        if not len(labelled) or not len(self.pool):
            what = "labelled samples to train on" if not len(labelled) else f"{task.rule_on} samples for the rule"
            raise OptionError(f"the task {task.name!r} with such options has no {what}; change its sizes or shares, or --rule-on")
        # As many steps for each method, the fully supervised reference among them.
        steps = count_steps(len(labelled), len(self.pool), task.batch)
        if config.arm.supervised:
            labelled = torch.cat([labelled, unlabelled])
        self.batches = Batches(len(labelled), len(self.pool), task.batch, steps, config.seed)
        torch.manual_seed(mix_seed(config.seed))
        network: Any = self.problem.make_network().to(device)
        network = torch.compile(network, dynamic=False) if machine.compile else network  # its batches have one size
        captured = device.type == "cuda" and fabric.world_size == 1 if machine.capture is None else machine.capture
        optimizer = _make_optimizer(config, network, captured, device)
        self.network, self.optimizer = fabric.setup(network, optimizer)
        method = config.arm.method
        self.logic: LogicLoss | None = None
        if method is not None:
            rules, group = self.problem.rules_for(method), True if fabric.world_size > 1 else None
            logic = LogicLoss(rules, len(self.pool), method, weight=config.rule_weight, process_group=group)
            self.logic = logic.to(device)
        self.teacher = None if task.view == "same" else Teacher(_unwrap(self.network), fabric)
        control = config.arm.control
        rule = make_control(control, self.problem, config.rule_weight) if control else self.logic
        trained, samples = (self.problem, self.network, self.optimizer), (labelled.to(device), self.pool.to(device))
        make = CapturedStep if captured else Step
        self.step = make(*trained, rule, fabric.backward, *samples, task.show_pool, self.teacher)
        self.best_weights: dict[str, Tensor] = {}
        self.progress = Progress()
        self._saved = time.monotonic()

    def run(self, on_epoch: OnEpoch | None) -> str | None:
        """Train to the end; returns why it stopped early, if it did."""
        try:
            while self.progress.epoch < self.config.task.epochs:
                self._epoch()
                if on_epoch is not None and self.fabric.is_global_zero:
                    on_epoch(self.progress.epoch, self.progress.history[-1] if self.progress.history else {})
        except (NonFiniteError, BindingError) as error:
            # A method that diverges is a result, not a failure of the experiment.
            return str(error)
        return None

    def _epoch(self) -> None:
        progress, task = self.progress, self.config.task
        # Augmentation draws from the global generators, which start anew here: a checkpoint need not hold their states.
        torch.manual_seed(mix_seed(self.config.seed, progress.epoch, 2 + self.fabric.global_rank))
        # This process's share of each batch.
        parts = [part.tensor_split(self.fabric.world_size, 1) for part in self.batches.epoch(progress.epoch)]
        chosen, rows = (shares[self.fabric.global_rank].to(self.fabric.device) for shares in parts)
        self._set_learning_rate()
        self.step.active = self.step.rule is not None and progress.epoch >= task.rule_from * task.epochs
        self.network.train()
        started = time.perf_counter()
        for labelled, pool in zip(chosen, rows):
            self.step(labelled, pool)
        task_loss, rule_loss = self.step.read(len(chosen))
        if self.logic is not None:
            self.logic.check()
        progress.seconds += time.perf_counter() - started
        if not math.isfinite(task_loss + rule_loss):
            raise NonFiniteError(
                f"the loss of epoch {progress.epoch + 1} is {task_loss} for the task and {rule_loss} for the rule"
            )
        progress.epoch += 1
        last = progress.epoch == task.epochs
        if last or progress.epoch % task.measure_every == 0:
            with self.plain():
                self._measure({"task_loss": task_loss, "rule_loss": rule_loss})
        if last or time.monotonic() - self._saved > self.machine.checkpoint_seconds:
            self.save()

    def _set_learning_rate(self) -> None:
        task = self.config.task
        if task.decay == "none":
            return
        share = self.progress.epoch / task.epochs
        rise = min(1.0, (share + 1 / task.epochs) / WARM_UP_SHARE)
        fall = 0.5 * (1 + math.cos(math.pi * max(0.0, share - WARM_UP_SHARE) / (1 - WARM_UP_SHARE)))
        for group in self.optimizer.param_groups:
            rate = self.config.learning_rate * min(rise, fall)
            group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else rate

    def _measure(self, losses: dict[str, float]) -> None:
        progress, task = self.progress, self.config.task
        self.network.eval()
        found = self.problem.evaluate(self.network, "validation")
        row = {"epoch": float(progress.epoch), **losses, **found}
        if self.logic is not None:
            row.update({f"delta/{name}": value for name, value in zip(self.logic.rules, self.logic.delta.tolist())})
        if progress.epoch == task.epochs or progress.epoch % max(1, task.epochs // INSPECTIONS) == 0:
            found_on_pool = self.problem.inspect(self.network, self.logic, self.step.pool)
            row.update({f"pool/{key}": value for key, value in found_on_pool.items()})
            if self.folder is not None:
                diagnosed = diagnose_epoch(self.problem, self.network, self.logic, self.step.pool, progress.epoch)
                progress.diagnoses.append(diagnosed)
        progress.history.append(row)
        if self.machine.events and self.folder is not None and self.fabric.is_global_zero:
            with Events(self.folder.path / "events", progress.epoch) as events:
                events.write(progress.epoch, row, self.logic)
        value = found[task.choose_by]
        better = value > progress.best if task.choose_higher else value < progress.best
        if better or progress.best_epoch < 0:
            progress.best, progress.best_epoch = value, progress.epoch
            self.best_weights = {name: tensor.clone() for name, tensor in _weights(self.network).items()}

    def plain(self) -> Any:
        """Whatever is compiled is not while this lasts: measuring has other shapes, and little to gain."""
        return torch.compiler.set_stance("force_eager") if self.machine.compile else contextlib.nullcontext()

    def save(self) -> None:
        """Write a checkpoint."""
        self._saved = time.monotonic()
        if self.folder is None or not self.fabric.is_global_zero:
            return
        state = {
            "progress": dataclasses.asdict(self.progress),
            "network": _weights(self.network),
            "best": self.best_weights,
            "optimizer": self.optimizer.state_dict(),
            "logic": {} if self.logic is None else self.logic.state_dict(),
            "teacher": None if self.teacher is None else _weights(self.teacher.copy),
        }
        self.folder.save(CHECKPOINT, state)
        self.folder.write_json(METRICS, *self.progress.history)

    def resume(self) -> None:
        """Go on from the latest checkpoint, if there is one; refuses a damaged one, or one of another version."""
        state = None if self.folder is None else self.folder.load(CHECKPOINT)
        if self.folder is None or state is None:
            return
        try:
            self.progress = Progress(**state["progress"])
            _unwrap(self.network).load_state_dict(state["network"])
            self.best_weights = {name: tensor.to(self.fabric.device) for name, tensor in state["best"].items()}
            rates = [group["lr"] for group in self.optimizer.param_groups]
            self.optimizer.load_state_dict(state["optimizer"])
            # The schedule sets the rates. Those of a checkpoint are on the CPU, where a recorded step never reads them again.
            for group, rate in zip(self.optimizer.param_groups, rates):
                group["lr"] = rate
            if self.logic is not None:
                self.logic.load_state_dict(state["logic"])
            if self.teacher is not None:
                _unwrap(self.teacher.copy).load_state_dict(state["teacher"])
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise DataError(
                f"{self.folder.path / CHECKPOINT} is not a checkpoint of this version ({first_line(error)}); delete it, and the "
                f"run starts from its beginning"
            ) from error

    def finish(self, failure: str | None) -> Result:
        """Measure the chosen weights on the test samples, and write the result."""
        self.network.eval()
        pool = self.problem.inspect(self.network, self.logic, self.step.pool) if failure is None else {}
        diagnosis: dict[str, Any] = {"history": self.progress.diagnoses}
        if failure is None and self.folder is not None:
            diagnosis[POOL] = diagnose_end(self.problem, self.network, self.logic, self.step.pool)
        progress, test, validation = self.progress, {}, {}
        last = self.problem.evaluate(self.network, "test") if failure is None else {}
        if progress.best_epoch >= 0:
            _unwrap(self.network).load_state_dict(self.best_weights)
            test = self.problem.evaluate(self.network, "test")
            if self.folder is not None:
                diagnosis[VALIDATION] = diagnose_end(self.problem, self.network, None, None)
            validation = next(row for row in progress.history if row["epoch"] == progress.best_epoch)
        method, steps = self.config.arm.method, progress.epoch * self.batches.steps
        made: dict[str, Any] = {"config": self.config.as_dict(), "method": "" if method is None else method.describe()}
        made |= {"machine": describe_machine(self.fabric.device), "commit": find_commit(), "date": find_date()}
        made |= {"settings": self.config.settings, "steps": steps, "seconds": progress.seconds, "failure": failure}
        made |= {"validation": validation, "test": test, "last": last, "pool": pool}
        result = Result(chosen_epoch=progress.best_epoch, history=thin(progress.history), **made)
        if self.folder is not None and self.fabric.is_global_zero:
            self.folder.save(MODEL, {name: tensor.cpu() for name, tensor in self.best_weights.items()})
            if self.logic is not None:
                self.folder.save(DUALS, self.logic.state_dict())
            self.folder.write_json(METRICS, *progress.history)
            if VALIDATION in diagnosis:
                self.folder.write_json(DIAGNOSIS, diagnosis)
            kept = {**result.as_dict(), FACTS: list_facts(self.config, result)}
            self.folder.write_json(RESULT, kept, indent=1)
            self.folder.forget(CHECKPOINT)
        return result


def _make_optimizer(config: Config, network: nn.Module, captured: bool, device: torch.device) -> torch.optim.Optimizer:
    task = config.task
    rate: Any = torch.tensor(config.learning_rate, device=device) if captured else config.learning_rate
    shared: dict[str, Any] = {"lr": rate, "weight_decay": task.weight_decay}
    if task.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), **shared, momentum=0.9, nesterov=True, fused=captured)
    return torch.optim.Adam(network.parameters(), **shared, capturable=captured, fused=True if captured else None)


def _unwrap(network: Any) -> nn.Module:
    module: nn.Module = network.module
    return module.module if isinstance(module, nn.parallel.DistributedDataParallel) else module


def _weights(network: Any) -> dict[str, Tensor]:
    return copy.copy(_unwrap(network).state_dict())
