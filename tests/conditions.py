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

collect_ignore_glob = [] if torch.cuda.is_available() else ["*on_a_gpu.py"]

MACHINERY = {"attacks", "compile", "diagnosis", "distributed", "duals", "kernels", "loss", "losses", "methods"}
"""Where rules are random, tensors come from no network and one batch is used again and again, all on purpose. Elsewhere the
warning of a probable mistake is an error, as any other.
"""


SLOW = (
    "attacks/test_attacks.py::test_ten_thousand",
    "cli/test_commands.py",
    "cli/test_extras.py",
    "compile/test_evidence.py::test_any_antecedent",
    "compile/test_plan.py::test_ten_thousand",
    "compile/test_together.py::test_random_rules",
    "distributed/",
    "duals/test_collective.py::test_compiled",
    "duals/test_compiled.py",
    "duals/test_mapped.py::test_a_disk",
    "formula/test_semantics.py::test_theorem_2",
    "integrations/",
    "lint/test_brute_force.py",
    "lint/test_costs.py::test_random_rules",
    "lint/test_lint.py::test_a_long_sum",
    "loss/test_believe.py::test_a_compiled",
    "loss/test_release.py",
    "loss/test_theorems.py::test_softmax_weights",
    "loss/test_where.py::test_compiled",
    "metrics/test_satisfaction.py::test_two_processes",
    "test_examples.py",
    "test_notebooks.py",
)
"""What ``make test`` leaves to ``make test-slow``, besides tests that are marked themselves: other processes, compilers, and many
random cases.
"""


def pytest_collection_modifyitems(items):
    for item in items:
        place = item.nodeid.partition("tests/")[2]
        if place.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
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
