"""Triton kernels: rows of the table, and whole steps. Each has an eager twin, which tests it."""

from dualogic.kernels.fused import jit, usable

__all__ = ["jit", "usable"]
