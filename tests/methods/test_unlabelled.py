"""What no label shows, told to the method: rules that ask for it do not teach their antecedents."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
from dualogic.errors import OptionError, SymbolError
from dualogic.formula.atom import Boolean, ClassIn
from dualogic.formula.connective import Complement, Equivalence, Implication, Junction
from dualogic.formula.evidence import Evidence
from dualogic.methods.lean import PACES, PRIOR, advance_known, share_of, start_known

NAMES = ["dog", "cat", "cow", "hen"]
f, g = dl.categorical("f", 4, classes=NAMES), dl.categorical("g", 4, classes=NAMES)
a, b, premise = (dl.boolean(name) for name in ("a", "b", "premise"))
x = dl.var("x")


def shares(rule, told, **options):
    """How much of each antecedent is evidence, by path; none of it, unless something is said."""
    logic = dl.LogicLoss(rule, method=dl.methods.Dual(unlabelled=told, **{"evidence": False, **options}))
    return {path: share.item() for path, share in logic._program.evidence(logic._state).items()}


def names_hidden(node, hidden, positive=True):
    """Whether a hidden class is named without a negation, or is all that a negation leaves; by the meaning of connectives."""
    if isinstance(node, ClassIn):
        rest = set(node.classes) if positive else {0, 1, 2, 3} - set(node.classes)
        return bool(rest & hidden) if positive else rest <= hidden
    if isinstance(node, Boolean):
        return False
    if isinstance(node, Evidence):
        return names_hidden(node.operand, hidden, positive)
    if isinstance(node, Complement):
        return names_hidden(node.operand, hidden, not positive)
    if isinstance(node, Implication):
        return names_hidden(node.antecedent, hidden, not positive) or names_hidden(node.consequent, hidden, positive)
    if isinstance(node, Equivalence):
        return any(names_hidden(side, hidden, sign) for side in (node.left, node.right) for sign in (True, False))
    assert isinstance(node, Junction)
    return any(names_hidden(part, hidden, positive) for part in node.operands)


class_sets = st.sets(st.integers(0, 3), min_size=1, max_size=3)
consequents = st.recursive(
    st.one_of(class_sets.map(lambda classes: f.isin(sorted(classes))), st.sampled_from([a, b])),
    lambda parts: st.one_of(
        parts.map(lambda part: ~part),
        st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
        st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
        st.tuples(parts, parts).map(lambda pair: dl.Implies(*pair, evidence=False)),
        st.tuples(parts, parts).map(lambda pair: dl.Xor(*pair)),
    ),
    max_leaves=6,
)


@given(consequents, class_sets)
@settings(max_examples=200, deadline=None)
def test_an_antecedent_is_evidence_exactly_where_the_consequent_names_what_no_label_shows(consequent, hidden):
    expected = float(names_hidden(consequent, hidden))
    rules = {"as written": premise >> consequent, "denied twice": premise >> ~~consequent, "about f": f == 0}
    found = shares(rules, {"f": hidden})
    assert found["as written"] == found["denied twice"] == expected


@pytest.mark.parametrize(
    ("rule", "told", "expected"),
    [
        (premise >> (f == "cat"), {"f": ["cat"]}, 1),
        (premise >> (f == "cat"), {"f": ["cow"]}, 0),
        (premise >> (f == "cat"), {"f": []}, 0),
        (premise >> (f == g), {"g": [0]}, 1),
        (premise >> (f != g), {"g": [0]}, 0),
        (premise >> a, {"a": True}, 1),
        (premise >> ~a, {"a": True}, 1),
        (premise >> a, {"premise": True}, 0),
        (premise >> a, {"a": False}, 0),
        (premise >> (x >= 0), {"x": True}, 1),
        (premise >> (f.probabilities[1] >= 0.5), {"f": ["cat"]}, 1),
        (premise >> dl.ExactlyOne(f == 0, f == 1), {"f": [1]}, 1),
        (premise >> dl.AtMost(1, f == 0, f == 1), {"f": [1]}, 0),
        (premise >> (dl.evidence(f != 1) >> a), {"f": [1]}, 0),
        (dl.evidence(premise, 0.25) >> (f == 1), {"f": [1]}, 0.25),
        ((f == 1) >> premise, {"f": [1]}, 0),
    ],
)
def test_what_is_asked_for(rule, told, expected):
    assert shares(rule, told)["rule"] == expected


def test_parts_with_axes_and_inside_other_connectives():
    n = dl.axis("n", max=3)
    word, valid = dl.categorical("word", 3, shape=(n,)), dl.mask("valid", n)
    many = ((word[1:] == 2) >> (word[:-1] == 1)).all(where=valid[1:])
    assert list(shares(many, {"word": [1]}).values()) == [1.0]
    assert list(shares(many, {"word": [2]}).values()) == [0.0]
    nested = premise >> (a >> (f == 1))
    assert shares(nested, {"f": [1]}) == {"rule": 1.0, "rule/1": 1.0}
    assert shares(premise >> ((f != 1) >> a), {"f": [1]}) == {"rule": 1.0, "rule/1": 0.0}


@pytest.mark.parametrize(
    ("told", "expected"),
    [({"f": [1]}, [1, 0]), ({"a": True}, [0, 1]), ({"a": True, "f": [1]}, [0, 0]), ({"f": [2]}, [0, 0])],
)
def test_of_an_iff_the_side_with_labels_is_the_evidence_of_the_other(told, expected):
    assert list(shares(dl.Iff(a, f == 1), told).values()) == expected


def test_other_implications_are_found_out_as_before():
    rules = {"told": premise >> (f == 1), "free": premise >> a}
    logic = dl.LogicLoss(rules, method=dl.methods.Dual(unlabelled={"f": [1]}))
    assert logic.state_dict()["known"].shape[1] == 1
    for _ in range(300):
        open_wide = torch.tensor([0.9, 0.1, 0.1])
        logic(premise=open_wide, a=torch.tensor([0.1, 0.9, 0.9]), f=torch.eye(4)[[0, 1, 1]])
    found = {path: share.item() for path, share in logic._program.evidence(logic._state).items()}
    assert found == {"told": 1.0, "free": 0.0}


@pytest.mark.parametrize("implication", ["rests", "or"])
@pytest.mark.parametrize("evidence", [False, 0.5])
def test_it_is_as_if_the_antecedent_was_marked(implication, evidence):
    options = {"implication": implication, "evidence": evidence}
    told = dl.LogicLoss(premise >> (f == 1), 6, dl.methods.Dual(unlabelled={"f": ["cat"]}, **options))
    marked = dl.LogicLoss(dl.evidence(premise) >> (f == 1), 6, dl.methods.Dual(**options))
    for step in range(3):
        torch.manual_seed(step)
        p, q = torch.rand(6, requires_grad=True), torch.rand(6, 4).softmax(1).requires_grad_()
        found = []
        for logic in (told, marked):
            loss = logic(torch.arange(6), premise=p, f=q)
            found.append((loss, *torch.autograd.grad(loss, (p, q), materialize_grads=True)))
        assert all(torch.equal(one, two) for one, two in zip(*found))
        assert not found[0][1].any()
    assert told._program.plan.teachable == {"f"}


@pytest.mark.parametrize(
    ("told", "error", "said"),
    [
        ({"premis": True}, SymbolError, "did you mean 'premise'"),
        ({"h": [1]}, SymbolError, "the rules are about 'premise', 'f'"),
        ({"f": ["cta"]}, SymbolError, "did you mean 'cat'"),
        ({"f": [4]}, SymbolError, "class 4 is out of range for 'f'"),
        ({"premise": [1]}, OptionError, "say unlabelled={'premise': True}"),
        ({"f": 1}, OptionError, "must be a list of classes"),
        ({"f": "cat"}, OptionError, "must be a list of classes"),
        (["f"], OptionError, "unlabelled maps names of symbols"),
    ],
)
def test_what_makes_no_sense_is_refused(told, error, said):
    with pytest.raises(error, match=said.replace("{", r"\{").replace("[", r"\[")):
        dl.LogicLoss(premise >> (f == 1), method=dl.methods.Dual(unlabelled=told))


def test_options_are_copied_and_hashable():
    told = {"f": [1]}
    method = dl.methods.Dual(unlabelled=told)
    told["f"].append(2)
    told["g"] = True
    assert method == dl.methods.Dual(unlabelled={"f": torch.tensor([1])}) == copy.deepcopy(method)
    assert hash(method) == hash(dl.methods.Dual(unlabelled={"f": (1,)}))


def test_a_checkpoint_says_what_was_told():
    def make(told):
        return dl.LogicLoss(premise >> (f == 1), 4, dl.methods.Dual(unlabelled=told, evidence=True))

    saved = make({"f": ["cat", 2]}).state_dict()
    make({"f": [2, 1]}).load_state_dict(saved)
    for other in ({}, {"f": [1]}, {"f": True}):
        with pytest.raises(RuntimeError, match="where no label shows f: 1, 2 in the checkpoint"):
            make(other).load_state_dict(saved)


# ---------------------------------------------------------------------- found out, not told


@given(st.integers(1, 8), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_a_first_tiny_batch_opens_nothing(count, beliefs):
    """Whatever it says, its samples count against a hundred that say nothing of the kind."""
    p, firm = beliefs[:2]
    noted = torch.tensor([[1 - p], [(1 - p) * firm], [p], [p * firm], [p]], dtype=torch.float64)
    known = advance_known(start_known([0], torch.float64), noted, count, torch.tensor(0), torch.tensor(PACES))
    assert count > 6 or share_of(known) == 1.0


def test_the_prior_fades():
    noted = torch.tensor([[0.5], [0.25], [0.5], [0.25], [0.5]], dtype=torch.float64)
    known = start_known([0], torch.float64)
    for step in range(1000):
        known = advance_known(known, noted, 64, torch.tensor(step), torch.tensor(PACES))
    assert known[4].item() == pytest.approx(0.5 / (1 + PRIOR / 64000))
    assert share_of(known) == 0.0
