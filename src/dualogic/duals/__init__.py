"""Dual variables: their storage, their update rules, and their schedule."""

from dualogic.duals.rules import UPDATE_RULES, UpdateRule

__all__ = ["UPDATE_RULES", "UpdateRule"]
