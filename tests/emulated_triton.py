"""Triton's language on a CPU, one program after another: enough for the kernels' arithmetic where there is no compiler for it."""

import contextlib
import itertools
import types
from unittest import mock

import torch

from dualogic.kernels import fused, fused_step


class Pointer:
    """Into the memory of a contiguous tensor, at one place or many."""

    def __init__(self, tensor, offset=0):
        self.flat = tensor.view(-1)
        self.offset = torch.as_tensor(offset)
        self.dtype = types.SimpleNamespace(element_ty=tensor.dtype)

    def __add__(self, offset):
        return Pointer(self.flat, self.offset + offset)


def load(pointer, mask=None, other=0):
    if mask is None:
        return pointer.flat[pointer.offset]
    offset, mask = torch.broadcast_tensors(pointer.offset, torch.as_tensor(mask))
    found = torch.full(offset.shape, other, dtype=pointer.flat.dtype)
    found[mask] = pointer.flat[offset[mask]]
    return found


def store(pointer, value, mask=None):
    offset, value, mask = torch.broadcast_tensors(
        pointer.offset, torch.as_tensor(value), torch.as_tensor(True if mask is None else mask)
    )
    pointer.flat[offset[mask]] = value[mask].to(pointer.flat.dtype)


def language(place):
    return types.SimpleNamespace(
        program_id=lambda axis: torch.tensor(place[axis], dtype=torch.int32),
        load=load,
        store=store,
        arange=torch.arange,
        zeros=lambda shape, dtype: torch.zeros(shape, dtype=dtype),
        zeros_like=torch.zeros_like,
        sum=lambda value, axis=None: value.sum() if axis is None else value.sum(axis),
        max=lambda value, axis: value.amax(axis),
        min=lambda value, axis: value.amin(axis),
        where=torch.where,
        maximum=lambda one, other: torch.maximum(one, torch.as_tensor(other, dtype=one.dtype)),
        minimum=lambda one, other: torch.minimum(one, torch.as_tensor(other, dtype=one.dtype)),
        cast=lambda value, dtype: torch.as_tensor(value).to(dtype),
        exp=torch.exp,
        log=torch.log,
        sqrt=torch.sqrt,
        int8=torch.int8,
        int32=torch.int32,
        int64=torch.int64,
    )


class Kernel:
    """A kernel as Triton launches it: ``kernel[grid](...)``."""

    def __init__(self, function, launched):
        self.function = function
        self.launched = launched

    def __getitem__(self, grid):
        def launch(*arguments, **constants):
            self.launched.append(self.function.__name__)
            values = [Pointer(value) if isinstance(value, torch.Tensor) else value for value in arguments]
            for place in itertools.product(*map(range, grid)):
                tl = language(place)
                with mock.patch.object(fused, "tl", tl, create=True), mock.patch.object(fused_step, "tl", tl, create=True):
                    self.function(*values, **constants)

        return launch


@contextlib.contextmanager
def emulated(launched=None):
    """Within it the fused kernels run here, for tensors on the CPU; their names are added to ``launched``."""
    launched = [] if launched is None else launched
    triton = types.SimpleNamespace(
        cdiv=lambda count, size: -(-count // size), next_power_of_2=lambda count: 1 << max(count - 1, 0).bit_length()
    )
    libdevice = types.SimpleNamespace(erfc=torch.erfc, log1p=torch.log1p)
    with contextlib.ExitStack() as stack:
        for module, names in (
            (fused, ("_fetch", "_advance", "_loss_and_slope", "_delta")),
            (fused_step, ("_find_moves", "_take_step", "_state")),
        ):
            for name in names:
                stack.enter_context(mock.patch.object(module, name, Kernel(getattr(module, name), launched)))
            stack.enter_context(mock.patch.object(module, "triton", triton))
            stack.enter_context(mock.patch.object(module, "libdevice", libdevice, create=True))
        stack.enter_context(mock.patch.object(fused, "usable", lambda tensor: tensor.numel() > 0))
        yield
