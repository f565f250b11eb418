"""Each command works with the extras that its documentation prescribes, and nothing else."""

import functools
import importlib.metadata
import os
import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from experiments.tables.fabricate import make_result, write_runs

BLOCK = """
import importlib.metadata, sys
modules, hidden = (words.split() for words in sys.argv[1:3])
sys.argv[1:] = sys.argv[3:]
sys.modules.update(dict.fromkeys(modules))
find = importlib.metadata.Distribution.from_name.__func__
def from_name(kind, name):  # some packages look for a distribution, and then import it
    if name.lower().replace("_", "-") in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return find(kind, name)
importlib.metadata.Distribution.from_name = classmethod(from_name)
"""
RUN = """
import shlex
from dualogic.cli import main
sys.exit(max(main(shlex.split(words)) for words in sys.argv[1:]))
"""
CORE = """
import torch, dualogic as dl
f, v = dl.categorical("f", 3, input="logits"), dl.var("v", 4)
rule = ((f == 1) | (f == 2)) >> ((v <= 0.5).all() & (v[0] >= -2))
for method in ("dual", "dl2", "pd2", "godel", "ltn", "ste"):
    logic = dl.LogicLoss(rule, 8, method)
    tensors = {"f": torch.randn(8, 3, requires_grad=True), "v": torch.randn(8, 4, requires_grad=True)}
    logic(torch.arange(8), **tensors).backward()
    assert tensors["v"].grad.isfinite().all()
tensors = {"f": torch.randn(8, 3), "v": torch.randn(8, 4)}
print(dl.diagnose(rule, **tensors).samples, len(rule.cost(**tensors)))
"""


@functools.cache
def closure(extras):
    """The distributions that ``pip install 'dualogic[EXTRAS]'`` brings."""
    found, waiting = set(), [("dualogic", frozenset(extras.split(",")))]
    while waiting:
        name, chosen = waiting.pop()
        if (name, chosen) in found:
            continue
        found.add((name, chosen))
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # for another system
            continue
        for text in requirements:
            requirement = Requirement(text)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in (*chosen, "")):
                waiting.append((canonical(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in found}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def others(extras):
    """The modules and distributions that come with all extras, and not with these."""
    missing = closure("all") - closure(extras)
    found = importlib.metadata.packages_distributions()
    return sorted(name for name, owners in found.items() if {canonical(owner) for owner in owners} <= missing), sorted(missing)


def run(code, extras, *words, cwd):
    modules, hidden = others(extras)
    call = [sys.executable, "-W", "ignore", "-c", BLOCK + code, " ".join(modules), " ".join(hidden), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DUALOGIC_DATA": str(cwd)}
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


def test_what_is_blocked():
    blocked, _ = others("lint,rules,cli")
    assert {"numpy", "scipy", "sklearn", "matplotlib", "lightning", "PIL", "pooch", "torchmetrics", "tensorboard"} <= set(blocked)
    assert {"torch", "z3", "lark", "tyro", "rich", "dualogic"}.isdisjoint(blocked)


@pytest.mark.parametrize(
    ("extras", "commands"),
    [
        ("lint,rules,cli", ["lint a.rules"]),
        ("demo", ["demo --method dual --pool sixes --epochs 1 --out out"]),
        ("experiments", ["data list", "run paths --smoke --accelerator cpu"]),
        ("cli", ["table digits --runs runs", "report runs"]),
    ],
    ids=["lint", "demo", "experiments", "table and report"],
)
def test_a_command_needs_no_more_than_its_extras(extras, commands, tmp_path):
    (tmp_path / "a.rules").write_text("var v: 3\nclass f: {a, b, c}\nrule r: if f is a then (v >= 0.5).all()\n")
    write_runs(tmp_path / "runs", [make_result("digits", "dual", 0)])
    done = run(RUN, extras, *commands, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_core_needs_torch_alone(tmp_path):
    done = run(CORE, "", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["8", "8"]
