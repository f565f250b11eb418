"""What is kept of a run, read and checked; what is damaged is named in one line."""

import dataclasses
import hashlib
import io
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dualogic.errors import DataError
from dualogic.files import check_regular
from dualogic.report import brief, check_config, is_number, read_object, to_numbers, to_rows
from dualogic_paper.origin import shorten
from dualogic_paper.runner.config import Config

SEAL = b"\ndualogic sha256 "  # between a saved file and its checksum; torch.load does not look behind what it reads
_LENGTH = len(SEAL) + 64 + 1
PARTS = ("validation", "test", "last", "pool")  # fields of a result that hold numbers by name
ABOUT, FACTS = "about", "facts"  # what a configuration and a result say to ``dualogic report`` besides


@dataclasses.dataclass(frozen=True)
class Result:
    """A run in numbers."""

    config: dict[str, Any]  # see :class:`~dualogic_paper.runner.config.Config`
    method: str  # with all its options, as text
    chosen_epoch: int  # whose weights had the best validation figure
    validation: dict[str, float]  # measures of the chosen weights
    test: dict[str, float]  # measures of the chosen weights; nothing was chosen by them
    last: dict[str, float]  # test measures of the last weights
    pool: dict[str, float]  # what the duals say about the training samples that the rule saw, at the end
    history: list[dict[str, float]]  # a thinned learning curve
    steps: int  # of training
    seconds: float  # of training, without measuring
    machine: dict[str, str]  # where it ran
    commit: str  # of dualogic
    failure: str | None = None  # why training stopped early; ``None`` if it did not
    settings: dict[str, Any] | None = None  # those of the configuration in force; ``None`` in results of earlier versions
    date: str = ""  # of the end of the run, in UTC; empty in results of earlier versions

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON, with numbers to six digits."""
        return shorten(dataclasses.asdict(self))


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


def list_facts(config: Config, result: Result) -> list[list[str]]:
    """Label and value of the settings and measures of a run that has ended, as ``dualogic report`` shows them."""
    from dualogic_paper.tables.naming import describe_column

    facts = [["method", result.method or config.method]]
    if config.options:
        facts.append(["options", ", ".join(f"{key}={value}" for key, value in config.options.items())])
    facts += [["epochs", str(config.task.epochs)], ["chosen epoch", str(result.chosen_epoch)]]
    facts.append(["training", f"{result.seconds:.0f} s"])
    columns = config.task.columns
    measured = [(column, result.test[column.key]) for column in columns if result.test.get(column.key) is not None]
    facts += [[f"test {describe_column(column, columns)}", f"{value:.{column.decimals}f}"] for column, value in measured]
    return [*facts, ["commit", result.commit]]


def read_config(file: Path) -> dict[str, Any]:
    """A configuration, as :meth:`~dualogic_paper.runner.config.Config.as_dict` gives it."""
    config = check_config(read_object(file), file)
    return {name: value for name, value in config.items() if name != ABOUT}


def check_result(values: Any, file: Path) -> dict[str, Any]:
    """A result with its history in rows; refuses one that lacks something, or that holds something of another kind."""
    lacking = [name for name in _NEEDED if not isinstance(values, dict) or name not in values]
    if lacking:
        raise DataError(f"a result in {file} lacks {', '.join(lacking)}; was it written by `dualogic run`?")
    check_config(values["config"], file)
    for name, expected, fits in _EXPECTED:
        if not fits(values.get(name)):
            raise DataError(f"{name} of a result in {file} must be {expected}; got {brief(values.get(name))}")
    numbers = {part: to_numbers(values[part], f"{part} in {file}") for part in PARTS}
    own = {name: value for name, value in values.items() if name != FACTS}
    return {**own, **numbers, "history": to_rows(values["history"], file)}


def seal(content: bytes) -> bytes:
    """What is written for a saved file: itself, then its checksum."""
    return content + SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n"


def load_sealed(file: Path) -> Any:
    """What :func:`torch.save` wrote before :func:`seal`, on the CPU; refused if a single bit is not what was written."""
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
        raise DataError(f"{file} cannot be read by this torch, {torch.__version__} ({first_line(error)}); {way_out}") from error


def first_line(error: BaseException) -> str:
    """What an error says, in short."""
    return next(iter(str(error).splitlines()), type(error).__name__)
