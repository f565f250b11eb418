"""The suite that every method passes: what a user may rely on when changing ``method=`` and nothing else."""

import copy
import io

import pytest
import torch

import dualogic as dl
from dualogic.errors import BindingError, FormulaTypeError, OptionError, SampleIndexError, SymbolError
from dualogic.methods import METHODS, resolve
from plain import plain

COUNTING = ("semantic", "problog")
LEARNING = ("dual", "pd1", "pd2")
"""Methods that store something for each sample."""

f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
b, c = dl.boolean("b", 4), dl.boolean("c", 4, input="logits")
n = dl.axis("n", max=4)
e, valid = dl.boolean("e", n), dl.mask("valid", n)
x, y = dl.var("x"), dl.var("y", 3)

RULES = {
    "classes": (g == 9) >> (f == 6),
    "class sets": f.isin([1, 2]) | (g != 3),
    "quantified": (b | c).all(),
    "cardinality": dl.ExactlyOne(b[0], b[1], b[2]) & (b[3] | c[0]),
    "ragged": e.all(where=valid) & (e[1:] | ~e[:-1]).any(),
    "equal classes": f == g,
    "real": (x <= 1) & ((y >= 0).all() | (y.sum() == 0.5)),
}
FINITE = [name for name in RULES if name != "real"]
CASES = [(method, rule) for method in METHODS for rule in RULES if not (method in COUNTING and rule == "real")]


def bind(rule, batch=6, seed=0):
    """Tensors that require gradients, with costs below 1 for every comparison so that all methods accept them."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name in RULES[rule].symbols:
        if name in "fg":
            tensors[name] = torch.randn(batch, 10, generator=generator, dtype=torch.float64)
            # Lukasiewicz' "and" has no gradient unless its operands are likely.
            tensors[name][:, 5] += 3.0 if rule == "equal classes" else 0.0
        elif name == "c":
            tensors[name] = torch.randn(batch, 4, generator=generator, dtype=torch.float64)
        elif name in "be":
            tensors[name] = torch.rand(batch, 4 if name == "b" else 3, generator=generator, dtype=torch.float64) * 0.8 + 0.1
        elif name == "valid":
            tensors[name] = torch.rand(batch, 3, generator=generator) < 0.8
            tensors[name][:, 0] = True
        elif name == "x":
            tensors[name] = 1.5 + 0.4 * torch.rand(batch, generator=generator, dtype=torch.float64)
        else:
            tensors[name] = -0.1 * torch.rand(batch, 3, generator=generator, dtype=torch.float64) - 0.01
    return {name: tensor.requires_grad_() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def make(method, rule, **options):
    return dl.LogicLoss(RULES[rule], num_samples=20, method=method, **options)


def step(logic, rule, index=None, **options):
    tensors = bind(rule, **options)
    batch = next(iter(tensors.values())).shape[0]
    return logic(torch.arange(batch) if index is None else index, **tensors), tensors


@pytest.mark.parametrize(("method", "rule"), CASES)
def test_gradient_flows(method, rule):
    loss, tensors = step(make(method, rule), rule)
    assert loss.shape == ()
    assert torch.isfinite(loss)
    loss.backward()
    grads = [tensor.grad for tensor in tensors.values() if tensor.requires_grad]
    assert all(grad is None or torch.isfinite(grad).all() for grad in grads)
    assert sum(float(grad.abs().sum()) for grad in grads if grad is not None) > 0


@pytest.mark.parametrize("method", [plain(evidence=False), *(name for name in METHODS if name not in ("ste", "dual"))], ids=str)
def test_gradient_is_that_of_the_loss(method):
    """Finite differences agree, with the state frozen.

    By design a straight-through gradient is none of its loss, and that of ``dual`` takes its weights as given.
    """
    logic = make(method, "cardinality", reduction="none", dtype=torch.float64)
    step(logic, "cardinality")
    tensors = bind("cardinality")
    names = list(tensors)

    def loss(*values):
        return logic(torch.arange(6), **dict(zip(names, values)))

    with logic.frozen():
        assert torch.autograd.gradcheck(loss, tuple(tensors.values()))


@pytest.mark.parametrize("method", METHODS)
def test_satisfied_costs_no_more_than_violated(method):
    logic = make(method, "classes", reduction="none")
    confident = torch.full((2, 10), -10.0)
    confident[0, 6] = confident[1, 5] = 10.0
    nine = torch.full((2, 10), -10.0)
    nine[:, 9] = 10.0
    for _ in range(3):
        held, violated = logic(torch.tensor([0, 1]), f=confident, g=nine).tolist()
        assert held < violated
    logic.eval()
    held, violated = logic(f=confident, g=nine).tolist()
    assert held < violated


@pytest.mark.parametrize("method", [name for name in METHODS if name not in COUNTING])
def test_satisfied_comparisons_cost_no_more(method):
    logic = make(method, "real", reduction="none")
    x_values, y_values = torch.tensor([0.5, 1.9]), torch.tensor([[0.1, 0.2, 0.1], [-0.2, 0.0, -0.1]])
    for _ in range(3):
        held, violated = logic(torch.tensor([0, 1]), x=x_values, y=y_values).tolist()
        assert held < violated


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["classes", "ragged"])
def test_batch_order_does_not_matter(method, rule):
    one, two = make(method, rule, reduction="none"), make(method, rule, reduction="none")
    index, order = torch.tensor([3, 11, 0, 7, 19, 4]), torch.tensor([5, 2, 0, 1, 4, 3])
    tensors = bind(rule)
    for _ in range(3):
        straight = one(index, **tensors)
        shuffled = two(index[order], **{name: tensor[order] for name, tensor in tensors.items()})
        torch.testing.assert_close(straight[order], shuffled)
    for name, value in one.state_dict().items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, two.state_dict()[name])


@pytest.mark.parametrize("method", METHODS)
def test_samples_are_independent(method):
    """A sample's loss does not depend on who shares its batch, except through delta, which is set after the loss."""
    tensors = bind("ragged")
    together = make(method, "ragged", reduction="none")(torch.arange(6), **tensors)
    alone = make(method, "ragged", reduction="none")(torch.arange(1), **{name: tensor[:1] for name, tensor in tensors.items()})
    torch.testing.assert_close(together[:1], alone)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["classes", "quantified"])
