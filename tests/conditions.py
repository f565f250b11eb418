"""Every test runs on one thread, from the same seed, with hypothesis examples that do not depend on the machine."""

import hypothesis
import pytest
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile(
    "dualogic",
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("dualogic")

MACHINERY = {"attacks", "compile", "diagnosis", "distributed", "duals", "kernels", "loss", "losses", "methods"}
"""Where rules are random, tensors come from no network and one batch is used again and again, all on purpose. Elsewhere the
warning of a probable mistake is an error, as any other.
"""


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests" in item.path.parts and MACHINERY.intersection(item.path.parts):
            item.add_marker(pytest.mark.filterwarnings("ignore::dualogic.errors.MistakeWarning"), append=False)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _needs_pysdd(request):
    """Tests of any method are skipped for those that count models where pysdd is missing."""
    given = request.node.callspec.params.values() if hasattr(request.node, "callspec") else ()
    if any(isinstance(value, str) and value in ("semantic", "problog") for value in given):
        pytest.importorskip("pysdd", reason="the methods 'semantic' and 'problog' count models with pysdd")
