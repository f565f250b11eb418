"""Ways to turn rules into a loss, behind one interface.

``LogicLoss(method=...)`` takes a name from :data:`METHODS`, or an object made here with its options.
"""

from __future__ import annotations

from typing import Any

from dualogic.errors import OptionError
from dualogic.methods.base import Method, Program
from dualogic.methods.dl2 import DL2
from dualogic.methods.dual import Dual
from dualogic.methods.godel import Godel
from dualogic.methods.hard import Hard
from dualogic.methods.ltn import LTN
from dualogic.methods.lukasiewicz import Lukasiewicz
from dualogic.methods.primal_dual import PD1, PD2
from dualogic.methods.problog import ProbLog
from dualogic.methods.product import Product
from dualogic.methods.semantic import Semantic
from dualogic.methods.ste import STE
from dualogic.methods.uniform import Uniform

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Dual, Uniform, Hard, DL2, PD1, PD2, Semantic, ProbLog, Godel, Product, Lukasiewicz, LTN, STE)
}


def resolve(method: Any) -> Method:
    """A method object from its name, or the object itself.

    Example:
        >>> resolve("uniform").class_cost
        'log'
    """
    if isinstance(method, Method):
        return method
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]()
    raise OptionError(f"method must be one of {', '.join(map(repr, METHODS))} or an object from dl.methods; got {method!r}")


__all__ = [
    "DL2",
    "LTN",
    "METHODS",
    "PD1",
    "PD2",
    "STE",
    "Dual",
    "Godel",
    "Hard",
    "Lukasiewicz",
    "Method",
    "ProbLog",
    "Product",
    "Program",
    "Semantic",
    "Uniform",
    "resolve",
]
