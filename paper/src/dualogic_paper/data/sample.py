"""Small stand-ins for the data sets, in their exact form and marked as such: for tests and ``--smoke`` runs, never for results.

Digits are scikit-learn's enlarged; symbols of formulas, dark on white, and photographs are a pattern per class under noise.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dualogic.errors import OptionError
from dualogic_paper.data.cache import write_cache
from dualogic_paper.data.schema import ALPHABET, CIFAR10_CLASSES, STL10_CLASSES, Arrays, check_name

Images = NDArray[np.uint8]
CIFAR100_CLASSES = tuple(f"class {number}" for number in range(100))
CIFAR100_COARSE = (  # the superclass of each class
    *(4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7),
    *(6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10),
    *(16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16),
    *(12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13),
)


def make_sample(name: str, folder: Path, seed: int = 0, **sizes: int) -> Path:
    """Write a small stand-in for a data set; ``sizes`` are numbers of rows, ``train``, ``test`` and, for HWF, ``symbols``."""
    check_name(name)
    maker, defaults = _MAKERS[name]
    unknown = sorted(sizes.keys() - defaults.keys())
    if unknown or min(sizes.values(), default=1) < 1:
        raise OptionError(f"the sizes of a sample of {name} are {', '.join(defaults)}, each at least 1; got {sizes}")
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return write_cache(name, maker(rng, **{**defaults, **sizes}), Path(folder), sample=True)[0]


def _make_digits(rng: Generator, train: int, test: int, scale: int, padding: int) -> Arrays:
    """Small digits enlarged, and each shifted by up to half its padding, so that repeated rows differ."""
    from sklearn.datasets import load_digits

    digits, count = load_digits(), train + test
    order = np.concatenate([rng.permutation(len(digits.target)) for _ in range(-(-count // len(digits.target)))])[:count]
    small, labels = (digits.images[order] * (255 / 16)).astype(np.uint8), digits.target[order].astype(np.uint8)
    large = np.pad(small.repeat(scale, 1).repeat(scale, 2), [(0, 0), (padding, padding), (padding, padding)])
    shifts = rng.integers(-(padding // 2), padding // 2 + 1, (len(large), 2)).tolist()
    images = np.stack([np.roll(image, shift, (0, 1)) for image, shift in zip(large, shifts)])
    return {"train_x": images[:train], "train_y": labels[:train], "test_x": images[train:], "test_y": labels[train:]}


def _make_formulas(rng: Generator, symbols: int, train: int, test: int) -> Arrays:
    classes = np.arange(max(symbols, len(ALPHABET))) % len(ALPHABET)
    arrays: Arrays = {"symbols": 255 - _draw(rng, classes, ALPHABET, 45, colours=False), "alphabet": np.array(list(ALPHABET))}
    for split, count in (("train", train), ("test", test)):
        # Like the real set's, some test images occur in training formulas and some do not.
        most = len(classes) if split == "test" else max(len(classes) // 2, len(ALPHABET))
        known = np.arange(len(classes)) < most
        images, labels = np.full((count, 7), -1, np.int32), np.full((count, 7), -1, np.int8)
        for row in range(count):
            for position in range(2 * rng.integers(4) + 1):
                label = rng.integers(9) if position % 2 == 0 else rng.integers(9, 13)
                labels[row, position] = label
                images[row, position] = rng.choice(np.flatnonzero((classes == label) & known))
        results = np.array([_evaluate([int(label) for label in row if label >= 0]) for row in labels])
        arrays |= {f"{split}_images": images, f"{split}_labels": labels, f"{split}_result": results}
    return arrays


def _evaluate(labels: list[int]) -> float:
    """Products and quotients from left to right, then sums; digits 1 to 9 are labels 0 to 8."""
    total, term = 0.0, float(labels[0] + 1)
    for operator, digit in zip((ALPHABET[label] for label in labels[1::2]), labels[2::2]):
        if operator in "*/":
            term = term * (digit + 1) if operator == "*" else term / (digit + 1)
        else:
            total, term = total + term, float(digit + 1 if operator == "+" else -digit - 1)
    return total + term


def _make_photographs(rng: Generator, *, classes: tuple[str, ...], coarse: tuple[int, ...] | None = None, **rows: int) -> Arrays:
    arrays: Arrays = {}
    for split, count in rows.items():
        labels = np.sort(np.arange(count) % len(classes)).astype(np.uint8)
        if coarse is None:
            labels = rng.permutation(labels)
        else:  # sorted by class, as the real set
            arrays[f"{split}_coarse"] = np.array(coarse, np.uint8)[labels]
        arrays |= {f"{split}_x": _draw(rng, labels, classes), f"{split}_y": labels}
    return arrays


def _draw(rng: Generator, labels: NDArray[np.integer], classes: Sequence[str], size: int = 32, colours: bool = True) -> Images:
    # A class has the same pattern in every set that knows it, so that CIFAR-10 transfers to STL-10.
    draws = [np.random.default_rng(zlib.crc32(word.encode())) for word in classes]
    patterns = np.stack([draw.integers(40, 216, (4, 4, 3)) if colours else 230 * (draw.random((8, 8)) < 0.25) for draw in draws])
    places = np.arange(size) * patterns.shape[1] // size
    large: NDArray[np.int64] = patterns[labels][:, places[:, None], places]
    return np.clip(large + rng.normal(0, 25 if colours else 15, large.shape), 0, 255).astype(np.uint8)


_MAKERS: Mapping[str, tuple[Callable[..., Arrays], Mapping[str, int]]] = {
    "mnist": (partial(_make_digits, scale=3, padding=2), {"train": 600, "test": 200}),
    "usps": (partial(_make_digits, scale=2, padding=0), {"train": 200, "test": 100}),
    "hwf": (_make_formulas, {"symbols": 390, "train": 200, "test": 60}),
    "cifar100": (partial(_make_photographs, classes=CIFAR100_CLASSES, coarse=CIFAR100_COARSE), {"train": 400, "test": 200}),
    "cifar10": (partial(_make_photographs, classes=CIFAR10_CLASSES), {"train": 400, "test": 200}),
    "stl10": (partial(_make_photographs, classes=STL10_CLASSES), {"test": 200}),
}
