"""Antecedents beside what the labels of their symbols say."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

import dualogic as dl
from dualogic.diagnosis import verdict
from dualogic.errors import BindingError, SymbolError
from reference import each_sample, holds
from strategies import a, b, bindings, c, f, formulas, g, k, x

f2 = dl.categorical("target", 3)
conditions = formulas(
    base=st.sampled_from([f == 1, g != 2, f == g, k == 0, k.probabilities[0] >= 0.75, a, b, c[1], x <= 0.5]),
    depth=2,
    atom_count=3,
)


def draw_truths(data, symbols, batch):
    """True values, and the same as what a model would say that is sure of them."""
    truths, sure = {}, {}
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 999)))
    for name, symbol in symbols.items():
        kind = type(symbol).__name__
        if kind == "Categorical":
            truths[name] = torch.randint(0, symbol.size, (batch,), generator=generator)
            sure[name] = torch.nn.functional.one_hot(truths[name], symbol.size).double()
        elif kind == "Boolean":
            truths[name] = torch.randint(0, 2, (batch, *symbol.shape), generator=generator)
            sure[name] = truths[name].double()
        else:
            truths[name] = sure[name] = torch.randint(-4, 5, (batch,), generator=generator).double() / 4
        if getattr(symbol, "input", "") == "logits":
            sure[name] = sure[name] * 20 - 10
    return truths, sure


@given(st.data())
def test_expected_and_read_against_brute_force(data):
    condition = data.draw(conditions)
    rule = condition >> (f2 == 1)
    tensors = data.draw(bindings(rule, batch=5))
    truths, sure = draw_truths(data, condition.symbols, 5)
    lead = data.draw(st.sampled_from([0.0, 0.2]))
    found = dl.diagnose(rule, labels=truths, lead=lead, **tensors).rules["rule"].antecedent
    expected = each_sample(holds, condition, sure)
    true = each_sample(holds, condition, tensors, lead=lead)
    assert found.expected == pytest.approx(expected.mean())
    assert found.read == (pytest.approx((expected & true).sum() / expected.sum()) if expected.any() else None)


def test_entries_masks_and_unknown_labels():
    n = dl.axis("n", max=4)
    t, valid, h = dl.categorical("t", 3, shape=(n,), input="logits"), dl.mask("valid", n), dl.boolean("h")
    rule = ((t == 2) >> h).all(where=valid)
    says = torch.nn.functional.one_hot(torch.tensor([[2, 0, 2], [0, 0, 2], [2, 2, 2]]), 3).float() * 9
    truth = torch.tensor([[2, 2, 2], [2, 1, 0], [2, -1, 2]])
    there = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
    found = dl.diagnose(rule, labels={"t": truth}, t=says, valid=there, h=torch.ones(3)).rules["rule"]
    # The third sample has a label that is not known; of the five entries left three should read as a 2, of which one does.
    assert found.antecedent.expected == pytest.approx(3 / 5)
    assert found.antecedent.read == pytest.approx(1 / 3)
    assert not found.classes


def one_hot(*labels):
    return torch.nn.functional.one_hot(torch.tensor(labels), 3).float()


@pytest.mark.parametrize(
    ("says", "truth", "kind", "words"),
    [
        ([0, 0, 0, 0], [2, 2, 0, 0], verdict.NOT_READ, "true for 50.0 % of the samples by their labels"),
        ([0, 0, 0, 0], [0, 0, 0, 1], verdict.SATISFIED, "asks for almost nothing, rightly"),
        ([2, 2, 0, 0], [2, 2, 0, 0], verdict.IN_KIND, "for 100.0 % of these f == 1 holds"),
        ([0, 0, 0, 0], None, verdict.VACUOUS, "only a baseline or labels of its symbols can tell"),
    ],
)
def test_labels_tell_what_one_report_could_not(says, truth, kind, words):
    labels = None if truth is None else {"g": torch.tensor(truth)}
    found = dl.diagnose((g == 2) >> (f == 1), labels=labels, f=one_hot(1, 1, 1, 1), g=one_hot(*says))
    assert found.kind == kind
    assert words in found.verdict


def test_labels_of_other_symbols_say_nothing_of_the_antecedent_but_divide_the_report():
    labels = {"f": torch.tensor([0, 1])}
    found = dl.diagnose((g == 2) >> (f == 1), labels=labels, f=one_hot(1, 1), g=one_hot(0, 2)).rules["rule"]
    assert (found.antecedent.expected, found.antecedent.read) == (None, None)
    assert {label: part.antecedent.holds for label, part in found.classes.items()} == {0: 0.0, 1: 1.0}


def test_classes_have_the_names_of_the_labelled_symbol():
    pet, wild = dl.categorical("pet", 2, classes=["cat", "dog"]), dl.boolean("wild")
    tensors = {"pet": torch.eye(2)[[0, 0, 1, 1]], "wild": torch.tensor([1.0, 1.0, 0.0, 0.0])}
    report = dl.diagnose((pet == "cat") >> ~wild, labels={"pet": torch.tensor([0, 0, 1, 1])}, **tensors)
    assert "on 100.0 % of class cat" in report.verdict
    assert report.class_names == ("cat", "dog")
    named = dl.diagnosis.Diagnosis((pet == "cat") >> ~wild, classes=["tabby", "hound"])
    named.update(labels={"pet": torch.tensor([0, 0, 1, 1])}, **tensors)
    assert named.compute().class_names == ("tabby", "hound")


def test_refusals():
    tensors = {"f": one_hot(0, 1), "g": one_hot(0, 1)}
    rule = (g == 2) >> (f == 1)
    with pytest.raises(SymbolError, match="labels names 'h', but the symbols whose true values can be given are"):
        dl.diagnose(rule, labels={"h": [0, 1]}, **tensors)
    with pytest.raises(BindingError, match=r"labels of 'g', declared as .* must be integers of shape \(2,\); got torch.float32"):
        dl.diagnose(rule, labels={"g": torch.zeros(2)}, **tensors)
    with pytest.raises(BindingError, match="the labels of 'g' must be below 3, and negative where they are not known; got 3"):
        dl.diagnose(rule, labels={"g": [0, 3]}, **tensors)
    with pytest.raises(BindingError, match="the labels of 'b' must be below 2, and negative where they are not known; got 255"):
        dl.diagnose(dl.boolean("b", input="logits"), labels={"b": [0, 255]}, b=torch.zeros(2))
    with pytest.raises(BindingError, match="the labels of 'g' must be a tensor; got list"):
        dl.diagnose(rule, labels={"g": ["cat", "dog"]}, **tensors)
