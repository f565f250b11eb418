"""Fuzzy methods against LTNtorch: values and gradients."""

import warnings

import pytest
import torch

import dualogic as dl
from dualogic.errors import OptionError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ltn

ops = ltn.fuzzy_ops
CONNECTIVES = {
    "godel": (ops.AndMin(), ops.OrMax(), ops.ImpliesKleeneDienes()),
    "product": (ops.AndProd(stable=False), ops.OrProbSum(stable=False), ops.ImpliesReichenbach(stable=False)),
    "lukasiewicz": (ops.AndLuk(), ops.OrLuk(), ops.ImpliesLuk()),
    "ltn": (ops.AndProd(), ops.OrProbSum(), ops.ImpliesReichenbach()),
}
a, b, c, d = (dl.boolean(name) for name in "abcd")
many = dl.boolean("many", 2, 5)
keep = dl.mask("keep", 2, 5)

FORMULAS = {
    "and": (a & b, lambda AND, OR, IMP, a, b, c, d: AND(a, b)),
    "or": (a | b, lambda AND, OR, IMP, a, b, c, d: OR(a, b)),
    "implies": (a >> b, lambda AND, OR, IMP, a, b, c, d: IMP(a, b)),
    "and of four": (a & b & c & d, lambda AND, OR, IMP, a, b, c, d: AND(AND(AND(a, b), c), d)),
    "or of four": (a | b | c | d, lambda AND, OR, IMP, a, b, c, d: OR(OR(OR(a, b), c), d)),
    "nested": ((a & ~b) | (c >> d) | b, lambda AND, OR, IMP, a, b, c, d: OR(OR(AND(a, 1 - b), IMP(c, d)), b)),
    "mixed order": ((a & b) | c | (b & d), lambda AND, OR, IMP, a, b, c, d: OR(OR(AND(a, b), c), AND(b, d))),
}


def leaves(count=4, batch=64):
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(batch, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(count)]


def compare(mine, theirs, inputs):
    torch.testing.assert_close(mine, theirs)
    weights = torch.linspace(0.5, 2.0, len(mine), dtype=mine.dtype)
    grads = [
        torch.autograd.grad((value * weights).sum(), inputs, retain_graph=True, allow_unused=True) for value in (mine, theirs)
    ]
    for one, two, tensor in zip(*grads, inputs):
        zero = torch.zeros_like(tensor)
        torch.testing.assert_close(zero if one is None else one, zero if two is None else two)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("method", CONNECTIVES)
def test_connectives_agree(method, formula):
    rule, reference = FORMULAS[formula]
    values = leaves()
    bound = {name: value for name, value in zip("abcd", values) if name in rule.symbols}
    truth = 1 - dl.LogicLoss(rule, method=method, reduction="none")(**bound)
    compare(truth, reference(*CONNECTIVES[method], *values), values)


