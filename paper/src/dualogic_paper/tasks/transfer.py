"""CIFAR-10 to STL-10: an image shows a machine or an animal, so each of the two has all of the probability or none."""

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

import dualogic as dl
from dualogic import LogicLoss
from dualogic.errors import OptionError
from dualogic.methods import Method
from dualogic_paper.arms import IMAGE_ARMS
from dualogic_paper.data import load, make_sample
from dualogic_paper.data.schema import CIFAR10_CLASSES as CLASSES
from dualogic_paper.data.schema import STL10_CLASSES as STL_CLASSES
from dualogic_paper.models.convolutional import NETWORKS
from dualogic_paper.tasks.measures import compare_branches, describe_reading, draw_outputs, in_chunks, percent, spread
from dualogic_paper.tasks.task import AT_LEAST_ONE, Column, Drawn, Limit, Outputs, Problem, Samples, Task

MACHINES = ("airplane", "automobile", "ship", "truck")
TOLERANCE = 0.01

GROUPS = torch.tensor([[name in MACHINES, name not in MACHINES] for name in CLASSES]).float()
SUPERCLASSES = dl.constant("superclass", GROUPS)

p = dl.categorical("p", 10, classes=CLASSES, input="logits")
mass = p.probabilities @ SUPERCLASSES  # of machines, and of animals
RULE = ((mass == 0) | (mass == 1)).all()
WORDS = {str(mass == 0): "giving a superclass no mass", str(mass == 1): "giving a superclass all of the mass"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Transfer(Task):
    """ResNet18 on 3,000 labelled and 3,000 unlabelled images of CIFAR-10, tested there and on STL-10 (the paper's appendix).

    Every arm has the same forward passes: without a rule the unlabelled images pass through the network too, for batch norm.

    Attributes:
        labelled: labelled images.
        unlabelled: unlabelled ones.
        validation: images by which the model is chosen.
    """

    name: ClassVar[str] = "cifar10-stl10"
    title: ClassVar[str] = "From CIFAR-10 to STL-10"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("accuracy", "CIFAR-10 class"),
        Column("superclass", "superclass"),
        Column("satisfied", "sat."),
        Column("stl10_accuracy", "STL-10 class"),
        Column("stl10_superclass", "superclass"),
        Column("stl10_satisfied", "sat."),
    )
    choose_by: ClassVar[str] = "accuracy"
    limits: ClassVar[dict[str, Limit]] = dict.fromkeys(("labelled", "unlabelled", "validation"), AT_LEAST_ONE)
    arms: ClassVar[tuple[str, ...]] = IMAGE_ARMS

    epochs: int = 300
    batch: int = 100
    labelled: int = 3000
    unlabelled: int = 3000
    validation: int = 2000
    measure_every: int = 5
    show_pool: bool = True

    def make_problem(self, seed: int, folder: Path | None, device: torch.device) -> "TransferProblem":
        return TransferProblem(self, seed, folder, device)

    def draw(self, method: Method, samples: int, width: float, generator: torch.Generator) -> Drawn:
        outputs = draw_outputs(samples, len(CLASSES), width=width, generator=generator)
        return {"rule": RULE}, (outputs, {"p": outputs})

    def make_smoke(self, folder: Path) -> "Transfer":
        make_sample("cifar10", folder, train=60, test=30)
        make_sample("stl10", folder, test=30)
        return dataclasses.replace(self, epochs=1, batch=10, labelled=20, unlabelled=20, validation=20, measure_every=1)


