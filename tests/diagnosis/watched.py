"""Small rules and a small training for the tests of monitors."""

import torch

import dualogic as dl

s = dl.var("s", 4)
EITHER = ((s == 0) | (s == 1)).all()
f, g = dl.categorical("f", 3, input="logits"), dl.categorical("g", 3, input="logits")
RULE = (g == 2) >> (f == 1)


def kinds(monitor):
    return [found.kind for found in monitor.findings]


def train(logic, steps=40, samples=32, batch=16, rate=0.05, shape=(4,), seed=0):
    """Free numbers in [0, 1] as a network, one row for each sample."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(samples, *shape, generator=generator).requires_grad_()
    optimizer = torch.optim.Adam([logits], rate)
    for _ in range(steps):
        index = torch.randperm(samples, generator=generator)[:batch]
        loss = logic(index, s=logits[index].sigmoid())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return logits.detach()


def look_at(monitor, antecedent, consequent, looks, samples=200, taught=True):
    """Looks at batches of which the first share has the antecedent and the second the consequent, both unsure."""
    for _ in range(looks):
        place = torch.arange(samples)
        turned, upright = torch.zeros(samples, 3), torch.zeros(samples, 3)
        turned[:, 0], upright[:, 0] = 1.0, 1.0
        turned[place < antecedent * samples, 2] = 2.0
        upright[place < consequent * samples, 1] = 2.0
        monitor.look(place, f=upright.requires_grad_(taught), g=turned.requires_grad_())
