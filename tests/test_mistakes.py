"""What beginners get wrong: each mistake gets an error or one warning with the words that help, or works as they meant it."""

import pickle
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import dualogic as dl
from dualogic.errors import (
    BindingError,
    FormulaTypeError,
    MistakeWarning,
    NonFiniteError,
    OptionError,
    ParseError,
    SampleIndexError,
    ShapeError,
    ShortcutWarning,
    SymbolError,
)

SAMPLES = 8
INDEX = torch.arange(4)
N = dl.axis("n", max=5)
a, b, t = dl.boolean("a"), dl.boolean("b"), dl.boolean("t", 5)
x, y, v = dl.var("x"), dl.var("y"), dl.var("v", 3)
r, m = dl.var("r", N), dl.mask("m", N)
f, g = dl.categorical("f", 3, input="logits"), dl.categorical("g", 3, input="logits")
q, pet = dl.categorical("q", 3), dl.categorical("pet", 3, classes=["cat", "dog", "owl"])
RULE = (g == 2) >> (f == 1)


def numbers(*shape):
    return torch.randn(*shape, requires_grad=True)


def make(rules=RULE, **options):
    return dl.LogicLoss(rules, num_samples=SAMPLES, **options)


def call(index=INDEX, logic=None, **tensors):
    return (logic or make())(index, **{"f": numbers(4, 3), "g": numbers(4, 3), **tensors})


def repeat(logic, index, count=3, **shapes):
    for _ in range(count):
        loss = logic(index, **{name: made(len(index), 3) for name, made in shapes.items()})
    return loss


