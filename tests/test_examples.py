"""Every worked example runs in its quick mode, and prints what it says it prints."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))

pytest.importorskip("lark")
pytest.importorskip("sklearn")
pytest.importorskip("pysdd")


def load(path):
    specification = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs_and_is_listed(path, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [path.name, "--quick"])
    load(path).main()
    printed = capsys.readouterr().out
    assert re.search(r"\d+ seconds\n$", printed)
    assert not re.search(r"\bnan\b", printed)
    assert f"]({path.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_sums_are_learned_without_a_label():
    sums, digits = load(EXAMPLES / "sums.py").train("dual", seed=0, apart=False, epochs=6)
    assert sums > 0.7
    assert digits > 0.8


def test_what_the_sums_cannot_tell():
    module = load(EXAMPLES / "sums.py")
    first, second = torch.arange(5), torch.arange(5, 10)
    wrong = torch.cat([first + 1, second - 1])  # of every digit one more or one less
    pairs = module.draw_pairs(torch.arange(10), 200, True, torch.Generator().manual_seed(0))
    assert torch.equal(wrong[pairs].sum(1), pairs.sum(1))
    one_hot = torch.nn.functional.one_hot
    tensors = {name: 50.0 * one_hot(wrong[pairs[:, side]], 10) for side, name in enumerate("ab")}
    assert module.RULE.satisfied(**tensors, s=one_hot(pairs.sum(1), 19).float()).all()


def test_names_are_read_from_tags():
    spans = load(EXAMPLES / "spans.py")
    assert spans.find_names([0, 1, 2, 2, 0, 4, 3, 3]) == {(1, 4, 1), (6, 7, 3), (7, 8, 3)}
    words, tags = spans.make_sentences(50, 0)
    assert ((tags == spans.UNKNOWN) == (words == 0)).all()
    logits = 8.0 * torch.nn.functional.one_hot(tags.clamp_min(0), len(spans.TAGS))
    bound = spans.bind(lambda _: logits, words)
    for rule in spans.RULES.values():
        assert rule.satisfied(**{name: bound[name] for name in rule.symbols}).all()


@pytest.mark.parametrize(("name", "arms", "epochs"), [("spans", (False, True), 4), ("hierarchy", (0.0, 10.0), 20)])
def test_rules_help(name, arms, epochs):
    module = load(EXAMPLES / f"{name}.py")
    without, taught = (module.train(arm, 0, epochs) for arm in arms)
    assert taught[0] > without[0] + 2
    assert taught[1] > without[1] + 2
