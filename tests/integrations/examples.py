"""How the tests of integrations read the examples.

Trainers are slow to import, and every worker of a test run collects every file: so they are imported where they are used.
"""

import importlib.util
import runpy
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parent.parent.parent / "examples" / "integrations"


def load(name):
    """An example as a module."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def run(name):
    """An example as a script."""
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


def tensors_of(*modules):
    """Copies of all tensors of all states."""
    return [value.clone() for module in modules for value in module.state_dict().values() if isinstance(value, torch.Tensor)]


def assert_equal(one, two):
    """Bit for bit."""
    assert len(one) == len(two)
    assert all(torch.equal(first, second) for first, second in zip(one, two))
