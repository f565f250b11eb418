"""A digest of what a cache says, whatever way its file is compressed."""

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

    Args:
        name: the data set.
        arrays: arrays that match its schema.

    Example:
        >>> import numpy as np
        >>> arrays = {"test_x": np.zeros((2, 32, 32, 3), np.uint8), "test_y": np.zeros(2, np.uint8)}
        >>> digest_content("stl10", arrays) == digest_content("stl10", dict(reversed(arrays.items())))
        True
        >>> digest_content("stl10", arrays) == digest_content("stl10", arrays | {"test_y": np.ones(2, np.uint8)})
        False
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
    """The SHA-256 of each image's pixels.

    Args:
        images: ``(n, ...)``.

    Returns:
        ``(n, 32)``.
    """
    rows = [hashlib.sha256(image.tobytes()).digest() for image in images]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), 32)


def _follow_images(arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    hashes = np.concatenate([hash_images(arrays["symbols"]), np.zeros((1, 32), np.uint8)])  # the last row is what -1 points to
    followed = {key: array for key, array in arrays.items() if key != "symbols"}
    for split in ("train", "test"):
        followed[f"{split}_images"] = hashes[arrays[f"{split}_images"].astype(np.int64)]
    return followed