def test_state_round_trips(method, rule):
    logic = make(method, rule)
    for _ in range(3):
        step(logic, rule)
    buffer = io.BytesIO()
    torch.save(logic.state_dict(), buffer)
    buffer.seek(0)
    fresh = make(method, rule)
    fresh.load_state_dict(torch.load(buffer, weights_only=False))
    twin = copy.deepcopy(logic)
    expected = step(logic, rule)[0]
    torch.testing.assert_close(step(fresh, rule)[0], expected)
    torch.testing.assert_close(step(twin, rule)[0], expected)
    for name, value in logic.state_dict().items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, fresh.state_dict()[name])


@pytest.mark.parametrize("method", METHODS)
def test_frozen_and_eval_leave_the_state_alone(method):
    logic = make(method, "classes")
    step(logic, "classes")
    before = {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
    with logic.frozen():
        step(logic, "classes")
    logic.eval()
    step(logic, "classes")
    with torch.no_grad():
        logic.train()
        step(logic, "classes")
    for name, value in before.items():
        torch.testing.assert_close(logic.state_dict()[name], value)


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_connectives(method):
    """Only ``dual`` has weights to show; asking is never an error."""
    logic = make(method, "classes")
    step(logic, "classes")
    assert set(logic.weights(torch.arange(6))) == ({"rule"} if method == "dual" else set())


@pytest.mark.parametrize("method", METHODS)
def test_shared_state(method):
    logic = dl.LogicLoss(RULES["classes"], method=method)
    tensors = bind("classes")
    loss = logic(**tensors)
    loss.backward()
    assert torch.isfinite(loss)
    assert sum(float(tensor.grad.abs().sum()) for tensor in tensors.values() if tensor.grad is not None) > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_gradient_is_that_of_the_state_that_the_loss_had(method):
    logic = dl.LogicLoss(RULES["classes"], method=method, update="manual", dtype=torch.float64)
    tensors = bind("classes")
    loss = logic(**tensors)
    early = torch.autograd.grad(loss, tensors.values(), retain_graph=True, allow_unused=True)
    logic.step()
    late = torch.autograd.grad(loss, tensors.values(), allow_unused=True)
    assert all(map(torch.equal, *([slope for slope in slopes if slope is not None] for slopes in (early, late))))


@pytest.mark.parametrize("method", METHODS)
def test_several_rules_are_averaged(method):
    rules = {"one": RULES["classes"], "two": dl.Or(f == 1, g == 2)}
    method = dl.methods.Dual(rules="mean") if method == "dual" else method
    tensors = bind("classes")
    both = dl.LogicLoss(rules, method=method, weight={"two": 3.0})(**tensors)
    parts = [dl.LogicLoss(rule, method=method)(**tensors) for rule in rules.values()]
    torch.testing.assert_close(both, (parts[0] + 3.0 * parts[1]) / 2)


@pytest.mark.parametrize("method", METHODS)
def test_half_precision_inputs_are_computed_in_float32(method):
    tensors = {name: tensor.detach().bfloat16() for name, tensor in bind("classes").items()}
    loss = make(method, "classes")(torch.arange(6), **tensors)
    assert loss.dtype == torch.float32


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [40.0, 400.0])
def test_extreme_logits_stay_finite(method, size):
    tensors = {name: (tensor.detach().sign() * size).float().requires_grad_() for name, tensor in bind("classes").items()}
    loss = make(method, "classes")(torch.arange(6), **tensors)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(tensor.grad is None or torch.isfinite(tensor.grad).all() for tensor in tensors.values())
    assert tensors["f"].grad is not None


