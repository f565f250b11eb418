"""The attacks, as far as they are cheap; ``make attack`` makes them at length."""

from attacks import formulas
from attacks.evaluator import BOOLEANS, CLASSES, MASKS, VARIABLES, build, draw_formula


def test_ten_thousand_formulas_mean_what_the_specification_says():
    formulas.check(10_000, thorough=False)


def test_formulas_are_drawn_from_the_whole_language():
    import random

    text = " ".join(str(build(draw_formula(random.Random(seed)))) for seed in range(500))
    for word in (
        "&",
        "|",
        "~",
        ">>",
        "Iff",
        "Xor",
        "ExactlyOne",
        "AtMost",
        "level",
        "evidence",
        ".all(",
        ".any(",
        "where=",
        "isin",
    ):
        assert word in text, word
    for word in ("margin=", "!=", "==", "<", ">=", "abs(", "**2", "@", ".sum()", ".max()", ".probabilities", *VARIABLES):
        assert word in text, word
    for name in (*CLASSES, *BOOLEANS, *MASKS):
        assert name in text, name
