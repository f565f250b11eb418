"""Formulas evaluate as Python says, both forms of the rule agree, and every method can learn from its batches."""

import dataclasses
import math
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning.fabric import Fabric
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

import dualogic as dl
from dualogic.errors import OptionError
from dualogic_paper.arms import make_arm, names
from dualogic_paper.runner import Config, Machine, train
from dualogic_paper.runner.step import Teacher
from dualogic_paper.tasks import HWF, HWF520, TASKS, HWFEfficiency, HWFEfficiency5
from dualogic_paper.tasks.hwf import CLASS_RULE, CLASSES, IGNORED, RULE, _divide, _rewrite, calculate, measure

ALPHABET = "123456789+-*/"
LONGEST = 7
CPU = torch.device("cpu")
VARIANTS = (HWF, HWF520, HWFEfficiency, HWFEfficiency5)

formulas = st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=LONGEST)


def pad(rows):
    """Classes and validity ``(n, 7)`` of formulas of different lengths."""
    symbols = torch.tensor([row + [0] * (LONGEST - len(row)) for row in rows])
    valid = torch.tensor([[place < len(row) for place in range(LONGEST)] for row in rows])
    return symbols, valid


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return HWF().make_smoke(folder), folder


@pytest.fixture(scope="module")
def problem(smoke):
    task, folder = smoke
    return task.make_problem(0, folder, CPU)


# ---------------------------------------------------------------------- arithmetic


@given(st.lists(formulas, min_size=1, max_size=20))
def test_values_are_those_of_python(rows):
    for row, value in zip(rows, calculate(*pad(rows)).tolist()):
        text = "".join(ALPHABET[symbol] for symbol in row)
        if re.fullmatch(r"\d+([-+*/]\d+)*", text):
            assert value == eval(text)
        else:
            assert math.isnan(value)


@given(st.lists(st.integers(0, 8), min_size=4, max_size=4), st.lists(st.integers(9, 12), min_size=3, max_size=3))
def test_values_of_well_formed_formulas_are_those_of_python(digits, operators):
    row = [symbol for pair in zip(digits, [*operators, 0]) for symbol in pair][:LONGEST]
    assert calculate(*pad([row])).item() == eval("".join(ALPHABET[symbol] for symbol in row))


def test_what_follows_the_end_of_a_formula_does_not_matter():
    symbols, valid = pad([[2, 11, 3]])
    assert calculate(symbols.masked_fill(~valid, 12), valid).item() == 12.0


# ---------------------------------------------------------------------- the rule


def test_the_rule_is_that_of_the_rule_file():
    file = Path(__file__).parents[3] / "examples" / "rules" / "formulas.rules"
    assert dl.load_rules(file)["neighbours"] == RULE


@given(st.lists(formulas, min_size=1, max_size=20))
def test_both_forms_of_the_rule_say_no_two_operators_side_by_side(rows):
    symbols, valid = pad(rows)
    beliefs = functional.one_hot(symbols, CLASSES).float()
    expected = [not re.search(r"[-+*/]{2}", "".join(ALPHABET[symbol] for symbol in row)) for row in rows]
    assert RULE.satisfied(x=beliefs, valid=valid).tolist() == expected
    assert CLASS_RULE.satisfied(x=beliefs, valid=valid).tolist() == expected
    pytest.importorskip("pysdd", reason="the methods 'semantic' and 'problog' count models with pysdd")
    logic = dl.LogicLoss(CLASS_RULE, method="problog", reduction="none").eval()
    assert (logic(x=0.999 * beliefs + 0.001 / CLASSES, valid=valid) < 0.1).tolist() == expected


# ---------------------------------------------------------------------- the problem


def test_the_division_is_the_papers():
    for task, sizes in zip(VARIANTS, [(1000, 200, 8000), (1000, 500, 2000), (1000, 200, 0), (1000, 500, 0)]):
        parts = _divide(task(), 10_000, seed=3)
        assert tuple(map(len, parts)) == sizes
        assert len(torch.cat(parts).unique()) == sum(sizes)
        # The same held-out formulas for all shares.
        assert torch.equal(parts[0], _divide(HWF(), 10_000, seed=3)[0])
    assert not torch.equal(_divide(HWF(), 10_000, seed=3)[0], _divide(HWF(), 10_000, seed=4)[0])


