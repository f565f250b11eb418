"""Parts of lint by themselves: linear terms, sizes, ranges, inputs, the prover, and the two checks of the cost."""

from fractions import Fraction

import torch

import dualogic as dl
from dualogic.lint.check import check_ranges, ground_size
from dualogic.lint.finding import FileReport, summarise, to_text
from dualogic.lint.gradient import check_gradient
from dualogic.lint.looseness import check_looseness
from dualogic.lint.samples import draw_inputs
from dualogic.lint.world import Prover, World

v = dl.var("v")


def test_linear_terms_are_read_back_from_the_solver():
    import z3

    from dualogic.lint.atoms import Linear, to_linear

    x, y = z3.Reals("x y")
    assert to_linear(2 * x - (y - x) + 1) == Linear((("x", Fraction(3)), ("y", Fraction(-1))), Fraction(1))
    assert to_linear(x * y) is None


def test_sizes_are_counted_with_axes_written_out():
    assert ground_size({"r": (dl.var("x", 10) <= 1).all()}) == 11


def test_ranges_become_pairs_with_open_ends():
    assert check_ranges({"r": v <= 1}, {"v": (0, None)}) == {"v": (0.0, None)}


def test_inputs_lie_between_and_beyond_the_constants_of_a_rule():
    assert torch.equal(draw_inputs((v <= 0) | (v >= 10), {})["v"][:3], torch.tensor([5.0, -1.0, 11.0]).double())


def test_a_core_is_minimised_from_its_front():
    import z3

    prover, x = Prover(World([], {}), timeout=1), z3.Real("x")
    small, large, odd = prover.name(x < 0), prover.name(x > 0), prover.name(x == 3)
    assert prover.ask([small, odd, large]).verdict == "unsat"
    assert prover.minimise([odd, large, small], fixed=[]) == [large, small]


def test_a_flat_cost_between_two_equations_is_found():
    (finding,) = check_gradient("r", (v == 0) | (v == 1), {})
    assert finding.witness == {"v": 0.5}
    assert check_gradient("r", (v >= 0) & (v <= 1), {}) == []


def test_a_cost_below_the_distance_is_found():
    (finding,) = check_looseness("r", ((v <= 0) | (v >= 10)) & (v >= 2), {}, timeout=1)
    assert finding.witness == {"v": 1.0}
    assert finding.message == (
        "rule 'r' costs less than its distance from being satisfied: 1 at the example, where the distance is 9"
    )
    assert check_looseness("r", (v <= 0) | (v >= 10), {}, timeout=1) == []


def test_nothing_found_is_said_so():
    assert summarise([FileReport("my.rules", {}, [])]) == "1 file: nothing found"


def test_findings_as_text_have_their_line_and_an_example():
    rules = dl.parse_rules("bool a, b\nrule r: a and not a\n")
    assert to_text([FileReport("my.rules", rules.lines, dl.lint(rules))]).splitlines() == [
        "my.rules:2: error: rule 'r' cannot hold: `a` and `~a` exclude each other [unsatisfiable]",
        "    example: a = true",
        "1 file: 1 error",
    ]
