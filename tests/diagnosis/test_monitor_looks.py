"""When a monitor looks, what it keeps, and that it leaves training as it is."""

import copy
import pickle
import re
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dualogic as dl
from diagnosis.watched import EITHER, RULE, f, g, look_at, s
from dualogic.diagnosis import alarm, verdict, watch, window
from dualogic.diagnosis import monitor as module
from strategies import bindings, formulas, quantified

# ---------------------------------------------------------------- when it looks


def test_it_looks_at_every_so_many_training_calls_and_at_nothing_else():
    logic = dl.LogicLoss(EITHER, num_samples=4)
    monitor = dl.Monitor(logic, every=3)
    index, values = torch.arange(4), torch.rand(4, 4, requires_grad=True)
    for _ in range(7):
        logic(index, s=values)
    with torch.no_grad():
        logic(index, s=values)
    with logic.frozen():
        logic(index, s=values)
    logic.eval()
    logic(index, s=values)
    logic.train()
    assert [entry["step"] for entry in monitor.history] == [1, 4, 7]
    monitor.remove()
    for _ in range(3):
        logic(index=index, s=values)
    assert len(monitor.history) == 3


def test_samples_that_a_rule_is_not_about_are_not_looked_at():
    logic = dl.LogicLoss(dl.var("x") <= 0, num_samples=4)
    monitor = dl.Monitor(logic, every=1)
    values = torch.tensor([0.0, 0.0, 1.0, torch.nan], requires_grad=True)
    logic(torch.tensor([0, 1, 2, -1]), where=torch.tensor([True, True, False, False]), x=values)
    assert monitor.history[0]["rule"]["satisfied"] == 1.0


