"""Storing rows in fewer bits without losing small steps.

A bfloat16 number has 8 significant bits, so a logit of 4 cannot take a step of less than 0.008 under rounding to the nearest:
it is rounded away each time, and the logit never arrives. Stochastic rounding goes up or down with the probability that makes
its expectation exact, so a logit follows its float32 trajectory in the mean. The random bits are a hash of (step, row,
column): made on the device without waiting for it, the same after a resume, and the same for both occurrences of a sample.
Only what is stored is rounded: the loss of a step uses the new rows as computed.
"""

from __future__ import annotations

import torch
from torch import Tensor

LOW_PRECISION = {torch.bfloat16: 16, torch.float16: 13}
"""How many bits of a float32 each type drops."""

_FLOAT16_LARGEST = 65504.0
_FLOAT16_SMALLEST_NORMAL = 2.0**-14
_FLOAT16_SPACING = 2.0**-24
# Multipliers of splitmix64 and MurmurHash3, as signed numbers.
_ODD_64, _OTHER_ODD_64, _THIRD_ODD_64 = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
_ODD_32, _OTHER_ODD_32, _THIRD_ODD_32 = -0x61C88647, -0x7A143595, -0x3D4D51CB


def to_storage(rows: Tensor, dtype: torch.dtype, step: Tensor, index: Tensor | None) -> Tensor:
    """Rows in the type of a table; stochastically rounded where it has less than float32's precision.

    Infinities stay what they are (-inf marks an operand that does not exist), and numbers that the type holds exactly do not
    change. float16 ends at 65504, where larger numbers stay. What is drawn depends on ``step``, how many came before, and on
    ``index``, the rows' places in the table, ``(batch,)``; ``None`` for a lone row.
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
    """Uniform integers below ``2 ** bits``, at most 16, for every row and column, ``(batch, width)`` int32; a pure function."""
    if index is None:
        index = torch.zeros(1, dtype=torch.long, device=step.device)
    # Few operations, because on a GPU each is a launch. Integer products wrap around.
    rows = torch.add(index * _ODD_64, step, alpha=_OTHER_ODD_64)
    rows = ((rows ^ (rows >> 29)) * _THIRD_ODD_64 >> 32).to(torch.int32)
    columns = torch.arange(1, width + 1, dtype=torch.int32, device=rows.device) * _ODD_32
    mixed = rows.unsqueeze(1) ^ columns
    mixed ^= mixed >> 15
    mixed *= _OTHER_ODD_32
    mixed ^= mixed >> 13
    mixed *= _THIRD_ODD_32
    # The upper bits of a product depend on all lower ones.
    return (mixed >> (32 - bits)).bitwise_and_((1 << bits) - 1)
