"""Every fraction of a report against brute force, one sample at a time, on formulas of all kinds."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import dualogic as dl
from dualogic.diagnosis import Diagnosis
from dualogic.diagnosis.outline import outline, to_text
from dualogic.formula.connective import Complement, Implication, Junction, Quantifier
from dualogic.normalize.nnf import to_nnf
from reference import each_sample, exists, holds, price
from strategies import bindings, formulas, quantified

rules = st.one_of(formulas(depth=3, atom_count=4), quantified())


def batch_of(tensors):
    return len(next(iter(tensors.values())))


def descend(formula, path):
    """The nodes of a negation normal form on the way to a path, by its operand positions."""
    node, chain = to_nnf(formula), []
    for step in path.split("/")[1:]:
        chain.append(node)
        node = unwrap(node)
        node = node.operand if isinstance(node, Quantifier) else node.operands[int(step)]
    return unwrap(node), [unwrap(above) for above in chain]


def unwrap(node):
    while type(node).__name__ == "Level":
        node = node.operand
    return node


def per_sample(tensors):
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    return [{name: values[number] for name, values in arrays.items()} for number in range(batch_of(tensors))]


def lengths(symbols, tensors):
    found = {}
    for name, symbol in symbols.items():
        for size, actual in zip(symbol.shape, tensors[name].shape[1:]):
            if not isinstance(size, int):
                found[size.axis.name] = actual + size.trim
    return found


def existing(chain, node, sample, known):
    """Which entries of a connective exist: those that the masks of all quantifiers around it leave."""

    def shape(formula):
        return tuple(size if isinstance(size, int) else known[size.axis.name] - size.trim for size in formula.shape)

    if not chain:
        return np.ones(shape(node), bool)
    alive = np.ones(shape(chain[0]), bool)
    for above, below in zip(chain, [*chain[1:], node]):
        if isinstance(above, Quantifier):
            inside = shape(above.operand)
            alive = np.broadcast_to(np.expand_dims(alive, above.dims), inside)
            if above.where is not None:
                alive = alive & np.broadcast_to(exists(above.where, sample), inside)
        # An operand with fewer axes than its connective exists where any entry that it serves does.
        while alive.ndim > len(below.shape):
            alive = alive.any(0)
        for dim, size in enumerate(shape(below)):
            if size == 1 and alive.shape[dim] != 1:
                alive = alive.any(dim, keepdims=True)
    return alive


@settings(max_examples=150)
@given(st.data())
def test_every_connective_agrees_with_brute_force(data):
    rule = data.draw(rules)
    tensors = data.draw(bindings(rule))
    tol = data.draw(st.sampled_from([0.0, 0.25]))
    report = dl.diagnose(rule, tol=tol, **tensors).rules["rule"]
    known, samples = lengths(rule.symbols, tensors), per_sample(tensors)
    assert report.satisfied == pytest.approx(each_sample(holds, rule, tensors, tol=tol).mean())
    assert [part.path for part in report.connectives] == [part.path for part in outline("rule", rule)]
    for part in report.connectives:
        node, chain = descend(rule, part.path)
        alive = [existing(chain, node, sample, known) for sample in samples]
        assert part.total == sum(mask.sum() for mask in alive)
        if part.kind in ("all", "any"):
            check_quantifier(part, node, alive, samples, tol)
        else:
            check_junction(part, node, alive, samples, tol)


def check_quantifier(part, node, alive, samples, tol):
    assert (node.operation == "all") == (part.kind == "all")
    entries = held = empty = 0
    for mask, sample in zip(alive, samples):
        inside = holds(node.operand, sample, tol)
        there = np.broadcast_to(np.expand_dims(mask, node.dims), inside.shape)
        if node.where is not None:
            there = there & np.broadcast_to(exists(node.where, sample), inside.shape)
        entries += there.sum()
        held += (there & inside).sum()
        empty += (mask & ~there.any(node.dims)).sum()
    assert part.entries == entries
    assert part.holding == (pytest.approx(held / entries) if entries else None)
    assert part.empty == (pytest.approx(empty / part.total) if part.total else None)


def check_junction(part, node, alive, samples, tol):
    assert isinstance(node, Junction)
    assert (node.operation == "&") == (part.kind == "and")
    rows = []
    for mask, sample in zip(alive, samples):
        truth = [np.broadcast_to(holds(operand, sample, tol), mask.shape)[mask] for operand in node.operands]
        rows.append(np.stack(truth, -1).reshape(-1, len(node.operands)))
    truth = np.concatenate(rows)
    if not len(truth):
        assert part.none is None
        return
    hits = ~truth if part.kind == "and" else truth
    number = hits.sum(1)
    assert [operand.holds for operand in part.operands] == pytest.approx(truth.mean(0).tolist())
    assert [operand.alone for operand in part.operands] == pytest.approx((hits & (number == 1)[:, None]).mean(0).tolist())
    assert part.together == pytest.approx((number >= 2).mean())
    assert part.none == pytest.approx((number == 0).mean())
    assert sum(operand.alone for operand in part.operands) + part.together + part.none == pytest.approx(1)
    if part.antecedent is not None:
        found = part.antecedent
        assert found.holds == pytest.approx((~truth[:, 0]).mean())
        assert found.applied == pytest.approx((~truth[:, 0] & truth[:, 1]).mean())
        assert found.denied == pytest.approx(truth[:, 0].mean())
        assert found.undecided == pytest.approx(0)


@given(st.data())
def test_the_decided_reading_asks_another_class_to_lead(data):
    rule = data.draw(formulas(depth=3, atom_count=4))
    tensors = data.draw(bindings(rule))
    lead = data.draw(st.sampled_from([0.1, 0.3]))
    report = dl.diagnose(rule, lead=lead, **tensors).rules["rule"]
    plain = each_sample(holds, rule, tensors, lead=lead)
    decided = each_sample(decidedly, to_nnf(rule), tensors, lead=lead)
    assert report.satisfied == pytest.approx(plain.mean())
    assert report.undecided == pytest.approx((plain & ~decided).mean())
    for part in report.choices:
        node, _ = descend(rule, part.path)
        branches = [each_sample(decidedly, operand, tensors, lead=lead).mean() for operand in node.operands]
        assert [operand.holds for operand in part.operands] == pytest.approx(branches)


def decidedly(node, sample, lead):
    """The paper's reading of a negative literal: another class leads by ``lead``."""
    node = unwrap(node)
    if isinstance(node, Junction):
        parts = [decidedly(operand, sample, lead) for operand in node.operands]
        return np.logical_and.reduce(parts) if node.operation == "&" else np.logical_or.reduce(parts)
    if isinstance(node, Complement):
        # The atom does not hold even where it is allowed to trail by (less than) the lead.
        return ~holds(node.operand, sample, lead=lead) & ~holds(node.operand, sample, lead=-lead)
    return holds(node, sample, lead=lead)


