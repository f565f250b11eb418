"""Digits without a label for 6: what is labelled, what the rule sees, and what is held out."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from dualogic.data import divide_by_class
from dualogic.errors import OptionError, needs

CLASSES = 10
SIX = 6
HELD_OUT = 0.3
POOLS = ("sixes", "mixed")


@dataclasses.dataclass(frozen=True)
class Split:
    """One division of the digits; images are ``(n, 1, 8, 8)`` in [0, 1], labels ``(n,)``."""

    labelled: Tensor  # training images that the task loss sees; none is a 6
    labels: Tensor  # their classes
    pool: Tensor  # training images that the rule sees, without labels
    pool_is_six: Tensor  # which of the pool are 6s; for reports only, never for training
    held_out: Tensor  # images that no loss sees
    held_out_labels: Tensor  # their classes, 6 among them

    @property
    def held_out_sixes(self) -> Tensor:
        """The held-out 6s."""
        return self.held_out[self.held_out_labels == SIX]


def rotate(images: Tensor) -> Tensor:
    """Turn images ``(..., height, width)`` by 180 degrees; exact, because both axes are reversed."""
    return images.flip(-2, -1)


def load_split(pool: str, seed: int) -> Split:
    """Divide the digits of each class at random: 30 % held out, the rest for training.

    The labelled set is the training images of all classes but 6. The pool is the training 6s (``"sixes"``, the paper's
    setting) or all training images (``"mixed"``), whose 6s the network has to tell apart by itself.
    """
    if pool not in POOLS:
        raise OptionError(f"pool must be one of {', '.join(map(repr, POOLS))}; got {pool!r}")
    images, labels = load_digits()
    tested, training = divide_by_class(labels, CLASSES, lambda count: [round(HELD_OUT * count)], seed)
    is_six = labels[training] == SIX
    sixes, others = training[is_six], training[~is_six]
    seen = sixes if pool == "sixes" else torch.cat([sixes, others])
    return Split(images[others], labels[others], images[seen], labels[seen] == SIX, images[tested], labels[tested])


def load_digits() -> tuple[Tensor, Tensor]:
    """All digits that come with scikit-learn: images ``(1797, 1, 8, 8)`` in [0, 1], and labels ``(1797,)``."""
    with needs("demo", "the demo's digits come with scikit-learn"):
        from sklearn.datasets import load_digits as read_digits
    digits = read_digits()
    images = torch.as_tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    return images, torch.as_tensor(digits.target, dtype=torch.long)
