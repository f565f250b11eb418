"""Handwritten digits without a label for 6: what reads as a 9 upside down is a 6."""

import dataclasses
import math
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dualogic import LogicLoss
from dualogic.data import divide_by_class
from dualogic.demo import CLASSES, LEAD, NOT_P, RULE, SIX, Q, rotate
from dualogic.errors import OptionError
from dualogic.methods import Method
from dualogic_paper.arms import Setting, names
from dualogic_paper.data import load, make_sample
from dualogic_paper.models.small import lenet5
from dualogic_paper.tasks.measures import compare_branches, draw_outputs, in_chunks, percent, resize, spread
from dualogic_paper.tasks.task import Column, Drawn, Limit, Outputs, Problem, Samples, Task

NINE = 9
TURNED = (0, 1, -1, -1, -1, -1, 9, -1, 8, 6)  # what each digit is after half a turn; -1 where it is none
WORDS = {"g == 9": "predicting 9 on rotated images", "f == 6": "predicting 6 on upright images"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Digits(Task):
    """MNIST without a label for 6, tested on MNIST and on USPS (the paper's first experiment).

    Attributes:
        held_out: share of each class of the training set that is kept for validation.
        angle: training images are turned by 180 degrees plus or minus at most this; test images by 180.
        exchanged: 9 is the digit without labels, and takes the name 6; what reads as a 6 upside down, named 9, is one.
    """

    name: ClassVar[str] = "digits"
    title: ClassVar[str] = "Handwritten digits, no label for 6 (the pool holds 6s only)"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("accuracy", "MNIST acc."),
        Column("satisfied", "sat."),
        Column("not_p", "not-P", "neither"),
        Column("q", "Q"),
        Column("usps_accuracy", "USPS acc."),
        Column("usps_satisfied", "sat."),
        Column("usps_not_p", "not-P", "neither"),
        Column("usps_q", "Q"),
    )
    choose_by: ClassVar[str] = "accuracy"
    settings: ClassVar[dict[str, Setting]] = {
        "semantic": Setting(weight=0.5, learning_rate=5e-4),
        "dual": Setting(options={"unlabelled": {"f": [SIX]}}),
    }
    arms: ClassVar[tuple[str, ...]] = names()
    views: ClassVar[tuple[str, ...]] = ("same", "teacher")
    mixed: ClassVar[bool] = False
    limits: ClassVar[dict[str, Limit]] = {"held_out": Limit(0, 1, open=True), "angle": Limit(0, 180)}

    epochs: int = 60
    held_out: float = 0.2
    angle: float = 20.0
    exchanged: bool = False

    def make_problem(self, seed: int, folder: Path | None, device: torch.device) -> "DigitsProblem":
        return DigitsProblem(self, seed, folder, device)

    def draw(self, method: Method, samples: int, width: float, generator: torch.Generator) -> Drawn:
        outputs = draw_outputs(2, samples, CLASSES, width=width, generator=generator)
        return {"rule": RULE}, (outputs, {"f": outputs[0], "g": outputs[1]})

    def make_smoke(self, folder: Path) -> "Digits":
        make_sample("mnist", folder)
        make_sample("usps", folder)
        return dataclasses.replace(self, epochs=2, batch=32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DigitsMixed(Digits):
    """The same with a mixed pool: all 6s and half of every other class, whose other half is labelled.

    For 6s the rule must be met by what is read upright (Q), for the rest by what is read upside down (not-P).
    """

    name: ClassVar[str] = "digits-mixed"
    title: ClassVar[str] = "Handwritten digits, no label for 6, mixed pool"
    mixed: ClassVar[bool] = True

    epochs: int = 20


class DigitsProblem(Problem):
    """See :class:`Digits`; images are kept as bytes ``(n, 1, 32, 32)``."""

    def __init__(self, task: Digits, seed: int, folder: Path | None, device: torch.device) -> None:
        self.task = task
        self.rules = {"rule": RULE}
        mnist, usps = load("mnist", folder), load("usps", folder)
        names = torch.arange(CLASSES)
        if task.exchanged:
            names[[SIX, NINE]] = names[[NINE, SIX]]
        labels, test_labels, other_labels = (
            names[torch.from_numpy(digits).long()] for digits in (mnist["train_y"], mnist["test_y"], usps["test_y"])
        )
        validation, training = divide_by_class(labels, CLASSES, lambda count: [round(task.held_out * count)], seed)
        if not len(validation) or not len(training):
            raise OptionError(f"--held-out {task.held_out:g} leaves no image to {'train on' if len(validation) else 'choose by'}")
        images, test_images, other_images = (
            resize(torch.from_numpy(pixels).unsqueeze(1).to(device))
            for pixels in (mnist["train_x"], mnist["test_x"], usps["test_x"])
        )
        self.images, self.labels = images[training.to(device)], labels[training].to(device)
        self.parts = {
            "validation": {"": (images[validation.to(device)], labels[validation].to(device))},
            "test": {"": (test_images, test_labels.to(device)), "usps_": (other_images, other_labels.to(device))},
        }
        sixes = (self.labels == SIX).nonzero().squeeze(1)
        others = (self.labels != SIX).nonzero().squeeze(1)
        if task.mixed:
            others = others[torch.randperm(len(others), generator=torch.Generator().manual_seed(seed)).to(device)]
            half = len(others) // 2
            self.labelled, self.unlabelled = others[:half], torch.cat([sixes, others[half:]])
        else:
            self.labelled, self.unlabelled = others, sixes

    def make_network(self) -> nn.Module:
        return lenet5(CLASSES)

    def outputs(self, network: nn.Module, labelled: Tensor, pool: Tensor | None, teacher: nn.Module | None = None) -> Outputs:
        images, labels = _as_input(self.images[labelled]), self.labels[labelled]
        if pool is None:
            return functional.cross_entropy(network(images), labels), {}
        upright = self.images[pool].float() / 255
        turned = _turn(upright, 180.0, self.task.angle)
        # One pass through the network is faster than three; without batch norm it is the same.
        logits = network(torch.cat([images, _normalize(upright), _normalize(turned)]))
        answers, f, g = logits.split([len(images), len(pool), len(pool)])
        bound: dict[str, Any] = {"f": f, "g": g}
        if teacher is not None:
            bound["believe"] = dict(zip("fg", teacher(torch.cat([_normalize(upright), _normalize(turned)])).chunk(2)))
        return functional.cross_entropy(answers, labels), bound

    def evaluate(self, network: nn.Module, part: Literal["validation", "test"]) -> dict[str, float]:
        found: dict[str, float] = {}
        for prefix, (images, labels) in self.parts[part].items():
            six = labels == SIX
            logits = in_chunks(network, images, _as_input)
            f, g = logits[six], in_chunks(network, rotate(images[six]), _as_input)
            measures = {
                "accuracy": logits.argmax(1) == labels,
                "satisfied": (NOT_P | Q).satisfied(lead=LEAD, f=f, g=g),
                "not_p": NOT_P.satisfied(lead=LEAD, g=g),
                "q": Q.satisfied(lead=LEAD, f=f),
                "false_six": logits[~six].argmax(1) == SIX,
            }
            found.update({prefix + key: percent(holds) for key, holds in measures.items()})
        return found

    def inspect(self, network: nn.Module, logic: LogicLoss | None, pool: Tensor) -> dict[str, float]:
        """Mean weights on both branches beside the share of the pool on which each holds, for 6s and for others."""
        images, six = self.images[pool], self.labels[pool] == SIX
        holds = {
            "not_p": NOT_P.satisfied(lead=LEAD, g=in_chunks(network, rotate(images), _as_input)),
            "q": Q.satisfied(lead=LEAD, f=in_chunks(network, images, _as_input)),
        }
        stored = None if logic is None else logic.weights(torch.arange(len(pool), device=pool.device)).get("rule")
        weights = {} if stored is None else dict(zip(holds, stored.unbind(-1)))
        return compare_branches(holds, weights, {"sixes": six, "others": ~six})

    def samples(self, network: nn.Module, rows: Tensor | None) -> Samples:
        images, labels = self.parts["validation"][""] if rows is None else (self.images, self.labels)
        chosen = spread(len(labels)).to(labels.device) if rows is None else rows
        images, labels = images[chosen], labels[chosen]
        f, g = (in_chunks(network, each, _as_input) for each in (images, rotate(images)))
        turned = torch.tensor(TURNED, device=labels.device)[labels]

        def caption(position: int) -> str:
            return f"read as {_reading(f[position])}, rotated as {_reading(g[position])}"

        def picture(position: int) -> Tensor:
            return torch.cat([images[position], rotate(images[position])], dim=-1)

        truth = {"f": labels, "g": turned}  # that about f comes first: its classes divide the report
        return Samples({"f": f, "g": g}, images, truth, lead=LEAD, words=WORDS, picture=picture, caption=caption)


def _reading(logits: Tensor) -> str:
    """Such as ``"6 (98 %)"``."""
    share, digit = logits.softmax(-1).max(-1)
    return f"{int(digit)} ({100 * share.item():.0f} %)"


def _as_input(images: Tensor) -> Tensor:
    return _normalize(images.float() / 255)


def _normalize(images: Tensor) -> Tensor:
    # Mean and deviation of MNIST's training pixels.
    return (images - 0.1307) / 0.3081


def _turn(images: Tensor, angle: float, spread: float) -> Tensor:
    """Turn images ``(n, 1, s, s)`` by an angle each, drawn uniformly around the given one, in degrees."""
    turns = (angle + spread * (2 * torch.rand(len(images), device=images.device) - 1)) * (math.pi / 180)
    cosine, sine, zero = turns.cos(), turns.sin(), torch.zeros_like(turns)
    matrix = torch.stack([cosine, -sine, zero, sine, cosine, zero], dim=1).view(-1, 2, 3)
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)
