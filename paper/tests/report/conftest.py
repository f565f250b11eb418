import pytest

from browser import open_browser
from dualogic_paper.data import make_sample
from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.tasks import Digits

METHODS = ("none", "dl2", "dual")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Digits really learned, from stand-in images: without the rule, by DL2, and by the duals."""
    folder = tmp_path_factory.mktemp("report")
    make_sample("mnist", folder, train=1700, test=50)
    make_sample("usps", folder, train=20, test=20)
    task, machine = Digits(epochs=40, batch=64, measure_every=4), Machine(accelerator="cpu", data=folder)
    for method in METHODS:
        train(Config(task, method), machine, RunFolder(folder / "runs" / "digits" / method / "0"))
    return folder / "runs" / "digits"


@pytest.fixture(scope="module")
def browser():
    with open_browser() as made:
        yield made
