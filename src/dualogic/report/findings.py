"""What was found while training, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def list_findings(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each finding about each rule with the stretches of epochs in which it was made, in the order in which they began.

    Args:
        history: entries with ``epoch`` and, where something was judged, ``findings``: pairs of a rule's name and a kind.

    Example:
        >>> kinds = ["violated", "violated", "satisfied", "violated"]
        >>> entries = [{"epoch": number, "findings": [["a", kind]]} for number, kind in enumerate(kinds)]
        >>> [(found["kind"], found["epochs"]) for found in list_findings(entries)]
        [('violated', [[0, 1], [3, 3]]), ('satisfied', [[2, 2]])]
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
