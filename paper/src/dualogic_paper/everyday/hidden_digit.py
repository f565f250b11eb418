"""Hidden digit: a class without a single label, known by a rule alone.

A network learns scikit-learn's digits from labels, but one digit has none. All it is told is how that digit looks upside down:
what turns into a 9 is a 6 (``hidden_six``), or what turns into a 6 is a 9 (``hidden_nine``). The shortcut is to unlearn the other
side, so that nothing turns into a 9 any more; the figures say how much of it is kept.
"""

import functools

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import dualogic as dl
from dualogic.data import divide_by_class
from dualogic_paper.everyday.data import load_images
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, percent
from dualogic_paper.everyday.training import ask, batches, perceptron, take_step

DIGITS = 10
HELD_OUT = 0.3
BATCH = 64

upright = dl.categorical("upright", DIGITS, input="logits")
turned = dl.categorical("turned", DIGITS, input="logits")


def turn(images: Tensor) -> Tensor:
    """Half a turn, which reverses both axes."""
    return images.flip(-2, -1)


def make_network() -> nn.Module:
    """Two convolutions and two layers, from images ``(n, 1, 8, 8)`` to logits ``(n, 10)``."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), *perceptron(32 * 4 * 4, 64, DIGITS)),
    )


def run(make_loss: LossFactory, seed: int, hidden: int, looks_like: int, epochs: int = 40) -> Metrics:
    """Train on labels of all digits but the hidden one, and from the first step on the rule: what it looks like upside down."""
    images, digits = load_images()
    tested, training = divide_by_class(digits, DIGITS, lambda count: [round(HELD_OUT * count)], seed)
    labelled = training[digits[training] != hidden]
    network = make_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    logic = make_loss((turned == looks_like) >> (upright == hidden), len(training))
    steps = -(-len(labelled) // BATCH)
    # Both orders have the same number of batches in an epoch.
    by_label = batches(len(labelled), -(-len(labelled) // steps), epochs, seed)
    by_rule = batches(len(training), -(-len(training) // steps), epochs, seed)
    for chosen, index in zip(by_label, by_rule):
        known = labelled[chosen]
        if logic is None:
            loss = cross_entropy(network(images[known]), digits[known])
        else:
            pool = images[training[index]]
            # One pass through the network is faster than three.
            parts = network(torch.cat([images[known], pool, turn(pool)])).split([len(known), len(pool), len(pool)])
            loss = cross_entropy(parts[0], digits[known]) + logic(index, upright=parts[1], turned=parts[2])
        take_step(optimizer, loss)
    said, upside_down = (ask(network, view).argmax(1) for view in (images[tested], turn(images[tested])))
    true = digits[tested]
    is_hidden = true == hidden
    return {
        "accuracy": percent(said == true),
        "found": percent(said[is_hidden] == hidden),
        "kept": percent(upside_down[is_hidden] == looks_like),
        HELD: percent((upside_down != looks_like) | (said == hidden)),
        "false_alarms": percent(said[~is_hidden] == hidden),
    }


PROBLEM_SIX, PROBLEM_NINE = (
    Problem(name, about, functools.partial(run, hidden=hidden, looks_like=15 - hidden), "accuracy", "accuracy", tuned=True)
    for name, hidden, about in (
        ("hidden_six", 6, "digits without a label for 6; what turns into a 9 is a 6"),
        ("hidden_nine", 9, "digits without a label for 9; what turns into a 6 is a 9"),
    )
)
