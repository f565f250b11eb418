"""Benchmarks of speed: one file each, with its call line; ``python -m dualogic_paper.speed.run`` makes every figure."""
