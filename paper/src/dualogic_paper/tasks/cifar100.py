"""CIFAR-100: an image shows a thing of one superclass, so each superclass has all of the probability or none."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

import dualogic as dl
from dualogic import Formula, LogicLoss
from dualogic.data import divide_by_class
from dualogic.methods import Method
from dualogic_paper.arms import IMAGE_ARMS
from dualogic_paper.data import load, make_sample
from dualogic_paper.models.convolutional import NETWORKS
from dualogic_paper.tasks.augment import PADDING, crop, distort, with_margin
from dualogic_paper.tasks.measures import compare_branches, describe_reading, draw_outputs, in_chunks, percent, spread
from dualogic_paper.tasks.task import Column, Drawn, Limit, Outputs, Problem, Samples, Task

CLASSES, SUPERCLASSES = 100, 20
TOLERANCE = 0.01
TEMPERATURES = (1.0, 2.0, 1.4, 0.7, 0.5, 0.35, 0.25, 0.18, 0.125, 0.09, 0.06)  # by which logits are divided
MOST_INSPECTED = 2000
NAMES = (  # of the superclasses, in the order of their numbers
    *("aquatic mammals", "fish", "flowers", "food containers", "fruit and vegetables", "household electrical devices"),
    *("household furniture", "insects", "large carnivores", "large man-made outdoor things", "large natural outdoor scenes"),
    *("large omnivores and herbivores", "medium-sized mammals", "non-insect invertebrates", "people", "reptiles"),
    *("small mammals", "trees", "vehicles 1", "vehicles 2"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CIFAR100(Task):
    """100 labelled images of each class and 30,000 unlabelled ones (the paper's largest experiment), under one schedule for all.

    Without a rule the unlabelled images pass through the network too, for batch norm. The paper trains for 3,600 epochs.

    Attributes:
        form: how the rule is written: ``"published"``, the mass of each superclass is 0 or 1; ``"each"``, the same as twenty
            rules, each with a ``delta`` of its own; ``"one"``, some superclass has all of the mass.
        model: ``"vgg16"``, ``"resnet50"`` or ``"densenet100"``, in their forms for 32 x 32 pixels.
        labelled: labelled images, as many of each class.
        unlabelled: unlabelled ones, as many of each class.
        validation: images by which the model is chosen, as many of each class.
    """

    name: ClassVar[str] = "cifar100"
    title: ClassVar[str] = "CIFAR-100, 10,000 labelled and 30,000 unlabelled"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("accuracy", "class"),
        Column("superclass", "superclass"),
        Column("satisfied", "sat."),
        Column("entropy", "entropy (nats)", "neither", 2),
    )
    choose_by: ClassVar[str] = "accuracy"
    limits: ClassVar[dict[str, Limit]] = dict.fromkeys(("labelled", "unlabelled", "validation"), Limit(CLASSES))
    arms: ClassVar[tuple[str, ...]] = IMAGE_ARMS
    views: ClassVar[tuple[str, ...]] = ("same", "teacher", "another", "both")
    parts_by: ClassVar[str] = "model"
    parts: ClassVar[Mapping[str, str]] = {"vgg16": "VGG16", "resnet50": "ResNet50", "densenet100": "DenseNet100"}

    epochs: int = 30
    optimizer: Literal["adam", "sgd"] = "sgd"
    learning_rate: float = 0.1
    decay: Literal["none", "cosine"] = "cosine"
    weight_decay: float = 5e-4
    measure_every: int = 5
    show_pool: bool = True
    form: Literal["published", "one", "each"] = "published"
    model: Literal["vgg16", "resnet50", "densenet100"] = "resnet50"
    labelled: int = 10_000
    unlabelled: int = 30_000
    validation: int = 5_000

    def make_problem(self, seed: int, folder: Path | None, device: torch.device) -> "CIFAR100Problem":
        return CIFAR100Problem(self, seed, folder, device)

    def draw(self, method: Method, samples: int, width: float, generator: torch.Generator) -> Drawn:
        outputs = draw_outputs(samples, CLASSES, width=width, generator=generator)
        # Which classes make up a superclass is in the data; any twenty groups of five will do here.
        return write_rules(make_mass(torch.arange(CLASSES) // 5), self.form, NAMES), (outputs, {"p": outputs})

    def make_smoke(self, folder: Path) -> "CIFAR100":
        make_sample("cifar100", folder, train=300, test=30)
        small = {"epochs": 1, "batch": 20, "measure_every": 1, "labelled": 100, "unlabelled": 100, "validation": 100}
        return dataclasses.replace(self, model="vgg16", **small)  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CIFAR100Long(CIFAR100):
    """The same for 200 epochs: a sample of the pool is seen 67 times instead of ten, so that its weights can settle."""

    name: ClassVar[str] = "cifar100-long"
    title: ClassVar[str] = "CIFAR-100 with a longer schedule"

    epochs: int = 200


class CIFAR100Problem(Problem):
    """See :class:`CIFAR100`; images are kept as bytes ``(n, 32, 32, 3)``, those to train on with a mirrored margin."""

    beliefs = "p"
    groups: Tensor

    def __init__(self, task: CIFAR100, seed: int, folder: Path | None, device: torch.device) -> None:
        self.task = task
        arrays = {key: torch.from_numpy(value) for key, value in load("cifar100", folder).items()}
        labels = arrays["train_y"].long()
        sizes = [size // CLASSES for size in (task.labelled, task.unlabelled, task.validation)]
        labelled, unlabelled, validation, _ = divide_by_class(labels, CLASSES, lambda count: sizes, seed)
        training = torch.cat([labelled, unlabelled])
        plain = arrays["train_x"][training].to(device)
        self.images, self.labels = with_margin(plain), labels[training].to(device)
        self.labelled = torch.arange(len(labelled), device=device)
        self.unlabelled = torch.arange(len(labelled), len(training), device=device)
        # Mean and deviation of the labelled images alone: the others, and the tests, are not looked at.
        pixels = plain[: len(labelled)].float() / 255
        self.mean, self.deviation = pixels.mean((0, 1, 2)), pixels.std((0, 1, 2))
        self.parts = {
            "validation": (arrays["train_x"][validation].to(device), labels[validation].to(device)),
            "test": (arrays["test_x"].to(device), arrays["test_y"].long().to(device)),
        }
        superclass = torch.zeros(CLASSES, dtype=torch.long)
        superclass[labels] = arrays["train_coarse"].long()
        self.superclass = superclass.to(device)
        self.groups = functional.one_hot(self.superclass, SUPERCLASSES).float()
        mass = make_mass(superclass)
        self.empty, self.full = mass == 0, mass == 1
        self.published = (self.empty | self.full).all()
        self.rules = write_rules(mass, task.form, NAMES)

    def make_network(self) -> nn.Module:
        return NETWORKS[self.task.model](CLASSES).to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    def outputs(self, network: nn.Module, labelled: Tensor, pool: Tensor | None, teacher: nn.Module | None = None) -> Outputs:
        count = len(labelled)
        images = crop(self.images, labelled if pool is None else torch.cat([labelled, pool]))
        bound: dict[str, Any] = {}
        if pool is not None and teacher is not None:
            bound["believe"] = {"p": teacher(self._as_input(images[count:]))}
            if self.task.view in ("another", "both"):
                images = torch.cat([images, distort(self.images, pool, 255 * self.mean)])
        logits = network(self._as_input(images))
        loss = functional.cross_entropy(logits[:count], self.labels[labelled])
        if pool is None:
            return loss, bound
        taught = logits[-len(pool) :] if self.task.view == "another" and bound else logits[count:]
        return loss, {"p": taught, **bound}

    def evaluate(self, network: nn.Module, part: Literal["validation", "test"]) -> dict[str, float]:
        """Measures in percent; on test images also satisfaction and entropy with scaled logits, ``satisfied_t0.5`` and so on."""
        images, labels = self.parts[part]
        logits = in_chunks(network, images, self._as_input)
        predicted = logits.argmax(1)
        found = {
            "accuracy": percent(predicted == labels),
            "superclass": percent(self.superclass[predicted] == self.superclass[labels]),
        }
        for temperature in TEMPERATURES if part == "test" else TEMPERATURES[:1]:
            mark = "" if temperature == 1 else f"_t{temperature}"
            scaled = logits / temperature
            found["satisfied" + mark] = percent(self.published.satisfied(tol=TOLERANCE, p=scaled))
            found["entropy" + mark] = torch.distributions.Categorical(logits=scaled).entropy().mean().item()
        return found

    def inspect(self, network: nn.Module, logic: LogicLoss | None, pool: Tensor) -> dict[str, float]:
        """Weights on "none" and "all", beside where each holds, for the true superclass and for the others."""
        pool = pool[:MOST_INSPECTED]
        middle = self.images[pool][:, PADDING:-PADDING, PADDING:-PADDING]
        logits = in_chunks(network, middle, self._as_input)
        truth = functional.one_hot(self.superclass[self.labels[pool]], SUPERCLASSES).bool()
        holds = {key: atom.satisfied(tol=TOLERANCE, p=logits) for key, atom in (("none", self.empty), ("all", self.full))}
        rows = torch.arange(len(pool), device=pool.device)
        weights = {} if logic is None else read_weights(logic.weights(rows), NAMES)
        return compare_branches(holds, weights, {"true_superclass": truth, "others": ~truth})

    def samples(self, network: nn.Module, rows: Tensor | None) -> Samples:
        """Divided by superclass: the rule is about these, and a class has few samples."""
        images, labels = self.parts["validation"] if rows is None else (self.images, self.labels)
        chosen = spread(len(labels)).to(labels.device) if rows is None else rows
        images, labels = images[chosen], self.superclass[labels[chosen]]
        if rows is not None:
            images = images[:, PADDING:-PADDING, PADDING:-PADDING]
        logits = in_chunks(network, images, self._as_input)
        masses = logits.softmax(-1) @ self.groups
        words = {str(self.empty): "giving a superclass no mass", str(self.full): "giving a superclass all of the mass"}
        shown: dict[str, Any] = {
            "picture": lambda position: images[position].permute(2, 0, 1),
            "caption": lambda position: describe_reading(masses[position], NAMES),
        }
        return Samples({"p": logits}, images, labels, NAMES, tol=TOLERANCE, words=words, **shown)

    def _as_input(self, images: Tensor) -> Tensor:
        """Bytes ``(n, 32, 32, 3)`` to numbers ``(n, 3, 32, 32)``, channels last in memory."""
        return ((images.float() / 255 - self.mean) / self.deviation).permute(0, 3, 1, 2)


def make_mass(superclass: Tensor) -> Any:
    """The probability of each superclass, as a term over logits ``p``; ``superclass`` gives that of each class, ``(100,)``."""
    p = dl.categorical("p", CLASSES, input="logits")
    return p.probabilities @ dl.constant("superclass", functional.one_hot(superclass, SUPERCLASSES).float())


def write_rules(mass: Any, form: str, names: Sequence[str]) -> dict[str, Formula]:
    """That one of several groups of classes, whose mass is a term of one axis, has all of it; see the forms of :class:`CIFAR100`.

    >>> mass = dl.var("mass", 3)
    >>> write_rules(mass, "one", "abc"), len(write_rules(mass, "each", "abc"))
    ({'rule': (mass == 1).any()}, 3)
    """
    if form == "one":
        return {"rule": (mass == 1).any()}
    if form == "each":
        return {name: (mass[number] == 0) | (mass[number] == 1) for number, name in enumerate(names)}
    return {"rule": ((mass == 0) | (mass == 1)).all()}


def read_weights(stored: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    """What the duals of :func:`write_rules` say: weights ``(batch, groups)`` on "none" (not in the form "one") and on "all"."""
    if "rule/0" not in stored and "rule" in stored:
        return {"all": stored["rule"]}
    if not stored:
        return {}
    clauses = stored["rule/0"] if "rule/0" in stored else torch.stack([stored[name] for name in names], 1)
    return dict(zip(("none", "all"), clauses.unbind(-1)))
