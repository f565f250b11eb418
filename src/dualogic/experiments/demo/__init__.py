"""The demonstration: a digit that has no label, and the rule that names it.

The images are the 8x8 digits that ship with scikit-learn. No 6 has a label. The rule says that an image which reads as a 9
after half a turn is a 6: ``(g == 9) >> (f == 6)``, with ``f`` the class of an image and ``g`` of the image turned. A network
may learn 6s from it (meet Q), or stop reading turned 6s as 9s (deny P), which is the shortcut.
"""

from dualogic.experiments.demo.data import POOLS, Split, load_split, rotate
from dualogic.experiments.demo.measures import RULE, Measures
from dualogic.experiments.demo.study import DEFAULT_METHODS, NO_RULE, Study, choose_methods, choose_pools, run_study
from dualogic.experiments.demo.training import Run, train

__all__ = [
    "DEFAULT_METHODS",
    "NO_RULE",
    "POOLS",
    "RULE",
    "Measures",
    "Run",
    "Split",
    "Study",
    "choose_methods",
    "choose_pools",
    "load_split",
    "rotate",
    "run_study",
    "train",
]
