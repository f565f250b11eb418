"""Nothing happens at import: no compiler, no optional package, no seed, no logging set-up."""

import subprocess
import sys

import pytest

SCRIPT = """
import contextlib, logging, sys, torch
with contextlib.suppress(ImportError):
    import triton  # which torch brings where it is built for GPUs; an early one loads setuptools
before, seed = set(sys.modules), torch.get_rng_state()
import dualogic as dl
x = dl.var("x")
logic = dl.LogicLoss((x <= 0) | (x >= 1), num_samples=3)
logic(torch.arange(3), x=torch.rand(3, generator=torch.Generator(), requires_grad=True)).backward()
assert torch.equal(seed, torch.get_rng_state())
assert not logging.root.handlers and not logging.getLogger("dualogic").handlers
late = {"diagnosis", "lint", "report", "text", "data", "metrics", "demo", "integrations"}
assert not late & {name.split(".")[1] for name in sys.modules if name.startswith("dualogic.")}
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}), "torch._dynamo" in sys.modules)
"""


def test_import_and_training_load_nothing_but_the_package():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    *packages, compiler = done.stdout.split()
    standard = set(sys.stdlib_module_names)
    assert set(packages) - standard <= {"dualogic", "torch", "triton"}
    assert compiler == "False", "torch._dynamo (with sympy, a second and more) must be loaded only where it is used"


NAMES = """
import dualogic as dl
assert set(dl.__all__) | {"diagnosis", "report", "text"} <= set(dir(dl)), "names that are not loaded are listed too"
for name in dl.__all__:
    assert getattr(dl, name) is getattr(dl, name), "found once, then kept"
assert dl.diagnosis.Monitor is dl.Monitor and dl.text.rule_set.parse is dl.parse
"""


def test_what_a_loop_does_not_need_is_found_on_demand():
    subprocess.run([sys.executable, "-c", NAMES], check=True)
    import dualogic

    with pytest.raises(AttributeError, match="module 'dualogic' has no attribute 'nothing'"):
        _ = dualogic.nothing
    for name, instead in {
        "AtLeast": r"dl.AtMost\(1, ~a, ~b, ~c\)",
        "Exists": r"rule.any\(\)",
        "Equivalent": r"dl.Iff\(a, b\)",
    }.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; write .*{instead}"):
            getattr(dualogic, name)
    for name in dualogic.__all__:
        space = {}
        exec(f"from dualogic import {name} as found", space)
        assert space["found"] is getattr(dualogic, name)
