"""What is wrong with a rule before training: questions about rules, answered by an SMT solver (z3)."""

from __future__ import annotations

import sys
import types
from typing import Any

from dualogic.lint.check import lint
from dualogic.lint.finding import Finding

__all__ = ["Finding", "lint"]


class _CallablePackage(types.ModuleType):
    """``dl.lint`` is a function and the name of its package: whichever of the two an import leaves there can be called."""

    def __call__(self, *args: Any, **options: Any) -> list[Finding]:
        return lint(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage
