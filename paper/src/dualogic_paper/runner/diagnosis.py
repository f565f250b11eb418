"""How a run satisfies its rules, kept in its folder for ``dualogic report``."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from typing import Any

import torch
from torch import Tensor, nn

from dualogic import LogicLoss
from dualogic.diagnosis import ConnectiveReport, Diagnosis, RuleReport, ShortcutReport
from dualogic_paper.tasks.task import Problem, Samples, spread

VALIDATION, POOL = "validation", "pool"
ALL = "all"
WORST = 12
"""Samples of the largest cost that are kept for each rule."""


@torch.no_grad()
def diagnose_samples(
    problem: Problem, network: nn.Module, logic: LogicLoss | None = None, pool: Tensor | None = None, worst: int = 0
) -> tuple[ShortcutReport, Samples] | None:
    """A report on validation samples, or on samples of the pool with their duals.

    Nothing is drawn at random and nothing is changed, so that a run computes the same with and without it.

    Args:
        problem: whose rules and samples these are.
        network: in evaluation mode.
        logic: whose duals are looked at, if it has the problem's own rules.
        pool: numbers of the pool's samples, rows of the table in this order; ``None`` for validation samples.
        worst: how many samples of the largest cost to keep.

    Returns:
        ``None`` if the task has nothing to show.
    """
    index = None if pool is None else spread(len(pool)).to(pool.device)
    samples = problem.samples(network, None if pool is None or index is None else pool[index])
    if samples is None:
        return None
    same = logic is not None and pool is not None and logic.rules == problem.rules
    diagnosis = Diagnosis(
        logic if same and logic is not None else problem.rules,
        tol=samples.tol,
        lead=samples.lead,
        class_cost="probability",
        worst=worst,
        classes=samples.classes,
    )
    diagnosis.update(index=index, labels=samples.labels, **samples.tensors)
    return diagnosis.compute(), samples


def diagnose_epoch(
    problem: Problem, network: nn.Module, logic: LogicLoss | None, pool: Tensor, epoch: int
) -> dict[str, Any] | None:
    """A point of the curves of a report: a summary of both parts for each rule and class."""
    found: dict[str, Any] = {"epoch": epoch}
    for part, rows in ((VALIDATION, None), (POOL, pool)):
        diagnosed = diagnose_samples(problem, network, logic, rows)
        if diagnosed is not None:
            found[part] = summarize(diagnosed[0])
    return found if len(found) > 1 else None


def diagnose_end(problem: Problem, network: nn.Module, logic: LogicLoss | None, pool: Tensor | None) -> dict[str, Any] | None:
    """Everything about one part, ready for JSON: the report, which samples it is about, and pictures of the worst."""
    diagnosed = diagnose_samples(problem, network, logic, pool, worst=WORST)
    if diagnosed is None:
        return None
    report, samples = diagnosed
    shown = sorted({sample.position for rule in report.rules.values() for sample in rule.worst})
    return {
        "report": report.to_dict(),
        "samples": fingerprint(samples),
        "words": dict(samples.words),
        "pictures": {str(position): to_png(samples.picture(position)) for position in shown if samples.picture is not None},
        "captions": {str(position): samples.caption(position) for position in shown if samples.caption is not None},
    }


def summarize(report: ShortcutReport) -> dict[str, Any]:
    """The numbers of a report that its charts show: by rule, then by class (:data:`ALL` for all samples)."""
    return {
        name: {
            ALL: _summarize_rule(rule),
            **{str(label): _summarize_rule(part) for label, part in rule.classes.items()},
        }
        for name, rule in report.rules.items()
    }


def _summarize_rule(rule: RuleReport) -> dict[str, Any]:
    return {
        "samples": rule.samples,
        "satisfied": _short(rule.satisfied),
        "parts": {part.path: _summarize_part(part) for part in rule.connectives if part.operands},
    }


def _summarize_part(part: ConnectiveReport) -> dict[str, Any]:
    found: dict[str, Any] = {
        "holds": [_short(operand.holds) for operand in part.operands],
        "alone": [_short(operand.alone) for operand in part.operands],
        "together": _short(part.together),
        "none": _short(part.none),
    }
    if any(operand.weight is not None for operand in part.operands):
        found["weights"] = [_short(operand.weight) for operand in part.operands]
    return found


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def fingerprint(samples: Samples) -> str:
    """The same for the same samples."""
    digest = hashlib.sha256(str((tuple(samples.inputs.shape), samples.tol, samples.lead)).encode())
    digest.update(samples.inputs.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def to_png(image: Tensor) -> str:
    """Bytes ``(channels, height, width)`` of one (grey) or three (red, green, blue) channels as a PNG file in base64.

    Example:
        >>> to_png(torch.zeros(1, 2, 3, dtype=torch.uint8))[:12]
        'iVBORw0KGgoA'
    """
    channels, height, width = image.shape
    rows = image.permute(1, 2, 0).reshape(height, width * channels).cpu()
    # Each line of pixels begins with the number of its filter: none.
    content = torch.cat([torch.zeros(height, 1, dtype=torch.uint8), rows], dim=1).contiguous().numpy().tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(content, 9)), (b"IEND", b""))
    parts = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()