def train(steps, mode=lambda step, logic: logic, backward=True):
    """A plain loop: a network, a loss, and what happens to the loss's mode before each step."""
    logic, net = make(), torch.nn.Linear(2, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(steps):
        mode(step, logic)
        index = torch.randperm(SAMPLES)[:4]
        loss = logic(index, f=net(torch.randn(4, 2)), g=net(torch.randn(4, 2)))
        task = F.cross_entropy(net(torch.randn(4, 2)), torch.tensor([0, 1, 2, 0]))
        optimizer.zero_grad()
        (task + loss if backward else task).backward()
        optimizer.step()
    return logic


def load_other():
    dl.LogicLoss(f == 1, num_samples=SAMPLES).load_state_dict(make().state_dict())


def labels_as_index():
    data, logic = TensorDataset(torch.randn(12, 3), torch.randint(0, 3, (12,))), make()
    for images, labels in DataLoader(data, batch_size=4):
        logic(labels, f=images, g=images)


ERRORS = {
    # The call
    "no index": (lambda: make()(f=numbers(4, 3), g=numbers(4, 3)), SampleIndexError, "dl.data.WithIndex"),
    "tensors by position": (lambda: make()(INDEX, numbers(4, 3), numbers(4, 3)), TypeError, "positional arguments"),
    "tensors in a mapping": (lambda: make()({"f": numbers(4, 3), "g": numbers(4, 3)}), BindingError, "logic(index, **tensors)"),
    "too many classes": (lambda: call(f=numbers(4, 5)), BindingError, "needs a tensor of shape (batch, 3); got (4, 5)"),
    "a tensor is missing": (lambda: make()(INDEX, f=numbers(4, 3)), SymbolError, "no tensor was given for 'g'"),
    "a tensor too many": (lambda: call(h=numbers(4, 3)), SymbolError, "'h' is not a symbol"),
    "a typo": (lambda: make()(INDEX, f=numbers(4, 3), G=numbers(4, 3)), SymbolError, "'G' is not a symbol"),
    "different batches": (lambda: call(g=numbers(5, 3)), BindingError, "same batch size"),
    "no batch axis": (lambda: make()(torch.tensor(0), f=numbers(3), g=numbers(3)), BindingError, "(batch, 3); got (3,)"),
    "short index": (lambda: call(torch.arange(3)), SampleIndexError, "must have shape (4,)"),
    "index past the end": (lambda: call(torch.tensor([0, 1, 2, 99])), SampleIndexError, "indices run from 0 to 7"),
    "negative index": (lambda: call(torch.tensor([0, 1, 2, -1])), SampleIndexError, "sample index -1 is out of range"),
    "index of floats": (lambda: call(INDEX.float()), SampleIndexError, "must hold integers"),
    "index on meta": (lambda: call(INDEX.to("meta")), SampleIndexError, "on the meta device and has no values"),
    "a larger data set": (lambda: call(INDEX + 8), SampleIndexError, "out of range for num_samples=8"),
    "classes, not scores": (lambda: call(f=numbers(4, 3).argmax(-1)), BindingError, "got (4,)"),
    "logits as probabilities": (lambda: dl.LogicLoss(q == 1)(q=5 * numbers(4, 3)), BindingError, "apply softmax"),
    "logits as a truth value": (lambda: dl.LogicLoss(a)(a=50 * numbers(4)), BindingError, "input='logits'"),
    "percent": (lambda: dl.LogicLoss(a)(a=torch.tensor([90.0, 80.0])), BindingError, "between 80 and 90"),
    "an axis too many": (lambda: dl.LogicLoss(x <= 1)(x=numbers(4, 1)), BindingError, "(batch); got (4, 1)"),
    "a long axis": (lambda: dl.LogicLoss((r <= 0).all())(r=numbers(4, 6)), BindingError, "n (1 to 5)"),
    "a mask of floats": (
        lambda: dl.LogicLoss((r <= 0).all(where=m))(r=numbers(4, 5), m=torch.ones(4, 5)),
        BindingError,
        "mask > 0",
    ),
    "NaN": (lambda: call(f=numbers(4, 3) * torch.nan), BindingError, "contains NaN"),
    "an impossible class": (
        lambda: call(f=torch.tensor([[0.0, -torch.inf, 0.0]] * 4, requires_grad=True)),
        NonFiniteError,
        "because of f == 1",
    ),
    # The rule in Python
    "and": (lambda: (f == 1) and (g == 2), FormulaTypeError, "'&' for 'and'"),
    "not": (lambda: not (f == 1), FormulaTypeError, "'~' for 'not'"),  # noqa: SIM201
    "if": (lambda: 1 if f == 1 else 2, FormulaTypeError, "'>>' for 'if'"),
    "all": (lambda: all([f == 1, g == 2]), FormulaTypeError, "dl.And(...)"),
    "in": (lambda: pet in ["cat"], FormulaTypeError, "f.isin([...]) for f in [...]"),
    "max": (lambda: max(x, y), FormulaTypeError, "dl.apply(torch.maximum, x, y)"),
    "sum": (lambda: sum(v), FormulaTypeError, ".sum()"),
    "len": (lambda: len(v), TypeError, "no len()"),
    "a function of torch": (lambda: torch.relu(x), FormulaTypeError, "dl.apply(torch.relu, x)"),
    "a function of torch on a class": (lambda: torch.softmax(f, -1), FormulaTypeError, "dl.apply(torch.softmax"),
    "chained": (lambda: 0 <= x <= 1, FormulaTypeError, "(a <= x) & (x <= b)"),
    "no parentheses": (lambda: x <= 1 & y <= 1, FormulaTypeError, "put each one in parentheses"),
    "no parentheses around classes": (lambda: f == 1 >> g == 2, FormulaTypeError, "(f == 1) >> (g == 2)"),
    "two truth values compared": (lambda: (a == b) >> a, FormulaTypeError, "dl.Iff(a, b)"),
    "a truth value is 1": (lambda: b == 1, FormulaTypeError, "write it alone for 'it is true' and ~b for"),
    "a truth value is not True": (lambda: b != True, FormulaTypeError, "~b for 'it is false'"),  # noqa: E712
    "a threshold": (lambda: b >= 0.5, FormulaTypeError, "a truth value needs no threshold"),
    "classes in order": (lambda: pet >= "dog", FormulaTypeError, "are no numbers and have no order"),
    "an unknown class": (lambda: pet == "cow", SymbolError, "its classes are cat, dog, owl"),
    "a class past the end": (lambda: f == 3, SymbolError, "classes are 0 to 2"),
    "a class of float": (lambda: f == 1.0, FormulaTypeError, "a class index or name"),
    "classes of two kinds": (lambda: pet == q, SymbolError, "different classes"),
    "a shape in a tuple": (lambda: dl.var("z", (3, 4)), ShapeError, "give each size by itself: 3, 4"),
    "classes for their number": (lambda: dl.categorical("z", ["u", "v"]), SymbolError, "write dl.categorical('z', 2, classes="),
    "a reserved name": (lambda: dl.var("where"), SymbolError, "choose another name, such as 'where_'"),
    "another reserved name": (lambda: dl.var("index"), SymbolError, "'index_'"),
    "a name with a space": (lambda: dl.var("my var"), SymbolError, "Python identifier"),
    # The loss
    "axes left": (lambda: dl.LogicLoss(t), ShapeError, ".all() or .any()"),
    "axes of a comparison left": (lambda: dl.LogicLoss(v <= 1), ShapeError, ".all() or .any()"),
    "one name for two": (lambda: dl.LogicLoss((dl.var("a") <= 1) & a), SymbolError, "declared twice"),
    "no rule": (lambda: dl.LogicLoss(x), FormulaTypeError, "expected a formula"),
    "a list": (lambda: dl.LogicLoss([f == 1, g == 2]), FormulaTypeError, "give a mapping"),
    "a text": (lambda: dl.LogicLoss("f == 1"), FormulaTypeError, "dl.parse(text, symbols)"),
    "the number first": (lambda: dl.LogicLoss(8, RULE), FormulaTypeError, "the rules come first"),
    "no such method": (lambda: make(method="duel"), OptionError, "must be one of 'dual'"),
    "a method's class": (lambda: make(method=dl.methods.Dual), OptionError, "write Dual()"),
    "no such option": (lambda: dl.methods.Dual(stepp=1), TypeError, "'stepp'"),
    "a negative step": (lambda: dl.methods.Dual(step=-1), OptionError, "at least 0"),
    "a float of samples": (lambda: dl.LogicLoss(RULE, num_samples=1e3), OptionError, "got 1000.0"),
    "no samples": (lambda: dl.LogicLoss(RULE, num_samples=0), OptionError, "at least 1"),
    "the weight of no rule": (lambda: dl.LogicLoss({"a": a}, weight={"A": 2.0}), SymbolError, "the rules are 'a'"),
    "nothing to optimize": (lambda: torch.optim.Adam(make().parameters()), ValueError, "empty parameter list"),
    "another checkpoint": (load_other, RuntimeError, "does not fit this LogicLoss"),
    "labels of another length": (
        lambda: dl.diagnose(RULE, labels=torch.arange(7), f=numbers(4, 3), g=numbers(4, 3)),
        BindingError,
        "one integer for each sample",
    ),
    # Rule files
    "no such file": (lambda: dl.load_rules("nope.rules"), FileNotFoundError, "nope.rules"),
    "an indented statement": (lambda: dl.parse_rules("bool a\n  rule r: a"), ParseError, "move it to the left margin"),
}


@pytest.mark.parametrize("mistake", ERRORS)
def test_refused(mistake):
    act, error, words = ERRORS[mistake]
    with pytest.raises(error) as caught:
        act()
    assert words in str(caught.value)


def softmax(*shape):
    return numbers(*shape).softmax(-1)


WARNED = {
    "probabilities as logits": (lambda: call(f=softmax(4, 3), g=softmax(4, 3)), "'g' and 'f': declared with input='logits'"),
    "one-hot as logits": (lambda: call(g=torch.eye(3)[[0, 1, 2, 0]]), "looks like probabilities"),
    "an index without num_samples": (lambda: call(logic=dl.LogicLoss(RULE)), "num_samples=len(dataset)"),
    "names without num_samples": (lambda: call(["a", "b", "c", "d"], dl.LogicLoss(RULE)), "num_samples=len(dataset)"),
    "no gradient": (lambda: repeat(make(), INDEX, f=torch.randn, g=torch.randn), "neither detached nor made under no_grad"),
    "labels for an index, data for outputs": (labels_as_index, "no tensor bound to it has a gradient"),
    "integers": (lambda: [loss(x=torch.arange(4)) for loss in [dl.LogicLoss(x <= 1)] * 3], "'x' holds integers"),
    "one rule of two without gradient": (
        lambda: repeat(make({"one": f == 1, "two": g == 2}), INDEX, f=numbers, g=torch.randn),
        "rule 'two' teaches nothing",
    ),
    "not equal": (lambda: dl.LogicLoss(x != 0), "dl.ne(x, 0, margin=0.1)"),
    "not equal, negated": (lambda: dl.LogicLoss(a >> ~(x == 0)), "costs nothing"),
    "not equal for some": (lambda: dl.LogicLoss(~(v == 0).all()), "costs nothing"),
    "always true": (lambda: dl.LogicLoss((x >= 0) | (x <= 0)), "rule 'rule' is always true"),
    "always true of two": (lambda: dl.LogicLoss({"r": (x <= y) | (y <= x) | a}), "rule 'r' is always true"),
    "always true for each": (lambda: dl.LogicLoss(((v <= 1) | (v >= 0)).all()), "always true"),
    "never true": (lambda: dl.LogicLoss((x >= 1) & (x <= 0)), "never true"),
    "positions in the batch": (
        lambda: [repeat(logic, INDEX, 4, f=numbers, g=numbers) for logic in [make()]],
        "where samples stand in the data set, not in the batch",
    ),
    "positions in large batches": (
        lambda: [repeat(logic, torch.arange(6), 4, f=numbers, g=numbers) for logic in [make()]],
        "so 2 of the 8 samples were never visited",
    ),
    "eval() never undone": (lambda: train(6, lambda step, logic: logic.eval()), "call logic.train()"),
    "eval() not undone after validation": (lambda: train(9, lambda step, logic: logic.train(step < 3)), "call logic.train()"),
}


@pytest.mark.parametrize("mistake", WARNED)
def test_warned_once(mistake):
    act, words = WARNED[mistake]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        act()
    assert [warning.category for warning in told] == [MistakeWarning]
    assert words in str(told[0].message)
    assert told[0].filename == __file__


def test_an_antecedent_that_is_only_read_has_its_own_warning():
    logic = make(method=dl.methods.Dual(evidence=True))
    with pytest.warns(ShortcutWarning, match="no gradient flows from the rules"):
        call(logic=logic, f=torch.randn(4, 3))


def moved_twice():
    logic = make()
    call(logic=logic)
    call(logic=logic)
    return logic.state_dict()["steps"] == 2


def moved_without_gradient():
    logic = make()
    with torch.no_grad():
        call(logic=logic)
    return logic.weights(INDEX)["rule"].eq(0.5).all()


def finite(loss):
    return bool(loss.isfinite())


WORKS = {
    "index as a list": lambda: finite(call([0, 1, 2, 3])),
    "index as an array": lambda: finite(call(np.arange(4))),
    "a sample twice": lambda: finite(call(torch.tensor([0, 0, 1, 1]))),
    "arrays for tensors": lambda: finite(call(f=np.random.randn(4, 3))),
    "half precision": lambda: finite(call(f=numbers(4, 3).half(), g=numbers(4, 3).half())),
    "double precision": lambda: finite(call(f=numbers(4, 3).double())),
    "log-probabilities are logits": lambda: finite(call(f=numbers(4, 3).log_softmax(-1))),
    "the consequent is a fact": lambda: finite(call(f=numbers(4, 3).detach())),
    "a truth value that is known": lambda: finite(
        dl.LogicLoss(a >> b, num_samples=4)(INDEX, a=torch.tensor([True, False, True, True]), b=torch.rand(4, requires_grad=True))
    ),
    "an empty batch": lambda: call(torch.empty(0, dtype=torch.long), f=numbers(0, 3), g=numbers(0, 3)) == 0,
    "decimals": lambda: (x == 0.3).satisfied(x=torch.tensor([0.3, 0.1 + 0.2])).all(),
    "a tensor in a rule": lambda: str(dl.var("w", 2) <= torch.tensor([1.0, 2.0])) == "w <= [1, 2]",
    "a tensor on the left": lambda: str(torch.tensor([1.0, 2.0]) <= dl.var("w", 2)) == "w >= [1, 2]",
    "a number of numpy on the left": lambda: str(np.float64(1.0) <= x) == "x >= 1",
    "an array on the left": lambda: str(np.array([1.0, 2.0]) <= dl.var("w", 2)) == "w >= [1, 2]",
    "diagnose with gradients": lambda: dl.diagnose(RULE, f=numbers(4, 3), g=numbers(4, 3)).samples == 4,
    "diagnose a loss": lambda: dl.diagnose(make(), f=numbers(4, 3), g=numbers(4, 3)).samples == 4,
    "under no_grad nothing moves": moved_without_gradient,
    "two calls are two steps": moved_twice,
    # Near to what is warned of
    "truth values that are surely one": lambda: finite(dl.LogicLoss(b | ~b)(b=torch.rand(4, requires_grad=True))),
    "bounds that leave a gap": lambda: make((x <= 0) | (x >= 1)),
    "not equal in the condition": lambda: make((x != 0) >> b) and make((x == 0) >> b),
    "not equal with a margin": lambda: make(dl.ne(x, 0, margin=0.1)),
    "one look without gradients": lambda: finite(call(f=torch.randn(4, 3), g=torch.randn(4, 3))),
    "the whole data set at once": lambda: finite(repeat(dl.LogicLoss(RULE, num_samples=4), INDEX, 9, f=numbers, g=numbers)),
    "unshuffled": lambda: [call(index, make()) for index in torch.arange(8).split(4)],
    "closures": lambda: finite(repeat(make(update="manual"), INDEX, 9, f=numbers, g=numbers)),
    "validation in eval()": lambda: train(12, lambda step, logic: logic.train(step % 4 < 2)),
    "measured in eval(), not trained on": lambda: train(9, lambda step, logic: logic.eval(), backward=False),
    "a gradient in eval()": lambda: [call(logic=logic).backward() for logic in [make().eval()] * 5],
}


@pytest.mark.parametrize("act", WORKS.values(), ids=WORKS)
def test_works(act):
    assert act()  # a warning would be an error


def test_none_of_it_is_carried_to_a_copy():
    logic = make()
    with pytest.warns(MistakeWarning):
        call(logic=logic, f=softmax(4, 3))
    call(logic=logic, f=softmax(4, 3))
    with pytest.warns(MistakeWarning):
        call(logic=pickle.loads(pickle.dumps(logic)), f=softmax(4, 3))


def test_warnings_can_be_switched_off():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=dl.errors.MistakeWarning)
        call(f=softmax(4, 3))