@pytest.mark.parametrize("method", METHODS)
def test_certain_probabilities_stay_finite(method):
    rule = (dl.boolean("u") & ~dl.boolean("v")) | dl.boolean("w", 3).all()
    tensors = {
        "u": torch.tensor([0.0, 1.0, 1.0], requires_grad=True),
        "v": torch.tensor([1.0, 1.0, 0.0], requires_grad=True),
        "w": torch.tensor([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], requires_grad=True),
    }
    loss = dl.LogicLoss(rule, method=method)(**tensors)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(tensor.grad).all() for tensor in tensors.values())


r, s = dl.var("r", n), dl.var("s", n)


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(COUNTING)))
@pytest.mark.parametrize(
    "rule",
    [(r**0.5 <= 1).all(), (1 / r >= 1).all(), (r**-1 >= 0).all(), (r / s <= 1).all(where=valid), (s**1.5 <= 1).all(where=valid)],
    ids=str,
)
def test_an_infinite_slope_that_nothing_asks_for_is_none(method, rule):
    """At the edge of what is defined, where a comparison holds, and in padding."""
    given = {"r": torch.tensor([[0.25, 0.0], [0.5, 0.0]]), "s": torch.tensor([[0.25, 0.0], [0.5, -1.0]])}
    logic = dl.LogicLoss(rule, method=method)
    for _ in range(4):
        tensors = {name: given[name].clone().requires_grad_() for name in logic.symbols if name in given}
        masks = {"valid": torch.tensor([[True, False], [True, False]])} if "valid" in logic.symbols else {}
        logic(**tensors, **masks).backward()
    assert all(torch.isfinite(tensor.grad).all() and not tensor.grad[:, 1].any() for tensor in tensors.values())


@pytest.mark.parametrize("method", METHODS)
def test_bad_input(method):
    logic = make(method, "classes")
    tensors = bind("classes")
    with pytest.raises(SymbolError, match="no tensor was given for 'g'"):
        logic(torch.arange(6), f=tensors["f"])
    with pytest.raises(BindingError, match="needs a tensor of shape"):
        logic(torch.arange(6), f=tensors["f"], g=tensors["g"][:, :9])
    with pytest.raises(BindingError, match="NaN"):
        logic(torch.arange(6), f=tensors["f"], g=tensors["g"] * float("nan"))
    if method in LEARNING:
        with pytest.raises(SampleIndexError, match="needs the samples' indices"):
            logic(**tensors)
        with pytest.raises(SampleIndexError, match="out of range"):
            logic(torch.arange(6) + 20, **tensors)


@pytest.mark.parametrize(("method", "rule"), CASES)
def test_an_empty_batch_costs_nothing_and_has_a_gradient(method, rule):
    loss, tensors = step(make(method, rule), rule, batch=0)
    assert loss.item() == 0
    loss.backward()
    assert any(tensor.grad is not None for tensor in tensors.values())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("training", [True, False])
