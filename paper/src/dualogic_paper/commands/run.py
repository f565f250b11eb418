"""``dualogic run``."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import tyro

from dualogic.errors import DataError
from dualogic_paper.arms import parse_options, parse_seeds
from dualogic_paper.convergence import TABLES, run_convergence, save
from dualogic_paper.runner import Config, Machine, run_all
from dualogic_paper.runner.sweep import folder_of
from dualogic_paper.tasks import TASKS, Task


@dataclasses.dataclass(frozen=True)
class Convergence:
    """What the paper proves or claims about convergence, measured on small problems; some minutes on one core.

    Trains no network: of the options below only --runs and --smoke apply.
    """


if TYPE_CHECKING:
    Chosen = Task | Convergence
else:
    CHOICES = {**TASKS, "convergence": Convergence}
    Chosen = Union[tuple(Annotated[task, tyro.conf.subcommand(name)] for name, task in CHOICES.items())]

ALL = "all"


@dataclasses.dataclass(frozen=True)
class Run:
    """Train an experiment of the paper, with one method or several and over several seeds.

    Each run has a folder RUNS/TASK/METHOD/SEED with its configuration, its measures and, when it has ended, its result. A run
    that was stopped goes on where it was; one that has ended is not computed again. `dualogic table TASK --runs RUNS` shows
    the results.
    """

    task: tyro.conf.OmitArgPrefixes[Chosen]
    method: tuple[str, ...] = ("dual",)
    """Methods by name; "none" for no rule, "supervised" for all labels, "all" for all that apply to the task."""
    seeds: str = "0"  # Such as 3, 0,2,5 or 0..4.
    options: tuple[str, ...] = ()  # Options of the method, as name=value: step=0.5 delta=exact.
    weight: float | None = None  # A factor of the rule's loss; by default 1, or what the task sets for the method.
    precision: Literal["32-true", "bf16-mixed", "64-true"] = "32-true"  # Of the network.
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"  # Where to compute; a GPU by default, if there is one.
    devices: int = 1  # Processes, each with a device, that share every batch.
    capture: bool | None = None  # Record a step as a CUDA graph; by default on one GPU.
    compile: bool = False  # Train the network through torch.compile: faster on a GPU, once it is compiled.
    jobs: int = 1  # Runs at a time; they share the device.
    data: Path | None = None  # Folder of the data sets; by default where `dualogic data get` puts them.
    runs: Path = Path("runs")  # Folder of all runs.
    events: bool = False  # Write TensorBoard events into the run folders: measures, delta, and how the weights are distributed.
    smoke: bool = False  # Take seconds, on made-up data, to see that everything works; the numbers mean nothing. Nothing is kept.
    keep: bool = False
    """With --smoke: keep the run in the folder of all runs, as in --smoke --keep --runs smoke, for `dualogic report smoke`."""

    def run(self) -> int:
        """Train, with a progress bar, and print where the results are."""
        from rich.console import Console

        if isinstance(self.task, Convergence):
            return self._measure_convergence()
        with self._place(self.task) as (task, runs, machine):
            configs = self._configs(task)
            try:
                _run_with_progress(configs, machine, runs, self.jobs)
            finally:
                # Runs that have ended are shown even if others stopped with an error.
                console = Console()
                for line in _summaries(configs, runs, self.smoke and not self.keep):
                    console.print(line, highlight=False, markup=False, soft_wrap=True)
        return 0

    def _measure_convergence(self) -> int:
        results = run_convergence(self.smoke)
        for name, table in TABLES.items():
            print(f"{name}\n\n{table(results)}\n")
        if self.keep or not self.smoke:
            folder = self.runs / "convergence"
            save(results, folder)
            print(f"Results and figure: {folder}")
        return 0

    @contextlib.contextmanager
    def _place(self, chosen: Task) -> Iterator[tuple[Task, Path, Machine]]:
        """The task, the folder of runs and the machine; temporary ones for a smoke run."""
        machine = Machine(self.accelerator, self.devices, self.capture, self.compile, data=self.data, events=self.events)
        if not self.smoke:
            yield chosen, self.runs, machine
            return
        with tempfile.TemporaryDirectory() as made:
            task = chosen.make_smoke(Path(made))
            yield task, self.runs if self.keep else Path(made) / "runs", dataclasses.replace(machine, data=Path(made))

    def _configs(self, task: Task) -> list[Config]:
        methods = task.arms if ALL in self.method else self.method
        given = parse_options(self.options)
        shared: dict[str, Any] = {"options": given, "weight": self.weight, "precision": self.precision}
        return [Config(task, method, seed=seed, **shared) for method in methods for seed in parse_seeds(self.seeds)]


def _run_with_progress(configs: list[Config], machine: Machine, runs: Path, jobs: int) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    name, note = TextColumn("{task.description:<28}"), TextColumn("{task.fields[note]}")
    with Progress(name, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), note, transient=True) as progress:
        whole = progress.add_task(f"{len(configs)} runs", total=len(configs), note="")
        one = progress.add_task("", total=configs[0].task.epochs, note="", visible=jobs == 1)

        def start(config: Config) -> None:
            progress.update(one, description=f"{config.task.name} {config.method} {config.seed}", completed=0, note="")

        def epoch(number: int, measures: dict[str, float]) -> None:
            chosen = measures.get(configs[0].task.choose_by)
            progress.update(one, completed=number, note="" if chosen is None else f"{configs[0].task.choose_by} {chosen:.1f}")

        run_all(configs, machine, runs, jobs=jobs, on_start=start, on_epoch=epoch, on_end=lambda config: progress.advance(whole))


def _summaries(configs: list[Config], runs: Path, gone: bool) -> Iterator[str]:
    """A line for each run that has ended."""
    for config in configs:
        folder = folder_of(runs, config)
        with contextlib.suppress(DataError):  # named by who reads it first
            result = folder.result
            if result is not None:
                measured = [(column, result["test"].get(column.key)) for column in config.task.columns]
                shown = [f"{column.key} {value:.{column.decimals}f}" for column, value in measured if value is not None]
                said = f"diverged: {result['failure']}" if result["failure"] else ", ".join(shown)
                place = "" if gone else f". {folder.path}"
                yield f"{config.task.name} {config.method} {config.seed}: {said}{place}"


COMMAND = Run
