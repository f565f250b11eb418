import pytest

from browser import open_browser
from report.points import train


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """One's own training three times: without the rule, by the cheapest branch, and by the duals."""
    folder = tmp_path_factory.mktemp("runs")
    for name, method in (("none", None), ("hard", "hard"), ("dual", "dual")):
        train(folder / name, method)
    return folder


@pytest.fixture(scope="module")
def browser():
    with open_browser() as made:
        yield made
