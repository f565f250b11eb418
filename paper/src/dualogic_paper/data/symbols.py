"""Which symbols of the HWF test formulas no training formula shows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dualogic_paper.data.content import hash_images


def unseen_test_symbols(arrays: Mapping[str, NDArray[np.generic]]) -> NDArray[np.bool_]:
    """Mark the symbols of the test formulas whose image is not, pixel for pixel, one of a training formula's.

    HWF as published leaks: most images of its test formulas also occur, under other file names, in training formulas.
    The formulas that consist of unseen images alone are those with ``(mask | (arrays["test_images"] < 0)).all(1)``, which is
    :func:`unseen_test_formulas`.

    Args:
        arrays: the HWF set, from :func:`dualogic_paper.data.load`.

    Returns:
        ``(test formulas, 7)``; False where a formula has ended.

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
    """Mark the test formulas all of whose symbols are unseen, see :func:`unseen_test_symbols`.

    Args:
        arrays: the HWF set.

    Returns:
        ``(test formulas,)``.

    Example:
        >>> symbols = np.stack([np.zeros((45, 45)), np.ones((45, 45))])
        >>> train, test = np.array([[0, -1]]), np.array([[1, -1], [1, 0]])
        >>> unseen_test_formulas({"symbols": symbols, "train_images": train, "test_images": test})
        array([ True, False])
    """
    ended = arrays["test_images"].astype(np.int64) < 0
    whole: NDArray[np.bool_] = np.all(unseen_test_symbols(arrays) | ended, axis=1)
    return whole
