"""A rule on part of a batch: what a call with the selected samples alone would do."""

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

import dualogic as dl

SAMPLES = 7
X, Y = dl.var("x"), dl.var("y")
F = dl.categorical("f", 3, input="logits")
N = dl.axis("n", max=3)
Z, VALID = dl.var("z", N), dl.mask("valid", N)
RULES = {"either": (X <= 0) | (Y <= 0.1), "class": (F == 1) >> (X + Y <= 0.5)}
RAGGED = {"ragged": ((Z <= 0.1) | (Z >= 0.8)).any(where=VALID)}
METHODS = {
    "dual": dl.methods.Dual(step=0.5),
    "exact": dl.methods.Dual(step=0.5, delta="exact", rule="projected", warmup=5),
    "paper": dl.methods.Dual.paper(step=0.5),
    "spread": dl.methods.Dual(spread=0.2, delta="square"),
    "pd1": dl.methods.PD1(scale=5.0),
    "pd2": dl.methods.PD2.released(),
    "uniform": "uniform",
    "ltn": "ltn",
    "ste": "ste",
    "dl2": "dl2",
}
TABLES = ("device", "host", "mapped", None)


def make(method="dual", table="device", rules=RULES, **options):
    samples = SAMPLES if isinstance(table, str) else None
    return dl.LogicLoss(rules, samples, METHODS.get(method, method), table=table or "device", dtype=torch.float64, **options)


def batch(step, size=6):
    generator = torch.Generator().manual_seed(step)
    valid = torch.rand(size, 3, generator=generator) < 0.6
    valid[:, 0] = True
    drawn = torch.rand(size, 9, generator=generator, dtype=torch.float64)
    return {
        "index": torch.randint(SAMPLES, (size,), generator=generator),
        "features": drawn[:, :3],
        "where": torch.rand(size, generator=generator) < 0.5,
        "tensors": {"x": drawn[:, 3], "y": drawn[:, 4], "f": 3 * drawn[:, 5:8]},
        "ragged": {"z": drawn[:, :3], "valid": valid},
    }


def call(logic, given, rows=None, where=None, poison=False):
    """The loss and the gradients of one call, on the rows given; with ``poison``, the others hold NaN and a bad index."""
    tensors = given["ragged"] if logic.rules is RAGGED or "ragged" in logic.rules else given["tensors"]
    index = given["index"]
    rows = torch.arange(len(given["index"])) if rows is None else rows
    tensors = {name: value[rows].clone() for name, value in tensors.items()}
    index = index[rows].clone()
    if poison:
        for value in (*tensors.values(), index):
            value[~where] = torch.nan if value.is_floating_point() else -1 if value.dtype is torch.long else False
    leaves = {name: value.requires_grad_() for name, value in tensors.items() if value.is_floating_point()}
    loss = logic(index, **({} if where is None else {"where": where}), **tensors)
    gradients = dict(zip(leaves, torch.autograd.grad(loss.sum(), list(leaves.values()), allow_unused=True)))
    if logic.update == "manual" and logic._run.pending is not None:
        logic.step()
    return loss.detach(), gradients


def assert_same_state(one, two):
    for name, value in one.state_dict().items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, two.state_dict()[name], rtol=1e-9, atol=1e-12)


CASES = [
    *((method, "device", {}) for method in METHODS),
    *(("dual", table, {}) for table in TABLES[1:]),
    *((method, None, {}) for method in ("exact", "pd2")),
    *(("dual", "device", {"reduction": reduction}) for reduction in ("none", "sum")),
    *((method, "device", {"update": "manual"}) for method in ("dual", "paper", "pd2")),
    *(("dual", table, {"rules": RAGGED}) for table in ("device", "host", None)),
    ("dual", "device", {"weight": {"either": 2.0}}),
]


@pytest.mark.parametrize("eager", [True, False], ids=["at-once", "masked"])
@pytest.mark.parametrize(("method", "table", "options"), CASES, ids=str)
def test_it_does_what_a_call_with_the_selected_samples_does(method, table, options, eager, monkeypatch):
    part, whole = (make(method, table, **options) for _ in range(2))
    if not eager:
        act_as_an_accelerator(monkeypatch)
    for step in range(8):
        given = batch(step)
        where = {3: torch.zeros(6, dtype=torch.bool), 5: torch.ones(6, dtype=torch.bool)}.get(step, given["where"])
        loss, gradients = call(part, given, where=where, poison=True)
        rows = where.nonzero().flatten()
        expected, wanted = call(whole, given, rows)
        if part.reduction == "none":
            assert torch.equal(loss[~where], torch.zeros_like(loss[~where]))
            loss = loss[where]
        torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-12)
        for name, gradient in gradients.items():
            if wanted[name] is None:
                assert gradient is None
                continue
            assert torch.equal(gradient[~where], torch.zeros_like(gradient[~where]))
            torch.testing.assert_close(gradient[where], wanted[name], rtol=1e-9, atol=1e-12)
        assert_same_state(part, whole)


