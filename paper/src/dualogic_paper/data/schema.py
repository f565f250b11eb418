"""What a cache of each data set holds: keys, element types and shapes; a digest of that; and which symbols of HWF leak."""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualogic.errors import DataError, OptionError

Arrays = dict[str, NDArray[Any]]
SAMPLE_KEY = "sample"
ALPHABET = "123456789+-*/"
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STL10_CLASSES = ("airplane", "bird", "automobile", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")  # its "car"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One array of a cache."""

    shape: tuple[int, ...]  # its exact shape in the real set
    dtype: str = "uint8"  # its element type, as numpy writes it
    rows: str = ""  # what its first axis counts, as others of the same word, of which a sample may have fewer; or nothing


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
    """Refuse arrays that have not the documented form of a data set, naming every difference; samples may have fewer rows.

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
    if name != "hwf":
        return
    if "".join(arrays["alphabet"].tolist()) != ALPHABET:
        raise DataError(f"{where} is not a cache of hwf: its alphabet should be {ALPHABET} and is {arrays['alphabet'].tolist()}")
    for split in ("train", "test"):
        for key, limit in ((f"{split}_images", len(arrays["symbols"])), (f"{split}_labels", len(ALPHABET))):
            values = arrays[key].astype(np.int64)
            if ((values < -1) | (values >= limit)).any():
                raise DataError(f"{where} is not a cache of hwf: {key} should lie in -1..{limit - 1}")


REFERENCE: Mapping[str, str] = {  # the content that the project's results were measured on
    "mnist": "7fee734672dea6608aa7747335ba52c59dd5c68222678cd3ddeeeb776a49ea0d",
    "usps": "420e3afd01a260e9724865da1b8b1c25f9dcac0c156ca2124de0528095641436",
    "hwf": "2a3641de4bdf92bdce2429234895bf51c9c24a21354e4d5db9595141dbbee064",
    "cifar100": "3b376b2c276baa5ed5f96b6589b360c99953f24a32fe596cb5fc189f0416eab6",
    "cifar10": "25f7e0e45f8ac5fbf88483c642d105bc53e88e97f736f3f2031f22b7505815fb",
    "stl10": "b404584ae35a0761e66763b45e93af4d61794b5e6ca2e872d26733183083465a",
}


def digest_content(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """SHA-256 of keys, types, shapes and elements, in the order of the keys."""
    if name == "hwf":  # the rows of its symbols may stand in any order, so each formula is digested with its images
        hashes = np.concatenate([hash_images(arrays["symbols"]), np.zeros((1, 32), np.uint8)])  # the last is what -1 points to
        arrays = {key: array for key, array in arrays.items() if key != "symbols"}
        arrays |= {f"{split}_images": hashes[arrays[f"{split}_images"].astype(np.int64)] for split in ("train", "test")}
    digest = hashlib.sha256()
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data if array.dtype.kind != "U" else "\n".join(array.ravel().tolist()).encode())
    return digest.hexdigest()


def hash_images(images: NDArray[np.generic]) -> NDArray[np.uint8]:
    """The SHA-256 of each image's pixels, ``(n, ...)`` to ``(n, 32)``."""
    rows = [hashlib.sha256(image.tobytes()).digest() for image in images]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), 32)


def unseen_test_symbols(arrays: Mapping[str, NDArray[np.generic]]) -> NDArray[np.bool_]:
    """Mark the symbols of the test formulas, ``(formulas, 7)``, whose image is not, pixel for pixel, one in training."""
    _, pixels = np.unique(hash_images(arrays["symbols"]), axis=0, return_inverse=True)
    pixels = pixels.reshape(-1)
    train, test = arrays["train_images"].astype(np.int64), arrays["test_images"].astype(np.int64)
    seen = np.zeros(len(pixels), bool)
    seen[pixels[train[train >= 0]]] = True
    return (test >= 0) & ~seen[pixels[test]]
