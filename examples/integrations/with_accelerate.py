"""A rule with accelerate: `pip install -e '.[accelerate]'`, then `python examples/integrations/with_accelerate.py`.

Two numbers are predicted from eight. The rule knows a bound that the few labels do not show: the first is at most half, or the
second is negative. The run saves itself after every step; start it again and it goes on.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import dualogic as dl
from dualogic.integrations.accelerate import attach

p, q = dl.var("p"), dl.var("q")
rule = (p <= 0.5) | (q <= 0)
EPOCHS = 3


def data() -> TensorDataset:
    """Inputs, targets, and which targets are known."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 8, generator=generator)
    return TensorDataset(x, x[:, :2].clone(), torch.arange(60) % 4 == 0)


def train(folder: str | Path, stop: int | None = None) -> tuple[nn.Module, dl.LogicLoss]:
    """Train, or go on where an earlier call stopped after ``stop`` steps."""
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Tanh(), nn.Linear(16, 2))
    samples = dl.data.WithIndex(data())
    net, optimizer, loader = accelerator.prepare(
        net, torch.optim.Adam(net.parameters(), 0.01), DataLoader(samples, batch_size=8, shuffle=True)
    )
    loader = dl.data.Resumable(loader)
    logic = attach(accelerator, dl.LogicLoss(rule, num_samples=len(samples)), loader=loader)

    checkpoint, step = Path(folder) / "checkpoint", 0
    if checkpoint.exists():
        accelerator.load_state(str(checkpoint))
    while loader.epoch < EPOCHS:
        for index, x, y, known in loader:
            output = net(x)
            task = ((output - y).square().mean(1) * known).sum() / known.sum().clamp_min(1)
            loss = task + logic(index, p=output[:, 0], q=output[:, 1])
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            accelerator.save_state(str(checkpoint))
            step += 1
            if step == stop:
                return net, logic
    return net, logic


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        train(folder, stop=5)
        _, logic = train(folder)
        print(logic.weights(torch.arange(60))["rule"].mean(0))
