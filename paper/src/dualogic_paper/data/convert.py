"""The official files of each data set, read into the form of its cache."""

import bz2
import gzip
import io
import json
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dualogic.errors import DataError
from dualogic_paper.data.schema import ALPHABET, Arrays

FOLDERS = {"*": "times", "/": "div"}  # how HWF names the folders of symbols that cannot be file names
MOST_BYTES = 256 << 20  # of any official file once unpacked; the largest, STL-10's test images, has 221 million
MOST_PIXELS = 256
UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, IndexError, TypeError, AttributeError),  # gzip and bz2 use the first for damage
    *(pickle.UnpicklingError, tarfile.TarError, zipfile.BadZipFile, zlib.error),
)


def convert(name: str, files: Mapping[str, Path]) -> Arrays:
    """Read the official files of a data set, whose paths are given by official name, into the form of ``SHAPES``."""
    try:
        return _CONVERTERS[name](files)
    except UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        named = ", ".join(str(path) for path in files.values())
        raise DataError(f"{named} cannot be read as {name} ({type(error).__name__}: {error}); fetch it again") from error


def _convert_mnist(files: Mapping[str, Path]) -> Arrays:
    arrays: Arrays = {}
    for split, prefix in (("train", "train"), ("test", "t10k")):
        arrays[f"{split}_x"] = _read_idx(files[f"{prefix}-images-idx3-ubyte.gz"], axes=3)
        arrays[f"{split}_y"] = _read_idx(files[f"{prefix}-labels-idx1-ubyte.gz"], axes=1)
    return arrays


def _read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """IDX: two zero bytes, 8 for uint8, the number of axes, their lengths as big-endian integers, the elements."""
    with gzip.open(path) as file:
        raw = _read_at_most(file, path)
    if raw[:4] != bytes([0, 0, 8, axes]):
        raise DataError(f"{path} should begin with the bytes 0 0 8 {axes} and begins with {raw[:4].hex(' ')}")
    shape: list[int] = np.frombuffer(raw, ">u4", axes, offset=4).tolist()
    elements: NDArray[np.uint8] = np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)
    return elements


def _convert_usps(files: Mapping[str, Path]) -> Arrays:
    """LIBSVM lines of a label 1..10 and 256 values in [-1, 1], rounded to the nearest of 0..255."""
    from sklearn.datasets import load_svmlight_file

    arrays: Arrays = {}
    for split, file in (("train", "usps.bz2"), ("test", "usps.t.bz2")):
        with bz2.open(files[file]) as lines:
            text = io.BytesIO(_read_at_most(lines, files[file]))
        values, labels = load_svmlight_file(text, n_features=256, zero_based=False)
        dense = values.toarray()
        if len(labels) == 0 or labels.min() < 1 or labels.max() > 10 or np.abs(dense).max() > 1:
            raise DataError(f"{files[file]} should hold labels 1 to 10 and values in [-1, 1]")
        arrays[f"{split}_x"] = np.rint((dense + 1) * 127.5).astype(np.uint8).reshape(-1, 16, 16)
        arrays[f"{split}_y"] = (labels - 1).astype(np.uint8)
    return arrays


def _convert_cifar10(files: Mapping[str, Path]) -> Arrays:
    """The first of the five training batches, which is more than the paper's 3,000 + 3,000 images, and the test batch."""
    members = {"train": "cifar-10-batches-py/data_batch_1", "test": "cifar-10-batches-py/test_batch"}
    arrays: Arrays = {}
    for split, batch in _read_batches(files["cifar-10-python.tar.gz"], members).items():
        arrays |= {f"{split}_x": batch["images"], f"{split}_y": np.array(batch["labels"], np.uint8)}
    return arrays


def _convert_cifar100(files: Mapping[str, Path]) -> Arrays:
    """Rows are sorted by class, then by the name of the image's file."""
    members = {"train": "cifar-100-python/train", "test": "cifar-100-python/test"}
    arrays: Arrays = {}
    for split, batch in _read_batches(files["cifar-100-python.tar.gz"], members).items():
        fine, coarse = np.array(batch["fine_labels"], np.uint8), np.array(batch["coarse_labels"], np.uint8)
        order = np.lexsort([np.array(batch["filenames"]), fine])
        arrays[f"{split}_x"] = batch["images"][order]
        arrays |= {f"{split}_y": fine[order], f"{split}_coarse": coarse[order]}
    return arrays


