"""The data of the paper's experiments: one checked cache per set, small stand-ins for tests, graphs from a seed."""

from dualogic_paper.data.cache import load
from dualogic_paper.data.graphs import make_graphs
from dualogic_paper.data.sample import make_sample
from dualogic_paper.data.schema import NAMES, SHAPES, unseen_test_symbols

__all__ = ["NAMES", "SHAPES", "load", "make_graphs", "make_sample", "unseen_test_symbols"]
