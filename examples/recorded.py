"""A training of one's own, recorded for `dualogic report`: `pip install '.[demo]'`, `python examples/recorded.py`.

Nobody has labelled the sixes. What is known is a rule: if an image turned upside down is a nine, the image is a six. Three
networks are trained: without the rule, by the cheapest branch (which takes a shortcut), and by the duals. Then
`dualogic report runs` makes the page.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor

import dualogic as dl

digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32)
labels = torch.tensor(digits.target)
held_out = torch.arange(len(labels)) % 4 == 0
held, truth = images[held_out], labels[held_out]
images, labels = images[~held_out], labels[~held_out]

f = dl.categorical("f", 10, input="logits")  # the class of an image
g = dl.categorical("g", 10, input="logits")  # the class of the image upside down
rule = (g == 9) >> (f == 6)
WORDS = {"g == 9": "reading 9 on images turned upside down", "f == 6": "reading 6 on images"}


def outputs(net: torch.nn.Module, batch: Tensor) -> dict[str, Tensor]:
    """What the symbols stand for."""
    return {"f": net(batch), "g": net(batch.flip(-1, -2))}


def train(folder: Path, method: str | None, epochs: int = 40) -> None:
    """Train a network by some method, or without the rule, and record it."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    logic = None if method is None else dl.LogicLoss(rule, num_samples=len(images), method=method)
    with dl.Recorder(folder, logic or rule, title="Digits, the sixes without labels", labels=labels) as recorder:
        for _ in range(epochs):
            for index in torch.randperm(len(images)).split(64):
                found, known = outputs(net, images[index]), labels[index] != 6
                task = F.cross_entropy(found["f"][known], labels[index][known])
                loss = task if logic is None else task + logic(index, **found)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                recorder.step(task_loss=task)
            with torch.no_grad():
                seen = outputs(net, held)
            recorder.epoch(accuracy=(seen["f"].argmax(-1) == truth).float().mean(), labels=truth, **seen)
        read = zip(*(tensor.argmax(-1).tolist() for tensor in seen.values()))
        texts = [f"read as {upright}, upside down as {turned}" for upright, turned in read]
        print(recorder.diagnose(truth, pictures=held, texts=texts, words=WORDS, **seen).verdict)


def main() -> None:
    """Train and record three networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="little training")
    given = parser.parse_args()
    started = time.perf_counter()
    for name, method in (("none", None), ("hard", "hard"), ("dual", "dual")):
        train(given.runs / name, method, 1 if given.quick else given.epochs)
    print(f"\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
