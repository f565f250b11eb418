"""``believe=``: what is believed moves the duals and says what an antecedent is; what is taught has the loss and the gradient."""

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

import dualogic as dl
from dualogic.errors import BindingError, SymbolError
from dualogic.losses import truncated_normal_loss

SAMPLES = 5
x, y = dl.var("x"), dl.var("y")
a, b = dl.boolean("a", input="logits"), dl.boolean("b", input="logits")
RULES = {"either": (x <= 0) | (y <= 0.2), "implied": (a & (x > 0.5)) >> b, "given": dl.evidence(b, 0.5) >> (y <= 0.3)}
METHODS = {
    "dual": dl.methods.Dual(step=0.5),
    "or": dl.methods.Dual(implication="or", evidence=0.5, delta="mean"),
    "paper": dl.methods.Dual.paper(),
    "hard": dl.methods.Hard(evidence=True),
    "uniform": dl.methods.Uniform(),
    "pd2": dl.methods.PD2(rate=1.0),
    "dl2": dl.methods.DL2(),
}


def draw(seed, size=4, learn=True):
    generator = torch.Generator().manual_seed(seed)
    drawn = {name: torch.rand(size, generator=generator, dtype=torch.float64) for name in "xy"}
    drawn.update({name: 2 * torch.randn(size, generator=generator, dtype=torch.float64) for name in "ab"})
    return {name: value.requires_grad_(learn) for name, value in drawn.items()}


def make(method="dual", rules=RULES, **options):
    return dl.LogicLoss(rules, SAMPLES, METHODS.get(method, method), **{"dtype": torch.float64, **options})


def tensors_of(logic):
    return {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}


def gradients(loss, tensors):
    return torch.autograd.grad(loss.sum(), list(tensors.values()), allow_unused=True)


@pytest.mark.parametrize("update", ["forward", "manual"])
@pytest.mark.parametrize("method", METHODS)
@hypothesis.settings(max_examples=5)
@hypothesis.given(seed=st.integers(0, 10_000))
def test_the_state_is_that_of_a_call_on_what_is_believed(method, update, seed):
    taught, alone = (make(method, update=update) for _ in range(2))
    for step in range(3):
        index = torch.randint(SAMPLES, (4,), generator=torch.Generator().manual_seed(seed + step))
        believed = draw(seed + step)
        loss = taught(index, believe=believed, **draw(seed + 100 + step))
        loss.backward()
        assert all(value.grad is None for value in believed.values())
        alone(index, **believed)
        for logic in (taught, alone):
            logic.step() if update == "manual" else None
    for name, value in tensors_of(taught).items():
        assert torch.equal(value, alone.state_dict()[name]), name


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("method", METHODS)
@hypothesis.settings(max_examples=5)
@hypothesis.given(seed=st.integers(0, 10_000), partly=st.booleans(), masked=st.sampled_from([None, "all", "each"]))
def test_several_views_are_averaged(method, reduction, seed, partly, masked):
    logic = make(method, reduction=reduction)
    index, believed, views = torch.tensor([0, 3, 3, 1]), draw(seed, learn=False), [draw(seed + step) for step in (1, 2, 3)]
    where = {"all": torch.tensor([True, False, True, True]), "each": {"implied": torch.tensor([False, True, True, False])}}.get(
        masked
    )
    names = "ax" if partly else "abxy"
    for view in views:  # what is not believed is the same for all views
        view.update({} if not partly else {name: views[0][name] for name in "by"})
    logic(index, **draw(seed + 9))
    together = {name: torch.cat([view[name] for view in views]) if name in names else views[0][name] for name in "abxy"}
    with logic.frozen():
        believe = {name: believed[name] for name in names}
        each = [logic(index, believe=believe, where=where, **view) for view in views]
        loss = logic(index, believe=believe, where=where, **together)
    torch.testing.assert_close(loss, torch.stack(each).mean(0))
    leaves = {f"{name}{number}": view[name] for number, view in enumerate(views) for name in "abxy"}
    torch.testing.assert_close(gradients(loss, leaves), gradients(torch.stack(each).mean(0), leaves))
    logic(index, believe=believe, where=where, **together)
    assert logic.statistics()["either"]["cost"].isfinite()


