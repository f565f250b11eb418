"""What a cache of each data set holds: keys, element types and shapes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualogic.errors import DataError, OptionError

Arrays = dict[str, NDArray[Any]]
SAMPLE_KEY = "sample"
ALPHABET = "123456789+-*/"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One array of a cache."""

    shape: tuple[int, ...]  # its exact shape in the real set
    dtype: str = "uint8"  # its element type, as numpy writes it
    # what its first axis counts; entries with the same word have as many rows, and a sample may have fewer. Empty for an array
    # whose shape is fixed in samples too.
    rows: str = ""


def _images(split: str, rows: int, *image: int, labels: tuple[str, ...] = ("y",)) -> dict[str, Entry]:
    labelled = {f"{split}_{label}": Entry((rows,), rows=split) for label in labels}
    return {f"{split}_x": Entry((rows, *image), rows=split), **labelled}


def _formulas(split: str, rows: int) -> dict[str, Entry]:
    return {
        f"{split}_images": Entry((rows, 7), "int32", split),
        f"{split}_labels": Entry((rows, 7), "int8", split),
        f"{split}_result": Entry((rows,), "float64", split),
    }


SHAPES: Mapping[str, Mapping[str, Entry]] = {
    "mnist": _images("train", 60_000, 28, 28) | _images("test", 10_000, 28, 28),
    "usps": _images("train", 7_291, 16, 16) | _images("test", 2_007, 16, 16),
    "hwf": {
        "symbols": Entry((20_758, 45, 45), rows="symbols"),
        "alphabet": Entry((13,), "<U1"),
        **_formulas("train", 10_000),
        **_formulas("test", 2_000),
    },
    "cifar100": _images("train", 50_000, 32, 32, 3, labels=("y", "coarse"))
    | _images("test", 10_000, 32, 32, 3, labels=("y", "coarse")),
    "cifar10": _images("train", 10_000, 32, 32, 3) | _images("test", 10_000, 32, 32, 3),
    "stl10": _images("test", 8_000, 32, 32, 3),
}
NAMES: tuple[str, ...] = tuple(SHAPES)


def check_name(name: str) -> None:
    """Refuse a data set that does not exist."""
    if name not in SHAPES:
        raise OptionError(f"a data set is one of {', '.join(NAMES)}; got {name!r}")


def check_schema(name: str, arrays: Mapping[str, NDArray[np.generic]], *, sample: bool, where: str) -> None:
    """Compare arrays with the documented form of a data set, and refuse them naming every difference.

    In a sample any number of rows will do, as long as arrays that belong together have equally many.

    Example:
        >>> import numpy as np
        >>> arrays = {"test_x": np.zeros((8_000, 32, 32, 3), np.uint8), "test_y": np.zeros((8_000,), np.int64)}
        >>> check_schema("stl10", arrays, sample=False, where="stl10.npz")
        Traceback (most recent call last):
            ...
        dualogic.errors.DataError: stl10.npz is not a cache of stl10: test_y should be uint8 (8000,) and is int64 (8000,)
    """
    check_name(name)
    entries = SHAPES[name]
    rows: dict[str, int] = {}
    for key, entry in entries.items():
        if sample and entry.rows and key in arrays and arrays[key].ndim > 0:
            rows.setdefault(entry.rows, len(arrays[key]))
    differences = []
    for key, entry in entries.items():
        shape = (rows.get(entry.rows, entry.shape[0]), *entry.shape[1:])
        expected = f"{key} should be {entry.dtype} {shape}"
        if key not in arrays:
            differences.append(f"{expected} and is missing")
        elif arrays[key].shape != shape or arrays[key].dtype != np.dtype(entry.dtype):
            differences.append(f"{expected} and is {arrays[key].dtype} {arrays[key].shape}")
    unknown = sorted(arrays.keys() - entries.keys())
    if unknown:
        differences.append(f"{', '.join(unknown)} should not be there")
    if differences:
        raise DataError(f"{where} is not a cache of {name}: {'; '.join(differences)}")
    if name == "hwf":
        _check_formulas(arrays, where)


def _check_formulas(arrays: Mapping[str, NDArray[np.generic]], where: str) -> None:
    if "".join(arrays["alphabet"].tolist()) != ALPHABET:
        raise DataError(f"{where} is not a cache of hwf: its alphabet should be {ALPHABET} and is {arrays['alphabet'].tolist()}")
    for split in ("train", "test"):
        for key, limit in ((f"{split}_images", len(arrays["symbols"])), (f"{split}_labels", len(ALPHABET))):
            values = arrays[key].astype(np.int64)
            if ((values < -1) | (values >= limit)).any():
                raise DataError(f"{where} is not a cache of hwf: {key} should lie in -1..{limit - 1}")
