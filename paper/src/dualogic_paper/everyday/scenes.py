"""Scenes: what a photo shows, with rules that say "exactly if" and "either or".

There are 80 labelled photos and 1,500 without labels. The rules are equivalences, so each side speaks about the other.
"""

from functools import partial

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, holds, percent
from dualogic_paper.everyday.training import batches, name_columns, perceptron, train_answers

ANIMALS, VEHICLES = ("dog", "cat", "bird"), ("car", "bus", "bicycle")
LABELS = ["indoors", "outdoors", "animal", *ANIMALS, "vehicle", *VEHICLES, "empty"]
FEATURES = 24
bind = partial(name_columns, LABELS)

shows = {label: dl.boolean(label, input="logits") for label in LABELS}
RULES = {
    "place": dl.Xor(shows["indoors"], shows["outdoors"]),
    "animal": dl.Iff(shows["animal"], dl.Or(*(shows[animal] for animal in ANIMALS))),
    "vehicle": dl.Iff(shows["vehicle"], dl.Or(*(shows[vehicle] for vehicle in VEHICLES))),
    "empty": dl.Iff(shows["empty"], ~(shows["animal"] | shows["vehicle"])),
}


def make_photos(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw photos: features ``(n, 24)`` and labels ``(n, 11)`` of zeros and ones."""
    generator = torch.Generator().manual_seed(seed)

    def happens(chance: float, *shape: int) -> Tensor:
        return torch.rand(count, *shape, generator=generator) < chance

    outdoors, animals, vehicles = happens(0.6), happens(0.2, len(ANIMALS)), happens(0.15, len(VEHICLES))
    animal, vehicle = animals.any(1), vehicles.any(1)
    columns = [~outdoors, outdoors, animal, *animals.unbind(1), vehicle, *vehicles.unbind(1), ~(animal | vehicle)]
    labels = torch.stack(columns, 1).float()
    # What each label looks like is the same for every seed; that there is an animal is not seen but for the animal itself.
    looks = 0.9 * torch.randn(len(LABELS), FEATURES, generator=torch.Generator().manual_seed(3))
    looks[[LABELS.index(label) for label in ("animal", "vehicle", "empty")]] = 0
    return labels @ looks + torch.randn(count, FEATURES, generator=generator), labels


def run(make_loss: LossFactory, seed: int, labelled: int = 80, pool: int = 1500, test: int = 2000, epochs: int = 30) -> Metrics:
    """Train a network with one output for each label."""
    known, (others, _) = make_photos(labelled, 100 + seed), make_photos(pool, 2000 + seed)
    network, steps = perceptron(FEATURES, 64, len(LABELS)), batches(pool, 100, epochs, seed)
    features, answers = make_photos(test, 30000 + seed)
    logits = train_answers(network, make_loss(RULES, pool), bind, known, others, steps, features)
    said, true = logits > 0, answers.bool()
    return {
        "f1": sum(f1(said[:, label], true[:, label]) for label in range(len(LABELS))) / len(LABELS),
        "exact": percent((said == true).all(1)),
        HELD: percent(holds(RULES, **bind(logits)).all(0)),
        "too_many_yes": percent(said) - percent(true),
    }


PROBLEM = Problem("scenes", "eleven labels of photos; equivalences and an exclusive or", run)