def test_sequences_too_short_for_the_rule_satisfy_it_and_can_be_differentiated(method, training):
    logic = dl.LogicLoss((e[1:] | ~e[:-1]).all(), num_samples=20, method=method).train(training)
    alone = torch.rand(6, 1, generator=torch.Generator().manual_seed(0), requires_grad=True)
    logic(torch.arange(6) if training else None, e=alone).backward()
    assert alone.grad.abs().max() < 1e-30
    assert abs(logic.statistics()["rule"]["cost"].item()) < 1e-6


@pytest.mark.parametrize("method", COUNTING)
def test_real_valued_atoms_cannot_be_counted(method):
    with pytest.raises(FormulaTypeError, match=r"cannot be compiled for the real-valued comparison x <= 1.*'dual'"):
        make(method, "real")


def test_the_registry_holds_the_public_names():
    assert set(METHODS) == {
        *("dual", "uniform", "hard", "dl2", "pd1", "pd2", "semantic", "problog"),
        *("godel", "product", "lukasiewicz", "ltn", "ste"),
    }
    for name, method in METHODS.items():
        assert resolve(name) == method()
        assert method.name == name
        assert method.__doc__
        assert ">>>" in method.__doc__


def test_an_unknown_method_is_refused_with_the_choices():
    with pytest.raises(OptionError, match="'semantic'"):
        dl.LogicLoss(RULES["classes"], method="semantics")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
@pytest.mark.parametrize("method", METHODS)
def test_compiles_into_one_graph(method):
    """``torch.compile`` finds nothing to break at, and gives the same loss and gradient."""
    torch._dynamo.reset()
    tensors = bind("classes")
    plain, compiled = make(method, "classes"), torch.compile(make(method, "classes"), backend="aot_eager", fullgraph=True)
    losses = [logic(torch.arange(6), **tensors) for logic in (plain, compiled)]
    torch.testing.assert_close(*losses)
    # Evidence has no gradient; an absent one and zeros are the same.
    leaves, options = list(tensors.values()), {"allow_unused": True, "materialize_grads": True}
    for one, two in zip(*(torch.autograd.grad(loss, leaves, **options) for loss in losses)):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("update", ["forward", "manual"])
@pytest.mark.parametrize(("method", "rule"), CASES)
def test_believing_what_is_taught_changes_nothing(method, rule, update):
    plain, other = (make(method, rule, update=update) for _ in range(2))
    for number in range(3):
        losses = []
        for logic in (plain, other):
            tensors = bind(rule, seed=number)
            floats = {name: value for name, value in tensors.items() if value.is_floating_point()}
            same = {name: value.detach().clone() for name, value in floats.items()} if number else floats
            loss = logic(torch.tensor([0, 3, 3, 5, 7, 1]), believe=same if logic is other else None, **tensors)
            losses.append([loss, *torch.autograd.grad(loss, list(floats.values()), allow_unused=True)])
            logic.step() if update == "manual" else None
        assert torch.equal(losses[0][0], losses[1][0])
        for one, two in zip(*losses):  # of gradients, torch 2.4 and 2.6 differ in a last digit
            assert (one is None and two is None) or torch.allclose(one, two, rtol=1e-14, atol=0)
    for name, value in plain.state_dict().items():
        assert not isinstance(value, torch.Tensor) or torch.equal(value, other.state_dict()[name])


@pytest.mark.parametrize("method", METHODS)
def test_each_rule_may_be_about_its_own_samples(method):
    rules = {name: RULES[name] for name in ("classes", "class sets")}
    method = dl.methods.Dual(rules="mean") if method == "dual" else method
    together, apart = dl.LogicLoss(rules, 20, method), {name: dl.LogicLoss(rule, 20, method) for name, rule in rules.items()}
    where = {"classes": torch.tensor([True, False, True, True, False, False]), "class sets": torch.zeros(6, dtype=torch.bool)}
    tensors = bind("classes")
    expected = sum(logic(torch.arange(6), where=where[name], **tensors) for name, logic in apart.items()) / 2
    torch.testing.assert_close(together(torch.arange(6), where=where, **tensors), expected)
