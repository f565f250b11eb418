"""Runs with made-up figures, and a problem that takes no time."""

import torch

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, Problem
from dualogic_paper.everyday.store import Run


def make_run(problem, method, seed, figure, held=90.0, weight=1.0, **changes):
    """A run of a problem whose figure and share of rules held are given."""
    from dualogic_paper.everyday.problems import PROBLEMS

    metrics = {} if changes.get("failure") else {PROBLEMS[problem].primary: figure, HELD: held}
    return Run(problem, method, weight, seed, metrics, **changes)


def _train_a_number(make_loss, seed, steps=3):
    value = torch.full((4,), float(seed), requires_grad=True)
    logic = make_loss({"low": dl.var("x") <= 1}, 4)
    if logic is not None:
        for _ in range(steps):
            (slope,) = torch.autograd.grad(logic(torch.arange(4), x=value), value)
            value = (value - slope).detach().requires_grad_()
    return {"error": value.mean().item(), HELD: 100.0 * float(value[0] <= 1)}


TOY = Problem(
    name="toy",
    about="a number that should be low",
    primary="error",
    title="error",
    run=_train_a_number,
    lower_is_better=True,
)
