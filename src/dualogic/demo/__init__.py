"""The demonstration: a digit that has no label, and the rule that names it.

The images are the 8x8 digits that ship with scikit-learn. No 6 has a label. The rule says that an image which reads as a 9
after half a turn is a 6: ``(g == 9) >> (f == 6)``, with ``f`` the class of an image and ``g`` of the image turned. A network
may learn 6s from it (meet Q), or stop reading turned 6s as 9s (deny P), which is the shortcut.
"""

from dualogic.demo.data import CLASSES, POOLS, SIX, Split, load_split, rotate
from dualogic.demo.study import DEFAULT_METHODS, NO_RULE, Study, check_amounts, choose_methods, choose_pools, run_study
from dualogic.demo.training import LEAD, NOT_P, RULE, Measures, Q, Run, make_network, train

__all__ = ["CLASSES", "DEFAULT_METHODS", "LEAD", "NOT_P", "NO_RULE", "POOLS", "RULE", "SIX", "Measures", "Q", "Run", "Split"]
__all__ += ["Study", "check_amounts", "choose_methods", "choose_pools", "load_split", "make_network", "rotate", "run_study"]
__all__ += ["train"]