@pytest.mark.parametrize("power", [1, 2, 3, 6])
def test_quantifiers_agree(power):
    value = torch.rand(8, 2, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    every, some = ops.AggregPMeanError(p=power), ops.AggregPMean(p=power)
    method = dl.methods.LTN(p_all=power, p_any=power)
    cases = {
        many.all(): every(value, dim=(1, 2)),
        many.any(): some(value, dim=(1, 2)),
        many.any(1).all(): every(some(value, dim=2), dim=1),
        many.all(0).any(): some(every(value, dim=1), dim=1),
    }
    for rule, expected in cases.items():
        compare(1 - dl.LogicLoss(rule, method=method, reduction="none")(many=value), expected, [value])


@pytest.mark.parametrize("epsilon", [0.0, 1e-4])
@pytest.mark.parametrize("power", [1, 2, 100, 1000.0, 1e6])
@pytest.mark.parametrize("masked", [False, True])
def test_no_exponent_spoils_a_gradient(power, epsilon, masked):
    """Powers that are too small for their type; the mean comes near to the largest entry."""
    value = torch.tensor([0.0, 1e-3, 0.5, 0.9, 1.0]).view(5, 1, 1).repeat(1, 2, 5)
    value[2, 0, 0] = 0.75
    value.requires_grad_()
    mask = {"keep": torch.arange(5).expand(5, 2, 5) < 4} if masked else {}
    method = dl.methods.LTN(p_all=power, p_any=power, epsilon=epsilon)
    where = keep if masked else None
    for rule, largest in ((many.any(where=where), 0.75), (many.all(where=where), 0.5)):
        truth = 1 - dl.LogicLoss(rule, method=method, reduction="none")(many=value, **mask)
        (gradient,) = torch.autograd.grad(truth.sum(), value)
        assert torch.isfinite(gradient).all()
        assert (gradient >= 0).all()
        if masked:
            assert (gradient[..., 4] == 0).all()
        if power >= 100:
            assert truth[2].item() == pytest.approx(largest, abs=0.03)
            assert gradient[2].sum().item() == pytest.approx(1.0, abs=0.03)


def test_guarded_quantifiers_agree():
    generator = torch.Generator().manual_seed(3)
    value = torch.rand(8, 2, 5, generator=generator, dtype=torch.float64).requires_grad_()
    mask = torch.rand(8, 2, 5, generator=generator) < 0.6
    mask[:, 0, 0] = True
    for rule, aggregate in ((many.all(where=keep), ops.AggregPMeanError()), (many.any(where=keep), ops.AggregPMean())):
        logic = dl.LogicLoss(rule, method="ltn", reduction="none")
        compare(1 - logic(many=value, keep=mask), aggregate(value, dim=(1, 2), mask=mask), [value])


@pytest.mark.parametrize("method", CONNECTIVES)
def test_nothing_to_quantify_over(method):
    """An empty "all" is true, an empty "any" false, and neither spoils a gradient."""
    value = torch.full((1, 2, 5), 0.5, requires_grad=True)
    mask = torch.zeros(1, 2, 5, dtype=torch.bool)
    for rule, cost in ((many.all(where=keep), 0.0), (many.any(where=keep), 1.0)):
        loss = dl.LogicLoss(rule, method=method)(many=value, keep=mask)
        loss.backward()
        assert loss.item() == pytest.approx(cost, abs=1e-3)
        assert torch.isfinite(value.grad).all()


@pytest.mark.parametrize("method", CONNECTIVES)
def test_class_atoms_are_as_true_as_their_probability(method):
    f = dl.categorical("f", 3)
    p = torch.tensor([[0.5, 0.2, 0.3]])
    for rule, truth in ((f == 1, 0.2), (f != 1, 0.8), (f.isin([0, 2]), 0.8)):
        assert dl.LogicLoss(rule, method=method)(f=p).item() == pytest.approx(1 - truth)


@pytest.mark.parametrize(
    ("relaxation", "truths"), [("exponential", [1.0, 1.0, 0.60653066, 0.1353353]), ("linear", [1.0, 1.0, 0.5, 0.0])]
)
def test_comparisons_are_relaxed(relaxation, truths):
    """Costs 0, 0, 1 and 4 at scale 2: exp(-1/2), exp(-2), and 1 - 1/2."""
    method = dl.methods.Product(relaxation=relaxation, scale=2.0)
    loss = dl.LogicLoss(dl.var("x") <= 1, method=method, reduction="none")(x=torch.tensor([0.0, 1.0, 2.0, 5.0]))
    torch.testing.assert_close(1 - loss, torch.tensor(truths))


def test_logarithmic_loss():
    method = dl.methods.Product(loss="log")
    loss = dl.LogicLoss(a & b, method=method)(a=torch.tensor([0.5]), b=torch.tensor([0.25]))
    torch.testing.assert_close(loss, torch.tensor(8.0).log())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dl.methods.LTN(p_all=0.5), "p_all is the exponent"),
        (lambda: dl.methods.LTN(epsilon=1.0), "epsilon must be"),
        (lambda: dl.methods.Godel(loss="square"), "loss must be one of"),
        (lambda: dl.methods.Godel(relaxation="step"), "relaxation must be one of"),
        (lambda: dl.methods.Godel(scale=0.0), "scale must be a finite number above 0"),
    ],
)
def test_options_are_checked(make, message):
    with pytest.raises(OptionError, match=message):
        make()