@pytest.mark.parametrize("accelerator", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_where_is_a_call_with_the_selected_samples(method, accelerator, monkeypatch):
    part, whole = (make(method) for _ in range(2))
    if accelerator:
        monkeypatch.setattr("dualogic.loss.checks.reads_at_once", lambda device: False)
    for step in range(4):
        where = (
            torch.rand(4, generator=torch.Generator().manual_seed(step)) < 0.6 if step != 2 else torch.zeros(4, dtype=torch.bool)
        )
        believed, taught, index = draw(step, learn=False), draw(step + 50, 8), torch.tensor([0, 2, 2, 4])
        poisoned = {name: torch.where(where, value, torch.nan) for name, value in believed.items()}
        loss = part(torch.where(where, index, -1), believe=poisoned, where=where, **taught)
        chosen = {name: value[where.repeat(2)] for name, value in taught.items()}
        expected = whole(index[where], believe={name: value[where] for name, value in believed.items()}, **chosen)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(gradients(loss, taught), gradients(expected, taught))
    for name, value in tensors_of(part).items():
        torch.testing.assert_close(value, whole.state_dict()[name])


def test_an_or_weighs_by_what_is_believed():
    """By hand: weights of 1/2 each, times (least / cost)^4 of the beliefs; costs and gradient of what is taught."""
    logic = dl.LogicLoss((x <= 0) | (y <= 0), method=dl.methods.Dual(step=0.0))
    taught = {"x": torch.tensor([3.0], requires_grad=True), "y": torch.tensor([1.0], requires_grad=True)}
    loss = logic(believe={"x": torch.tensor([1.0]), "y": torch.tensor([2.0])}, **taught)
    weights = torch.tensor([1.0, 1 / 16]) / (17 / 16)
    cost = weights[0] * taught["x"] + weights[1] * taught["y"]
    expected = truncated_normal_loss(cost.unsqueeze(1), torch.ones(1)).mean()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients(loss, taught), gradients(expected, taught))


def test_the_step_of_the_duals_is_the_gradient_at_what_is_believed():
    method = dl.methods.Dual(local=False, first="equal", implication="or", step=0.7, loss_first=True, delta="mean")
    logic = make(method, RULES["either"])
    believed, index = draw(1, learn=False), torch.arange(4)
    rows = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    costs = torch.stack([believed["x"], (believed["y"] - 0.2).clamp_min(0)], 1)
    cost = (rows.softmax(1) * costs).sum(1, keepdim=True)
    (slope,) = torch.autograd.grad(truncated_normal_loss(cost, torch.ones(1, dtype=torch.float64)).sum(), rows)
    logic(index, believe={name: believed[name] for name in "xy"}, **{name: draw(2)[name] for name in "xy"})
    torch.testing.assert_close(logic.state_dict()["table"][:4], -0.7 * slope)


def test_hard_takes_the_branch_that_is_cheapest_for_the_believer():
    logic = dl.LogicLoss((x <= 0) | (y <= 0), method="hard", reduction="none")
    taught = {"x": torch.tensor([5.0, 5.0], requires_grad=True), "y": torch.tensor([1.0, 1.0], requires_grad=True)}
    loss = logic(believe={"x": torch.tensor([1.0, 2.0]), "y": torch.tensor([2.0, 2.0])}, **taught)
    found = gradients(loss, taught)
    assert found[0][0] > 0
    assert found[1][0] == 0
    assert found[0][1] == found[1][1] > 0  # equally cheap: both are taught, as without beliefs


def test_an_antecedent_is_what_is_believed_of_it():
    logic = dl.LogicLoss(a >> b)
    sure, doubt = torch.full((3,), 6.0), torch.full((3,), -6.0)
    taught = {"a": doubt.clone().requires_grad_(), "b": torch.zeros(3, requires_grad=True)}
    alone = gradients(logic(**taught), taught)
    assert alone[1].abs().max() < 1e-4  # in this view the antecedent is false, so nothing is asked
    with_teacher = gradients(logic(believe={"a": sure}, **taught), taught)
    assert with_teacher[1].max() < -0.05
    assert not with_teacher[0].any()  # and it is evidence


def test_comparisons_in_an_antecedent_are_facts_of_the_believer():
    logic = dl.LogicLoss((x > 1) >> b)
    taught = {"x": torch.zeros(2), "b": torch.zeros(2, requires_grad=True)}
    (found,) = gradients(logic(believe={"x": torch.tensor([2.0, 0.5])}, **taught), {"b": taught["b"]})
    assert found[0] < 0
    assert found[1] == 0
    claim = dl.LogicLoss(((x > 1) & a) >> b, method=dl.methods.Dual(evidence=False))
    taught = {"x": torch.zeros(2), "a": torch.full((2,), 2.0, requires_grad=True), "b": torch.zeros(2)}
    beliefs = {"x": torch.tensor([2.0, 0.5]), "b": torch.full((2,), -4.0)}
    (found,) = gradients(claim(believe=beliefs, **taught), {"a": taught["a"]})
    assert found[0] > 0  # the antecedent may give way where the believer sees that the fact holds
    assert found[1] == 0


