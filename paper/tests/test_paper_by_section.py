"""The page that goes through the paper names files that there are, and leaves out no section, figure or table."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "paper" / "docs" / "paper-by-section.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|tests|paper)/[\w./-]+)`", PAGE))))
def test_what_is_named_is_there(path):
    assert (ROOT / path).exists()


def test_nothing_is_left_out():
    tables = {int(digit) for words in re.findall(r"\*\*Tables? ([\d and]+)\*\*", PAGE) for digit in re.findall(r"\d", words)}
    assert tables == set(range(1, 9))
    for number in (1, 2, 3):
        assert f"**Figure {number}**" in PAGE
        assert f"**Theorem {number}**" in PAGE
    for number in range(1, 8):
        assert re.search(rf"\({number}\)", PAGE), f"Equation {number}"
    assert set(re.findall(r"^\| ([A-L])[ ,]", PAGE, flags=re.MULTILINE)) == set("ABCDEFGHIJKL")
    for heading in ("1 Introduction", "2 Logic", "3 A variational", "4 Experiments", "5 Related work, 6 Conclusion", "Appendix"):
        assert f"## {heading}" in PAGE


def test_links_lead_to_headings():
    for target, anchor in re.findall(r"\]\(([\w./-]+\.md)(?:#([\w-]+))?\)", PAGE):
        file = ROOT / "paper" / "docs" / target
        headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        anchors = {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, (target, anchor)
