"""The loss of one or several rules: what a call needs, what one step does, what can be read, and the module for users."""

from dualogic.loss.inspection import View
from dualogic.loss.module import LogicLoss

__all__ = ["LogicLoss", "View"]
