"""Each command works with the extras that its documentation prescribes, and nothing else."""

import pytest
import torch

import dualogic as dl
from blocked_packages import RUN, others, run

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


def test_what_is_blocked():
    blocked, _ = others("lint,rules,cli")
    assert {"scipy", "sklearn", "matplotlib", "lightning", "PIL", "pooch", "torchmetrics", "tensorboard"} <= set(blocked)
    assert {"torch", "numpy", "z3", "lark", "tyro", "rich", "dualogic"}.isdisjoint(blocked)


@pytest.mark.parametrize(
    ("extras", "commands"),
    [
        ("lint,rules,cli", ["lint a.rules"]),
        ("demo", ["demo --method dual --pool sixes --epochs 1 --out out"]),
        ("cli", ["report recorded"]),
    ],
    ids=["lint", "demo", "report"],
)
def test_a_command_needs_no_more_than_its_extras(extras, commands, tmp_path):
    (tmp_path / "a.rules").write_text("var v: 3\nclass f: {a, b, c}\nrule r: if f is a then (v >= 0.5).all()\n")
    logic = dl.LogicLoss((dl.var("x") <= 0) | (dl.var("x") >= 1))
    with dl.Recorder(tmp_path / "recorded", logic) as recorder:
        logic(x=torch.rand(4, requires_grad=True))
        recorder.epoch()
    done = run(RUN, extras, *commands, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_core_needs_torch_alone(tmp_path):
    done = run(CORE, "", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["8", "8"]
