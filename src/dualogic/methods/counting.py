"""What the methods by exact model counting share: rules compiled once into a batched circuit."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dualogic.arguments import check_choice
from dualogic.circuits.circuit import Circuit
from dualogic.circuits.grounding import ground
from dualogic.circuits.network import factor_out, from_sdd
from dualogic.circuits.sdd import VTREES, Compiler
from dualogic.circuits.vocabulary import ABSENT, Vocabulary
from dualogic.compile.binding import Binder, Bound
from dualogic.compile.plan import NOTHING_LEFT, describe_cost
from dualogic.constants import outside_inference
from dualogic.errors import NonFiniteError, OptionError
from dualogic.formula.connective import Formula
from dualogic.methods.base import Method, Program, State


@dataclasses.dataclass(frozen=True)
class CountingMethod(Method):
    """Options of knowledge compilation.

    Quantifiers are written out (a ragged axis at its largest size, a mask as one more variable that is true or false for sure),
    the rule becomes a sentential decision diagram and that a circuit of sums and products, evaluated for a whole batch at once.

    What is believed (``believe=`` of the loss) plays no part: there are no weights that it could decide.

    Args:
        vtree: how variables are split: ``"balanced"`` (shallow circuits), ``"right"`` or ``"left"``.
        max_nodes: refuse a rule whose diagrams have more nodes than this.
    """

    exclusive: ClassVar[bool]  # whether the classes of a categorical exclude each other

    vtree: str = "balanced"
    max_nodes: int = 1_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("vtree", self.vtree, VTREES)
        if not self.max_nodes >= 1:
            raise OptionError(f"max_nodes must be at least 1; got {self.max_nodes!r}")

    def program(self, rules: Mapping[str, Formula]) -> CountingProgram:
        return CountingProgram(rules, self)


class CountingProgram(Program):
    """The negative logarithm of each rule's probability."""

    def __init__(self, rules: Mapping[str, Formula], method: CountingMethod) -> None:
        # There are no tensor operations to plan, only tensors to check.
        self.plan = Checks(rules)  # type: ignore[assignment]
        self.vocabulary, self.circuit = _compile(tuple(rules.items()), method)

    def evaluate(self, bound: Bound) -> Any:
        """Costs ``(batch, rules)``."""
        if self.vocabulary.plain:
            logarithms = self.circuit.of_probabilities(self.vocabulary.probabilities(bound))
        else:
            logarithms = self.circuit(*self.vocabulary.weights(bound))
        costs = (-logarithms).clamp_min(0.0)
        if not self.vocabulary.can_fail:
            return costs
        # Nothing that the network says makes it hold; and nothing is taught, where a finite cost would teach what is left out.
        return torch.where(logarithms < 0.5 * ABSENT, torch.inf, costs)

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        return values, values


class Checks(Binder):
    """The part of a plan that a loss needs when a circuit does the rest: names, symbols and checks."""

    masked = False

    @property
    def teachable(self) -> frozenset[str]:
        """The names of all symbols: nothing is evidence, as markers are refused."""
        return frozenset(self.symbols)

    def refuse_non_finite(self, costs: Tensor, values: Any, limit: float = math.inf) -> None:
        """Raise an error that names the rule whose cost is not finite."""
        sample, rule, found = describe_cost(self.names, costs, limit)
        if costs[sample, rule].item() == math.inf:
            raise NonFiniteError(f"{found}: {NOTHING_LEFT}. Nothing was changed.")
        raise NonFiniteError(f"{found}; look for infinite logits or a diverged network. Nothing was changed.")


@functools.lru_cache(maxsize=64)
def _compile(rules: tuple[tuple[str, Formula], ...], method: CountingMethod) -> tuple[Vocabulary, Circuit]:
    with outside_inference(), torch.device("cpu"):
        return _count(rules, method)


def _count(rules: tuple[tuple[str, Formula], ...], method: CountingMethod) -> tuple[Vocabulary, Circuit]:
    symbols = {name: symbol for _, formula in rules for name, symbol in formula.symbols.items()}
    propositions = [ground(formula, method.name) for _, formula in rules]
    vocabulary = Vocabulary(propositions, symbols, method.exclusive, getattr(method, "exactly_one", False))
    compiler = Compiler(vocabulary.count, method.vtree, method.max_nodes)
    roots = [compiler.compile(proposition) for proposition in vocabulary.propositions]
    for (name, formula), root in zip(rules, roots):
        if root.is_false():
            raise OptionError(
                f"rule {name!r} cannot hold whatever the network says, so its probability is 0 and has no logarithm: {formula}"
            )
    network = from_sdd(roots, vocabulary.count)
    circuit = Circuit(network)
    if (divided := factor_out(network, 4 * circuit.elements + 1000, vocabulary.fixed)) is not None:
        other = Circuit(divided)
        # Dividing costs some digits where weights are extreme, so it must pay.
        circuit = other if other.price < 0.6 * circuit.price else circuit
    return vocabulary, circuit
