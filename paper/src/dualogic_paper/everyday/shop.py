"""Shop: which of 36 labels a product carries.

Six departments have five kinds of goods each; one product in three belongs to two departments. 45 rules: a phone is electronics
(30 of this sort); a product is of at most one kind within a department (6), and of some kind if it is in it (6); food is neither
media nor electronics (2); every product is in some department (1). There are 150 labelled products and 1,500 without labels.
"""

from functools import partial

import torch
from torch import Tensor, nn

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, holds, percent
from dualogic_paper.everyday.training import batches, name_columns, train_answers

DEPARTMENTS = {
    "electronics": ("phone", "laptop", "tablet", "camera", "headset"),
    "clothing": ("shirt", "trousers", "dress", "coat", "shoes"),
    "food": ("fruit", "bread", "cheese", "drink", "sweets"),
    "home": ("lamp", "chair", "table", "rug", "vase"),
    "sports": ("ball", "racket", "bike", "skates", "tent"),
    "media": ("book", "film", "record", "game", "comic"),
}
LABELS = [label for department, kinds in DEPARTMENTS.items() for label in (department, *kinds)]
NEVER_TOGETHER = (("food", "media"), ("food", "electronics"))
FEATURES = 40
bind = partial(name_columns, LABELS)


def make_rules() -> dict[str, dl.Formula]:
    """The 45 rules, over one Boolean for each label."""
    is_a = {label: dl.boolean(label, input="logits") for label in LABELS}
    rules: dict[str, dl.Formula] = {}
    for department, kinds in DEPARTMENTS.items():
        for kind in kinds:
            rules[f"{kind} is {department}"] = is_a[kind] >> is_a[department]
    for department, kinds in DEPARTMENTS.items():
        rules[f"one kind of {department}"] = dl.AtMost(1, *(is_a[kind] for kind in kinds))
        rules[f"some kind of {department}"] = is_a[department] >> dl.Or(*(is_a[kind] for kind in kinds))
    for one, other in NEVER_TOGETHER:
        rules[f"no {one} and {other}"] = ~(is_a[one] & is_a[other])
    rules["something"] = dl.Or(*(is_a[department] for department in DEPARTMENTS))
    return rules


RULES = make_rules()


def make_products(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw products: features ``(count, 40)`` and labels ``(count, 36)`` of zeros and ones."""
    generator, fixed = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(7)
    # The direction in which each label moves a product is the same for every seed; that of a department is fainter.
    prototypes = {label: torch.randn(FEATURES, generator=fixed) * (0.5 if label in DEPARTMENTS else 1.0) for label in LABELS}
    labels, features = torch.zeros(count, len(LABELS)), 0.9 * torch.randn(count, FEATURES, generator=generator)
    names = list(DEPARTMENTS)
    for row in range(count):
        order = torch.randperm(len(names), generator=generator)
        how_many = 1 + int(torch.rand(1, generator=generator) < 0.35)
        chosen: list[str] = []
        for department in (names[place] for place in order[:how_many].tolist()):
            if any({department, before} == set(pair) for before in chosen for pair in NEVER_TOGETHER):
                continue
            kind = DEPARTMENTS[department][int(torch.randint(0, 5, (1,), generator=generator))]
            chosen.append(department)
            for label in (department, kind):
                labels[row, LABELS.index(label)] = 1
                features[row] += prototypes[label]
    return features, labels


def run(make_loss: LossFactory, seed: int, labelled: int = 150, pool: int = 1500, test: int = 1500, epochs: int = 30) -> Metrics:
    """Train a network with one output for each label."""
    known, (others, _) = make_products(labelled, 50 + seed), make_products(pool, 1060 + seed)
    network = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, len(LABELS)))
    (features, labels), steps = make_products(test, 2070 + seed), batches(pool, 100, epochs, seed)
    logits = train_answers(network, make_loss(RULES, pool), bind, known, others, steps, features, decay=0.0)
    said, true = logits > 0, labels.bool()
    held = holds(RULES, **bind(logits))
    return {
        "f1": sum(f1(said[:, label], true[:, label]) for label in range(len(LABELS))) / len(LABELS),
        "exact": percent((said == true).all(1)),
        HELD: percent(held.all(0)),
        "held_each": percent(held),
        "too_many_yes": percent(said) - percent(true),
    }


PROBLEM = Problem("shop", "36 labels of products; a hierarchy, exclusions and cardinalities in 45 rules", run, tuned=True)
