"""Straight-through estimators, against a dense clause matrix written out as in the source."""

import pytest
import torch

import dualogic as dl
from dualogic.errors import OptionError, SizeError

p = dl.boolean("p", 6)


def dense(clauses, values):
    """The source's losses: clauses as rows of -1, 0 and 1 over the atoms."""
    matrix = torch.zeros(len(clauses), values.shape[1], dtype=values.dtype)
    for row, clause in enumerate(clauses):
        for literal in clause:
            matrix[row, abs(literal) - 1] = 1.0 if literal > 0 else -1.0
    bits = (values >= 0.5).to(values.dtype).detach() + (values - values.detach())
    bits = bits.unsqueeze(1)
    literals = torch.where(matrix == 1, bits, torch.where(matrix == -1, 1 - bits, torch.zeros(())))
    unsat = (1 - literals).prod(-1)
    present = matrix != 0
    keep = ((literals.detach() == 1) * (1 - literals) + ((literals.detach() == 0) & present) * literals).sum(-1)
    violated = unsat.detach() == 1
    return torch.where(violated, unsat, keep).mean(-1)


CLAUSES = [
    [[1, 2], [-1, 3], [4, -5, 6]],
    [[1, -2, 3]],
    [[1], [-2], [3, 4]],
    [[1, 2, 3], [-4, -5], [-1, -6], [2, 6], [-3, 5]],
]


def rule_of(clauses):
    literals = [[p[abs(number) - 1] if number > 0 else ~p[abs(number) - 1] for number in clause] for clause in clauses]
    return dl.And(*(dl.Or(*clause) for clause in literals))


@pytest.mark.parametrize("clauses", CLAUSES)
def test_values_and_gradients_agree_with_the_dense_form(clauses):
    generator = torch.Generator().manual_seed(4)
    values = torch.rand(50, 6, generator=generator, dtype=torch.float64).requires_grad_()
    mine = dl.LogicLoss(rule_of(clauses), method="ste", reduction="none")(p=values)
    theirs = dense(clauses, values)
    torch.testing.assert_close(mine, theirs)
    weights = torch.linspace(1.0, 2.0, 50, dtype=torch.float64)
    grads = [torch.autograd.grad((loss * weights).sum(), values, retain_graph=True)[0] for loss in (mine, theirs)]
    torch.testing.assert_close(*grads)


def test_quantified_rules_equal_their_written_out_form():
    q = dl.boolean("q", 3)
    values = {
        "p": torch.rand(20, 6, generator=torch.Generator().manual_seed(5)).requires_grad_(),
        "q": torch.rand(20, 3, generator=torch.Generator().manual_seed(6)).requires_grad_(),
    }
    whole = (p[:3] | ~q).all() & (p[3:].any() | q[0])
    written = dl.And(*(p[i] | ~q[i] for i in range(3)), p[3] | p[4] | p[5] | q[0])
    losses = [dl.LogicLoss(rule, method="ste")(**values) for rule in (whole, written)]
    torch.testing.assert_close(*losses)
    grads = [torch.autograd.grad(loss, list(values.values())) for loss in losses]
    for one, two in zip(*grads):
        torch.testing.assert_close(one, two)


def test_masked_clauses_do_not_count():
    keep = dl.mask("keep", 6)
    values = torch.tensor([[0.1, 0.2, 0.9, 0.3, 0.8, 0.7]])
    mask = torch.tensor([[True, False, True, False, False, True]])
    assert dl.LogicLoss(p.all(where=keep), method="ste")(p=values, keep=mask).item() == pytest.approx(1 / 3)


def test_met_clauses_can_be_left_alone():
    values = torch.tensor([[0.9, 0.1, 0.1, 0.1, 0.1, 0.1]], requires_grad=True)
    loss = dl.LogicLoss(p[0] | p[1], method=dl.methods.STE(keep=0.0))(p=values)
    loss.backward()
    assert loss.item() == 0
    assert values.grad.abs().sum() == 0
    dl.LogicLoss(p[0] | p[1], method="ste")(p=values).backward()
    assert values.grad[0, :2].tolist() == [-1.0, 1.0]


def test_comparisons_hold_or_not():
    x = dl.var("x")
    value = torch.tensor([0.5, 2.0], requires_grad=True)
    loss = dl.LogicLoss(x <= 1, method="ste", reduction="none")(x=value)
    assert loss.tolist() == [0.0, 1.0]
    loss.sum().backward()
    assert value.grad[1] > 0


def test_rules_without_a_cnf_are_refused():
    n = dl.axis("n", max=4)
    e = dl.boolean("e", n)
    with pytest.raises(SizeError, match="has no CNF"):
        dl.LogicLoss((e[1:] & ~e[:-1]).any(), method="ste")
    with pytest.raises(OptionError, match="keep must be at least 0"):
        dl.methods.STE(keep=-1.0)
