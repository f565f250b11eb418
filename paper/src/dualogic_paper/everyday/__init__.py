"""Everyday problems: what a user would bring, as a benchmark of every method at its defaults.

Each problem has few labels, a pool without, and rules that are true of the world; ``docs/everyday.md`` has the figures.
"""
