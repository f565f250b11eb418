"""What was found while training: from which epoch to which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def list_findings(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Stretches of epochs with the same finding about the same rule, in the order in which they began.

    Args:
        history: entries with ``epoch`` and, where something was judged, ``findings``: pairs of a rule's name and a kind.

    Example:
        >>> entries = [{"epoch": 1, "findings": [["a", "violated"]]}, {"epoch": 2, "findings": [["a", "violated"]]},
        ...     {"epoch": 3, "findings": [["a", "satisfied"]]}]
        >>> [(found["kind"], found["first"], found["last"]) for found in list_findings(entries)]
        [('violated', 1, 2), ('satisfied', 3, 3)]
    """
    found: list[dict[str, Any]] = []
    going: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in history:
        if "findings" not in entry:
            continue
        now = {(str(rule), str(kind)) for rule, kind in entry["findings"]}
        going = {key: stretch for key, stretch in going.items() if key in now}
        for key in sorted(now):
            if key not in going:
                going[key] = {"rule": key[0], "kind": key[1], "first": entry["epoch"]}
                found.append(going[key])
            going[key]["last"] = entry["epoch"]
    return found
