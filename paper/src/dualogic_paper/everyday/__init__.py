"""Everyday problems: what a user would bring, as a benchmark of every method at its defaults.

Each problem has few labels, a pool without, and rules that are true of the world. ``python -m dualogic_paper.everyday`` (or
``dualogic everyday``) trains every method on every problem with eight seeds and makes a table of it; ``docs/everyday.md`` has
the problems and the figures.
"""
