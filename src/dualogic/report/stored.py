"""What the files of a run folder hold: read and checked; what is damaged is named in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
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
    task = config["task"]
    if not isinstance(task, dict) or not isinstance(task.get("name"), str):
        raise DataError(f"a configuration in {file} needs a task with its name; got {brief(task)}")
    if not isinstance(config["method"], str):
        raise DataError(f"a configuration in {file} needs the name of a method; got {brief(config['method'])}")
    if not isinstance(config["seed"], int) or isinstance(config["seed"], bool) or not isinstance(config["options"], dict):
        raise DataError(f"a configuration in {file} needs a whole number as seed and options by name; got {brief(config)}")
    nested = [name for name, value in task.items() if isinstance(value, (dict, list))]
    if nested:
        raise DataError(f"a configuration in {file} needs plain hyper-parameters; got {nested[0]}={brief(task[nested[0]])}")
    about = config.get("about", {})
    known = {"title": str, "name": str, "label": str, "taught": bool}
    if not isinstance(about, dict) or any(not isinstance(about[key], kind) for key, kind in known.items() if key in about):
        raise DataError(f"what a configuration in {file} says about its run must be texts; got {brief(about)}")
    return dict(config)


def check_ended(values: dict[str, Any], file: Path) -> dict[str, Any]:
    """What a run that has ended says about itself, as far as a report shows it; refuses what is of another kind."""
    lacking = [name for name in ("config", "seconds") if name not in values]
    if lacking:
        raise DataError(f"a result in {file} lacks {', '.join(lacking)}; delete it, or restore the file")
    check_config(values["config"], file)
    for name, expected, fits in _ENDED:
        if values.get(name) is not None and not fits(values[name]):
            raise DataError(f"{name} of a result in {file} must be {expected}; got {brief(values[name])}")
    test = to_numbers(values.get("test") or {}, f"test in {file}")
    return {**values, "test": test, "history": to_rows(values.get("history") or [], file)}


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


_ENDED: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("method", "a text", lambda value: isinstance(value, str)),
    ("chosen_epoch", "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    ("seconds", "a number", lambda value: is_number(value) and math.isfinite(value)),
    ("commit", "a text", lambda value: isinstance(value, str)),
    ("failure", "a text", lambda value: isinstance(value, str)),
    ("facts", "a list of labels and values", are_pairs),
)


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
