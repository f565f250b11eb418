"""What is probably a mistake although it can be computed: each is told once for a loss, as a warning.

Values are looked at in the first calls only, so that no step waits for a device; compiled and captured calls are left alone.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.arguments import shorten
from dualogic.errors import MistakeWarning
from dualogic.formula.connective import Formula
from dualogic.formula.node import walk
from dualogic.formula.symbol import Categorical
from dualogic.normalize.constancy import MOST_NODES, constant_truth, costs_nothing

if TYPE_CHECKING:
    from dualogic.loss.module import LogicLoss

SEVERAL = 3
"""How many calls make a training."""
LONGEST_WATCH = 100
"""How many calls are followed to see whether they follow a pattern."""


def warn_of_idle_rules(rules: Mapping[str, Formula]) -> None:
    """Warn of small rules that no tensor can break, that none can meet, or that cost nothing."""
    for name, formula in rules.items():
        if len(walk(formula)) > MOST_NODES:
            continue
        if (truth := constant_truth(formula)) is not None:
            what = "always true: it teaches nothing" if truth else "never true: no network can satisfy it"
            _warn(
                f"rule {name!r} is {what}; look for a sign or a bound that is the wrong way round: {shorten(str(formula))}",
                depth=5,
            )
        elif costs_nothing(formula):
            _warn(
                f"rule {name!r} costs nothing, because != fails at a single number: {shorten(str(formula))}. Say how far away "
                f"it should be, as in dl.ne(x, 0, margin=0.1)",
                depth=5,
            )


class Mistakes:
    """What one loss has seen of its calls.

    Attributes:
        steps: how many training calls there were, as far as they were counted.
        visits: of how many samples.
        largest: the largest of their batches.
        positions: whether every index so far was 0, 1, 2, ..., as the positions in a batch are.
        parameter: one of those that the latest call in ``eval()`` depends on, with its version when a gradient came back.
        trained: how often it has changed between two such calls.
        late: whether a warning of late gradients was given.
    """

    def __init__(self) -> None:
        self.steps = self.visits = self.largest = self.watched = self.trained = 0
        self.positions, self.late = True, False
        self.parameter: weakref.ref[Tensor] | None = None
        self.version: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Mistakes, ()

    def look(self, loss: LogicLoss, index: Any, tensors: Mapping[str, Any], value: Tensor) -> None:
        """Look at a call that went well: what was given, and what it returns."""
        if not loss.training:
            if self.watched < LONGEST_WATCH and value.grad_fn is not None and not _is_captured(value):
                self._look_for_training(value)
            return
        self.version, self.trained = None, 0
        if not (self.steps < SEVERAL or self.positions) or not torch.is_grad_enabled() or loss._run.frozen:
            return
        if len(next(iter(tensors.values()))) and not _is_captured(value):
            self.steps += 1
            self._look_at_step(loss, index, tensors)

    def look_for_late_gradients(self, given: tuple[str, ...] | None, predicted: tuple[str, ...]) -> None:
        """What had no gradient in the first training call is taken as given from then on."""
        late = sorted({*(given or ())}.intersection(predicted))
        if late and not self.late:
            self.late = True
            _warn(
                f"{' and '.join(map(repr, late))}: had no gradient in the first training call, so that the rules take it as "
                f"given, and has one now; if it should be taught too, call logic.reset_() here, or make a new LogicLoss",
                depth=6,
            )

    def _look_at_step(self, loss: LogicLoss, index: Any, tensors: Mapping[str, Any]) -> None:
        if self.steps == 1:
            _look_for_probabilities(loss, tensors)
            if index is not None and loss.num_samples is None and loss._table.shared and loss._program.width:
                _warn(
                    "an index was given, but this loss has one row of weights for all samples and does not use it: make it with "
                    "LogicLoss(..., num_samples=len(dataset)), or leave the index out",
                    depth=7,
                )
        if self.steps == SEVERAL:  # one call may be there to look at its value
            _look_for_gradients(loss, tensors)
        if self.positions:
            self._look_for_positions(loss, index)

    def _look_for_positions(self, loss: LogicLoss, index: Any) -> None:
        samples = loss.num_samples or 0
        given = torch.as_tensor([] if index is None or not samples else index)
        # A closure evaluates one batch several times; that is what manual updates are for.
        once = loss.update == "forward" and 1 < len(given) < samples
        self.positions = once and torch.equal(given, torch.arange(len(given)).to(given))
        self.visits, self.largest = self.visits + len(given), max(self.largest, len(given))
        if self.positions and self.steps > SEVERAL and (self.visits >= 2 * samples or self.steps > LONGEST_WATCH):
            self.positions = False
            _warn(
                f"the index was 0, 1, 2, ... in each of the first {self.steps} calls, so {samples - self.largest} of the "
                f"{samples} samples were never visited: an index says where samples stand in the data set, not in the batch; "
                f"dl.data.WithIndex(dataset) brings it along"
            )

    def _look_for_training(self, value: Tensor) -> None:
        """In ``eval()`` a gradient may flow, but a network that learns from it should have the loss in training mode."""
        leaf = _find_leaf(value)
        if leaf is None:
            return
        self.watched += 1
        known = self.parameter() if self.parameter is not None else None
        self.trained += known is leaf and self.version is not None and leaf._version > self.version
        if self.trained > 1:
            self.watched = LONGEST_WATCH
            _warn(
                "the network trains on this loss while the loss is in eval(), where it learns nothing and weighs its rules as "
                "if it had seen no sample before: call logic.train() after validation",
                depth=7,
            )
        self.parameter, self.version = weakref.ref(leaf), None
        reference = self.parameter

        def note(gradient: Tensor) -> None:
            parameter = reference()
            self.version = None if parameter is None else parameter._version

        value.register_hook(note)


def _is_captured(value: Tensor) -> bool:
    return value.is_cuda and torch.cuda.is_current_stream_capturing()


def _find_leaf(value: Tensor) -> Tensor | None:
    """Some leaf that a tensor was computed from."""
    stack = [value.grad_fn]
    for _ in range(1000):
        node = stack.pop() if stack else None
        if node is None:
            return None
        leaf: Tensor | None = getattr(node, "variable", None)
        if leaf is not None:
            return leaf
        stack.extend(child for child, _ in node.next_functions if child is not None)
    return None


def _look_for_probabilities(loss: LogicLoss, tensors: Mapping[str, Any]) -> None:
    symbols = loss._program.plan.symbols.items()
    logits = [name for name, symbol in symbols if isinstance(symbol, Categorical) and symbol.input == "logits"]
    if found := [name for name in logits if _are_probabilities(torch.as_tensor(tensors[name]).detach())]:
        _warn(
            f"{' and '.join(map(repr, found))}: declared with input='logits', but what is bound looks like probabilities, each "
            f"row within 0 and 1 and of sum 1: leave the softmax out, or declare it with input='probs'"
        )


def _are_probabilities(values: Tensor) -> bool:
    return bool(((values >= 0) & (values <= 1)).all() & ((values.float().sum(-1) - 1).abs() < 1e-2).all())


def _look_for_gradients(loss: LogicLoss, tensors: Mapping[str, Any]) -> None:
    given = {name: torch.as_tensor(tensor) for name, tensor in tensors.items()}
    fixed = {name for name, tensor in given.items() if not tensor.requires_grad}
    untaught = [name for name, formula in loss.rules.items() if fixed.issuperset(formula.symbols)] if fixed else []
    if not untaught:
        return
    symbols = loss.rules[untaught[0]].symbols
    whole = [name for name in symbols if not given[name].is_floating_point()]
    _warn(
        f"rule {untaught[0]!r} teaches nothing, because no tensor bound to it has a gradient: {', '.join(map(repr, symbols))}. "
        f"Give the network's outputs, neither detached nor made under no_grad"
        + (f"; {', '.join(map(repr, whole))} holds integers, which have none: give scores, not argmax or labels" if whole else "")
        + (f" (and so for {len(untaught) - 1} more rules)" if untaught[1:] else "")
    )


def _warn(message: str, depth: int = 8) -> None:
    """Warn of the line of the user's code that is ``depth`` calls above."""
    warnings.warn(message, MistakeWarning, stacklevel=depth)
