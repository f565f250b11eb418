"""What the files of a run folder hold: read and checked; what is damaged is named in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from dualogic.errors import DataError
from dualogic.files import read_bytes
from dualogic.formula.shape import shorten

MOST_BYTES = 64 << 20  # of a text file in a run folder; those that runs write have a thousandth of it
CONFIG, METRICS, DIAGNOSIS, RESULT = "config.json", "metrics.jsonl", "diagnosis.json", "result.json"
"""The files of a run: what it is, a row for each measured epoch, how its rules are met, and how it ended."""


def read_object(file: Path) -> dict[str, Any]:
    """A JSON object; a :class:`DataError` if the file is not there, not whole, or holds something else."""
    content = _parse(file, read_text(file), "JSON")
    if not isinstance(content, dict):
        raise DataError(f"{file} must hold a JSON object; got {_kind(content)}; delete it and make it again")
    return content


def read_rows(file: Path) -> list[dict[str, float]]:
    """JSON lines, a measured epoch each; a :class:`DataError` if the file is not there, not whole, or holds something else."""
    return _check_rows([_parse(file, line, "JSON lines") for line in read_text(file).splitlines()], file)


def read_text(file: Path) -> str:
    """The text of a file of bounded size; a :class:`DataError` if it cannot be read."""
    try:
        return read_bytes(file, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file} is not UTF-8 text ({error.reason} at byte {error.start}); delete it and make it again"
        ) from error
    except OSError as error:
        raise DataError(f"{file} cannot be read ({error.strerror or error})") from error


def check_config(config: Any, file: Path) -> dict[str, Any]:
    """Refuse a configuration that lacks something, or that holds something of another kind."""
    lacking = [name for name in ("task", "method", "options", "seed") if not isinstance(config, dict) or name not in config]
    if lacking:
        raise DataError(f"a configuration in {file} lacks {', '.join(lacking)}; delete it, or restore the file")
    task, about = config["task"], config.get("about", {})
    known = {"title": str, "name": str, "label": str, "taught": bool}
    nested = [value for value in task.values() if isinstance(value, (dict, list))] if isinstance(task, dict) else []
    for fits, needed, came in (
        (isinstance(task, dict) and isinstance(task.get("name"), str), "a task with its name", task),
        (isinstance(config["method"], str), "the name of a method", config["method"]),
        (type(config["seed"]) is int, "a whole number as seed", config["seed"]),
        (isinstance(config["options"], dict), "options by name", config["options"]),
        (not nested, "plain hyper-parameters", nested),
        (
            isinstance(about, dict) and all(isinstance(about[key], kind) for key, kind in known.items() if key in about),
            "texts about its run",
            about,
        ),
    ):
        if not fits:
            raise DataError(f"a configuration in {file} needs {needed}; got {brief(came)}")
    return dict(config)


def to_numbers(values: Any, place: str) -> dict[str, float]:
    """Numbers by name; null stands for one that is not a number."""
    if not isinstance(values, dict):
        raise DataError(f"{place} must be numbers by name; got {_kind(values)}")
    found: dict[str, float] = {}
    for name, value in values.items():
        if value is not None and not is_number(value):
            raise DataError(f"{name} of {place} must be a number; got {brief(value)}")
        found[name] = math.nan if value is None else float(value)
    return found


def to_rows(history: Any, file: Path) -> list[dict[str, float]]:
    """A history as rows without the gaps; committed files hold it in columns, which takes a third of the space."""
    if isinstance(history, dict):
        lengths = {len(column) if isinstance(column, list) else -1 for column in history.values()}
        if len(lengths) > 1 or -1 in lengths:
            raise DataError(f"the columns of the history in {file} must be lists of one length")
        history = [dict(zip(history, row)) for row in zip(*history.values())]
    if not isinstance(history, list):
        raise DataError(f"the history in {file} must be a list; got {_kind(history)}")
    rows = _check_rows(history, file)
    return [{name: value for name, value in row.items() if not math.isnan(value)} for row in rows]


def _check_rows(history: list[Any], file: Path) -> list[dict[str, float]]:
    rows = [to_numbers(row, f"the history in {file}") for row in history]
    if not all(math.isfinite(row.get("epoch", math.nan)) for row in rows):
        raise DataError(f"a row of the history in {file} lacks its epoch; delete it and make it again")
    return rows


def is_number(value: Any) -> bool:
    """Whether a value from JSON is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, float) or abs(value) < 2**1023


def are_pairs(value: Any) -> bool:
    """Whether a value from JSON is a list of pairs of texts."""
    pairs = value if isinstance(value, list) else [None]
    return all(isinstance(pair, list) and len(pair) == 2 and all(isinstance(word, str) for word in pair) for pair in pairs)


def _parse(file: Path, text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not whole {what} ({error}); delete it and make it again") from error


def brief(value: Any) -> str:
    """The beginning of what a value looks like, for messages."""
    return shorten(repr(value), 100)


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
