"""The data are what the problems say they are, and the rules are true of them."""

import numpy as np
import pytest
import torch

import dualogic as dl
from dualogic_paper.everyday import (
    attributes,
    beliefs,
    causes,
    exactly_one,
    fares,
    hidden_digit,
    loans,
    scenes,
    shop,
    tags,
    tumours,
    wear,
)
from dualogic_paper.everyday.data import load, load_images
from dualogic_paper.everyday.problem import holds

SURE = 30.0


def to_logits(truths):
    return torch.where(truths.bool(), SURE, -SURE)


def test_loans():
    applicants = loans.make_applicants(4000, seed=0, mistakes=loans.MISTAKES)
    defaulted = applicants.features[:, loans.DEFAULTED]
    tensors = {
        "grade": to_logits(torch.nn.functional.one_hot(applicants.grades, 4)),
        "rate": applicants.rates,
        "defaulted": defaulted,
    }
    rules = {name: rule for name, rule in loans.RULES.items() if "rate_with_more_income" not in rule.symbols}
    assert len(rules) == 4
    assert holds(rules, **tensors).all()
    assert 0.03 < defaulted.mean() < 0.05
    assert 0.08 < (applicants.noted_grades != applicants.grades).double().mean() < 0.14  # a quarter of mistakes is right
    assert 0.85 < (applicants.noted_rates - applicants.rates).std() < 0.95


def test_shop():
    assert len(shop.RULES) == 45
    assert len(shop.LABELS) == 36
    features, labels = shop.make_products(500, seed=0)
    assert features.shape == (500, 40)
    assert holds(shop.RULES, **shop.bind(to_logits(labels))).all()
    departments = labels[:, [shop.LABELS.index(name) for name in shop.DEPARTMENTS]].sum(1)
    assert set(departments.tolist()) == {1.0, 2.0}
    assert 0.2 < (departments == 2).double().mean() < 0.36


def test_tags():
    sentences = tags.make_corpus(300, seed=0)
    assert {len(words) for words, _ in sentences} == set(range(4, 21))
    words, said = tags.collate(sentences)
    logits = to_logits(torch.nn.functional.one_hot(said.clamp(min=0), len(tags.TAGS)))
    assert holds(tags.RULES, tag=logits, is_word=said != tags.IGNORED).all()
    assert ((words == 0) == (said == tags.IGNORED)).all()
    names = [tags.find_names(own.tolist()) for _, own in sentences]
    begun = sum(int(tags.TAGS[tag].startswith("B")) for _, own in sentences for tag in own.tolist())
    assert sum(map(len, names)) == begun


@pytest.mark.parametrize("wrong", [0, 6])
def test_attributes(wrong):
    for seed in range(8):
        world = attributes.make_world(300, seed, wrong)
        assert len(world.right) + len(world.wrong) == attributes.RULES
        assert len(world.wrong) == wrong
        assert not any(rule.broken(world.attributes).any() for rule in world.right)
        assert all(rule.broken(world.attributes).any() for rule in world.wrong)
        opposites = {attributes.Rule(rule.antecedent, rule.consequent, not rule.positive) for rule in world.wrong}
        assert opposites <= set(world.right)
        assert all(rule.antecedent < attributes.HALF <= rule.consequent for rule in world.right)


def test_beliefs():
    world = beliefs.load_world()
    assert world.truth.shape == (85, 41)
    assert len(world.antecedents) == 254
    follows = world.truth[:, world.consequents] == world.positive
    assert (follows | ~world.truth[:, world.antecedents]).all()
    assert all(world.predicates[place].startswith("is ") for place in world.antecedents.tolist())
    bison, bird = world.entities.index("american bison"), world.predicates.index("is bird")
    assert not world.truth[bison, bird]


def test_the_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = load_images()
    assert np.array_equal(images.squeeze(1).numpy() * 16, digits.images)
    assert np.array_equal(labels.numpy(), digits.target)


def test_exactly_one():
    _, labels = load_images()
    labelled, seen, tested = exactly_one.divide(labels, 1000, seed=0)
    assert torch.bincount(labels[labelled]).tolist() == [10] * 10
    assert len(seen) == 1000
    assert set(labelled.tolist()) <= set(seen.tolist())
    assert sorted([*seen.tolist(), *tested.tolist()]) == list(range(1797))
    assert exactly_one.RULE.satisfied(is_digit=to_logits(torch.nn.functional.one_hot(labels, 10))).all()


def test_hidden_digit():
    image = torch.arange(4.0).view(1, 1, 2, 2)
    assert hidden_digit.turn(image).flatten().tolist() == [3, 2, 1, 0]


def test_wear():
    tools = wear.make_tools(300, seed=0)
    pairs = wear.bind_all_pairs(tools.hours[:40], tools.wear[:40])
    assert len(pairs["wear_of_one"]) == 40 * 39 // 2
    assert wear.ALL_PAIRS.satisfied(**pairs).all()
    chosen = wear.choose_pairs(tools.hours, 500, seed=0)
    assert wear.CHOSEN_PAIRS.satisfied(wear_of_one=tools.wear[chosen[:, 0]], wear_of_other=tools.wear[chosen[:, 1]]).all()


def test_tumours():
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer()
    arrays = load("tumours")
    assert np.allclose(arrays["values"], table.data, rtol=1e-6)
    assert np.array_equal(arrays["malignant"], table.target == 0)
    assert arrays["columns"].tolist() == table.feature_names.tolist()
    _, answers = tumours.load_tumours(seed=0)
    assert holds(tumours.RULES, **tumours.bind(to_logits(answers))).all()
    assert (answers.double().mean(0) > 0.2).all()
    assert not any("worst" in name for name in arrays["columns"][: tumours.SEEN].tolist())


def test_fares():
    passengers, prices = fares.make_passengers(4000, seed=0)
    assert holds(fares.RULES, age=passengers[:, 0], distance=passengers[:, 1], price=prices).all()


def test_causes():
    _, true = causes.make_stops(4000, seed=0)
    assert causes.RULE.satisfied(**causes.bind(to_logits(true))).all()
    assert 0.7 < true[:, 0].mean() < 0.8
    assert (true[:, 1:].mean(0) < 0.2).all()


def test_scenes():
    _, labels = scenes.make_photos(1000, seed=0)
    assert holds(scenes.RULES, **scenes.bind(to_logits(labels))).all()


@pytest.mark.parametrize("name", ["beliefs", "digits", "tumours"])
def test_files_are_small(name):
    from importlib.resources import files

    assert len(files("dualogic_paper.everyday.data").joinpath(f"{name}.npz").read_bytes()) < 100_000


def test_rules_are_linted_as_sound():
    for rules in (
        loans.RULES,
        shop.RULES,
        {"one": exactly_one.RULE},
        tumours.RULES,
        fares.RULES,
        {"some": causes.RULE},
        scenes.RULES,
    ):
        assert not [finding for finding in dl.lint(rules) if finding.severity == "error"]