@pytest.mark.parametrize(("where", "looks"), [({"a": True}, 1), ({"a": None}, 1), ({"a": False}, 0), ({"b": True}, 1)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_rule_may_be_about_all_samples_or_none(where, looks, masked):
    logic = dl.LogicLoss({name: dl.var("x") <= 0 for name in "abc"}, num_samples=2)
    monitor = dl.Monitor(logic, every=1)
    mask = {"c": torch.tensor([True, False])} if masked else {}
    logic(torch.arange(2), where=where | mask, x=torch.ones(2, requires_grad=True))
    assert len(monitor.history) == looks


@pytest.mark.parametrize("method", dl.methods.METHODS)
def test_training_is_the_same_with_a_monitor(method):
    if method in ("semantic", "problog"):
        pytest.importorskip("pysdd")
    results = []
    for watched in (False, True):
        torch.manual_seed(0)
        logic = dl.LogicLoss({"a": RULE, "b": (f == 0) | (g == 1)}, num_samples=8, method=method)
        if watched:
            monitor = dl.Monitor(logic, every=1, warn=False)
        logits = torch.nn.Parameter(torch.randn(2, 8, 3))
        optimizer = torch.optim.SGD([logits], 0.5)
        for _ in range(6):
            optimizer.zero_grad()
            logic(torch.arange(8), f=logits[0], g=logits[1]).backward()
            optimizer.step()
        kept = {name: value for name, value in logic.state_dict().items() if torch.is_tensor(value)}
        results.append((logits.detach(), kept, torch.get_rng_state()))
    assert len(monitor.history) == 6
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


def test_a_compiled_step_is_left_alone_and_can_be_shown_to_it():
    logic = dl.LogicLoss(EITHER, num_samples=4)
    monitor = dl.Monitor(logic, every=1)
    compiled = torch.compile(lambda index, values: logic(index, s=values), backend="eager")
    index, values = torch.arange(4), torch.rand(4, 4, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler
        compiled(index, values).backward()
    assert monitor.history == []
    monitor.look(index, s=values)
    assert len(monitor.history) == 1
    with pytest.raises(dl.errors.StateError, match="no tensor was given for 's'"):
        monitor.look(index)


# ---------------------------------------------------------------- keeping


def test_a_resumed_monitor_goes_on_as_if_it_had_not_stopped(tmp_path):
    def start():
        torch.manual_seed(1)
        logic = dl.LogicLoss(RULE, num_samples=200, method="hard")
        return logic, dl.Monitor(logic, warn=False)

    _, whole = start()
    _, first = start()
    _, second = start()
    for monitor in (whole, first):
        look_at(monitor, 0.3, 0.0, 11)
    torch.save(first.state_dict(), tmp_path / "monitor.pt")
    second.load_state_dict(torch.load(tmp_path / "monitor.pt", weights_only=True))
    for monitor in (whole, second):
        look_at(monitor, 0.0, 0.0, 20)
    assert second.findings == whole.findings != ()
    assert second.history == whole.history
    other = dl.Monitor(dl.LogicLoss(EITHER))
    with pytest.raises(dl.errors.StateError, match="of other rules"):
        other.load_state_dict(first.state_dict())


@pytest.mark.parametrize("part", ["calls", "turn", "window", "streaks", "active", "history"])
def test_a_state_without_a_part_is_refused_and_changes_nothing(part):
    first, second = (dl.Monitor(dl.LogicLoss(RULE, num_samples=200, method="hard"), warn=False) for _ in range(2))
    look_at(first, 0.3, 0.0, 11)
    state, before = first.state_dict(), second.state_dict()
    del state[part]
    with pytest.raises(dl.errors.StateError, match=f"Monitor.state_dict.. gives: KeyError: '{part}'. Nothing was changed"):
        second.load_state_dict(state)
    assert second.state_dict() == before


def test_copies_of_a_loss_are_not_watched():
    logic = dl.LogicLoss(EITHER, num_samples=4)
    monitor = dl.Monitor(logic, every=1)
    for twin in (copy.deepcopy(logic), pickle.loads(pickle.dumps(logic))):
        twin(torch.arange(4), s=torch.rand(4, 4, requires_grad=True))
    assert monitor.history == []
    logic(torch.arange(4), s=torch.rand(4, 4, requires_grad=True))
    assert len(monitor.history) == 1


def test_many_rules_take_turns():
    rules = {f"r{number}": (s[number % 4] <= number / 30) | (s[(number + 1) % 4] >= 0.5) for number in range(20)}
    logic = dl.LogicLoss(rules, num_samples=4, method="uniform")
    monitor = dl.Monitor(logic, every=1)
    for _ in range(5):
        logic(torch.arange(4), s=torch.rand(4, 4, requires_grad=True))
    counts = [monitor._window.counts["gradient", name] for name in rules]
    assert sum(counts) == 5 * module.MOST_RULES
    assert max(counts) - min(counts) <= 1


def test_rows_that_all_processes_would_have_to_fetch_together_are_left_alone(monkeypatch):
    logic = dl.LogicLoss(RULE, num_samples=4)
    monkeypatch.setattr(logic._table, "collective", True)
    monitor = dl.Monitor(logic, every=1)
    monitor.look(torch.arange(4), f=torch.zeros(4, 3), g=torch.zeros(4, 3))
    monkeypatch.setattr(logic._table, "collective", False)
    monitor.look(torch.arange(4), f=torch.zeros(4, 3), g=torch.zeros(4, 3))
    assert ["rule/pull" in entry["rule"] for entry in monitor.history] == [False, True]


def test_history_is_bounded():
    logic = dl.LogicLoss(dl.var("x") <= 0)
    monitor = dl.Monitor(logic, every=1)
    for _ in range(5):
        logic(x=torch.zeros(1, requires_grad=True))
    assert monitor._history.maxlen == window.HISTORY
    assert [entry["step"] for entry in monitor.history] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every counts training calls"),
        ({"labels": {"s": torch.zeros(3, 4)}}, "one for each of 4 training samples"),
        ({"labels": {"t": torch.zeros(4, 4)}}, "labels names 't'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(dl.errors.DualogicError, match=message):
        dl.Monitor(dl.LogicLoss(EITHER, num_samples=4), **options)
    with pytest.raises(dl.errors.OptionError, match="watches a LogicLoss"):
        dl.Monitor(EITHER)
    with pytest.raises(dl.errors.OptionError, match="num_samples=None"):
        dl.Monitor(dl.LogicLoss(EITHER), labels={"s": torch.zeros(4, 4)})


def test_large_whole_numbers_are_told_apart_as_by_the_loss():
    """Times in seconds, of which float32 does not see a difference of a minute."""
    start = 1_700_000_000 + torch.arange(4)
    times = {"x": start, "y": start + torch.tensor([60, -60, 60, -60])}
    rule = (x < y) >> a
    logic = dl.LogicLoss(rule, num_samples=4)
    monitor = dl.Monitor(logic, every=1)
    believed = torch.tensor([0.9, 0.9, 0.1, 0.1], requires_grad=True)
    with torch.no_grad():
        expected = logic.eval()(torch.arange(4), a=believed, **times)
    assert logic.view(torch.arange(4)).losses(a=believed, **times).mean() == expected
    logic.train()(torch.arange(4), a=believed, **times)
    assert monitor.history[0]["rule"]["satisfied"] == rule.satisfied(a=believed, **times).double().mean() == 0.75


def test_of_samples_that_came_later_no_labels_are_known():
    """A table that has grown is looked at as a larger one whose labels are not known there."""
    a, n, c = dl.boolean("a"), dl.var("n"), dl.categorical("c", 2)
    labels = {"a": torch.tensor([True, False]), "n": torch.tensor([2, -1]), "c": torch.tensor([0, 1])}
    more = {"a": torch.tensor([1, 0, -1]), "n": torch.tensor([2.0, -1.0, torch.nan]), "c": torch.tensor([0, 1, -1])}
    seen = []
    for samples, known in ((2, labels), (3, more)):
        logic = dl.LogicLoss((a & (n <= 1)) >> (c == 1), num_samples=samples)
        monitor = dl.Monitor(logic, every=1, labels=known)
        logic.extend(3)
        values = {"a": torch.ones(3), "n": torch.zeros(3), "c": torch.full((3, 2), 0.5)}
        logic(torch.tensor([2, 0, 1]), **{name: value.requires_grad_() for name, value in values.items()})
        seen.append(monitor.state_dict()["window"]["recent"])
    assert {name: value.tolist() for name, value in seen[0].items()} == {name: value.tolist() for name, value in seen[1].items()}
    assert seen[0]["labels", "rule"].tolist()[0] == 2


# ---------------------------------------------------------------- any rule

a, b, x, y, i = dl.boolean("a"), dl.boolean("b", input="logits"), dl.var("x"), dl.var("y"), dl.categorical("i", 3, input="logits")


@pytest.mark.parametrize("method", ["dual", "uniform", "hard", "dl2", "godel"])
@pytest.mark.parametrize(
    "rule",
    [
        a >> (y >= 1),
        (x <= 0) >> (y <= 0),
        b >> a,
        (i == 1) >> b,
        (x <= 0) >> (i == 2),
        (a & b) >> (x + y <= 1),
        dl.Iff(a, y >= 1),
    ],
    ids=str,
)
def test_scalar_symbols_are_watched(rule, method):
    """Gradients of symbols without axes have no axis but the batch's."""
    logic = dl.LogicLoss(rule, num_samples=6, method=method)
    monitor = dl.Monitor(logic, every=1, warn=False)
    for _ in range(3):
        leaves = {name: torch.rand(6, *((3,) if name == "i" else ()), requires_grad=True) for name in rule.symbols}
        logic(torch.arange(6), **leaves).backward()
    assert len(monitor.history) == 3


def test_a_scalar_is_watched_like_an_axis_of_one():
    u, w = dl.var("x", 1), dl.var("y", 1)
    first, second = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    histories = []
    for rule, tail in (((x <= 0) >> (y <= 0), ()), ((u[0] <= 0) >> (w[0] <= 0), (1,))):
        logic = dl.LogicLoss(rule, num_samples=5, method="uniform")
        monitor = dl.Monitor(logic, every=1, warn=False)
        for _ in range(4):
            left, right = (values.view(5, *tail).clone().requires_grad_() for values in (first, second))
            logic(torch.arange(5), x=left, y=right)
        histories.append([entry["rule"]["rule/pull"] for entry in monitor.history])
    assert histories[0] == histories[1]
    assert histories[0][-1] != [0, 0]


@given(data=st.data())
@settings(max_examples=25)
def test_random_rules_are_watched_without_a_word(data):
    formula = data.draw(st.one_of(formulas(depth=2, atom_count=3), quantified(depth=2)))
    bound = {
        name: value.requires_grad_() if value.is_floating_point() else value
        for name, value in data.draw(bindings(formula, batch=3)).items()
    }
    try:
        logic = dl.LogicLoss(formula, num_samples=3)
        logic(torch.arange(3), **bound)
    except dl.errors.DualogicError:
        assume(False)  # what the loss itself refuses
    monitor = dl.Monitor(logic, every=1, warn=False)
    for _ in range(2):
        logic(torch.arange(3), **bound)
    assert len(monitor.history) == 2


# ---------------------------------------------------------------- without a monitor


def test_a_rule_that_can_teach_nothing_says_so_once():
    logic = dl.LogicLoss(RULE, num_samples=2, method=dl.methods.Dual(evidence=True))
    given, taught = torch.zeros(2, 3), torch.zeros(2, 3, requires_grad=True)
    with pytest.warns(dl.ShortcutWarning, match="'g' can be taught but is read as evidence only") as caught:
        logic(torch.arange(2), f=given, g=taught)
    logic(torch.arange(2), f=given, g=taught)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    # Where nothing could be taught anyway, where something is, and where the antecedent is taught: silence.
    dl.LogicLoss(RULE, num_samples=2)(torch.arange(2), f=given, g=given)
    dl.LogicLoss(RULE, num_samples=2)(torch.arange(2), f=taught, g=given)
    dl.LogicLoss(RULE, num_samples=2, method="hard")(torch.arange(2), f=given, g=taught)
    dl.LogicLoss(RULE, num_samples=2)(torch.arange(2), f=given, g=taught)  # who gives way is still to be found out


# ---------------------------------------------------------------- the page


def test_the_page_lists_every_kind_with_its_thresholds():
    page = (Path(__file__).parents[2] / "docs" / "monitor.md").read_text()
    section = page.partition("## What it says")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| .+ \| .+ \|$", section, flags=re.MULTILINE)
    listed = re.findall(
        r"^- \*\*(.+?)\.?\*\*(.+?)(?=^- |\Z)", section.partition("### Exactly when")[2], flags=re.MULTILINE | re.DOTALL
    )
    meaning = {kind.lower(): " ".join(text.split()) for kind, text in listed}
    assert set(meaning) == set(rows[1:]) == set(alarm.KINDS) == set(alarm.ADVICE)
    off = meaning[alarm.SWITCHED_OFF]
    assert f"{100 * watch.DENIAL:.0f} %" in off
    assert f"after {watch.LASTING} looks the pull, averaged over the latest {window.LATE}" in off
    assert (watch.STILL, verdict.SIGNIFICANT) == (0.25, 4.0)
    wide = meaning[alarm.TOO_WIDE]
    assert f"after {watch.LASTING} looks: at least {100 * watch.MOSTLY:.0f} %" in wide
    assert f"{100 * watch.CAME:.0f} % more" in wide
    assert f"at least {100 * watch.AGAINST:.0f} % of the pull on logarithms" in off
    wrong = meaning[alarm.CONTRADICTED]
    assert f"after {watch.LASTING} looks" in wrong
    assert f"not {100 * watch.STUCK:.0f} % fewer than {window.LATE} looks ago" in wrong
    assert watch.LARGE == 1.5
    assert f"{watch.VISITS} visits" in meaning[alarm.FROZEN]
    assert f"{100 * verdict.UNIFORM:.1f} %" in meaning[alarm.FROZEN]
    assert f"first {watch.SETTLED} looks" in page
