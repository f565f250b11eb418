"""Two handwritten digits and their sum: digits that nobody labelled, learned from the sums of pairs.

The network sees one image at a time. All that it is told is ``a + b == s``: the class of the first image plus the class of the
second is the known sum. The probability of that is a sum over pairs of classes, which dualogic finds by convolution.

    python examples/sums.py            # half a minute on a CPU
    python examples/sums.py --quick    # a few seconds, to see that it runs

It prints how often the sum of held-out pairs is right, and beside it how often the digits are, which no label ever said. The
second table shows what the rule cannot tell. Where the first image always has a digit of 0 to 4 and the second one of 5 to 9,
calling every first digit one more and every second one less gives the same sums: a *reasoning shortcut*. The sums are as right as
before, the digits are not, and only the accuracy of the digits shows it. A label for one image of each digit puts it right.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import dualogic as dl

a, b = (dl.categorical(name, 10, input="logits") for name in "ab")
s = dl.categorical("s", 19)
RULE = a + b == s


def load(seed: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Images ``(n, 64)`` and digits ``(n,)``, to train on and to test on."""
    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    images, digits = torch.tensor(pixels / 16, dtype=torch.float32)[order], torch.tensor(labels)[order]
    return (images[:1200], digits[:1200]), (images[1200:], digits[1200:])


def draw_pairs(digits: Tensor, count: int, apart: bool, generator: torch.Generator) -> Tensor:
    """Positions of two images each, ``(count, 2)``; ``apart``: the first digit is below 5 and the second is not."""
    first = (digits < 5).nonzero().flatten() if apart else torch.arange(len(digits))
    second = (digits >= 5).nonzero().flatten() if apart else torch.arange(len(digits))
    picks = [side[torch.randint(len(side), (count,), generator=generator)] for side in (first, second)]
    return torch.stack(picks, dim=1)


def train(method: str, seed: int, apart: bool, epochs: int, labels: int = 0) -> tuple[float, float]:
    """Train on sums; returns the shares of held-out pairs whose sum is right, and of held-out digits that are.

    Args:
        method: of the logic loss.
        seed: of the split, the pairs and the network.
        apart: draw pairs of a digit below 5 and one that is not.
        epochs: over 2,400 pairs.
        labels: how many images of each digit have a label besides.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    (images, digits), (test_images, test_digits) = load(seed)
    pairs = draw_pairs(digits, 2400, apart, generator)
    sums = nn.functional.one_hot(digits[pairs].sum(1), 19).float()
    labelled = torch.cat([(digits == digit).nonzero().flatten()[:labels] for digit in range(10)])

    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    logic = dl.LogicLoss(RULE, num_samples=len(pairs), method=method)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for index in torch.randperm(len(pairs), generator=generator).split(64):
            first, second = network(images[pairs[index]]).unbind(1)
            loss = logic(index, a=first, b=second, s=sums[index])
            if labels:
                loss = loss + nn.functional.cross_entropy(network(images[labelled]), digits[labelled])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    with torch.no_grad():
        found = network(test_images).argmax(1)
        pairs = draw_pairs(test_digits, 2000, apart, generator)
        right = found[pairs].sum(1) == test_digits[pairs].sum(1)
        return right.float().mean().item(), (found == test_digits).float().mean().item()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one seed and so little training that figures mean nothing")
    options = parser.parse_args()
    seeds, epochs = (1, 2) if options.quick else (3, 12)
    started = time.perf_counter()
    print(f"rule: {RULE}    ({seeds} seeds, {epochs} epochs)")
    for title, apart in (("any two digits", False), ("a digit below 5, then one that is not", True)):
        print(f"\n{title}\n{'method':<28}{'sums right':>18}{'digits right':>18}")
        for method, labels in (("dual", 0), ("problog", 0), ("dual", 1)):
            if labels and not apart:
                continue
            if method == "problog" and find_spec("pysdd") is None:
                print(f"{method:<28}{'needs pysdd: pip install -e .[sdd]':>36}")
                continue
            results = [train(method, seed, apart, epochs, labels) for seed in range(seeds)]
            name = method + (" and a label per digit" if labels else "")
            columns = [" ".join(f"{100 * value:.0f}" for value in column) + " %" for column in zip(*results)]
            print(f"{name:<28}{columns[0]:>18}{columns[1]:>18}")
    print(f"\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