def test_shares_that_do_not_fit_are_refused(smoke):
    task, folder = smoke
    with pytest.raises(OptionError, match=r"at most 200 formulas together.*got 40, 40, 180"):
        dataclasses.replace(task, unlabelled_share=0.9).make_problem(0, folder, CPU)
    with pytest.raises(OptionError, match="at least one each; got 40, 0, 100"):
        dataclasses.replace(task, labelled_share=0.001).make_problem(0, folder, CPU)


def test_the_task_loss_is_the_mean_over_existing_symbols(problem):
    torch.manual_seed(0)
    network = problem.make_network()
    loss, bound = problem.outputs(network, problem.labelled[:5], problem.unlabelled[:3])
    formulas = problem.training[problem.labelled[:5]]
    shown = problem.symbols[formulas.images[formulas.valid]].float() / 127.5 - 1
    torch.testing.assert_close(loss, functional.cross_entropy(network(shown), formulas.labels[formulas.valid]))
    alone, nothing = problem.outputs(network, problem.labelled[:5], None)
    torch.testing.assert_close(alone, loss)
    assert not nothing
    pool = problem.training[problem.unlabelled[:3]]
    torch.testing.assert_close(bound["x"], problem._believe(network, pool))
    assert torch.equal(bound["valid"], pool.valid)


@pytest.mark.parametrize("view", ["teacher", "another"])
def test_what_is_believed_and_what_is_taught(smoke, view):
    task, folder = smoke
    problem = dataclasses.replace(task, view=view).make_problem(0, folder, CPU)
    network = problem.make_network()
    teacher = Teacher(network, Fabric(accelerator="cpu"))
    loss, bound = problem.outputs(network, problem.labelled[:5], problem.unlabelled[:3], teacher)
    as_seen = problem._believe(network, problem.training[problem.unlabelled[:3]])
    torch.testing.assert_close(bound["believe"]["x"], as_seen)
    assert not bound["believe"]["x"].requires_grad
    assert bound["x"].requires_grad
    assert torch.allclose(bound["x"], as_seen, atol=1e-6) == (view == "teacher")
    torch.testing.assert_close(loss, problem.outputs(network, problem.labelled[:5], None)[0])


@pytest.mark.parametrize("view", ["same", "another"])
def test_a_step_can_be_recorded(smoke, view):
    """No operation has a shape that depends on values, or hands a value to Python: fake tensors have none."""
    task, folder = smoke
    problem = dataclasses.replace(task, view=view).make_problem(0, folder, CPU)
    with FakeTensorMode(allow_non_fake_inputs=True):
        network = problem.make_network()
        teacher = None if view == "same" else network
        loss, bound = problem.outputs(network, problem.labelled[:5], problem.unlabelled[:3], teacher)
        (loss + bound["x"].sum()).backward()
    assert bound["x"].shape == (3, LONGEST, CLASSES)


def test_right_answers_are_measured_as_right_and_wrong_ones_as_wrong(problem):
    for formulas in (problem.training, problem.test, problem.rewritten):
        beliefs = functional.one_hot(formulas.labels.clamp_min(0), CLASSES).float()
        assert measure(formulas, beliefs) == {"accuracy": 100.0, "satisfied": 100.0, "symbol_accuracy": 100.0}
        # All symbols an operator: no formula parses, and those of one symbol alone meet the rule.
        wrong = measure(formulas, functional.one_hot(torch.full_like(formulas.labels, 9), CLASSES).float())
        assert wrong["accuracy"] == 0.0
        assert wrong["satisfied"] == pytest.approx(100 * (formulas.valid.sum(1) == 1).double().mean().item())
        assert wrong["symbol_accuracy"] == pytest.approx(100 * (formulas.labels == 9).sum().item() / formulas.valid.sum().item())


def test_symbols_have_the_size_that_lenet_takes(smoke):
    task, folder = smoke
    problem = task.make_problem(0, folder, CPU)
    assert problem.symbols.shape[1:] == (1, 32, 32)
    loss, _ = problem.outputs(problem.make_network(), problem.labelled[:2], None)
    assert loss.isfinite()


def test_paper_is_bright_and_has_no_ink(smoke):
    task, folder = smoke
    brightness, ink = (
        dataclasses.replace(task, ink=ink).make_problem(0, folder, CPU)._show(torch.arange(20)) for ink in (False, True)
    )
    torch.testing.assert_close(ink, (1 - brightness) / 2)
    assert brightness.median() > 0.9


