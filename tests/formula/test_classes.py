"""Class and Boolean atoms: costs under both class costs, truth with a lead, ties, names, axes."""

import pytest
import torch

import dualogic as dl

f, g = dl.categorical("f", 3), dl.categorical("g", 3)
PROBABILITIES = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7], [0.45, 0.5, 0.05]], dtype=torch.float64)


def test_cost_of_a_class():
    assert torch.allclose((f == 1).cost(f=PROBABILITIES), 1 - PROBABILITIES[:, 1])
    assert torch.allclose((f == 1).cost(class_cost="log", f=PROBABILITIES), -PROBABILITIES[:, 1].log())


def test_cost_of_another_class():
    others = PROBABILITIES[:, [0, 2]]
    assert torch.allclose((f != 1).cost(f=PROBABILITIES), (1 - others).amin(1))
    assert torch.allclose((f != 1).cost(class_cost="log", f=PROBABILITIES), -others.sum(1).log())
    assert torch.equal((f != 1).cost(f=PROBABILITIES), (~(f == 1)).cost(f=PROBABILITIES))


def test_cost_of_a_set():
    chosen = PROBABILITIES[:, [0, 2]]
    assert torch.allclose(f.isin([0, 2]).cost(f=PROBABILITIES), (1 - chosen).amin(1))
    assert torch.allclose(f.isin([0, 2]).cost(class_cost="log", f=PROBABILITIES), -chosen.sum(1).log())
    assert f.isin([2]) is (f == 2)


@pytest.mark.parametrize("class_cost", ["probability", "log"])
def test_logits_and_probabilities_agree(class_cost):
    h = dl.categorical("f", 3, input="logits")
    for make in (lambda e: e == 1, lambda e: e != 1, lambda e: e.isin([0, 2]), lambda e: ~e.isin([0, 2])):
        plain, from_logits = make(f), make(h)
        torch.testing.assert_close(
            from_logits.cost(class_cost=class_cost, f=PROBABILITIES.log()), plain.cost(class_cost=class_cost, f=PROBABILITIES)
        )
        assert torch.equal(from_logits.satisfied(lead=0.1, f=PROBABILITIES.log()), plain.satisfied(lead=0.1, f=PROBABILITIES))


def test_log_cost_of_extreme_logits_is_finite_and_has_a_gradient():
    h = dl.categorical("h", 3, input="logits")
    logits = torch.tensor([[1000.0, 0.0, -1000.0]], requires_grad=True)
    cost = (h == 2).cost(class_cost="log", h=logits)
    assert cost.item() == 2000
    cost.sum().backward()
    assert logits.grad.tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.parametrize("lead", [0.0, 0.1, 0.5])
def test_a_class_holds_where_it_leads(lead):
    for label in range(3):
        rest = [other for other in range(3) if other != label]
        ahead = PROBABILITIES[:, label] - PROBABILITIES[:, rest].amax(1) > lead
        assert torch.equal((f == label).satisfied(lead=lead, f=PROBABILITIES), ahead)
        assert torch.equal((f != label).satisfied(lead=lead, f=PROBABILITIES), ~ahead)


def test_a_tie_satisfies_no_class():
    tie = torch.tensor([[0.5, 0.5, 0.0]])
    assert [(f == label).satisfied(f=tie).item() for label in range(3)] == [False, False, False]
    assert [(f != label).satisfied(f=tie).item() for label in range(3)] == [True, True, True]


def test_two_categoricals_compare_by_class():
    other = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]], dtype=torch.float64)
    assert (f == g).satisfied(f=PROBABILITIES, g=other).tolist() == [True, False, False, True]
    assert (f != g).satisfied(f=PROBABILITIES, g=other).tolist() == [False, True, True, False]
    expected = torch.stack([torch.maximum(1 - PROBABILITIES[:, i], 1 - other[:, i]) for i in range(3)]).amin(0)
    assert torch.allclose((f == g).cost(f=PROBABILITIES, g=other), expected)


def test_names_stand_for_classes():
    animal = dl.categorical("animal", 3, classes=["cat", "dog", "owl"])
    assert (animal == "dog") is (animal == 1)
    assert animal.isin(["owl", "cat"]) is animal.isin([0, 2])
    assert str(animal != "owl") == 'animal != "owl"'


def test_a_class_for_each_entry_of_an_axis():
    many = dl.categorical("many", 4, shape=(2, 3), input="logits")
    logits = torch.randn(5, 2, 3, 4, dtype=torch.float64)
    probabilities = logits.softmax(-1)
    assert torch.allclose((many == 2).cost(many=logits), 1 - probabilities[..., 2])
    assert torch.allclose((many[1] == 2).cost(many=logits), 1 - probabilities[:, 1, :, 2])
    assert torch.allclose((many[:, 0] == 3).all().cost(many=logits), (1 - probabilities[:, :, 0, 3]).amax(1))
    assert torch.allclose((many[1, 1:] != 3).cost("log", many=logits), -(1 - probabilities[:, 1, 1:, 3]).log())
    assert torch.equal((many == 0).satisfied(many=logits), logits.argmax(-1) == 0)


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_booleans(kind):
    wet = dl.boolean("wet", 2, input=kind)
    value = torch.tensor([[0.9, 0.5], [0.2, 0.51]], dtype=torch.float64)
    bound = value.logit() if kind == "logits" else value
    assert torch.allclose(wet.cost(wet=bound), 1 - value)
    assert torch.allclose((~wet).cost(wet=bound), value)
    assert torch.allclose(wet.cost("log", wet=bound), -value.log())
    assert torch.allclose((~wet).cost("log", wet=bound), -(1 - value).log())
    assert wet.satisfied(wet=bound).tolist() == [[True, False], [False, True]]
    assert wet.satisfied(lead=0.1, wet=bound).tolist() == [[True, False], [False, False]]
    assert torch.equal((~wet).satisfied(lead=0.1, wet=bound), ~wet.satisfied(lead=0.1, wet=bound))
