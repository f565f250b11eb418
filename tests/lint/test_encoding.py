"""What the solver finds to satisfy or violate a formula does so in the library's own judgement."""

from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.lint.encode import Encoder
from dualogic.lint.world import Prover, World
from witnesses import holds_at


def examples(formula):
    """Outputs that satisfy and that violate a formula, where the solver finds them and sees everything."""
    world = World([formula], {})
    encoder, prover = Encoder(world), Prover(world, timeout=0.5)
    for positive in (True, False):
        proposition = encoder.formula(formula, (), positive)
        answer = prover.ask([], proposition)
        if answer.verdict == "sat" and not world.opaque:
            yield positive, world.witness(answer.model)


@given(st.one_of(strategies.formulas(depth=2), strategies.quantified()))
@settings(max_examples=150)
def test_models_are_judged_alike(formula):
    for positive, witness in examples(formula):
        assert holds_at(formula if positive else ~formula, witness), (positive, witness)


def test_most_kinds_of_terms_are_seen():
    n = dl.axis("n", max=4)
    x, m = dl.var("x", n, 2), dl.mask("m", n)
    f = dl.categorical("f", 3, shape=(n,), input="logits")
    rules = [
        (x[-1, 0] - x[-2].max() == 3) & (x[-1, 1] > x[0, 1]),
        (x.sum(0)[1] / 2 >= abs(x[0, 0]) + 1) & (x.max() == 7) & (x.min() ** 2 == 9),
        ((x @ [[1, 0], [1, -1]])[1:, 1] > 2).all(where=m[1:] & ~m[:-1]) & (x[:, 0] <= 0).any(where=m),
        (f[1:] != f[:-1]).all() & (f[-1] == 2) & (f.probabilities[:, 0] >= 0.25).any(),
    ]
    for rule in rules:
        assert [positive for positive, _ in examples(rule)] == [True, False]
        for positive, witness in examples(rule):
            assert holds_at(rule if positive else ~rule, witness), (rule, positive, witness)
