"""Dual variables: their storage and their update rules."""

from dualogic.duals.rules import UPDATE_RULES, UpdateRule

__all__ = ["UPDATE_RULES", "UpdateRule"]
