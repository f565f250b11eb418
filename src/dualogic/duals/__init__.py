"""Dual variables: their storage, their update rules, and their schedule."""
