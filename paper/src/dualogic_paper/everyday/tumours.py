"""Tumours: a real table, with rules between answers that all have labels.

The table is scikit-learn's breast cancer data: 569 tumours with thirty measurements of their cells. Is it malignant, are its
largest cells large, are they small, are they dented? The network sees the mean cells and not the largest ones. Thirty tumours
have all labels. Four rules are true of every row. Both sides of a rule are known about equally well, so that neither should
simply be believed.
"""

from functools import partial

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.everyday.data import load
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, holds, percent
from dualogic_paper.everyday.training import batches, name_columns, perceptron, train_answers

ANSWERS = ("malignant", "large", "small", "dented")
bind = partial(name_columns, ANSWERS)
LARGE, SMALL, DENTED = 128.0, 85.0, 0.176  # bounds on the largest perimeter, and on the share of concave points
SEEN = 20  # measurements that the network sees: means and errors come first in the table, the largest cells last

malignant, large, small, dented = (dl.boolean(name, input="logits") for name in ANSWERS)
RULES = {"large": large >> malignant, "dented": dented >> malignant, "small": small >> ~malignant, "sizes": ~(large & small)}


def load_tumours(seed: int) -> tuple[Tensor, Tensor]:
    """The table in the order of a seed: features ``(569, 20)`` of mean 0 and deviation 1, answers ``(569, 4)``."""
    arrays = load("tumours")
    values = torch.tensor(arrays["values"])
    column = {name: values[:, place] for place, name in enumerate(arrays["columns"].tolist())}
    perimeter, concave = column["worst perimeter"], column["worst concave points"]
    answers = torch.stack([torch.tensor(arrays["malignant"]), perimeter > LARGE, perimeter < SMALL, concave > DENTED], 1)
    features = values[:, :SEEN]
    features = (features - features.mean(0)) / features.std(0)
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(seed))
    return features[order], answers[order]


def run(make_loss: LossFactory, seed: int, labelled: int = 30, pool: int = 300, epochs: int = 100) -> Metrics:
    """Train a network with four outputs on the first rows; the pool has them too; the rows after the pool are for the test."""
    features, answers = load_tumours(seed)
    network, known = perceptron(SEEN, 32, len(ANSWERS)), (features[:labelled], answers[:labelled].float())
    steps = batches(pool, 60, epochs, seed)
    logits = train_answers(network, make_loss(RULES, pool), bind, known, features, steps, features[pool:])
    said, true = logits > 0, answers[pool:]
    return {
        "f1": sum(f1(said[:, answer], true[:, answer]) for answer in range(len(ANSWERS))) / len(ANSWERS),
        "f1_malignant": f1(said[:, 0], true[:, 0]),
        HELD: percent(holds(RULES, **bind(logits)).all(0)),
        "too_many_malignant": percent(said[:, 0]) - percent(true[:, 0]),
        "too_many_others": percent(said[:, 1:]) - percent(true[:, 1:]),
    }


ABOUT = "four answers about tumours from a real table, thirty labels; implications between answers that all have labels"
PROBLEM = Problem("tumours", ABOUT, run)
