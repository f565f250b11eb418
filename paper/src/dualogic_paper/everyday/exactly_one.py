"""Exactly one: digits read by ten separate yes-or-no outputs.

A network with ten sigmoids is told that an image shows exactly one digit. Ten images of each digit have labels, and about nine
hundred have none. The rule alone cannot say *which* digit it is: whoever decides too early keeps a wrong answer.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

import dualogic as dl
from dualogic_paper.everyday.data import load_images
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, percent
from dualogic_paper.everyday.training import batches, perceptron, train_answers

DIGITS = 10
LABELS_PER_DIGIT = 10

is_digit = dl.boolean("is_digit", DIGITS, input="logits")
RULE = dl.ExactlyOne(*(is_digit[digit] for digit in range(DIGITS)))


def divide(labels: Tensor, pool: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Positions of ten labelled images of each digit, of a pool that has them too, and of the rest, for the test."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    labelled = torch.cat([order[labels[order] == digit][:LABELS_PER_DIGIT] for digit in range(DIGITS)])
    others = order[~torch.isin(order, labelled)]
    split = pool - len(labelled)
    return labelled, torch.cat([labelled, others[:split]]), others[split:]


def run(make_loss: LossFactory, seed: int, pool: int = 1000, epochs: int = 40) -> Metrics:
    """Train a network with ten yes-or-no outputs."""
    images, labels = load_images()
    labelled, seen, tested = divide(labels, pool, seed)
    network = nn.Sequential(nn.Flatten(), *perceptron(64, 64, DIGITS))
    known, steps = (images[labelled], one_hot(labels[labelled], DIGITS).float()), batches(pool, 100, epochs, seed)
    logic, views = make_loss(RULE, pool), (known, images[seen], steps, images[tested])
    logits = train_answers(network, logic, lambda logits: {"is_digit": logits}, *views, decay=0.0)
    said = logits > 0
    return {
        "accuracy": percent(logits.argmax(1) == labels[tested]),
        HELD: percent(said.sum(1) == 1),
        "right_and_alone": percent((said == one_hot(labels[tested], DIGITS).bool()).all(1)),
        "too_many_yes": percent(said) - 100 / DIGITS,
    }


ABOUT = "digits by ten yes-or-no outputs, ten labels a digit; exactly one output is a yes"
PROBLEM = Problem("exactly_one", ABOUT, run, "accuracy", "accuracy")
