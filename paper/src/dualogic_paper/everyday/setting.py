"""How the rules of a problem are taught: a method with its options and a weight, or no rule at all."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import dualogic as dl
from dualogic_paper.arms import make_arm, parse_options

NONE = "none"  # the name of training without rules
METHODS = (NONE, *dl.methods.METHODS)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A method and the weight of its loss; makes losses, as a :data:`~dualogic_paper.everyday.problem.LossFactory`.

    >>> Setting("dual:step=0.5").make_method().step
    0.5
    >>> Setting("none")({}) is None
    True
    """

    method: str  # a name from :data:`METHODS`, alone or with options: ``"dual"``, ``"dual:share=0.02,rule=exponentiated"``
    weight: float = 1.0  # of the loss of the rules

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise dl.errors.OptionError(
                f"a method must be one of {', '.join(METHODS)}, alone or with options as in dual:step=0.5; got {self.method!r}"
            )
        if self.name != NONE:
            self.make_method()
        elif self.method != NONE:
            raise dl.errors.OptionError(f"without rules there are no options; got {self.method!r}")

    @property
    def name(self) -> str:
        """Of the method, without options."""
        return self.method.partition(":")[0]

    @property
    def label(self) -> str:
        """What tables call it."""
        if self.method == NONE:
            return "no rule"
        return self.method if self.weight == 1.0 else f"{self.method}, weight {self.weight:g}"

    def make_method(self) -> dl.methods.Method:
        """The method as an object."""
        words = [word.strip() for word in self.method.partition(":")[2].split(",") if word]
        method = make_arm(self.name, parse_options(words)).method
        assert method is not None
        return method

    def __call__(
        self, rules: dl.Formula | Mapping[str, dl.Formula], num_samples: int | None = None, **options: Any
    ) -> dl.LogicLoss | None:
        """The loss of some rules; ``None`` for training without them."""
        if self.method == NONE:
            return None
        return dl.LogicLoss(rules, num_samples=num_samples, method=self.make_method(), weight=self.weight, **options)
