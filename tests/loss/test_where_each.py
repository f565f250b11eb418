"""``where=`` with a mask for each rule: every rule does what it would do alone, on its own samples."""

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

import dualogic as dl
from dualogic.errors import BindingError, SymbolError

SAMPLES = 5
x, y, f = dl.var("x"), dl.var("y"), dl.categorical("f", 3, input="logits")
n = dl.axis("n", max=3)
z, valid = dl.var("z", n), dl.mask("valid", n)
RULES = {
    "either": (x <= 0) | (y <= 0.2),
    "other": (y <= 0) | (x <= 0.3),  # of the same signature, computed together with the first
    "class": (f == 1) >> (f != 2),
    "implied": (f == 0) >> ((x <= 0.1) | (f == 2)),
    "ragged": ((z <= 0.5) | (z >= 0.9)).all(where=valid),
}
METHODS = {
    "dual": dl.methods.Dual(rules="mean"),
    "exponentiated": dl.methods.Dual(rule="exponentiated", share=0.1, delta="mean", floor=0.01, rules="mean"),
    "or": dl.methods.Dual(implication="or", delta="exact", floor=0.01, rules="mean"),
    "paper": dl.methods.Dual.paper(rules="mean"),
    "hard": dl.methods.Hard(floor=0.01),
    "pd2": dl.methods.PD2(rate=1.0, decay=0.0, growth=0, momentum=0.5),
    "product": dl.methods.Product(),
}


def draw(seed, size):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(size, 8, generator=generator, dtype=torch.float64)
    exists = torch.rand(size, 3, generator=generator) < 0.7
    exists[:, 0] = True
    return {"x": drawn[:, 0], "y": drawn[:, 1], "f": 3 * drawn[:, 2:5], "z": drawn[:, 5:], "valid": exists}


def call(logic, index, where, tensors, poison=None):
    given = {name: tensors[name].clone() for name in {name for rule in logic.rules.values() for name in rule.symbols}}
    for name, mask in (poison or {}).items():
        given[name][~mask] = torch.nan
    leaves = {name: value.requires_grad_() for name, value in given.items() if value.is_floating_point()}
    loss = logic(index, where=where, **given)
    loss.backward()
    return loss.detach(), {name: value.grad for name, value in leaves.items()}


@pytest.mark.parametrize("accelerator", [False, True])
@pytest.mark.parametrize("table", ["device", None])
@pytest.mark.parametrize("method", METHODS)
@hypothesis.settings(max_examples=5, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(seed=st.integers(0, 10_000), left_out=st.sampled_from([*RULES, None]), empty=st.sampled_from([*RULES, None]))
def test_each_rule_does_what_it_would_do_alone(method, table, accelerator, seed, left_out, empty, monkeypatch):
    samples = None if table is None else SAMPLES
    together = dl.LogicLoss(RULES, samples, METHODS[method], dtype=torch.float64)
    apart = {name: dl.LogicLoss(rule, samples, METHODS[method], dtype=torch.float64) for name, rule in RULES.items()}
    generator = torch.Generator().manual_seed(seed)
    with monkeypatch.context() as patched:
        if accelerator:
            patched.setattr("dualogic.loss.checks.reads_at_once", lambda device: False)
        for step in range(3):
            tensors, index = draw(seed + step, 6), torch.randint(SAMPLES, (6,), generator=generator)
            where = {name: torch.rand(6, generator=generator) < 0.6 for name in RULES if name != left_out}
            where.update({empty: torch.zeros(6, dtype=torch.bool)} if empty in where else {})
            poison = {"z": where["ragged"]} if "ragged" in where and where["ragged"].any() else {}
            loss, gradients = call(together, index, where, tensors, poison)
            total, expected = 0.0, {name: torch.zeros_like(value) for name, value in gradients.items()}
            for name, logic in apart.items():
                value, found = call(logic, index, where.get(name), tensors)
                total += value / len(RULES)
                for symbol, gradient in found.items():
                    expected[symbol] += 0.0 if gradient is None else gradient / len(RULES)
            torch.testing.assert_close(loss, total)
            for name, gradient in gradients.items():
                torch.testing.assert_close(gradient, expected[name])
    torch.testing.assert_close(together.delta, torch.cat([logic.delta for logic in apart.values()]))
    everyone = None if samples is None else torch.arange(SAMPLES)
    weights = together.weights(everyone)
    for name, logic in apart.items():
        for path, value in logic.weights(everyone).items():
            torch.testing.assert_close(weights[path.replace("rule", name, 1)], value)
    for name, entry in together.statistics().items():
        if name != empty or empty == left_out:
            torch.testing.assert_close(entry["cost"], apart[name].statistics()["rule"]["cost"], equal_nan=True)


def test_a_rule_without_a_sample_rests():
    logic = dl.LogicLoss({"a": (x <= 0) | (y <= 0), "b": (x >= 9) | (y >= 9)}, SAMPLES, dl.methods.Dual(step=1.0, delta="mean"))
    tensors, index = {"x": torch.full((4,), 7.0), "y": 5 + torch.rand(4)}, torch.arange(4)
    logic(index, where={"b": torch.zeros(4, dtype=torch.bool)}, **tensors)
    weights = logic.weights(index)
    assert (weights["b"] == 0.5).all()
    assert (weights["a"] != 0.5).any()
    assert logic.delta[1] == 1
    assert logic.delta[0] > 1


@pytest.mark.parametrize("off", [False, True])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e30])
def test_a_rule_without_a_sample_spoils_no_gradient(value, off):
    """Whatever stands in tensors that it alone reads."""
    rules = {"low": y <= 0.2, "product": (x * x * y <= 0) | (y / x >= 2)}
    logic = dl.LogicLoss(rules, weight={"product": 0.0} if off else 1.0)
    where = None if off else {"product": torch.zeros(2, dtype=torch.bool)}
    given = {"x": torch.full((2,), value, requires_grad=True), "y": torch.ones(2, requires_grad=True)}
    for _ in range(4):
        found = torch.autograd.grad(logic(where=where, **given), list(given.values()))
    assert torch.equal(found[0], torch.zeros(2))
    assert (found[1] > 0).all()


