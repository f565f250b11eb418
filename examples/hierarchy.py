"""A hierarchy of 36 labels from a rule file: four classes of animals, eight orders, twenty-four species.

The network has one output for each label. Experts labelled 100 pictures to the species; of 600 more somebody said only whether
they show a mammal, a bird, a fish or an insect. ``examples/rules/animals.rules`` says how the labels hang together, in words that
an expert can check: ``rule mammals: mammal iff (carnivore or rodent)``. All rules together pull no harder than one, so with this
many of them a larger ``weight=`` is worth a try.

    python examples/hierarchy.py            # 8 seeds without and with the rules, a minute on a CPU
    python examples/hierarchy.py --quick    # a few seconds, to see that it runs
    dualogic lint examples/rules/animals.rules
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor, nn

import dualogic as dl

RULES = dl.load_rules(Path(__file__).parent / "rules" / "animals.rules")
LABELS = list(RULES.symbols)
CLASSES, ORDERS, SPECIES = 4, 8, 24
FEATURES = 48


def make_pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Features ``(count, 48)`` and labels ``(count, 36)`` of zeros and ones, three ones each."""
    fixed = torch.Generator().manual_seed(0)  # what an animal looks like is the same for every seed
    looks = [torch.randn(size, FEATURES, generator=fixed) for size in (CLASSES, ORDERS, SPECIES)]
    generator = torch.Generator().manual_seed(seed)
    species = torch.randint(SPECIES, (count,), generator=generator)
    places = [species // 6, species // 3, species]
    noise = torch.randn(count, FEATURES, generator=generator)
    features = 1.3 * noise + sum(share * look[place] for share, look, place in zip((0.5, 0.5, 0.8), looks, places))
    labels = torch.cat([nn.functional.one_hot(place, len(look)) for look, place in zip(looks, places)], dim=1)
    return features, labels.float()


def bind(logits: Tensor) -> dict[str, Tensor]:
    """The logit of each label by its name, from ``(n, 36)``."""
    return dict(zip(LABELS, logits.unbind(1)))


def train(weight: float, seed: int, epochs: int) -> tuple[float, float]:
    """Train, without rules for a weight of 0.

    Returns how many held-out pictures get all 36 labels right, and how many meet all rules, in per cent.
    """
    torch.manual_seed(seed)
    fine, fine_labels = make_pictures(100, 3 * seed + 1)
    coarse, coarse_labels = make_pictures(600, 3 * seed + 2)
    test, test_labels = make_pictures(1000, 3 * seed + 3)
    network = nn.Sequential(nn.Linear(FEATURES, 96), nn.ReLU(), nn.Dropout(0.3), nn.Linear(96, len(LABELS)))
    logic = dl.LogicLoss(RULES, num_samples=len(coarse), weight=weight) if weight else None
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for index in torch.randperm(len(coarse)).split(60):
            loss = len(LABELS) * nn.functional.binary_cross_entropy_with_logits(network(fine), fine_labels)
            logits = network(coarse[index])
            known = coarse_labels[index, :CLASSES]
            loss = loss + CLASSES * nn.functional.binary_cross_entropy_with_logits(logits[:, :CLASSES], known)
            if logic is not None:
                loss = loss + logic(index, **bind(logits))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    network.eval()
    with torch.no_grad():
        logits = network(test)
    tensors = bind(logits)
    held = torch.stack([rule.satisfied(**{name: tensors[name] for name in rule.symbols}) for rule in RULES.values()]).all(0)
    right = ((logits > 0) == test_labels.bool()).all(1)
    return 100 * right.float().mean().item(), 100 * held.float().mean().item()


def main() -> None:
    """Print a row for each seed, and the means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one seed and so little training that figures mean nothing")
    options = parser.parse_args()
    seeds, epochs = (1, 1) if options.quick else (8, 30)
    started = time.perf_counter()
    print(f"{len(RULES)} rules about {len(LABELS)} labels")
    print(f"{'seed':<8}{'all labels right, %':^36}{'all rules hold, %':^36}")
    print(f"{'':<8}" + 2 * f"{'no rules':>12}{'rules':>12}{'weight=10':>12}")
    rows = []
    for seed in range(seeds):
        results = [train(weight, seed, epochs) for weight in (0.0, 1.0, 10.0)]
        rows.append([value for column in zip(*results) for value in column])
        print(f"{seed:<8}" + "".join(f"{value:>12.1f}" for value in rows[-1]), flush=True)
    print(f"{'mean':<8}" + "".join(f"{sum(column) / seeds:>12.1f}" for column in zip(*rows)))
    print(f"\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
