"""How a run satisfies its rules, kept in its folder for ``dualogic report``."""

import hashlib
from typing import Any

import torch
from torch import Tensor, nn

from dualogic import LogicLoss
from dualogic.diagnosis import Diagnosis, ShortcutReport
from dualogic.report import POOL, VALIDATION, WORST, keep_part, summarize
from dualogic_paper.tasks.measures import spread
from dualogic_paper.tasks.task import Problem, Samples


@torch.no_grad()
def diagnose_samples(
    problem: Problem, network: nn.Module, logic: LogicLoss | None = None, pool: Tensor | None = None, worst: int = 0
) -> tuple[ShortcutReport, Samples]:
    """A report on validation samples, or on the pool's, with their duals if ``logic`` has the problem's own rules; draws nothing
    at random and changes nothing.
    """
    index = None if pool is None else spread(len(pool)).to(pool.device)
    samples = problem.samples(network, None if pool is None or index is None else pool[index])
    same = logic is not None and pool is not None and logic.rules == problem.rules
    rules, limits = logic if same and logic is not None else problem.rules, {"tol": samples.tol, "lead": samples.lead}
    diagnosis = Diagnosis(rules, **limits, class_cost="probability", worst=worst, classes=samples.classes)
    diagnosis.update(index=index, labels=samples.labels, **samples.tensors)
    return diagnosis.compute(), samples


def diagnose_epoch(problem: Problem, network: nn.Module, logic: LogicLoss | None, pool: Tensor, epoch: int) -> dict[str, Any]:
    """A point of the curves of a report: a summary of both parts for each rule and class."""
    parts = {VALIDATION: None, POOL: pool}
    found = {part: summarize(diagnose_samples(problem, network, logic, rows)[0]) for part, rows in parts.items()}
    return {"epoch": epoch, **found}


def diagnose_end(problem: Problem, network: nn.Module, logic: LogicLoss | None, pool: Tensor | None) -> dict[str, Any]:
    """Everything about one part, ready for JSON: the report, which samples it is about, and pictures of the worst."""
    report, samples = diagnose_samples(problem, network, logic, pool, worst=WORST)
    return keep_part(report, fingerprint(samples), samples.words, samples.picture, samples.caption)


def fingerprint(samples: Samples) -> str:
    """The same for the same samples."""
    digest = hashlib.sha256(str((tuple(samples.inputs.shape), samples.tol, samples.lead)).encode())
    digest.update(samples.inputs.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
