"""A digest of what a cache says, whatever way its file is compressed; and which images of HWF its test formulas show first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

REFERENCE: Mapping[str, str] = {
    "mnist": "7fee734672dea6608aa7747335ba52c59dd5c68222678cd3ddeeeb776a49ea0d",
    "usps": "420e3afd01a260e9724865da1b8b1c25f9dcac0c156ca2124de0528095641436",
    "hwf": "2a3641de4bdf92bdce2429234895bf51c9c24a21354e4d5db9595141dbbee064",
    "cifar100": "3b376b2c276baa5ed5f96b6589b360c99953f24a32fe596cb5fc189f0416eab6",
    "cifar10": "25f7e0e45f8ac5fbf88483c642d105bc53e88e97f736f3f2031f22b7505815fb",
    "stl10": "b404584ae35a0761e66763b45e93af4d61794b5e6ca2e872d26733183083465a",
}
"""The content that the project's results were measured on."""


def digest_content(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """SHA-256 of keys, types, shapes and elements, in the order of the keys.

    The rows of HWF's ``symbols`` may stand in any order, so each formula is digested with the images it points to.
    """
    if name == "hwf":
        arrays = _follow_images(arrays)
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
    """Mark the symbols of the test formulas, ``(formulas, 7)``, whose image is not, pixel for pixel, one of a training formula's.

    HWF as published leaks: most images of its test formulas also occur, under other file names, in training formulas.

    Example:
        >>> symbols = np.stack([np.zeros((45, 45)), np.ones((45, 45)), np.ones((45, 45))])
        >>> train, test = np.array([[0, 1, -1]]), np.array([[2, 0, -1]])
        >>> unseen_test_symbols({"symbols": symbols, "train_images": train, "test_images": test})
        array([[False, False, False]])
        >>> unseen_test_symbols({"symbols": symbols, "train_images": train[:, :1], "test_images": test})
        array([[ True, False, False]])
    """
    _, pixels = np.unique(hash_images(arrays["symbols"]), axis=0, return_inverse=True)
    pixels = pixels.reshape(-1)
    train, test = arrays["train_images"].astype(np.int64), arrays["test_images"].astype(np.int64)
    seen = np.zeros(len(pixels), bool)
    seen[pixels[train[train >= 0]]] = True
    return (test >= 0) & ~seen[pixels[test]]


def unseen_test_formulas(arrays: Mapping[str, NDArray[np.generic]]) -> NDArray[np.bool_]:
    """Mark the test formulas ``(test formulas,)`` all of whose symbols are unseen, see :func:`unseen_test_symbols`."""
    ended = arrays["test_images"].astype(np.int64) < 0
    whole: NDArray[np.bool_] = np.all(unseen_test_symbols(arrays) | ended, axis=1)
    return whole


def _follow_images(arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    hashes = np.concatenate([hash_images(arrays["symbols"]), np.zeros((1, 32), np.uint8)])  # the last row is what -1 points to
    followed = {key: array for key, array in arrays.items() if key != "symbols"}
    for split in ("train", "test"):
        followed[f"{split}_images"] = hashes[arrays[f"{split}_images"].astype(np.int64)]
    return followed
