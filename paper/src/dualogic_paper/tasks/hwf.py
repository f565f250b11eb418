"""Handwritten formulas of which few are labelled: no two operators stand side by side."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

import dualogic as dl
from dualogic import Formula, LogicLoss
from dualogic.errors import OptionError
from dualogic.methods import Method
from dualogic_paper.arms import Setting, names
from dualogic_paper.data import load, make_sample, unseen_test_symbols
from dualogic_paper.data.schema import ALPHABET
from dualogic_paper.models.small import lenet5
from dualogic_paper.tasks.augment import PADDING, turn
from dualogic_paper.tasks.measures import draw_outputs, in_chunks, percent, resize, spread
from dualogic_paper.tasks.task import AT_LEAST_ONE, SHARE, Column, Drawn, Limit, Outputs, Problem, Samples, Task

CLASSES = 13
DIGITS, OPERATORS = range(9), range(9, CLASSES)  # 1 to 9, then + - * /
PLUS, MINUS, TIMES, OVER = OPERATORS
LENGTHS = tuple(f"length {count}" for count in range(8))  # formulas have no class: reports divide them by their number of symbols
TOLERANCE = 0.01  # how far a sum of probabilities may be off and still count as equal, as in the paper's tables
SAME_RESULT = 1e-9  # more than what rounding does, less than what different fractions differ by
PAPER = 255  # the brightness of what nothing is written on
IGNORED = -100  # what cross-entropy leaves out

# The paper's rule, about real numbers: sums of probabilities.
n = dl.axis("n", max=7)
x, valid = dl.var("x", n, CLASSES), dl.mask("valid", n)
digit, operator = x[..., :9].sum(-1), x[..., 9:].sum(-1)
BOTH_DIGITS = digit[1:] + digit[:-1] == 2
ONE_OPERATOR = operator[1:] + operator[:-1] == 1
RULE = (BOTH_DIGITS | ONE_OPERATOR).all(where=valid[1:])
WORDS = {str(BOTH_DIGITS): "reading two neighbours as digits", str(ONE_OPERATOR): "reading one of two neighbours as an operator"}

# The same about classes, bound to the same probabilities.
symbol = dl.categorical("x", CLASSES, shape=(n,))
both_digits = symbol[1:].isin(DIGITS) & symbol[:-1].isin(DIGITS)
one_operator = dl.Xor(symbol[1:].isin(OPERATORS), symbol[:-1].isin(OPERATORS))
CLASS_RULE = (both_digits | one_operator).all(where=valid[1:])
ABOUT_CLASSES = ("semantic", "problog", "pd1", "godel", "lukasiewicz", "product", "ltn", "ste")
"""Methods that count worlds, or whose truth of a class is its probability; those made of costs have the paper's rule."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HWF(Task):
    """Formulas of up to seven symbols, 2 % of them labelled and 80 % unlabelled (the paper's second experiment).

    Attributes:
        held_out: how many training formulas are kept for validation.
        labelled_share: share of the training formulas whose symbols are labelled.
        unlabelled_share: share of the training formulas in the pool.
        ink: the network sees the amount of ink, 0 for paper, instead of brightness from -1 to 1, which is 1 for paper.
    """

    name: ClassVar[str] = "hwf"
    title: ClassVar[str] = "Handwritten formulas, 2 % labelled and 80 % unlabelled"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("accuracy", "acc."),
        Column("satisfied", "sat."),
        Column("symbol_accuracy", "symbols"),
        Column("unseen_symbol_accuracy", "unseen symbols"),
        Column("rewritten_accuracy", "rewritten acc."),
        Column("rewritten_satisfied", "sat."),
        Column("kinds_known_accuracy", "acc. if kinds known", "neither"),
    )
    choose_by: ClassVar[str] = "accuracy"
    limits: ClassVar[dict[str, Limit]] = {"held_out": AT_LEAST_ONE, "labelled_share": SHARE, "unlabelled_share": SHARE}
    settings: ClassVar[dict[str, Setting]] = {"semantic": Setting(weight=0.5, learning_rate=5e-4)}
    arms: ClassVar[tuple[str, ...]] = names()
    views: ClassVar[tuple[str, ...]] = ("same", "teacher", "another")

    epochs: int = 600
    weight_decay: float = 1e-5
    measure_every: int = 10
    held_out: int = 1000
    labelled_share: float = 0.02
    unlabelled_share: float = 0.8
    ink: bool = False

    def make_problem(self, seed: int, folder: Path | None, device: torch.device) -> "HWFProblem":
        return HWFProblem(self, seed, folder, device)

    def draw(self, method: Method, samples: int, width: float, generator: torch.Generator) -> Drawn:
        outputs = draw_outputs(samples, 7, CLASSES, width=width, generator=generator)
        tensors = {"x": outputs.softmax(-1), "valid": torch.ones(samples, 7, dtype=torch.bool)}
        return HWFProblem.rules_for(method), (outputs, tensors)

    def make_smoke(self, folder: Path) -> "HWF":
        make_sample("hwf", folder)
        pool = min(self.unlabelled_share, 0.5)
        return dataclasses.replace(
            self, epochs=2, batch=32, measure_every=1, held_out=40, labelled_share=0.2, unlabelled_share=pool
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class HWF520(HWF):
    """The paper's other division of the same data."""

    name: ClassVar[str] = "hwf-5-20"
    title: ClassVar[str] = "Handwritten formulas, 5 % labelled and 20 % unlabelled"

    labelled_share: float = 0.05
    unlabelled_share: float = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class HWFEfficiency(HWF):
    """No pool: does the rule speed up learning from 2 % labelled formulas, on which it also holds?"""

    name: ClassVar[str] = "hwf-efficiency"
    title: ClassVar[str] = "Handwritten formulas, 2 % labelled and nothing else"
    columns: ClassVar[tuple[Column, ...]] = (Column("train_accuracy", "training acc."), *HWF.columns)
    # All training samples are labelled here, so the supervised reference is the arm without a rule.
    arms: ClassVar[tuple[str, ...]] = ("none", "dl2", "hard", "uniform", "dual-paper", "dual")

    unlabelled_share: float = 0.0
    rule_on: Literal["unlabelled", "labelled"] = "labelled"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HWFEfficiency5(HWFEfficiency):
    """The same with 5 %."""

    name: ClassVar[str] = "hwf-efficiency-5"
    title: ClassVar[str] = "Handwritten formulas, 5 % labelled and nothing else"

    labelled_share: float = 0.05


@dataclasses.dataclass(frozen=True)
class Formulas:
    """Some formulas on a device."""

    images: Tensor  # rows of the table of symbols, ``(n, 7)``; any row where a formula has ended
    labels: Tensor  # classes ``(n, 7)``; :data:`IGNORED` where a formula has ended
    valid: Tensor  # which symbols there are, ``(n, 7)``
    result: Tensor  # what the formula evaluates to, ``(n,)``

    def __getitem__(self, rows: Tensor) -> "Formulas":
        return Formulas(self.images[rows], self.labels[rows], self.valid[rows], self.result[rows])


class HWFProblem(Problem):
    """See :class:`HWF`; each image of a symbol is kept once, scaled from 45 x 45 to bytes ``(m, 1, 32, 32)``."""

    def __init__(self, task: HWF, seed: int, folder: Path | None, device: torch.device) -> None:
        self.rules = {"neighbours": RULE}
        arrays = load("hwf", folder)
        self.task = task
        self.symbols = resize(torch.from_numpy(arrays["symbols"]).unsqueeze(1).to(device))
        self.on_paper = functional.pad(self.symbols, [PADDING] * 4, value=PAPER).movedim(1, -1)
        self.training, self.test = (_to_device(arrays, split, device) for split in ("train", "test"))
        held_out, self.labelled, self.unlabelled = _divide(task, len(self.training.result), seed)
        self.validation, self.known = (self.training[rows.to(device)] for rows in (held_out, self.labelled))
        self.unseen = torch.from_numpy(unseen_test_symbols(arrays)).to(device)
        self.rewritten = _rewrite(self.test, self.unseen)

    @staticmethod
    def rules_for(method: Method) -> dict[str, Formula]:
        """The rule about sums of probabilities, or that about classes for methods in :data:`ABOUT_CLASSES`."""
        return {"neighbours": CLASS_RULE if method.name in ABOUT_CLASSES else RULE}

    def make_network(self) -> nn.Module:
        return lenet5(CLASSES)

    def outputs(self, network: nn.Module, labelled: Tensor, pool: Tensor | None, teacher: nn.Module | None = None) -> Outputs:
        count = len(labelled)
        images = self.training.images[labelled if pool is None else torch.cat([labelled, pool])]
        seen = self._show(images)
        bound: dict[str, Any] = {}
        if pool is not None and teacher is not None:
            believed = teacher(seen[count:].flatten(0, 1)).float().softmax(-1)
            bound["believe"] = {"x": believed.unflatten(0, images[count:].shape)}
            if self.task.view == "another":
                turned = turn(self.on_paper, images[count:].flatten(), mirror=False).movedim(-1, 1)
                seen = torch.cat([seen[:count], self._light(turned).unflatten(0, images[count:].shape)])
        logits = network(seen.flatten(0, 1)).unflatten(0, images.shape)
        answers, labels = logits[:count], self.training.labels[labelled]
        loss = functional.cross_entropy(answers.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        if pool is None:
            return loss, {}
        return loss, {"x": logits[count:].float().softmax(-1), "valid": self.training.valid[pool], **bound}

    def evaluate(self, network: nn.Module, part: Literal["validation", "test"]) -> dict[str, float]:
        """Measures in percent, see :func:`measure`; ``train_accuracy`` is that of the labelled training formulas.

        Most test symbols are copies of training symbols, so there are more measures of tests: ``unseen_symbol_accuracy``, of
        symbols that are no copies; ``unseen_...``, of the few formulas that have such symbols only; and ``rewritten_...``, of all
        formulas, each symbol replaced by an unseen one of its class. ``kinds_known_accuracy`` is what the accuracy would be if
        someone told the network which symbols are digits: all that the rule is about.
        """
        found = {"train_accuracy": measure(self.known, self._believe(network, self.known))["accuracy"]}
        formulas = self.validation if part == "validation" else self.test
        beliefs = self._believe(network, formulas)
        found.update(measure(formulas, beliefs))
        if part == "validation":
            return found
        is_digit = torch.arange(CLASSES, device=beliefs.device) < len(DIGITS)
        possible = is_digit == (formulas.labels < len(DIGITS)).unsqueeze(-1)
        found["kinds_known_accuracy"] = measure(formulas, beliefs * possible)["accuracy"]
        whole = (self.unseen | ~formulas.valid).all(1)
        found["unseen_formulas"] = float(whole.sum())
        if bool(whole.any()):
            found.update({f"unseen_{key}": value for key, value in measure(formulas[whole], beliefs[whole]).items()})
        if bool(self.unseen.any()):
            found["unseen_symbol_accuracy"] = percent((beliefs.argmax(-1) == formulas.labels)[self.unseen])
        rewritten = measure(self.rewritten, self._believe(network, self.rewritten))
        found.update({f"rewritten_{key}": value for key, value in rewritten.items()})
        return found

    def inspect(self, network: nn.Module, logic: LogicLoss | None, pool: Tensor) -> dict[str, float]:
        """Mean weights on both branches beside the share of neighbours on which each holds, and of those for which it is true."""
        formulas = self.training[pool]
        beliefs, pairs = self._believe(network, formulas), formulas.valid[:, 1:]
        is_digit = formulas.labels < len(DIGITS)
        holds = {
            "both_digits": (BOTH_DIGITS, is_digit[:, 1:] & is_digit[:, :-1]),
            "one_operator": (ONE_OPERATOR, is_digit[:, 1:] ^ is_digit[:, :-1]),
        }
        weights = None if logic is None else logic.weights(torch.arange(len(pool), device=pool.device)).get("neighbours/0")
        found: dict[str, float] = {}
        for position, (key, (branch, true)) in enumerate(holds.items()):
            found[f"{key}_holds"] = percent(branch.satisfied(tol=TOLERANCE, x=beliefs)[pairs])
            found[f"{key}_true"] = percent(true[pairs])
            if weights is not None:
                found[f"{key}_weight"] = weights[..., position][pairs].mean().item()
        return found

    def samples(self, network: nn.Module, rows: Tensor | None) -> Samples:
        formulas = self.validation if rows is None else self.training
        formulas = formulas[spread(len(formulas.result)).to(formulas.result.device) if rows is None else rows]
        beliefs, lengths = self._believe(network, formulas), formulas.valid.sum(1)

        def caption(position: int) -> str:
            count = int(lengths[position])
            read, written = (
                "".join(ALPHABET[number] for number in part[:count].tolist())
                for part in (beliefs[position].argmax(-1), formulas.labels[position])
            )
            return f"read as {read}; written {written}"

        def picture(position: int) -> Tensor:
            symbols = self.symbols[formulas.images[position, : int(lengths[position])]]
            return torch.cat(list(symbols), dim=-1)

        tensors = {"x": beliefs, "valid": formulas.valid}
        inputs = formulas.images.masked_fill(~formulas.valid, -1)
        return Samples(tensors, inputs, lengths, LENGTHS, tol=TOLERANCE, words=WORDS, picture=picture, caption=caption)

    def _show(self, images: Tensor) -> Tensor:
        """What the network sees of symbols ``(...)``, dark on white: ``(..., 1, 32, 32)``."""
        return self._light(self.symbols[images])

    def _light(self, symbols: Tensor) -> Tensor:
        brightness = symbols.float() / PAPER
        return 1 - brightness if self.task.ink else 2 * brightness - 1

    def _believe(self, network: nn.Module, formulas: Formulas) -> Tensor:
        """Probabilities of the classes of each symbol, ``(n, 7, 13)``, without gradients."""
        logits = in_chunks(network, formulas.images.flatten(), self._show)
        return logits.softmax(-1).view(*formulas.images.shape, CLASSES)


def measure(formulas: Formulas, beliefs: Tensor) -> dict[str, float]:
    """What probabilities ``(n, 7, 13)`` say, in percent: formulas with the right result or on which the rule holds; symbols."""
    answers = beliefs.argmax(-1)
    results = calculate(answers, formulas.valid)
    return {
        "accuracy": percent((results - formulas.result).abs() < SAME_RESULT),
        "satisfied": percent(RULE.satisfied(tol=TOLERANCE, x=beliefs, valid=formulas.valid)),
        "symbol_accuracy": percent((answers == formulas.labels)[formulas.valid]),
    }


def calculate(symbols: Tensor, valid: Tensor) -> Tensor:
    """The values ``(n,)`` of formulas ``(n, length)`` in float64: products and quotients from left to right, then sums.

    Neighbouring digits are one number. A formula that begins or ends with an operator, or has two side by side, gives NaN.

    >>> formulas = torch.tensor([[7, MINUS, 5, OVER, 1], [2, PLUS, TIMES, 3, 0]])  # 8 - 6 / 2 and 3 + * 41
    >>> calculate(formulas, torch.ones(2, 5, dtype=torch.bool))
    tensor([5., nan], dtype=torch.float64)
    """
    zero = torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)
    total, sign, product, number = zero, zero + 1, zero + 1, zero
    divides = after_digit = torch.zeros_like(zero, dtype=torch.bool)
    parses = ~divides
    for found, exists in zip(symbols.unbind(1), valid.unbind(1)):
        is_digit, is_operator = exists & (found < len(DIGITS)), exists & (found >= len(DIGITS))
        parses = parses & (after_digit | ~is_operator)
        term = torch.where(divides, product / number, product * number)
        ends_term = is_operator & ((found == PLUS) | (found == MINUS))
        total = torch.where(ends_term, total + sign * term, total)
        sign = torch.where(ends_term, 1.0 - 2.0 * (found == MINUS), sign)
        product = torch.where(ends_term, 1.0, torch.where(is_operator, term, product))
        divides = torch.where(is_operator, found == OVER, divides)
        number = torch.where(is_operator, 0.0, torch.where(is_digit, 10 * number + found + 1, number))
        after_digit = torch.where(exists, is_digit, after_digit)
    value = total + sign * torch.where(divides, product / number, product * number)
    return torch.where(parses & after_digit, value, math.nan)


def _to_device(arrays: Mapping[str, NDArray[np.generic]], split: str, device: torch.device) -> Formulas:
    images, labels = (torch.from_numpy(arrays[f"{split}_{key}"]).long().to(device) for key in ("images", "labels"))
    valid = images >= 0
    result = torch.from_numpy(arrays[f"{split}_result"]).to(device)
    return Formulas(images.clamp_min(0), labels.masked_fill(~valid, IGNORED), valid, result)


def _divide(task: HWF, count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of held-out, labelled and unlabelled formulas; with one seed, the first are the same for all shares."""
    sizes = (task.held_out, round(task.labelled_share * count), round(task.unlabelled_share * count))
    if min(sizes[:2]) < 1 or sum(sizes) > count:
        raise OptionError(
            f"--held-out, --labelled-share and --unlabelled-share must take at most {count} formulas together, and the first two "
            f"at least one each; got {', '.join(map(str, sizes))}"
        )
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    held_out, labelled, unlabelled, _ = order.split([*sizes, count - sum(sizes)])
    return held_out, labelled, unlabelled


def _rewrite(formulas: Formulas, unseen: Tensor) -> Formulas:
    """The same formulas written with unseen symbols of those classes that have any, drawn alike for all seeds."""
    images = formulas.images.clone()
    generator = torch.Generator().manual_seed(0)
    for label in range(CLASSES):
        places = formulas.labels == label
        choice = formulas.images[places & unseen].unique()
        if len(choice):
            drawn = torch.randint(len(choice), (int(places.sum()),), generator=generator)
            images[places] = choice[drawn.to(choice.device)]
    return dataclasses.replace(formulas, images=images)
