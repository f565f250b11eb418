"""Nothing happens at import: no compiler, no optional package, no seed, no logging set-up."""

import subprocess
import sys

SCRIPT = """
import logging, sys, torch
before, seed = set(sys.modules), torch.get_rng_state()
import dualogic as dl
x = dl.var("x")
logic = dl.LogicLoss((x <= 0) | (x >= 1), num_samples=3)
logic(torch.arange(3), x=torch.rand(3, generator=torch.Generator(), requires_grad=True)).backward()
assert torch.equal(seed, torch.get_rng_state())
assert not logging.root.handlers and not logging.getLogger("dualogic").handlers
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}), "torch._dynamo" in sys.modules)
"""


def test_import_and_training_load_nothing_but_the_package():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    *packages, compiler = done.stdout.split()
    standard = set(sys.stdlib_module_names)
    assert set(packages) - standard <= {"dualogic", "torch", "triton"}  # which torch brings where it is built for GPUs
    assert compiler == "False", "torch._dynamo (with sympy, a second and more) must be loaded only where it is used"
