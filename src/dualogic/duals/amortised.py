"""Dual variables from features: a small network in place of a table, for streams and for samples never seen before."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.arguments import check_size
from dualogic.duals.memory import Memory
from dualogic.duals.table import Apply, DualTable, Update
from dualogic.errors import OptionError, SampleIndexError, StateError

FAST, SLOW, EPSILON = 0.9, 0.99, 1e-8


@dataclasses.dataclass(frozen=True)
class Amortised:
    """Let a small network say a sample's dual variables, as in ``LogicLoss(rule, table=dl.Amortised(features=64))``.

    What else would be an index is then a float tensor of features ``(batch, features)``: ``logic(features, f=..., g=...)``, in
    training and in ``eval()``, where it serves unseen samples. Features of about unit size suit it best, for instance
    standardised inputs or an embedding; no gradient flows into them.

    The network starts at equal weights. Each update computes the closed-form move of every sample, as for a table, and takes
    one Adam step on ``mean (output - (output + move))^2 / 2``. Its parameters are its own: they are not in ``parameters()``, so
    no optimizer of the user's touches them, and they are saved in ``state_dict()``.

    Args:
        features: numbers per sample.
        hidden: the sizes of the hidden layers.
        rate: of the Adam steps.
        seed: of the initial parameters.
    """

    features: int
    hidden: tuple[int, ...] = (64,)
    rate: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        for size in (self.features, *self.hidden):
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise OptionError(f"features and the sizes in hidden must be numbers of at least 1; got {size!r}")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise OptionError(f"rate must be a finite number above 0; got {self.rate!r}")
        check_size(self.rate, "rate")


class AmortisedTable(DualTable):
    """Rows computed by a network with rectified hidden layers.

    Args:
        width: dual variables per sample.
        dtype: of the parameters; at least float32.
        options: the network's.

    Example:
        >>> import torch
        >>> table = AmortisedTable(3, torch.float32, Amortised(features=2))
        >>> table.fetch(torch.randn(4, 2))[0]
        tensor([0., 0., 0.])
    """

    def __init__(self, width: int, dtype: torch.dtype, options: Amortised) -> None:
        self.options = options
        self.samples = 0
        self.dtype = torch.promote_types(dtype, torch.float32)
        self.largest = numerics.largest_square_root(self.dtype)
        self.sizes = (options.features, *options.hidden, width)
        device = torch.get_default_device()
        self.parameters = [value.to(device) for value in self._initial()]
        self.averages = [torch.zeros_like(value) for value in self.parameters]
        self.squares = [torch.zeros_like(value) for value in self.parameters]

    def _initial(self) -> list[Tensor]:
        generator = torch.Generator("cpu").manual_seed(self.options.seed)
        found = []
        for layer, (inputs, outputs) in enumerate(zip(self.sizes, self.sizes[1:])):
            # Zeros in the last layer: equal weights, whatever the features.
            scale = 0.0 if layer == len(self.sizes) - 2 else math.sqrt(2.0 / inputs)
            found.append(scale * torch.randn(outputs, inputs, generator=generator, dtype=self.dtype, device="cpu"))
            found.append(torch.zeros(outputs, dtype=self.dtype, device="cpu"))
        return found

    @property
    def width(self) -> int:
        return self.sizes[-1]

    @property
    def device(self) -> torch.device:
        return self.parameters[0].device

    @property
    def owner(self) -> str:
        return f"from {self.options.features} features of a sample"

    @property
    def spoilt(self) -> str:
        return (
            "the network of its dual variables makes of the sample's features something that is not finite; standardise the "
            "features, or start again with logic.reset_()"
        )

    def missing_index(self, batch: int) -> str:
        return (
            f"training with table={self.options!r} needs the samples' features: logic(features, ...), a float tensor of shape "
            f"({batch}, {self.options.features}). Call .eval() to use the optimal duals"
        )

    def check_index(self, index: Any, batch: int, at_once: bool, where: Any = None) -> Tensor:
        """The features ``(batch, features)``, in the network's type."""
        given = torch.as_tensor(index, device=self.device)
        if not given.dtype.is_floating_point:
            raise SampleIndexError(
                f"with table={self.options!r} the first argument holds the samples' features, as floats; got {given.dtype}"
            )
        if given.shape != (batch, self.options.features):
            raise SampleIndexError(
                f"features must have shape ({batch}, {self.options.features}), as in table={self.options!r}; got "
                f"{tuple(given.shape)}"
            )
        features: Tensor = given.detach().to(self.dtype)
        if where is not None:
            features = torch.where(torch.as_tensor(where, device=self.device).unsqueeze(1), features, 0.0)
        if at_once and not bool(features.isfinite().all()):
            raise SampleIndexError("features must be finite; got NaN or an infinity. Nothing was changed")
        return features

    def fetch(self, index: Tensor) -> Tensor:
        """The rows of samples with features ``index``, ``(batch, width)``."""
        with torch.no_grad():
            return self._layers(index)[-1]

    def fetch_checked(self, index: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        rows = self.fetch(index)
        # Finite features may still be so large that what the network makes of them is not.
        good = index.isfinite().all(1) & rows.isfinite().all(1)
        flags[0] |= ~good.all()
        keep = good.unsqueeze(1)
        return torch.where(keep, rows, 0.0), torch.where(keep, index, 0.0), good

    def _layers(self, features: Tensor) -> list[Tensor]:
        """The features, each hidden layer, and the rows."""
        found = [features]
        for layer in range(0, len(self.parameters), 2):
            if layer:
                found[-1] = found[-1].relu()
            found.append(torch.nn.functional.linear(found[-1], *self.parameters[layer : layer + 2]))
        return found

    def advance(
        self,
        index: Tensor,
        rows: Tensor,
        moves: Tensor,
        apply: Apply,
        counted: Tensor | None,
        selected: Tensor | None = None,
    ) -> Update:
        new = apply(rows, moves)
        return Update(new, index, new, selected if counted is None else counted)

    def commit(self, update: Update, step: Tensor) -> None:
        """One step of the network towards new rows."""
        assert update.index is not None
        layers = self._layers(update.index)
        slope = layers[-1] - update.rows.to(self.dtype)
        gate: Tensor | float = 1.0
        if update.selected is None:
            slope = slope / max(1, update.rows.shape[0])
        else:
            # The rows of the others are their own outputs, up to rounding. Where nothing is selected nothing moves.
            count = update.selected.sum()
            slope = torch.where(update.selected.unsqueeze(1), slope, 0.0) / count.clamp_min(1)
            gate = (count > 0).to(self.dtype)
        gradients: list[Tensor] = []
        for layer in reversed(range(len(self.sizes) - 1)):
            gradients = [slope.T @ layers[layer], slope.sum(0), *gradients]
            if layer:
                slope = (slope @ self.parameters[2 * layer]) * (layers[layer] > 0)
        done = step.to(self.dtype) + 1.0
        fast, slow = 1.0 - FAST**done, 1.0 - SLOW**done
        for value, average, square, gradient in zip(self.parameters, self.averages, self.squares, gradients):
            # Adam's steps do not depend on the gradient's size, so one whose square would overflow can be cut.
            gradient = gradient.nan_to_num(0.0).clamp(-self.largest, self.largest)
            average.lerp_(gradient, gate * (1.0 - FAST))
            square.lerp_(gradient.square(), gate * (1.0 - SLOW))
            value.sub_(gate * self.options.rate * (average / fast) / ((square / slow).sqrt() + EPSILON))

    def to_(self, device: torch.device) -> None:
        for values in (self.parameters, self.averages, self.squares):
            values[:] = [value.to(device) for value in values]

    def reset_(self) -> None:
        for value, fresh, average, square in zip(self.parameters, self._initial(), self.averages, self.squares):
            value.copy_(fresh)
            average.zero_()
            square.zero_()

    def extend_(self, samples: int) -> None:
        raise StateError(
            f"extend({samples}) has nothing to grow: with table={self.options!r} a network says the dual variables of any sample"
        )

    def changing(self) -> list[Tensor]:
        return [*self.parameters, *self.averages, *self.squares]

    def state(self) -> dict[str, Tensor]:
        groups = {"parameters": self.parameters, "averages": self.averages, "squares": self.squares}
        return {f"table.{name}.{number}": value for name, group in groups.items() for number, value in enumerate(group)}

    def memory(self) -> Memory:
        total = sum(value.numel() * value.element_size() for value in self.changing())
        return Memory(0, total, f"a network in {str(self.dtype).removeprefix('torch.')} on {self.device}")
