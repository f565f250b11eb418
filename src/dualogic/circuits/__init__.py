"""Exact model counting for the methods that need it: propositions to decision diagrams to batched tensor operations."""

from dualogic.circuits.circuit import Circuit
from dualogic.circuits.network import factor_out, from_sdd
from dualogic.circuits.sdd import Compiler

__all__ = ["Circuit", "Compiler", "factor_out", "from_sdd"]
