"""What a computation does, counted: unlike the time it takes, that does not depend on what else the machine does."""

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def count_calls(function):
    """How many functions are called, of Python and of C, until ``function()`` returns."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def assert_linear(function, size, tolerance=0.3):
    """Twice the size takes about twice the calls; ``function(size)`` prepares, and what it returns is counted."""
    function(size // 2)()  # loads what is loaded once
    once, twice = (count_calls(function(each)) for each in (size, 2 * size))
    assert twice <= (2 + tolerance) * once, f"{once:,} calls at {size:,}, {twice:,} at {2 * size:,}"


class LargestTensor(TorchDispatchMode):
    """Within it, how many elements the largest tensor has that any operation gives."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(value, torch.Tensor):
                self.elements = max(self.elements, value.numel())
        return result
