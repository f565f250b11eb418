"""A loss asked about its own rules: do they hold, how, and with which tensors."""

import pytest
import torch

import dualogic as dl
from dualogic.errors import SymbolError

x, f = dl.var("speed"), dl.categorical("f", 3, input="logits")
n = dl.axis("n", max=4)
RULES = {"low": x >= 0, "class": (f == 1) >> (x <= 1), "all": (dl.var("z", n) <= 1).all(where=dl.mask("valid", n))}
TENSORS = {
    "speed": torch.tensor([0.5, -1.0, 3.0]),
    "f": torch.tensor([[0.0, 3.0, 0.0]] * 3),
    "z": torch.tensor([[0.0, 2.0], [0.0, 0.5], [3.0, 0.0]]),
    "valid": torch.tensor([[True, False], [True, True], [True, True]]),
}


def test_each_rule_is_what_it_is_alone():
    logic = dl.LogicLoss(RULES)
    for options in ({}, {"tol": 2.0}, {"lead": 0.95}):
        found = logic.satisfied(**options, **TENSORS)
        assert list(found) == list(RULES)
        for name, rule in RULES.items():
            assert torch.equal(found[name], rule.satisfied(**options, **{key: TENSORS[key] for key in rule.symbols}))


def test_a_lone_formula_is_the_rule():
    assert dl.LogicLoss(RULES["low"]).satisfied(speed=TENSORS["speed"])["rule"].tolist() == [True, False, True]


def test_it_counts_nothing_and_learns_nothing():
    logic = dl.LogicLoss(RULES, 3)
    before = {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
    logic.satisfied(**TENSORS)
    report = logic.diagnose(index=torch.arange(3), **TENSORS)
    assert all(torch.equal(value, logic.state_dict()[name]) for name, value in before.items())
    assert report.to_dict() == dl.diagnose(logic, index=torch.arange(3), **TENSORS).to_dict()
    assert report.rules["low"].satisfied == pytest.approx(2 / 3)


@pytest.mark.parametrize("ask", ["__call__", "satisfied", "diagnose"])
def test_what_no_rule_knows_is_refused_with_a_suggestion(ask):
    logic = dl.LogicLoss(RULES)
    wrong = {"sped" if name == "speed" else name: value for name, value in TENSORS.items()}
    with pytest.raises(SymbolError, match=r"'sped' is not a symbol of the rule; did you mean 'speed'\? The rule needs: "):
        getattr(logic, ask)(**wrong)
    with pytest.raises(SymbolError, match=r"'extra' is not a symbol of the rule\. The rule needs"):
        getattr(logic, ask)(extra=TENSORS["f"], **TENSORS)


@pytest.mark.parametrize("ask", ["__call__", "satisfied", "diagnose"])
def test_symbols_choose_from_all_outputs_of_a_network(ask):
    rules = dl.parse_rules("bool a\nbool b\nbool c\nrule first: if a then b")
    outputs = {name: torch.rand(3) for name in "abcd"}
    logic = dl.LogicLoss(rules)
    with pytest.raises(SymbolError, match=r"'c', 'd' is not .* give \*\*\{name: tensors\[name\] for name in .*logic.symbols"):
        getattr(logic, ask)(**outputs)
    assert list(logic.symbols) == ["a", "b"]
    getattr(logic, ask)(**{name: outputs[name] for name in logic.symbols})
