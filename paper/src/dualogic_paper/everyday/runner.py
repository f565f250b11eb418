"""Make the runs that are missing, several at a time, each on one thread."""

import concurrent.futures
import dataclasses
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from dualogic.errors import DualogicError, MissingExtraError
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.setting import NONE, Setting
from dualogic_paper.everyday.store import Key, Run, Store
from dualogic_paper.origin import find_commit, find_date

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclasses.dataclass(frozen=True)
class Job:
    """A run that is to be made."""

    problem: str
    setting: Setting
    seed: int

    @property
    def key(self) -> Key:
        """What the run is called in a store."""
        return self.problem, self.setting.method, self.setting.weight, self.seed


def run_missing(
    jobs: Sequence[Job],
    store: Store,
    workers: int = 1,
    commit: str | None = None,
    again: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> int:
    """Make the runs that a store lacks (or all, if ``again``), some at a time, and add each as soon as it has ended.

    Returns how many ended with an error that is nobody's result. They are left out, as are those for which a package is missing.
    """
    done = set() if again else {run.key for run in store.read()}
    missing = [job for job in jobs if job.key not in done]
    report(f"{len(missing)} runs to make, {len(jobs) - len(missing)} there already")
    commit = find_commit() if commit is None else commit
    broken = 0
    for number, (job, outcome) in enumerate(_run_all(missing, workers), start=1):
        what = f"[{number}/{len(missing)}] {job.problem}, {job.setting.label}, seed {job.seed}"
        if isinstance(outcome, Run):
            store.add([dataclasses.replace(outcome, commit=commit)])
            report(f"{what}: {outcome.failure or f'{outcome.seconds:.1f} s'}")
        elif isinstance(outcome, MissingExtraError):
            report(f"{what}: skipped: {outcome}")
        else:
            broken += 1
            report(f"{what}: left out: {type(outcome).__name__}: {outcome}")
    return broken


def run_job(job: Job) -> Run:
    """Train once. What the method refuses, and a breakdown of training, is a result; a missing package is not."""
    torch.set_num_threads(1)
    problem, started = PROBLEMS[job.problem], time.process_time()
    metrics: dict[str, float] = {}
    failure = None
    try:
        metrics = problem(job.setting, job.seed)
    except MissingExtraError:
        raise
    except DualogicError as error:
        failure = f"{type(error).__name__}: {error}"
    return Run(
        *job.key,
        metrics,
        options="" if job.setting.method == NONE else job.setting.make_method().describe(),
        failure=failure,
        seconds=round(time.process_time() - started, 2),
        date=find_date(),
        versions={"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    )


def _run_all(jobs: Sequence[Job], workers: int) -> Iterator[tuple[Job, Run | Exception]]:
    if workers == 1:
        threads = torch.get_num_threads()
        try:
            for job in jobs:
                try:
                    yield job, run_job(job)
                except Exception as failed:
                    yield job, failed
        finally:
            torch.set_num_threads(threads)
        return
    # Set before the workers start: their libraries read it when they are loaded.
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(THREADS)
    try:
        with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(run_job, job): job for job in jobs}
            try:
                for future in concurrent.futures.as_completed(futures):
                    error = future.exception()
                    if error is not None and not isinstance(error, Exception):
                        raise error
                    yield futures[future], future.result() if error is None else error
            finally:
                pool.shutdown(cancel_futures=True)  # an interruption must not wait for hundreds of runs
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