class _ArrayUnpickler(pickle.Unpickler):
    """Reads dictionaries, lists, text and numpy arrays, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        rebuild: Any = np.empty(0).__reduce__()[0]
        allowed = {
            ("numpy.core.multiarray", "_reconstruct"): rebuild,
            ("numpy._core.multiarray", "_reconstruct"): rebuild,
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
        }
        if (module, name) == ("_codecs", "encode"):  # how Python 3 writes bytes for Python 2
            return super().find_class(module, name)
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a batch of images")
        return allowed[module, name]


def _read_batches(path: Path, members: Mapping[str, str]) -> dict[str, Any]:
    raw = _read_members(path, members)
    batches = {split: _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load() for split, content in raw.items()}
    for batch in batches.values():
        batch["images"] = np.ascontiguousarray(batch["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return batches


def _convert_stl10(files: Mapping[str, Path]) -> Arrays:
    """The test images, shrunk from 96x96 to 32x32 by Pillow's bilinear filter; labels from 0."""
    from PIL import Image

    archive = files["stl10_binary.tar.gz"]
    members = _read_members(archive, {"x": "stl10_binary/test_X.bin", "y": "stl10_binary/test_y.bin"})
    labels = np.frombuffer(members["y"], np.uint8)
    large = np.frombuffer(members["x"], np.uint8).reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1)  # columns come first in the file
    shrink = [Image.fromarray(np.ascontiguousarray(one)).resize((32, 32), Image.Resampling.BILINEAR) for one in large]
    return {"test_x": np.stack([np.asarray(one) for one in shrink]), "test_y": labels - np.uint8(1)}


def _read_members(path: Path, members: Mapping[str, str]) -> dict[str, bytes]:
    """Some files of a compressed archive, by key; reads no further than the last of them, and writes nothing."""
    wanted = {member: key for key, member in members.items()}
    found: dict[str, bytes] = {}
    with tarfile.open(path, "r|gz") as archive:
        for entry in archive:
            name = entry.name.removeprefix("./")
            file = archive.extractfile(entry) if name in wanted else None
            if file is not None:
                found[wanted[name]] = _read_at_most(file, path)
            if len(found) == len(wanted):
                return found
    missing = [member for member, key in wanted.items() if key not in found]
    raise DataError(f"{path} should hold {' and '.join(missing)}")


def _read_at_most(file: IO[bytes] | gzip.GzipFile, path: Path, most: int = MOST_BYTES) -> bytes:
    """All of a compressed file, unless it is a bomb."""
    content = file.read(most + 1)
    if len(content) > most:
        raise DataError(f"{path} grows to more than {most:,} bytes when unpacked, which no official file does; fetch it again")
    return content


def _convert_hwf(files: Mapping[str, Path]) -> Arrays:
    """Formulas as lists of image names, and the images; equal images become one row, in the order of their first use."""
    arrays: Arrays = {"alphabet": np.array(list(ALPHABET))}
    rows: dict[str, int] = {}  # by name
    seen: dict[bytes, int] = {}  # by pixels
    symbols: list[NDArray[np.uint8]] = []
    path = files["HWF.zip"]
    with zipfile.ZipFile(path) as archive:
        base = min((name for name in archive.namelist() if name.endswith("expr_train.json")), key=len, default=None)
        if base is None:
            raise DataError(f"{path} should hold expr_train.json, expr_test.json and the folder Handwritten_Math_Symbols")
        base = base.removesuffix("expr_train.json")
        for split in ("train", "test"):
            with archive.open(f"{base}expr_{split}.json") as text:
                formulas = json.loads(_read_at_most(text, path))
            images, labels = np.full((len(formulas), 7), -1, np.int32), np.full((len(formulas), 7), -1, np.int8)
            for i, formula in enumerate(formulas):
                text, names = formula["expr"], formula["img_paths"]
                folders = [name.split("/")[0] for name in names]
                expected = [FOLDERS.get(symbol, symbol) for symbol in text]
                if folders != expected:
                    raise DataError(f"{path}: the images of {text} should be from the folders {expected} and are from {folders}")
                for name in names:
                    if name not in rows:
                        pixels = _read_symbol(archive.open(f"{base}Handwritten_Math_Symbols/{name}"))
                        rows[name] = seen.setdefault(pixels.tobytes(), len(symbols))
                        if rows[name] == len(symbols):
                            symbols.append(pixels)
                images[i, : len(text)] = [rows[name] for name in names]
                labels[i, : len(text)] = [ALPHABET.index(symbol) for symbol in text]
            arrays |= {f"{split}_images": images, f"{split}_labels": labels}
            arrays[f"{split}_result"] = np.array([formula["res"] for formula in formulas], np.float64)
    return {"symbols": np.stack(symbols), **arrays}


def _read_symbol(file: IO[bytes]) -> NDArray[np.uint8]:
    from PIL import Image

    with file, Image.open(file) as picture:
        if max(picture.size) > MOST_PIXELS:
            raise DataError(f"a symbol of {picture.size[0]} x {picture.size[1]} pixels is none of HWF, whose are 45 x 45")
        return np.asarray(picture.convert("L"), np.uint8)


_CONVERTERS: Mapping[str, Callable[[Mapping[str, Path]], Arrays]] = {
    "mnist": _convert_mnist,
    "usps": _convert_usps,
    "hwf": _convert_hwf,
    "cifar100": _convert_cifar100,
    "cifar10": _convert_cifar10,
    "stl10": _convert_stl10,
}
