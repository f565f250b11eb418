"""What the files of a run folder hold: read and checked; what is damaged is named in one line."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dualogic.errors import DataError
from dualogic.files import check_regular, read_bytes
from dualogic_paper.runner.result import Result

MOST_BYTES = 64 << 20
"""Of a text file in a run folder; those that runs write have a thousandth of it."""
SEAL = b"\ndualogic sha256 "
"""Stands between a saved file and its checksum; torch.load does not look behind the end of what it reads."""
_LENGTH = len(SEAL) + 64 + 1
PARTS = ("validation", "test", "last", "pool")
"""Fields of a result that hold numbers by name."""

_NEEDED = tuple(field.name for field in dataclasses.fields(Result) if field.default is dataclasses.MISSING)
_EXPECTED: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("method", "a text", lambda value: isinstance(value, str)),
    ("chosen_epoch", "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    ("steps", "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    ("seconds", "a number", lambda value: is_number(value) and math.isfinite(value)),
    ("machine", "texts by name", lambda value: isinstance(value, dict)),
    ("commit", "a text", lambda value: isinstance(value, str)),
    ("failure", "a text or null", lambda value: value is None or isinstance(value, str)),
    ("settings", "values by name or absent", lambda value: value is None or isinstance(value, dict)),
    ("date", "a text or absent", lambda value: value is None or isinstance(value, str)),
)


def read_object(file: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        DataError: if the file is not there, not whole, or holds something else.
    """
    content = _parse(file, read_text(file), "JSON")
    if not isinstance(content, dict):
        raise DataError(f"{file} must hold a JSON object; got {_kind(content)}; delete it and make it again")
    return content


def read_rows(file: Path) -> list[dict[str, float]]:
    """JSON lines, a measured epoch each.

    Raises:
        DataError: if the file is not there, not whole, or holds something else.
    """
    rows = [_parse(file, line, "JSON lines") for line in read_text(file).splitlines()]
    return _check_rows(rows, file)


def read_text(file: Path) -> str:
    """The text of a file of bounded size.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        return read_bytes(file, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file} is not UTF-8 text ({error.reason} at byte {error.start}); delete it and make it again"
        ) from error
    except OSError as error:
        raise DataError(f"{file} cannot be read ({error.strerror or error})") from error


def read_config(file: Path) -> dict[str, Any]:
    """A configuration, as :meth:`~dualogic_paper.runner.config.Config.as_dict` gives it."""
    return check_config(read_object(file), file)


def read_result(file: Path) -> dict[str, Any]:
    """A result, see :class:`~dualogic_paper.runner.result.Result`."""
    return check_result(read_object(file), file)


def check_config(config: Any, file: Path) -> dict[str, Any]:
    """Refuse a configuration that lacks something, or that holds something of another kind."""
    lacking = [name for name in ("task", "method", "options", "seed") if not isinstance(config, dict) or name not in config]
    if lacking:
        raise DataError(f"a configuration in {file} lacks {', '.join(lacking)}; delete it, or restore the file")
    task = config["task"]
    if not isinstance(task, dict) or not isinstance(task.get("name"), str):
        raise DataError(f"a configuration in {file} needs a task with its name; got {_brief(task)}")
    if not isinstance(config["method"], str):
        raise DataError(f"a configuration in {file} needs the name of a method; got {_brief(config['method'])}")
    if not isinstance(config["seed"], int) or isinstance(config["seed"], bool) or not isinstance(config["options"], dict):
        raise DataError(f"a configuration in {file} needs a whole number as seed and options by name; got {_brief(config)}")
    nested = [name for name, value in task.items() if isinstance(value, (dict, list))]
    if nested:
        raise DataError(f"a configuration in {file} needs plain hyper-parameters; got {nested[0]}={_brief(task[nested[0]])}")
    return dict(config)


def check_result(values: Any, file: Path) -> dict[str, Any]:
    """A result with its history in rows; refuses one that lacks something, or that holds something of another kind."""
    lacking = [name for name in _NEEDED if not isinstance(values, dict) or name not in values]
    if lacking:
        raise DataError(f"a result in {file} lacks {', '.join(lacking)}; was it written by `dualogic run`?")
    check_config(values["config"], file)
    for name, expected, fits in _EXPECTED:
        if not fits(values.get(name)):
            raise DataError(f"{name} of a result in {file} must be {expected}; got {_brief(values.get(name))}")
    numbers = {part: to_numbers(values[part], f"{part} in {file}") for part in PARTS}
    return {**values, **numbers, "history": to_rows(values["history"], file)}


def to_numbers(values: Any, place: str) -> dict[str, float]:
    """Numbers by name; null stands for one that is not a number."""
    if not isinstance(values, dict):
        raise DataError(f"{place} must be numbers by name; got {_kind(values)}")
    found: dict[str, float] = {}
    for name, value in values.items():
        if value is not None and not is_number(value):
            raise DataError(f"{name} of {place} must be a number; got {_brief(value)}")
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


def seal(content: bytes) -> bytes:
    """What is written for a saved file: itself, then its checksum.

    Example:
        >>> len(seal(b"content")) - len(b"content")
        82
    """
    return content + SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n"


def load_sealed(file: Path) -> Any:
    """What :func:`torch.save` wrote before :func:`seal`, on the CPU.

    Raises:
        DataError: if a single bit of the file is not what was written.
    """
    way_out = "delete it, and the run starts from its beginning"
    try:
        check_regular(file)
        sealed = file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read ({error.strerror or error})") from error
    if sealed[-_LENGTH : -_LENGTH + len(SEAL)] != SEAL:
        raise DataError(f"{file} does not end with its checksum: it is cut off, damaged or of an older version; {way_out}")
    content = sealed[:-_LENGTH]
    if seal(content) != sealed:
        raise DataError(f"{file} is damaged: its content does not match its checksum; {way_out}")
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
        raise DataError(f"{file} cannot be read by this torch, {torch.__version__} ({_first_line(error)}); {way_out}") from error


def _parse(file: Path, text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not whole {what} ({error}); delete it and make it again") from error


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
