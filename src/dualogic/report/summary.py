"""What a run folder keeps of a diagnosis: the numbers of charts, the whole report, and the worst samples to look at."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from dualogic.diagnosis import ConnectiveReport, ShortcutReport
from dualogic.errors import BindingError

VALIDATION, POOL = "validation", "pool"
"""The parts of a diagnosis: held-out samples, and samples that the rules were trained on, with their duals."""
ALL = "all"
WORST = 12  # samples of the largest cost that are kept for each rule
MOST_POINTS = 60  # points of a curve

Row = TypeVar("Row")


def keep_part(
    report: ShortcutReport,
    samples: str,
    words: Mapping[str, str] | None = None,
    picture: Callable[[int], Tensor] | None = None,
    caption: Callable[[int], str] | None = None,
) -> dict[str, Any]:
    """Everything about one part, ready for JSON: the report, which samples it is about, and how the worst of them look.

    Reports of the same fingerprint ``samples`` are compared. ``words`` say what it means to make a part of the rule true, by its
    text; ``picture`` (see :func:`to_png`) and ``caption`` are of the sample at a position.
    """
    shown = sorted({sample.position for rule in report.rules.values() for sample in rule.worst})
    return {
        "report": report.to_dict(),
        "samples": samples,
        "words": dict(words or {}),
        "pictures": {} if picture is None else {str(position): to_png(picture(position)) for position in shown},
        "captions": {} if caption is None else {str(position): str(caption(position)) for position in shown},
    }


def summarize(report: ShortcutReport) -> dict[str, Any]:
    """The numbers of a report that its charts show: by rule, then by class (:data:`ALL` for all samples)."""
    found: dict[str, Any] = {}
    for name, rule in report.rules.items():
        for group, part in [(ALL, rule), *rule.classes.items()]:
            parts = {each.path: _summarize_part(each) for each in part.connectives if each.operands}
            summary = {"samples": part.samples, "satisfied": _short(part.satisfied), "parts": parts}
            found.setdefault(name, {})[str(group)] = summary
    return found


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


def thin(rows: list[Row]) -> list[Row]:
    """At most :data:`MOST_POINTS` rows of a history, evenly spaced, the first and the last among them.

    Example:
        >>> rows = thin([{"epoch": epoch} for epoch in range(600)])
        >>> len(rows), rows[0]["epoch"], rows[-1]["epoch"]
        (60, 0, 599)
    """
    if len(rows) <= MOST_POINTS:
        return rows
    last = len(rows) - 1
    return [rows[round(position * last / (MOST_POINTS - 1))] for position in range(MOST_POINTS)]


def list_findings(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each finding about each rule with the stretches of epochs in which it was made, in the order in which they began.

    Args:
        history: entries with ``epoch`` and, where something was judged, ``findings``: pairs of a rule's name and a kind.
    """
    found: dict[tuple[str, str], list[list[Any]]] = {}
    before: set[tuple[str, str]] = set()
    for entry in history:
        if "findings" not in entry:
            continue
        now = {(str(rule), str(kind)) for rule, kind in entry["findings"]}
        for key in sorted(now):
            stretches = found.setdefault(key, [])
            if key in before:
                stretches[-1][1] = entry["epoch"]
            else:
                stretches.append([entry["epoch"], entry["epoch"]])
        before = now
    return [{"rule": rule, "kind": kind, "epochs": epochs} for (rule, kind), epochs in found.items()]


def to_png(image: Tensor) -> str:
    """A picture as a PNG file in base64.

    Args:
        image: ``(channels, height, width)`` of one (grey) or three (red, green, blue) channels, or ``(height, width)``; bytes, or
            numbers between 0 and 1.

    Example:
        >>> to_png(torch.zeros(1, 2, 3, dtype=torch.uint8))[:12]
        'iVBORw0KGgoA'
        >>> to_png(torch.ones(2, 3)) == to_png(torch.full((1, 2, 3), 255, dtype=torch.uint8))
        True
    """
    image = torch.as_tensor(image).detach().cpu()
    image = image.unsqueeze(0) if image.dim() == 2 else image
    if image.dim() != 3 or image.shape[0] not in (1, 3):
        raise BindingError(
            f"a picture must have the shape (1 or 3 channels, height, width), or (height, width); got {tuple(image.shape)}"
        )
    if image.is_floating_point():
        image = image.clamp(0, 1).mul(255).round()
    image = image.to(torch.uint8)
    channels, height, width = image.shape
    rows = image.permute(1, 2, 0).reshape(height, width * channels)
    # Each line of pixels begins with the number of its filter: none.
    content = bytes(torch.cat([torch.zeros(height, 1, dtype=torch.uint8), rows], dim=1).flatten().tolist())
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(content, 9)), (b"IEND", b""))
    parts = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()