@given(st.data())
def test_classes_add_up_to_the_whole_and_batches_to_one(data):
    rule = data.draw(rules)
    tensors = data.draw(bindings(rule, batch=6))
    labels = torch.tensor(data.draw(st.lists(st.sampled_from([0, 1, 7]), min_size=6, max_size=6)))
    whole = dl.diagnose(rule, labels=labels, worst=3, **tensors)
    report = whole.rules["rule"]
    assert {label: part.samples for label, part in report.classes.items()} == {
        label: int((labels == label).sum()) for label in sorted(set(labels.tolist()))
    }
    for label, part in report.classes.items():
        chosen = {name: tensor[labels == label] for name, tensor in tensors.items()}
        alone = dl.diagnose(rule, **chosen).rules["rule"]
        assert (part.satisfied, part.connectives) == (alone.satisfied, alone.connectives)
    assert sum(part.satisfied * part.samples for part in report.classes.values()) == pytest.approx(report.satisfied * 6)

    cuts = sorted(data.draw(st.lists(st.integers(0, 6), max_size=2)))
    stream, first, second = (Diagnosis(rule, worst=3) for _ in range(3))
    for number, (start, stop) in enumerate(itertools.pairwise([0, *cuts, 6])):
        part = {name: tensor[start:stop] for name, tensor in tensors.items()}
        stream.update(labels=labels[start:stop], **part)
        (first if number == 0 else second).update(labels=labels[start:stop], **part)
    assert same(stream.compute().to_dict(), whole.to_dict())
    assert same(first.merge_(second).compute().to_dict(), whole.to_dict())


def same(left, right):
    """Equal, up to the order in which costs were added."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == pytest.approx(right) if isinstance(left, float) else left == right


@given(st.data())
def test_the_worst_samples_are_those_of_the_largest_cost(data):
    rule = data.draw(rules)
    tensors = data.draw(bindings(rule, batch=6))
    index = torch.tensor([12, 3, 44, 5, 0, 9])
    for class_cost in ("probability", "log"):
        worst = dl.diagnose(rule, index=index, worst=4, class_cost=class_cost, **tensors).rules["rule"].worst
        costs = each_sample(price, rule, tensors, class_cost=class_cost)
        truth = each_sample(holds, rule, tensors)
        assert [sample.cost for sample in worst] == pytest.approx(sorted(costs, reverse=True)[:4])
        for sample in worst:
            assert sample.index == index[sample.position]
            assert sample.cost == pytest.approx(costs[sample.position])
            assert sample.satisfied == truth[sample.position]
            assert sample.label is None


def test_an_implication_keeps_its_antecedent_apart():
    a, b = dl.boolean("a"), dl.boolean("b")
    found = outline("r", dl.Iff(a, b))
    assert [(part.path, part.kind, part.antecedent) for part in found] == [
        ("r", "and", None),
        ("r/0", "implies", a),
        ("r/1", "implies", b),
    ]
    (part,) = outline("r", ~Implication(a, b))
    assert (part.kind, part.operands) == ("and", ("a", "~b"))


def test_evidence_markers_are_looked_through():
    a, b = dl.boolean("a"), dl.boolean("b")
    (part,) = outline("r", dl.evidence(dl.evidence(a) >> b))
    assert (part.path, part.kind, to_text(part.antecedent), part.operands) == ("r", "implies", "a", ("~a", "b"))


def test_a_part_with_fewer_axes_exists_where_any_entry_that_it_serves_does():
    m, p, there = dl.var("m", 2, 3), dl.var("p", 3), dl.mask("there", 2, 3)
    rule = (((p <= 0) | (p >= 1)) & (m <= 0)).all(where=there)
    mask = torch.tensor([[[True, False, False], [True, True, False]]])
    report = dl.diagnose(rule, m=torch.zeros(1, 2, 3), p=torch.tensor([[0.0, 0.5, 1.0]]), there=mask).rules["rule"]
    whole, both, choice = report.connectives
    assert (whole.entries, both.total, choice.total) == (3, 3, 2)
    # The third column is nowhere; the second is there once, and no branch holds on it.
    assert ([operand.alone for operand in choice.operands], choice.none) == ([0.5, 0.0], 0.5)
