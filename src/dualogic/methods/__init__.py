"""Ways to turn rules into a loss, behind one interface.

``LogicLoss(method=...)`` takes a name from :data:`METHODS`, or an object made here with its options.

================  ==========================  ==================================================================
name              object                      what an ``and`` and an ``or`` come to
================  ==========================  ==================================================================
``dual``          :class:`Dual`               costs weighed by learned duals, per sample
``uniform``       :class:`Uniform`            mean costs
``hard``          :class:`Hard`               largest and smallest cost
``dl2``           :class:`DL2`                sum and product of costs
``pd1``           :class:`PD1`                Lukasiewicz truth, times a multiplier per rule and sample
``pd2``           :class:`PD2`                largest and smallest cost, times such a multiplier
``semantic``      :class:`Semantic`           exact probability, all variables independent
``problog``       :class:`ProbLog`            exact probability, classes exclusive
``godel``         :class:`Godel`              smallest and largest truth
``product``       :class:`Product`            product and probabilistic sum of truths
``lukasiewicz``   :class:`Lukasiewicz`        bounded sums of truths
``ltn``           :class:`LTN`                stable product; p-means for quantifiers
``ste``           :class:`STE`                clauses of rounded truths, straight-through gradients
================  ==========================  ==================================================================

``semantic`` and ``problog`` count models and need finitely many values, so they refuse real-valued comparisons; ``pd1`` refuses
those whose cost exceeds its scale. All others take every rule.
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
    if isinstance(method, type) and issubclass(method, Method):
        raise OptionError(f"method must be an object; got the class {method.__name__}: write {method.__name__}()")
    raise OptionError(f"method must be one of {', '.join(map(repr, METHODS))} or an object from dl.methods; got {method!r}")


__all__ = ["DL2", "LTN", "METHODS", "PD1", "PD2", "STE", "Dual", "Godel", "Hard", "Lukasiewicz", "Method", "ProbLog"]
__all__ += ["Product", "Program", "Semantic", "Uniform", "resolve"]
