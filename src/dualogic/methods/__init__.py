"""Ways to turn rules into a loss, behind one interface.

``LogicLoss(method=...)`` takes a name from :data:`METHODS`, or an object made here with its options.
"""

from __future__ import annotations

from typing import Any

from dualogic.errors import OptionError
from dualogic.methods.base import Method, Program
from dualogic.methods.dual import Dual
from dualogic.methods.hard import Hard
from dualogic.methods.uniform import Uniform

METHODS: dict[str, type[Method]] = {method.name: method for method in (Dual, Uniform, Hard)}


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


__all__ = ["METHODS", "Dual", "Hard", "Method", "Program", "Uniform", "resolve"]
