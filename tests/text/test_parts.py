"""Parts of reading and writing rules by themselves."""

import dualogic as dl
from dualogic.text.rule_set import collect_declared, write_rules
from dualogic.text.source import Source, read_string
from dualogic.text.syntax import expected, split


def test_quotes_inside_of_quotes():
    assert read_string('"a \\"dog\\""') == 'a "dog"'


def test_a_statement_goes_on_in_indented_lines():
    found = [text.strip() for _, text in split(Source("var x\nrule r:  # a comment\n    x <= 1"))]
    assert found == ["var x", "rule r:  # a comment\n    x <= 1"]


def test_what_may_stand_somewhere_is_said_in_words():
    assert expected({"NAME", "NUMBER", "_LEFT_ROUND"}) == "a name, a number or '('"
    assert expected({"_RIGHT_ROUND", "_COMMA"}) == "')' or ','"


def test_axes_ranges_and_constants_are_declared_before_the_rules():
    rule = (dl.var("x", dl.axis("n", max=4)) <= dl.constant("most", 2)).all()
    assert write_rules({"small": rule}, collect_declared([rule]), {"x": (0, float("inf"))}).splitlines() == [
        "axis n: max 4",
        "var x: n in [0, inf]",
        "constant most = 2",
        "",
        "rule small: (x <= most).all()",
    ]
