"""One's own training, recorded: points of three kinds, of which those on the left have no label."""

import torch
import torch.nn.functional as F

import dualogic as dl

NAMES = ["left", "right", "top"]
f = dl.categorical("f", 3, classes=NAMES, input="logits")
g = dl.categorical("g", 3, classes=NAMES, input="logits")
RULE = (g == "right") >> (f == "left")
MIRROR = torch.tensor([-1.0, 1.0])


def make_points(count, seed):
    random = torch.Generator().manual_seed(seed)
    kinds = torch.arange(count) % 3
    centres = torch.tensor([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    return centres[kinds] + 0.5 * torch.randn(count, 2, generator=random), kinds


def draw(point):
    """A dot on a small canvas: float, one channel."""
    lines = torch.linspace(-4, 4, 24)
    x, y = point.unbind()
    return torch.exp(-8 * ((lines[None, :] - x) ** 2 + (-lines[:, None] - y) ** 2)).clamp(0, 1)


def train(folder, method=None, epochs=30, seed=0, **options):
    """Train by a method, or without the rule, and record it."""
    points, kinds = make_points(600, 0)
    held, truth = make_points(300, 1)
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    logic = None if method is None else dl.LogicLoss(RULE, num_samples=len(points), method=method)
    with dl.Recorder(folder, logic or RULE, title="Points", classes=NAMES, labels=kinds, **options) as recorder:
        for _ in range(epochs):
            for index in torch.randperm(len(points)).split(100):
                scores, known = net(points[index]), kinds[index] != 0
                task = F.cross_entropy(scores[known], kinds[index][known])
                rule = 0.0 if logic is None else logic(index, f=scores, g=net(points[index] * MIRROR))
                optimizer.zero_grad()
                (task + rule).backward()
                optimizer.step()
                recorder.step(task_loss=task)
            with torch.no_grad():
                outputs = {"f": net(held), "g": net(held * MIRROR)}
            accuracy = (outputs["f"].argmax(-1) == truth).float().mean()
            recorder.epoch(accuracy=accuracy, labels=truth, **outputs)
        texts = [f"x {x:.1f}, y {y:.1f}" for x, y in held.tolist()]
        recorder.diagnose(truth, pictures=lambda row: draw(held[row]), texts=texts, **outputs)
    return recorder
