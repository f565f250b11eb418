"""The attacks, as far as they are cheap; ``make attack`` makes them at length."""

import random
from pathlib import Path

import pytest

import dualogic as dl
from attacks import formulas, rule_files
from attacks.evaluator import BOOLEANS, CLASSES, MASKS, VARIABLES, build, draw_formula
from attacks.faults import MUTANTS

WORDS = """
& | ~ >> Iff Xor ExactlyOne AtMost level evidence .all( .any( where= isin margin= != == < >= abs( ** @ .sum() .max() .min()
.probabilities
"""


def test_ten_thousand_formulas_mean_what_the_specification_says():
    formulas.check(10_000, thorough=False)


def test_formulas_are_drawn_from_the_whole_language():
    text = " ".join(str(build(draw_formula(random.Random(seed)))) for seed in range(500))
    assert not [word for word in (*WORDS.split(), *VARIABLES, *CLASSES, *BOOLEANS, *MASKS) if word not in text]


def test_a_wrong_value_is_found(monkeypatch):
    monkeypatch.setattr(formulas, "cost", lambda *arguments: 123.0)
    with pytest.raises(AssertionError, match=r"formula 0 of seed 0: cost .* gives .* expected .123"):
        formulas.check(1)
    monkeypatch.setattr(formulas, "holds", lambda *arguments: None)
    with pytest.raises(AssertionError, match=r"formula 0 of seed 0: satisfied.* gives .* expected .None"):
        formulas.check(1)


@pytest.mark.parametrize("name", list(rule_files.fixed()))
def test_hostile_rule_files_are_read_or_refused_with_a_place(name, tmp_path):
    file = tmp_path / "hostile.rules"
    file.write_bytes(rule_files.fixed()[name])
    error = refusal(file)
    assert error is None or str(error).startswith(str(file))
    assert error is None or len(str(error).splitlines()) <= 6


def test_mutated_rule_files_are_read_or_refused_with_a_place(tmp_path):
    file = tmp_path / "hostile.rules"
    refused = 0
    for seed in range(100):
        file.write_bytes(rule_files.mutated(seed))
        error = refusal(file)
        refused += error is not None
        assert error is None or str(error).startswith(f"{file}, line {error.line}, column {error.column}: ")
    assert 20 <= refused <= 95


def test_every_fault_can_be_made():
    source = Path(__file__).parents[2]
    found = {mutant.name: (source / mutant.file).read_text(encoding="utf-8").count(mutant.old) for mutant in MUTANTS}
    assert {name: count for name, count in found.items() if count != 1} == {}


def refusal(file):
    try:
        dl.load_rules(file)
    except dl.errors.DualogicError as error:
        return error
    return None
