"""The paper's claims about the duals, on fixed costs and on Appendix C's examples."""

import pytest
import torch

import dualogic as dl
from plain import plain

INDEX = torch.tensor([0])


def settled_after(method, seeds, visits):
    """For random costs of 4 clauses of 3 atoms, held fixed: the last visit at 1e-3 or more from max-min."""
    costs = torch.stack([torch.rand(4, 3, generator=torch.Generator().manual_seed(seed)) for seed in range(seeds)]).double()
    x = dl.var("x", seeds, 4, 3)
    rules = {f"seed {seed}": (x[seed] <= 0).any(1).all() for seed in range(seeds)}
    logic = dl.LogicLoss(rules, num_samples=1, method=method, dtype=torch.float64)
    value = costs.unsqueeze(0).requires_grad_()
    optimum = costs.amin(2).amax(1)
    last = torch.zeros(seeds)
    for visit in range(1, visits + 1):
        logic(INDEX, x=value)
        reached = torch.stack([entry["cost"] for entry in logic.statistics().values()])
        last[(reached - optimum).abs() >= 1e-3] = visit
    return last


def test_exponentiated_weights_reach_max_min():
    """Theorem 1; measured at step 0.5: 29 to 138 visits."""
    assert settled_after(plain(rule="exponentiated", step=0.5, local=False, floor=0.1), seeds=10, visits=600).max() <= 500


def test_softmax_weights_reach_max_min_later():
    """Theorem 1; measured at step 0.2: 419 to 639 visits."""
    last = settled_after(plain(rule="softmax", step=0.2, local=False, floor=0.1), seeds=4, visits=1200)
    assert last.min() > 300
    assert last.max() <= 1000


def test_softmax_weights_lock_in_a_decision_and_exponentiated_ones_do_not():
    """Visits to bring a weight of 0.9997 back below one half when the costs change sides (notes on duals as logits)."""
    x = dl.var("x", 2)
    costs = torch.tensor([[1.0, 0.0]], dtype=torch.float64).requires_grad_()
    needed = {}
    for rule in ("softmax", "exponentiated"):
        method = plain(rule=rule, step=0.2, ceiling=1.0, floor=1.0)
        logic = dl.LogicLoss((x <= 0).any(), num_samples=1, method=method, dtype=torch.float64)
        logic._table.values.copy_(torch.tensor([[8.1, 0.0]]))
        visits = 0
        while logic.weights(INDEX)["rule"][0, 0] > 0.5:
            logic(INDEX, x=costs)
            visits += 1
        needed[rule] = visits
    assert needed["exponentiated"] < 100
    assert needed["softmax"] > 50 * needed["exponentiated"]


def train(rule, start, method, steps=400, rate=0.05):
    v = torch.tensor([start], dtype=torch.float64, requires_grad=True)
    logic = dl.LogicLoss(rule, num_samples=1, method=method, dtype=torch.float64)
    optimizer = torch.optim.Adam([v], lr=rate)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
    for _ in range(steps):
        optimizer.zero_grad()
        logic(INDEX, v=v).backward()
        optimizer.step()
        scheduler.step()
    return v.item(), bool(rule.satisfied(tol=0.01, v=v.detach()))


def test_first_example_of_appendix_c():
    v = dl.var("v")
    rule = (v**2 <= -1) | (3 * v >= 2)
    assert train(rule, 0.0, "dual")[1]
    final, satisfied = train(rule, 0.0, "hard")
    assert not satisfied
    assert final == 0.0


@pytest.mark.parametrize("start", [tenth / 10 for tenth in range(41)])
def test_second_example_of_appendix_c(start):
    v = dl.var("v")
    final, satisfied = train((v == 1) | (v == 2) | (v == 3), start, "dual")
    assert satisfied, final
