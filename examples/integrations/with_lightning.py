"""A rule in Lightning: `pip install -e '.[lightning]'`, then `python examples/integrations/with_lightning.py`.

Eight-by-eight digits with no label for 6: an image that reads as a 9 when turned by half a turn is a 6.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningModule, Trainer
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import dualogic as dl
from dualogic.integrations.lightning import LogicCallback

f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
rule = (g == 9) >> (f == 6)


class Digits(LightningModule):
    """A small classifier with a rule."""

    def __init__(self, samples: int, **options: Any) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Dropout(0.1), nn.ReLU(), nn.Linear(32, 10))
        self.logic = dl.LogicLoss(rule, num_samples=samples, **options)

    def training_step(self, batch: tuple[Tensor, ...], number: int) -> Tensor:
        index, image, label = batch
        scores = self.net(image)
        task = F.cross_entropy(scores, label, ignore_index=6)
        return task + self.logic(index, f=scores, g=self.net(image.flip(-1, -2)), where=label == 6)

    def validation_step(self, batch: tuple[Tensor, ...], number: int) -> None:
        image, label = batch
        scores = self.net(image)
        self.log("accuracy", (scores.argmax(1) == label).float().mean())
        self.log("rule_loss", self.logic(f=scores, g=self.net(image.flip(-1, -2)), where=label == 6))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 1e-3)


def data() -> tuple[TensorDataset, TensorDataset]:
    """Images for training and for validation."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    return TensorDataset(images[:300], labels[:300]), TensorDataset(images[300:400], labels[300:400])


def loaders() -> tuple[dl.data.Resumable, DataLoader[Any]]:
    """Training images with their indices, and validation images."""
    train, validation = data()
    return dl.data.Resumable(DataLoader(dl.data.WithIndex(train), batch_size=64, shuffle=True)), DataLoader(validation, 50)


def make_trainer(**options: Any) -> Trainer:
    """A quiet trainer with the callback."""
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    callbacks = [LogicCallback(), *options.pop("callbacks", [])]
    return Trainer(accelerator="cpu", **{**quiet, "max_epochs": 3, **options}, callbacks=callbacks)


if __name__ == "__main__":
    train, validation = loaders()
    model = Digits(samples=len(train.dataset))
    trainer = make_trainer(max_epochs=20)
    trainer.fit(model, train, validation)
    print({name: float(value) for name, value in trainer.callback_metrics.items()})
