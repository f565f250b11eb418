"""What the paper proves or claims about convergence, measured on problems small enough to know the answer.

Theorem 3's rate with the exact minimiser of ``delta``; where Algorithm 1 as printed comes to rest; how fast the dual variables
settle and change their mind under each update rule; and whether gradient steps on weights and ``delta`` in turn ever cycle.
"""

from dualogic_paper.convergence.study import run_convergence, save
from dualogic_paper.convergence.table import TABLES

__all__ = ["TABLES", "run_convergence", "save"]