def act_as_an_accelerator(monkeypatch):
    """Take the path on which nothing may be read back: masks to the end."""
    monkeypatch.setattr("dualogic.loss.checks.reads_at_once", lambda device: False)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    index=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    seed=st.integers(0, 10_000),
    rule=st.sampled_from(["softmax", "projected"]),
    masked=st.booleans(),
)
def test_repeated_samples_of_which_some_are_selected(index, seed, rule, masked):
    generator = torch.Generator().manual_seed(seed)
    size = len(index)
    where = torch.rand(size, generator=generator) < 0.5
    rules, tensors = RULES, {"x": torch.rand(size, generator=generator), "y": torch.rand(size, generator=generator)}
    tensors["f"] = torch.randn(size, 3, generator=generator)
    if masked:
        valid = torch.rand(size, 3, generator=generator) < 0.5
        valid[:, 1] = True
        rules, tensors = RAGGED, {"z": torch.rand(size, 3, generator=generator), "valid": valid}
    part, whole = (dl.LogicLoss(rules, 4, dl.methods.Dual(rule=rule)) for _ in range(2))
    for logic in (part, whole):  # rows that are not at their start
        logic(torch.arange(4).repeat(2)[:size], **tensors)
    index = torch.tensor(index)
    part(index, where=where, **tensors)
    whole(index[where], **{name: value[where] for name, value in tensors.items()})
    for name, value in part._table.state().items():
        torch.testing.assert_close(value, whole._table.state()[name], rtol=1e-5, atol=1e-6)
    rest = torch.ones(4, dtype=torch.bool)
    rest[index[where]] = False
    assert torch.equal(part._table.values[rest], whole._table.values[rest])


def test_validation_and_frozen_calls():
    logic = make()
    for step in range(3):
        call(logic, batch(step))
    given, where = batch(9), torch.tensor([True, False, True, True, False, False])
    with logic.frozen():
        before = {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
        torch.testing.assert_close(call(logic, given, where=where)[0], call(logic, given, where.nonzero().flatten())[0])
    logic.eval()
    torch.testing.assert_close(
        logic(where=where, **given["tensors"]), logic(**{name: value[where] for name, value in given["tensors"].items()})
    )
    assert all(torch.equal(logic.state_dict()[name], value) for name, value in before.items())


def test_statistics_are_those_of_the_selected_samples():
    part, whole = make(), make()
    given, where = batch(9), torch.tensor([True, False, True, True, False, False])
    call(part, given, where=where, poison=True)
    call(whole, given, where.nonzero().flatten())
    for name, values in part.statistics().items():
        for key, value in values.items():
            torch.testing.assert_close(value, whole.statistics()[name][key])


def test_a_problem_of_a_selected_sample_is_still_an_error():
    logic = make(rules=(1 / X <= 1) | (Y <= 0))
    before = logic._table.values.clone()
    x, y = torch.tensor([0.0, 0.0, 0.5]), torch.ones(3)
    with pytest.raises(dl.errors.NonFiniteError, match=r"position 1"):
        logic([0, 1, 2], where=torch.tensor([False, True, True]), x=x, y=y)
    with pytest.raises(dl.errors.BindingError, match="contains NaN"):
        logic([0, 1, 2], where=torch.tensor([False, True, True]), x=x, y=torch.tensor([1.0, torch.nan, 1.0]))
    with pytest.raises(dl.errors.SampleIndexError, match="sample index -1 is out of range"):
        logic([0, -1, 2], where=torch.tensor([False, True, True]), x=x + 1, y=y)
    assert torch.equal(logic._table.values, before)
    logic([-1, 1, 2], where=torch.tensor([False, True, True]), x=torch.tensor([0.0, 0.25, 0.5]), y=y)
    assert not torch.equal(logic._table.values, before)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (torch.tensor([1, 0]), r"where must be a bool tensor, as from a comparison: where=label < 0; got torch.int64"),
        (torch.tensor([True]), r"where must have shape \(2,\), one entry per sample of the batch; got \(1,\)"),
        ("all", r"where must be a bool tensor of shape \(2,\); got str"),
    ],
)
def test_a_wrong_mask_is_refused(where, message):
    logic = make(rules=X <= 0)
    with pytest.raises(dl.errors.BindingError, match=message):
        logic([0, 1], where=where, x=torch.ones(2))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # dynamo looks at it
@pytest.mark.parametrize("table", ["device", None], ids=str)
def test_compiled_it_is_one_graph_and_the_same(table):
    torch._dynamo.reset()
    plain, other = make(table=table), make(table=table)
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    for step in range(4):
        given = batch(step)
        where = given["where"] if step != 2 else torch.zeros(6, dtype=torch.bool)
        index = given["index"]
        tensors = {name: value.clone() for name, value in given["tensors"].items()}
        for value in tensors.values():
            value[~where] = torch.nan
        first, second = ({name: value.clone().requires_grad_() for name, value in tensors.items()} for _ in range(2))
        expected, found = plain(index, where=where, **first), compiled(index, where=where, **second)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
        expected.backward()
        found.backward()
        for name, value in first.items():
            torch.testing.assert_close(second[name].grad, value.grad, rtol=1e-9, atol=1e-12)
        assert_same_state(plain, other)
