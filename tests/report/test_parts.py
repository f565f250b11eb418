"""What a recorder remembers, and what a page may hold, by themselves."""

import torch

from dualogic.report.page import make_page, to_safe_json
from dualogic.report.seen import Mean, fingerprint
from dualogic.report.summary import list_findings


def test_whatever_comes_from_files_is_escaped():
    model = {"title": "<b>", "task": "x", "tone": "unclear", "verdict": "a < b", "rules": [], "groups": [], "runs": []}
    page = make_page(model)
    assert "<b>" not in page
    assert "a &lt; b" in page
    assert to_safe_json("</script><!--") == '"\\u003c/script\\u003e\\u003c!--"'


def test_a_mean_takes_numbers_and_tensors():
    mean = Mean()
    mean.add(1.0)
    mean.add(torch.tensor(2.0))
    assert mean.read() == 1.5


def test_the_same_labels_have_the_same_fingerprint():
    first, again, other = (fingerprint(2, 0.0, 0.0, torch.tensor(labels)) for labels in ([0, 1], [0, 1], [1, 1]))
    assert first == again != other


def test_findings_are_listed_with_their_stretches_of_epochs():
    kinds = ["violated", "violated", "satisfied", "violated"]
    entries = [{"epoch": number, "findings": [["a", kind]]} for number, kind in enumerate(kinds)]
    found = [(one["kind"], one["epochs"]) for one in list_findings(entries)]
    assert found == [("violated", [[0, 1], [3, 3]]), ("satisfied", [[2, 2]])]
