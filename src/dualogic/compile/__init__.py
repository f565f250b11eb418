"""From formulas to an immutable plan of tensor operations, one per connective level."""

from dualogic.compile.plan import compile_rules

__all__ = ["compile_rules"]
