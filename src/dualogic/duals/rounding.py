"""Storing rows in fewer bits without losing small steps.

A bfloat16 number has 8 significant bits, so a logit of 4 cannot take a step of less than 0.008 under rounding to the nearest:
it is rounded away each time, and the logit never arrives. Stochastic rounding goes up or down with the probability that makes
its expectation exact, so a logit follows its float32 trajectory in the mean. The random bits are a hash of (step, row,
column): made on the device without waiting for it, the same after a resume, and the same for both occurrences of a sample.
"""

from __future__ import annotations

import torch
from torch import Tensor

LOW_PRECISION = {torch.bfloat16: 16, torch.float16: 13}
"""How many bits of a float32 each type drops."""

_FLOAT16_LARGEST = 65504.0
_FLOAT16_SMALLEST_NORMAL = 2.0**-14
_FLOAT16_SPACING = 2.0**-24
_WORD = 0xFFFFFFFF


def to_storage(rows: Tensor, dtype: torch.dtype, step: Tensor, index: Tensor | None) -> Tensor:
    """Rows in the type of a table; stochastically rounded where it has less than float32's precision.

    Infinities stay what they are (-inf marks an operand that does not exist), and numbers that the type holds exactly do not
    change. float16 ends at 65504, where larger numbers stay.

    Args:
        rows: ``(batch, width)``.
        dtype: of the table.
        step: how many steps came before, ``()``.
        index: the rows' places in the table, ``(batch,)``; ``None`` for a lone row.

    Example:
        >>> import torch
        >>> rows = torch.full((1, 4000), 4.008)  # a quarter of the way from 4 to its neighbour 4.03125
        >>> rounded = to_storage(rows, torch.bfloat16, torch.tensor(0), None)
        >>> sorted(set(rounded[0].tolist()))
        [4.0, 4.03125]
        >>> print(f"{rounded.float().mean():.3f}")
        4.008
    """
    dropped = LOW_PRECISION.get(dtype)
    if dropped is None:
        return rows.to(dtype)
    rows = rows.float()
    if dtype is torch.float16:
        rows = torch.where(rows.isinf(), rows, rows.clamp(-_FLOAT16_LARGEST, _FLOAT16_LARGEST))
    noise = random_bits(step, index, rows.shape[1], dropped)
    # A carry out of the dropped bits goes to the next number away from zero; infinities have none to drop.
    moved = (rows.contiguous().view(torch.int32) + noise).bitwise_and_(-1 << dropped).view(torch.float32)
    if dtype is torch.float16:
        # Below its normal numbers float16 is evenly spaced, so there the grid is not that of the leading bits.
        tiny = torch.floor(rows / _FLOAT16_SPACING + noise * 2.0**-dropped) * _FLOAT16_SPACING
        moved = torch.where(rows.abs() < _FLOAT16_SMALLEST_NORMAL, tiny, moved)
    return moved.to(dtype)


def random_bits(step: Tensor, index: Tensor | None, width: int, bits: int) -> Tensor:
    """Uniform integers below ``2 ** bits`` for every row and column, ``(batch, width)`` int32; a pure function.

    Args:
        step: ``()``.
        index: ``(batch,)``; ``None`` for a lone row.
        width: the number of columns.
        bits: at most 16.
    """
    if index is None:
        index = torch.zeros(1, dtype=torch.long, device=step.device)
    rows = _scramble(_scramble(step.long() + 1) ^ index)
    columns = _scramble(torch.arange(1, width + 1, device=rows.device))
    mixed = _to_int32(rows).unsqueeze(1) ^ _to_int32(columns)
    mixed.mul_(-1640531535)
    mixed ^= mixed >> 15
    mixed.mul_(-2048144777)
    # The upper bits of a product depend on all lower ones.
    return (mixed >> (32 - bits)).bitwise_and_((1 << bits) - 1)


def _scramble(word: Tensor) -> Tensor:
    """A bijection of 32-bit words, held in int64, under which neighbours have nothing in common (MurmurHash3's finaliser)."""
    word = word & _WORD
    word = ((word ^ (word >> 16)) * 0x85EBCA6B) & _WORD
    word = ((word ^ (word >> 13)) * 0xC2B2AE35) & _WORD
    return word ^ (word >> 16)


def _to_int32(word: Tensor) -> Tensor:
    return (word - 2**31).to(torch.int32)
