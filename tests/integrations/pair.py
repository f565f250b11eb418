"""Two outputs under a rule in Lightning, in one process or, as ``python pair.py FILE``, in two that save what they found.

A script of its own, because a process with threads, such as a worker of a test run, should not fork.
"""

import sys
import warnings

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import dualogic as dl
from dualogic.integrations.lightning import LogicCallback

QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


class Pair(LightningModule):
    """Linear outputs under a rule, trained by plain descent."""

    def __init__(self, **options):
        super().__init__()
        self.net = torch.nn.Linear(3, 2, dtype=torch.float64)
        x, y = dl.var("x"), dl.var("y")
        self.logic = dl.LogicLoss((x <= 0) | (y <= 0.1), num_samples=24, dtype=torch.float64, **options)

    def training_step(self, batch, number):
        index, features = batch
        x, y = self.net(features).unbind(1)
        return self.logic(index, x=x, y=y)

    def validation_step(self, batch, number):
        x, y = self.net(batch[1]).unbind(1)
        self.logic(x=x, y=y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class PerRank:
    """A distributed sampler that learns its rank when it is used: in another process than it was made in."""

    def __init__(self, data):
        self.sampler = DistributedSampler(data, 2, 0, shuffle=False)

    def __len__(self):
        return len(self.sampler)

    def __iter__(self):
        self.sampler.rank = torch.distributed.get_rank()
        return iter(self.sampler)


def loader(processes=1):
    """Global batches of eight samples, in order up to their place in a batch."""
    features = torch.randn(24, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data = dl.data.WithIndex(TensorDataset(features))
    return DataLoader(data, 8 // processes, sampler=PerRank(data) if processes == 2 else None)


def fit(processes):
    """The state of a model trained for three epochs, and on how many samples its rule holds then."""
    torch.manual_seed(0)
    model = Pair(process_group="world")
    options = {"accelerator": "cpu", "max_epochs": 3, "num_sanity_val_steps": 0, "callbacks": [LogicCallback()], **QUIET}
    if processes == 2:
        options.update(strategy=DDPStrategy(start_method="fork", process_group_backend="gloo"), devices=2)
    trainer = Trainer(use_distributed_sampler=False, **options)
    trainer.fit(model, loader(processes), loader(processes))
    found = {name: value.clone() for name, value in model.state_dict().items() if torch.is_tensor(value)}
    return {**found, "satisfied": trainer.callback_metrics["logic/satisfied/rule"].double()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.save(fit(2), sys.argv[1])
