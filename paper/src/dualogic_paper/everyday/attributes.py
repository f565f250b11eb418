"""Attributes: sixty rules at once, all right, or six of them wrong.

A sample shows its species, one of twelve, as twenty noisy numbers. Sixty samples have labels for the first twenty attributes;
only twelve of these have them for the other twenty. Sixty rules lead from the former to the latter: *a then b*, or *a then not
b*. In ``attributes_wrong`` six of the sixty are wrong: each contradicts a right rule that stays. A network can meet both by never
saying *a*, or keep *a* and live with a rule that does not hold.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import dualogic as dl
from dualogic_paper.everyday.problem import HELD, LossFactory, Metrics, Problem, f1, percent
from dualogic_paper.everyday.training import ask, batches, perceptron, train

SPECIES, FEATURES, ATTRIBUTES = 12, 20, 40
HALF = ATTRIBUTES // 2  # attributes before this one have more labels; rules lead from these to the others
RULES = 60
FULLY_LABELLED = 5  # one labelled sample in so many has labels for all attributes


@dataclasses.dataclass(frozen=True)
class Rule:
    """If a sample has the attribute ``antecedent``, then it has, or has not, the attribute ``consequent``."""

    antecedent: int
    consequent: int
    positive: bool

    def formula(self, attribute: dl.Formula) -> dl.Formula:
        """The rule over a Boolean with an axis of attributes."""
        follows = attribute[self.consequent]
        return attribute[self.antecedent] >> (follows if self.positive else ~follows)

    def broken(self, said: Tensor) -> Tensor:
        """On which samples answers ``(n, attributes)`` contradict the rule, ``(n,)``."""
        return said[:, self.antecedent] & (said[:, self.consequent] != self.positive)


@dataclasses.dataclass(frozen=True)
class World:
    """Samples and rules."""

    features: Tensor  # ``(n, 20)``
    attributes: Tensor  # true or false, ``(n, 40)``
    right: Sequence[Rule]  # rules that every species meets
    wrong: Sequence[Rule]  # rules that contradict one of ``right``


def make_world(count: int, seed: int, wrong: int = 0) -> World:
    """Draw species, rules that all of them meet, and samples; ``wrong`` of the sixty rules contradict a right one."""
    random = np.random.default_rng(500 + seed)
    first = random.random((SPECIES, HALF)) < 0.22
    first[random.integers(SPECIES, size=HALF), np.arange(HALF)] = True
    # Attribute 20 + k follows from attribute k, so that there are rules to be found.
    has = np.concatenate([first, first | (random.random((SPECIES, HALF)) < 0.15)], 1)
    together, apart = has.T.astype(int) @ has, has.T.astype(int) @ ~has
    common = has.sum(0) >= 2
    pairs = [(a, b) for a in range(HALF) for b in range(HALF, ATTRIBUTES) if common[a]]
    positive = [Rule(a, b, True) for a, b in pairs if apart[a, b] == 0]
    negative = [Rule(a, b, False) for a, b in pairs if together[a, b] == 0 and common[b]]
    drawn = [positive[place] for place in random.permutation(len(positive))[: RULES // 2]]
    drawn += [negative[place] for place in random.permutation(len(negative))[: RULES - len(drawn)]]
    true = [drawn[place] for place in random.permutation(len(drawn))]
    contradictions = [dataclasses.replace(rule, positive=not rule.positive) for rule in true[:wrong]]
    species = random.integers(SPECIES, size=count)
    features = random.normal(size=(SPECIES, FEATURES))[species] + 0.8 * random.normal(size=(count, FEATURES))
    return World(torch.tensor(features, dtype=torch.float32), torch.tensor(has[species]), true[: RULES - wrong], contradictions)


def run(
    make_loss: LossFactory, seed: int, wrong: int = 0, labelled: int = 60, pool: int = 1500, test: int = 1000, epochs: int = 30
) -> Metrics:
    """Train a network with one output for each attribute; the pool has the labelled samples in it."""
    world = make_world(pool + test, seed, wrong)
    known, labels = world.features[:labelled], world.attributes[:labelled].float()
    importance = torch.zeros(labelled, ATTRIBUTES)
    importance[:, :HALF] = 1 / labelled
    importance[: labelled // FULLY_LABELLED, HALF:] = FULLY_LABELLED / labelled
    network = perceptron(FEATURES, 64, ATTRIBUTES)
    attribute = dl.boolean("attribute", ATTRIBUTES, input="logits")
    rules = {str(number): rule.formula(attribute) for number, rule in enumerate((*world.right, *world.wrong))}

    def task_loss() -> Tensor:
        return binary_cross_entropy_with_logits(network(known), labels, importance, reduction="sum")

    steps = batches(pool, 100, epochs, seed)
    train(network, make_loss(rules, pool), steps, task_loss, lambda index: {"attribute": network(world.features[index])})
    said, true = ask(network, world.features[pool:]) > 0, world.attributes[pool:]
    metrics = {
        "f1": f1(said, true),
        "f1_few_labels": f1(said[:, HALF:], true[:, HALF:]),
        "f1_more_labels": f1(said[:, :HALF], true[:, :HALF]),
        HELD: _held(said, world.right),
        "too_many_yes": percent(said) - percent(true),
    }
    if world.wrong:
        asked = [percent(said[true[:, rule.antecedent], rule.antecedent]) for rule in world.wrong]
        taught = [f1(said[:, rule.consequent], true[:, rule.consequent]) for rule in world.wrong]
        metrics["held_wrong"] = _held(said, world.wrong)
        metrics["recall_asked_by_wrong"] = sum(asked) / len(asked)
        metrics["f1_taught_by_wrong"] = sum(taught) / len(taught)
    return metrics


def _held(said: Tensor, rules: Sequence[Rule]) -> float:
    return sum(percent(~rule.broken(said)) for rule in rules) / len(rules)


ABOUT = "forty attributes of samples; sixty right rules from attributes with labels to those with few"
ABOUT_WRONG = "the same with six wrong rules among the sixty"
PROBLEM = Problem("attributes", ABOUT, run, tuned=True)
PROBLEM_WRONG = Problem("attributes_wrong", ABOUT_WRONG, functools.partial(run, wrong=6), tuned=True)