def test_claims_are_taught_beside_what_is_believed_of_the_other_side():
    logic = dl.LogicLoss(a >> b, method=dl.methods.Dual(evidence=False))
    taught = {name: torch.tensor([2.0], requires_grad=True) for name in "ab"}
    assert not any(value.any() for value in gradients(logic(**taught), taught))  # both views agree with the rule
    up, down = gradients(logic(believe={"a": torch.tensor([4.0]), "b": torch.tensor([-4.0])}, **taught), taught)
    assert up > 0  # a less, because b is not believed
    assert down < 0  # and b more, because a is


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", [None, {"either": torch.tensor([True, False, True, True])}])
def test_a_compiled_call_is_the_same(where):
    plain, logic = (make() for _ in range(2))
    torch._dynamo.reset()
    compiled = torch.compile(logic, backend="eager", fullgraph=True)
    for step in range(3):
        index, believed, taught = torch.tensor([0, 1, 1, 4]), draw(step, learn=False), draw(step + 7, 8)
        losses = [made(index, believe=believed, where=where, **taught) for made in (compiled, plain)]
        torch.testing.assert_close(*losses)
        torch.testing.assert_close(*(gradients(loss, taught) for loss in losses))
    for name, value in tensors_of(plain).items():
        torch.testing.assert_close(value, logic.state_dict()[name])


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.bfloat16])
def test_what_is_believed_is_not_rounded_to_the_type_of_what_is_taught(dtype):
    """A truth value or a count may be known, and believed in by a fraction."""
    rule = (dl.boolean("a") >> b) & ((x <= 0.1) | (y <= 0))
    states = []
    for known in (dtype, torch.float32):
        logic = make(rules=rule, dtype=torch.float32)
        facts = {"a": torch.tensor([1, 0]).to(known), "x": torch.tensor([1, 0]).to(known)}
        believed = {"a": torch.tensor([0.9003, 0.3]), "x": torch.tensor([0.1003, 0.2])}
        logic(torch.arange(2), believe=believed, **{name: torch.ones(2, requires_grad=True) for name in "by"}, **facts)
        states.append({**tensors_of(logic), **logic.statistics()["rule"], "evidence": torch.zeros(0)})
    torch.testing.assert_close(*states, rtol=0, atol=0)


def test_the_monitor_looks_at_the_first_view():
    logic = make()
    monitor = dl.Monitor(logic, every=1, warn=False)
    logic(torch.arange(4), believe=draw(0, learn=False), **draw(1, 8))
    assert monitor.history[0]["either"]["satisfied"] == logic.satisfied(**draw(1, 8))["either"][:4].double().mean()


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(SymbolError, match="believe"):
        dl.var("believe")
    n = dl.axis("n", max=3)
    logic = dl.LogicLoss({**RULES, "ragged": (dl.var("z", n) <= 1).all(where=dl.mask("valid", n))})
    taught = {**draw(0, 6), "z": torch.zeros(6, 2), "valid": torch.ones(6, 2, dtype=torch.bool)}
    half = draw(0, 3)
    for believe, error, words in (
        ({"c": half["x"]}, SymbolError, "believe names 'c', but the symbols of the rules are"),
        ({"valid": taught["valid"]}, BindingError, "names the mask 'valid'"),
        ({"z": torch.zeros(6, 3)}, BindingError, r"what is believed of 'z' must have the shape .* \(batch, 2\); got \(6, 3\)"),
        ({"x": torch.zeros(12)}, BindingError, r"'x' has 6 samples and what is believed of it 12.*Average"),
        ({"x": torch.zeros(4)}, BindingError, "'x' has 6 samples and what is believed of it 4"),
        ({"x": half["x"]}, BindingError, r"'y' is not in believe.*3 views|'\w+' is not in believe.*2 views.*give it 3 entries"),
        ({"x": None}, BindingError, "what is believed of 'x' must be bound to a tensor; got NoneType"),
        ({}, BindingError, "believe must map symbols to tensors"),
        (half["x"], BindingError, "believe must map symbols to tensors"),
        ({"x": torch.full((6,), torch.nan)}, BindingError, "contains NaN"),
    ):
        with pytest.raises(error, match=words):
            logic(believe=believe, **taught)
    with pytest.raises(SymbolError, match=r"no tensor was given for it: what is taught comes as x="):
        logic(believe={"x": half["x"]}, **{name: value for name, value in taught.items() if name != "x"})