@hypothesis.settings(max_examples=20)
@hypothesis.given(seed=st.integers(0, 10_000))
def test_a_rule_that_is_not_about_a_sample_hardly_dilutes_the_others(seed):
    """It counts as one that the sample meets, whatever it would cost, and NaN does not spread."""
    rules = {"low": (x <= 0) | (y <= 0), **{f"high {number}": x >= 1 for number in range(6)}, "ragged": RULES["ragged"]}
    generator = torch.Generator().manual_seed(seed)
    tensors, where = draw(seed, 6), {name: torch.rand(6, generator=generator) < 0.1 for name in rules if name != "low"}
    logic, plain = (dl.LogicLoss(rules, method=dl.methods.Dual(rules=way), reduction="none") for way in ("violated", "mean"))
    del tensors["f"]
    poisoned = {**tensors, "z": tensors["z"].masked_fill(~where["ragged"].unsqueeze(1), torch.nan)}
    losses, mean = (each(where=where, **poisoned) for each in (logic, plain))
    assert torch.isfinite(losses).all()
    others = torch.stack(list(where.values())).any(0)
    torch.testing.assert_close(losses[~others], mean[~others] * 2)  # a quarter in the place of an eighth


def test_what_cannot_be_meant_is_refused():
    logic = dl.LogicLoss({"either": RULES["either"], "other": RULES["other"]})
    tensors = {"x": torch.rand(4), "y": torch.rand(4)}
    with pytest.raises(SymbolError, match=r"where names the rule 'eiter'.*did you mean 'either'"):
        logic(where={"eiter": torch.ones(4, dtype=torch.bool)}, **tensors)
    with pytest.raises(BindingError, match=r"where\['other'\] must have shape \(4,\)"):
        logic(where={"other": torch.ones(3, dtype=torch.bool)}, **tensors)
    with pytest.raises(BindingError, match=r"where\['other'\] must be a bool tensor"):
        logic(where={"other": torch.ones(4)}, **tensors)


def test_one_rule_by_name_is_the_mask_itself():
    named, plain = (dl.LogicLoss(RULES["either"], SAMPLES) for _ in range(2))
    tensors, index, mask = {"x": torch.rand(4), "y": torch.rand(4)}, torch.arange(4), torch.tensor([True, False, True, True])
    assert torch.equal(named(index, where={"rule": mask}, **tensors), plain(index, where=mask, **tensors))
    assert torch.equal(named.weights(index)["rule"], plain.weights(index)["rule"])


def test_the_monitor_looks_at_what_all_rules_are_about():
    logic = dl.LogicLoss({"either": RULES["either"], "other": RULES["other"]})
    monitor = dl.Monitor(logic, every=1, warn=False)
    tensors = {"x": torch.rand(4, requires_grad=True), "y": torch.rand(4)}
    logic(where={"either": torch.tensor([True, True, False, False])}, **tensors)
    logic(where={}, **tensors)
    assert [look["step"] for look in monitor.history] == [1, 2]
