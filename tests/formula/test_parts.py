"""Helpers of formulas by themselves: shares, texts that share parts, counts."""

import dualogic as dl
from dualogic.formula.evidence import as_share
from dualogic.formula.printing import Rope, fingerprint
from dualogic.formula.shape import format_count


def test_shares_may_be_truth_values():
    assert (as_share(True, "evidence"), as_share(False, "evidence"), as_share(0.9, "evidence")) == (1.0, 0.0, 0.9)


def test_the_fingerprint_of_a_short_rule_is_its_text():
    assert fingerprint(dl.var("x") <= 1) == "x <= 1"


def test_a_rope_knows_its_length_without_being_written_out():
    once = Rope("ab")
    twice = Rope(once, "+", once)
    assert (twice.length, twice.start(4)) == (5, "ab+a")


def test_of_a_huge_count_the_digits_are_told():
    assert (format_count(12_345), format_count(2**20_000)) == ("12,345", "about 10^6020")
