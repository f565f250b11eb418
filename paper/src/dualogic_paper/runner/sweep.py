"""Several runs, one after the other or some at a time."""

import concurrent.futures
import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from dualogic.errors import DataError, DualogicError, MissingDataError, OptionError, StateError
from dualogic_paper.runner.config import Config, Machine
from dualogic_paper.runner.folder import CONFIG, RunFolder
from dualogic_paper.runner.stored import first_line
from dualogic_paper.runner.train import OnEpoch, train


def folder_of(runs: Path, config: Config) -> RunFolder:
    """Where a run is kept: ``RUNS/TASK/METHOD/SEED``."""
    return RunFolder(runs / config.task.name / config.method / str(config.seed))


def run_all(
    configs: Sequence[Config],
    machine: Machine,
    runs: Path | Sequence[Path],
    *,
    jobs: int = 1,
    on_start: Callable[[Config], None] = lambda config: None,
    on_epoch: OnEpoch | None = None,
    on_end: Callable[[Config], None] = lambda config: None,
) -> list[Path]:
    """Train each configuration that has no result yet, in the folder of all runs or one for each; those that were stopped go on.

    Refuses at once if a folder holds a run of another configuration; after all runs, if some stopped with an error or have
    damaged files. Returns the folders; ``on_epoch`` is called only with one job at a time.
    """
    if jobs < 1:
        raise OptionError(f"--jobs must be at least 1; got {jobs}")
    roots = [runs] * len(configs) if isinstance(runs, Path) else runs
    folders = [folder_of(root, config) for root, config in zip(roots, configs)]
    new = [folder for folder in folders if not (folder.path / CONFIG).exists()]
    errors: dict[str, BaseException] = {}
    waiting = []
    try:
        for folder, config in zip(folders, configs):
            try:
                folder.open(config)
                if folder.result is None:
                    waiting.append((folder, config))
            except DataError as error:  # damaged: no reason to stop the others
                errors[str(folder.path)] = error
        if jobs == 1:
            for folder, config in waiting:
                on_start(config)
                try:
                    train(config, machine, folder, on_epoch)
                except MissingDataError:
                    raise
                except (RuntimeError, OSError, DualogicError) as error:
                    errors[str(folder.path)] = error
                on_end(config)
        else:
            spawn = multiprocessing.get_context("spawn")
            with concurrent.futures.ProcessPoolExecutor(jobs, spawn, torch.set_num_threads, (1,)) as pool:
                futures = {pool.submit(train, config, machine, folder): (folder, config) for folder, config in waiting}
                for future in concurrent.futures.as_completed(futures):
                    folder, config = futures[future]
                    raised = future.exception()
                    if raised is not None:
                        errors[str(folder.path)] = raised
                    on_end(config)
    finally:
        for folder in new:
            folder.remove_unused()
    if errors:
        lines = {path: first_line(error) for path, error in errors.items()}
        reasons = "; ".join(line if path in line else f"{path}: {line}" for path, line in lines.items())
        first = next(iter(errors.values()))
        raise StateError(f"{len(errors)} of {len(configs)} runs stopped with an error: {reasons}") from first
    return [folder.path for folder in folders]