def test_rewritten_formulas_show_unseen_images_of_the_same_symbols(problem):
    rewritten, test, training = problem.rewritten, problem.test, problem.training
    label_of = dict(zip(test.images[test.valid].tolist(), test.labels[test.valid].tolist()))
    assert [label_of[image] for image in rewritten.images[rewritten.valid].tolist()] == test.labels[test.valid].tolist()
    assert not set(rewritten.images[rewritten.valid].tolist()) & set(training.images[training.valid].tolist())
    assert torch.equal(rewritten.result, test.result)
    assert (rewritten.images != test.images).any()


def test_a_class_without_unseen_images_keeps_its_own(problem):
    """So it is with ``/`` in the real set."""
    test = problem.test
    kept = _rewrite(test, problem.unseen & (test.labels != 12))
    assert torch.equal(kept.images[test.labels == 12], test.images[test.labels == 12])
    assert not set(kept.images[test.labels == 11].tolist()) & set(problem.training.images.flatten().tolist())
    unchanged = _rewrite(test, torch.zeros_like(problem.unseen))
    assert torch.equal(unchanged.images, test.images)


def test_measures(problem):
    torch.manual_seed(0)
    network = problem.make_network().eval()
    validation, test = problem.evaluate(network, "validation"), problem.evaluate(network, "test")
    assert set(validation) == {"accuracy", "satisfied", "symbol_accuracy", "train_accuracy"}
    keys = {column.key for task in VARIANTS for column in task.columns}
    assert keys <= set(test)
    assert all(0 <= value <= 100 for key, value in test.items())
    unseen = (problem.unseen | ~problem.test.valid).all(1)
    assert test["unseen_formulas"] == unseen.sum().item() > 0
    beliefs = problem._believe(network, problem.test)
    right = (beliefs.argmax(-1) == problem.test.labels)[problem.unseen]
    assert test["unseen_symbol_accuracy"] == pytest.approx(100 * right.double().mean().item())
    assert problem.training.labels[~problem.training.valid].eq(IGNORED).all()


def test_weights_are_set_beside_what_holds(problem):
    torch.manual_seed(0)
    network = problem.make_network()
    logic = dl.LogicLoss(problem.rules, len(problem.unlabelled))
    found = problem.inspect(network, logic, problem.unlabelled)
    # Equal weights before the first step; the labels say that formulas alternate.
    assert found["both_digits_weight"] == pytest.approx(0.5)
    assert found["one_operator_weight"] == pytest.approx(0.5)
    assert (found["both_digits_true"], found["one_operator_true"]) == (0.0, 100.0)
    logic(torch.arange(40), **problem.outputs(network, problem.labelled[:2], problem.unlabelled[:40])[1])
    assert problem.inspect(network, logic, problem.unlabelled)["one_operator_weight"] != pytest.approx(0.5, abs=1e-6)
    assert "one_operator_weight" not in problem.inspect(network, None, problem.unlabelled)


# ---------------------------------------------------------------------- training


@pytest.mark.parametrize("name", [name for name in names() if make_arm(name).method is not None])
def test_every_method_can_use_the_rule(problem, name):
    # Beliefs as after some training: on those of fresh weights, close to equal, bounded sums have no gradient.
    logits = (5 * torch.randn(30, LONGEST, CLASSES, generator=torch.Generator().manual_seed(0))).requires_grad_()
    method = make_arm(name).method
    logic = dl.LogicLoss(problem.rules_for(method), len(problem.unlabelled), method)
    valid = problem.training.valid[problem.unlabelled[:30]]
    logic(torch.arange(30), x=logits.softmax(-1), valid=valid).backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[valid].abs().max() > 0
    assert logits.grad[~valid].abs().max() < 1e-6


@pytest.mark.parametrize("task", [HWF, HWFEfficiency])
def test_smoke_runs(task, tmp_path):
    assert TASKS[task.name] is task
    result = train(Config(task().make_smoke(tmp_path)), Machine(accelerator="cpu", data=tmp_path))
    assert result.failure is None
    assert result.steps == 4
    assert {"accuracy", "train_accuracy"} <= result.history[-1].keys()
    assert {column.key for column in task.columns} <= result.test.keys()
    assert "one_operator_weight" in result.pool


def test_learning_without_the_rule_reads_symbols(tmp_path):
    task = dataclasses.replace(HWF().make_smoke(tmp_path), epochs=25, measure_every=25, ink=True)
    result = train(Config(task, method="none"), Machine(accelerator="cpu", data=tmp_path))
    assert result.test["symbol_accuracy"] > 50
