"""The page on diagnosis is true: its table of verdicts is complete."""

import re
from pathlib import Path

from dualogic.diagnosis import comparison, verdict

PAGE = Path(__file__).parent.parent.parent / "docs" / "diagnosis.md"


def test_every_verdict_is_listed_with_its_thresholds():
    table = PAGE.read_text().partition("## Verdicts")[2]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, flags=re.MULTILINE)[1:]
    assert tuple(kind for kind, _ in rows) == verdict.KINDS
    meaning = dict(rows)
    assert f"{100 * verdict.MUCH_VIOLATED:.0f} %" in meaning[verdict.VIOLATED]
    assert f"{100 * verdict.CLASS_VIOLATED:.0f} %" in meaning[verdict.VIOLATED]
    assert f"{100 * verdict.NEVER:.0f} %" in meaning[verdict.VACUOUS]
    assert f"{100 * verdict.SELDOM:.0f} %" in meaning[verdict.VACUOUS]
    assert f"{100 * verdict.EVERY:.0f} %" in meaning[verdict.ONE_BRANCH]
    assert f"{100 * verdict.UNIFORM:.1f} %" in meaning[verdict.FROZEN]
    assert f"{100 * verdict.WIDELY:.0f} %" in meaning[verdict.TOO_WIDE]
    assert f"{100 * verdict.TOO_OFTEN:.0f} %" in meaning[verdict.TOO_WIDE]
    assert f"at least {verdict.FEW}" in meaning[verdict.CONTRADICTED]
    assert f"{100 * verdict.NEVER:.0f} %" in meaning[verdict.WORSE]
    assert (comparison.WORSE_ERRORS, verdict.SIGNIFICANT) == (2.0, 4.0)