class TransferProblem(Problem):
    """See :class:`Transfer`; images are kept as bytes ``(n, 3, 32, 32)``."""

    beliefs = "p"

    def __init__(self, task: Transfer, seed: int, folder: Path | None, device: torch.device) -> None:
        self.rules = {"rule": RULE}
        cifar, stl = load("cifar10", folder), load("stl10", folder)
        order = torch.randperm(len(cifar["train_y"]), generator=torch.Generator().manual_seed(seed))
        seen = task.labelled + task.unlabelled
        if seen + task.validation > len(order):
            raise OptionError(
                f"--labelled, --unlabelled and --validation must take at most {len(order)} images together; got "
                f"{task.labelled} + {task.unlabelled} + {task.validation}"
            )
        images, labels = _planes(cifar["train_x"]), torch.from_numpy(cifar["train_y"]).long()
        training, validation = order[:seen], order[seen : seen + task.validation]
        self.images, self.labels = images[training].to(device), labels[training].to(device)
        self.labelled = torch.arange(task.labelled, device=device)
        self.unlabelled = torch.arange(task.labelled, seen, device=device)
        # Mean and deviation of the labelled images alone: the others, and the tests, are not looked at.
        pixels = self.images[: task.labelled].float() / 255
        self.mean = pixels.mean((0, 2, 3)).view(1, 3, 1, 1)
        self.deviation = pixels.std((0, 2, 3)).view(1, 3, 1, 1)
        self.groups = GROUPS.to(device)
        self.is_machine = torch.tensor([name in MACHINES for name in CLASSES], device=device)
        # Of STL-10 the images whose class CIFAR-10 has too, with CIFAR-10's numbers.
        number = torch.tensor([CLASSES.index(name) if name in CLASSES else -1 for name in STL_CLASSES])
        stl_labels = number[torch.from_numpy(stl["test_y"]).long()]
        stl_images, stl_labels = _planes(stl["test_x"])[stl_labels >= 0], stl_labels[stl_labels >= 0]
        self.parts = {
            "validation": {"": (images[validation].to(device), labels[validation].to(device))},
            "test": {
                "": (_planes(cifar["test_x"]).to(device), torch.from_numpy(cifar["test_y"]).long().to(device)),
                "stl10_": (stl_images.to(device), stl_labels.to(device)),
            },
        }

    def make_network(self) -> nn.Module:
        return NETWORKS["resnet18"](len(CLASSES)).to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    def outputs(self, network: nn.Module, labelled: Tensor, pool: Tensor | None, teacher: nn.Module | None = None) -> Outputs:
        images, labels = self._as_input(self.images[labelled]), self.labels[labelled]
        if pool is None:
            return functional.cross_entropy(network(images), labels), {}
        logits = network(torch.cat([images, self._as_input(self.images[pool])]))
        answers, p = logits.split([len(labelled), len(pool)])
        return functional.cross_entropy(answers, labels), {"p": p}

    def evaluate(self, network: nn.Module, part: Literal["validation", "test"]) -> dict[str, float]:
        found: dict[str, float] = {}
        for prefix, (images, labels) in self.parts[part].items():
            logits = in_chunks(network, images, self._as_input)
            predicted = logits.argmax(1)
            found[prefix + "accuracy"] = percent(predicted == labels)
            found[prefix + "superclass"] = percent(self.is_machine[predicted] == self.is_machine[labels])
            found[prefix + "satisfied"] = percent(RULE.satisfied(tol=TOLERANCE, p=logits))
        return found

    def inspect(self, network: nn.Module, logic: LogicLoss | None, pool: Tensor) -> dict[str, float]:
        """How much the duals favour "all of the mass is on machines", beside the share of the pool where it is."""
        logits = in_chunks(network, self.images[pool], self._as_input)
        truth = self.is_machine[self.labels[pool]]
        holds = {
            "no_machine": (mass[0] == 0).satisfied(tol=TOLERANCE, p=logits),
            "machine": (mass[0] == 1).satisfied(tol=TOLERANCE, p=logits),
        }
        stored = None if logic is None else logic.weights(torch.arange(len(pool), device=pool.device)).get("rule/0")
        weights = {} if stored is None else dict(zip(holds, stored[:, 0].unbind(-1)))
        return compare_branches(holds, weights, {"machines": truth, "animals": ~truth})

    def samples(self, network: nn.Module, rows: Tensor | None) -> Samples:
        images, labels = self.parts["validation"][""] if rows is None else (self.images, self.labels)
        chosen = spread(len(labels)).to(labels.device) if rows is None else rows
        images, labels = images[chosen], labels[chosen]
        logits = in_chunks(network, images, self._as_input)
        shown: dict[str, Any] = {
            "picture": lambda position: images[position],
            "caption": lambda position: describe_reading(logits[position].softmax(-1), CLASSES),
        }
        return Samples({"p": logits}, images, labels, CLASSES, tol=TOLERANCE, words=WORDS, **shown)

    def _as_input(self, images: Tensor) -> Tensor:
        scaled = (images.float() / 255 - self.mean) / self.deviation
        return scaled.contiguous(memory_format=torch.channels_last)


def _planes(images: object) -> Tensor:
    """``(n, 32, 32, 3)`` bytes to ``(n, 3, 32, 32)``."""
    return torch.as_tensor(images).permute(0, 3, 1, 2).contiguous()
