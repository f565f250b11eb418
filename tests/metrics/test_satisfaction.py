"""``dl.metrics.Satisfaction`` against a plain mean, across processes, pickled, and without torchmetrics."""

import copy
import pickle
import sys
import warnings

import pytest
import torch
import torch.multiprocessing

import dualogic as dl
from dualogic.errors import BindingError, FormulaTypeError, MissingExtraError, SymbolError

x, p, f = dl.var("x"), dl.var("p", 3), dl.categorical("f", 4)
RULES = {"bound": x <= 0.5, "class": (x <= 0) >> (f == 1), "open": p >= 0}


def batches(count=3, size=7):
    generator = torch.Generator().manual_seed(1)
    return [
        {
            "x": torch.randn(size, generator=generator),
            "p": torch.randn(size, 3, generator=generator),
            "f": torch.rand(size, 4, generator=generator).softmax(-1),
        }
        for _ in range(count)
    ]


def needed(rule, batch):
    return {name: batch[name] for name in rule.symbols}


def reference(rule, data, **options):
    return torch.cat([rule.satisfied(**options, **needed(rule, batch)) for batch in data]).float().mean()


@pytest.mark.parametrize("options", [{}, {"tol": 0.3, "lead": 0.02}])
def test_equals_the_mean_over_all_batches(options):
    metric, data = dl.metrics.Satisfaction(RULES, **options), batches()
    for batch in data:
        metric.update(**batch)
    result = metric.compute()
    assert result.keys() == RULES.keys()
    for name, rule in RULES.items():
        torch.testing.assert_close(result[name], reference(rule, data, **options))


def test_a_lone_formula_gives_a_number():
    metric = dl.metrics.Satisfaction(x <= 0.5)
    value = metric(x=torch.tensor([0.0, 1.0, 0.5, 0.25]))
    assert value.shape == ()
    assert value.item() == 0.75
    metric.update(x=torch.ones(4))
    assert metric.compute().item() == 0.375
    metric.reset()
    metric.update(x=torch.zeros(0))
    metric.update(x=torch.zeros(2))
    assert metric.compute().item() == 1.0


def test_no_sample_gives_nan():
    metric = dl.metrics.Satisfaction(x <= 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert metric.compute().isnan()


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda metric: pickle.loads(pickle.dumps(metric)), lambda metric: metric.clone()]
)
def test_copies_count_on_their_own(clone):
    metric, data = dl.metrics.Satisfaction(RULES), batches()
    metric.update(**data[0])
    twin = clone(metric)
    twin.update(**data[1])
    torch.testing.assert_close(twin.compute()["bound"], reference(RULES["bound"], data[:2]))
    torch.testing.assert_close(metric.compute()["bound"], reference(RULES["bound"], data[:1]))


def _work(rank, world, address, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=world)
    metric = dl.metrics.Satisfaction(RULES)
    # Unequal shares: the mean of the two processes' means would be wrong.
    for batch in batches()[: 2 if rank == 0 else None][rank * 2 :]:
        metric.update(**batch)
    results[rank] = {name: value.item() for name, value in metric.compute().items()}
    torch.distributed.destroy_process_group()


def test_two_processes_count_together(tmp_path):
    with torch.multiprocessing.get_context("spawn").Manager() as manager:
        results = manager.dict()
        torch.multiprocessing.spawn(_work, (2, f"file://{tmp_path}/meet", results), nprocs=2)
        found = dict(results)
    for name, rule in RULES.items():
        expected = reference(rule, batches()).item()
        assert found[0][name] == pytest.approx(expected, abs=1e-6)
        assert found[1][name] == pytest.approx(expected, abs=1e-6)


def test_missing_torchmetrics_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dualogic.metrics")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[metrics\]'") as caught:
        dl.__getattr__("metrics")
    assert isinstance(caught.value, ImportError)


def test_bad_input_counts_nothing():
    metric, batch = dl.metrics.Satisfaction(RULES), batches()[0]
    with pytest.raises(SymbolError, match=r"'y' is not a symbol of any rule.*f, p, x"):
        metric.update(**batch, y=torch.zeros(7))
    with pytest.raises(SymbolError, match="no tensor was given for 'p'"):
        metric.update(x=batch["x"], f=batch["f"])
    with pytest.raises(BindingError, match=r"got \(7, 2\)"):
        metric.update(**{**batch, "p": torch.zeros(7, 2)})
    assert metric.total.tolist() == [0, 0, 0]
    with pytest.raises(FormulaTypeError, match="at least one rule"):
        dl.metrics.Satisfaction({})
    with pytest.raises(FormulaTypeError, match="rule 'r'"):
        dl.metrics.Satisfaction({"r": x})


def test_half_precision_and_many_samples_are_exact():
    metric = dl.metrics.Satisfaction(x <= 0.5).half()
    for _ in range(20):
        metric.update(x=torch.cat([torch.zeros(100_001), torch.ones(99_999)]).bfloat16())
    assert metric.compute().item() == pytest.approx(100_001 / 200_000, abs=1e-7)
    assert metric.total.item() == 4_000_000
