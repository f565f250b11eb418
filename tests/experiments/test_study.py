"""The bench of the study: what it adds to the pool, and that results are kept."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

import dualogic as dl
from dualogic.experiments.demo.data import load_split, rotate
from dualogic.experiments.demo.training import train as train_demo
from dualogic.experiments.runner import Machine
from dualogic.experiments.study import ascent, certainty, choice, evidence, options, sharing, spread, steps
from dualogic.experiments.study.digits import load_bench, run_settings, train
from dualogic.experiments.study.table import to_markdown

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("pool", ["sixes", "mixed"])
def test_pairs_that_break_the_rule_are_a_tenth_of_the_pool(pool):
    bench, split = load_bench(pool, 3, 0.1), load_split(pool, 3)
    honest = ~bench.violating
    assert bench.violating.double().mean().item() == pytest.approx(0.1, abs=0.005)
    assert torch.equal(bench.split.pool[honest], split.pool)
    assert torch.equal(bench.turned[honest], rotate(split.pool))
    assert not bench.split.pool_is_six[bench.violating].any()
    labels = {image.numpy().tobytes(): int(label) for image, label in zip(split.labelled, split.labels)}
    assert all(labels[image.numpy().tobytes()] != 6 for image in bench.split.pool[bench.violating])
    assert all(labels[image.numpy().tobytes()] == 9 for image in bench.turned[bench.violating])


def test_without_such_pairs_a_run_is_the_demos():
    found = train(load_bench("sixes", 1), "dual", 1, epochs=2)
    expected = train_demo(load_split("sixes", 1), "sixes", "dual", 2, 1).final
    assert (found["accuracy"], found["q"], found["weight_sixes"]) == (expected.accuracy, expected.q, expected.weight_sixes)


def test_runs_are_kept_and_not_repeated(tmp_path):
    path, started = tmp_path / "folder" / "runs.json", []
    settings = {"no rule": None, "soft": dl.methods.Dual(spread=1.0, evidence=True)}
    for seeds in (range(1), range(2)):
        runs = run_settings(settings, seeds, path, "sixes", 0.1, 1, on_run=lambda name, seed: started.append((name, seed)))
    assert started == [("no rule", 0), ("soft", 0), ("no rule", 1), ("soft", 1)]
    assert json.loads(path.read_text())["runs"] == runs
    assert [(run["setting"], run["seed"]) for run in runs] == [("no rule", 0), ("no rule", 1), ("soft", 0), ("soft", 1)]
    assert runs[2]["delta"] >= 1.0
    assert 0 < runs[2]["weight_violating"] < 1
    assert "evidence=True, spread=1.0" in runs[2]["options"]
    assert runs[0]["weight_violating"] is None


def test_settings_differ_in_one_option_each():
    for settings in (evidence.SETTINGS, spread.SETTINGS):
        methods = [method for method in settings.values() if method is not None]
        assert len(methods) == len({repr(method) for method in methods}) == len(settings) - 1


@pytest.mark.parametrize(
    ("study", "settings", "seeds"),
    [
        ("spread", spread.SETTINGS, 3),
        ("evidence", evidence.SETTINGS, 10),
        ("steps", steps.SETTINGS, 3),
        ("options", options.SETTINGS, 10),
        ("ascent", ascent.SETTINGS, 10),
        ("sharing", sharing.SETTINGS, 10),
    ],
)
def test_committed_results_hold_every_setting_and_seed(study, settings, seeds):
    runs = json.loads((ROOT / "results" / "study" / f"{study}.json").read_text())["runs"]
    keys = [(run["pool"], run["setting"], run["seed"]) for run in runs]
    groups = {(pool, name) for pool, name, _ in keys}
    assert {name for _, name in groups} == set(settings)
    assert sorted(keys) == sorted((pool, name, seed) for pool, name in groups for seed in range(seeds))
    assert not any(run["failure"] for run in runs)


@pytest.mark.parametrize(
    ("study", "page"),
    [("spread", "soft-rules"), *((study, "study") for study in ("evidence", "steps", "options", "ascent", "sharing"))],
)
def test_the_tables_of_the_documentation_are_those_of_the_results(study, page):
    runs = json.loads((ROOT / "results" / "study" / f"{study}.json").read_text())["runs"]
    assert to_markdown(runs) in (ROOT / "docs" / f"{page}.md").read_text()


def test_a_rule_that_asks_for_certainty_has_no_gradient_at_equal_weights(tmp_path):
    short = {
        name: dataclasses.replace(certainty.SETTINGS[name], epochs=2)
        for name in ("no rule", "DL2", "published: uniform", "one: default")
    }
    path = tmp_path / "certainty.json"
    some = dict(list(short.items())[1:])
    certainty.run(path, some, range(1))
    found = {run["setting"]: run for run in certainty.run(path, short, range(1))}
    assert list(found) == list(short)
    assert json.loads(path.read_text())["rule"] == str(certainty.RULE)
    measures = [[found[name][key] for key in ("accuracy", "group", "satisfied")] for name in short]
    assert measures[0] == measures[2] != measures[1]
    assert 0 < found["one: default"]["weight_others"] < found["one: default"]["weight_true"] < 1


def test_committed_runs_on_certainty_are_those_of_the_documentation():
    runs = json.loads((ROOT / "results" / "study" / "certainty.json").read_text())["runs"]
    assert [(run["setting"], run["seed"]) for run in runs] == [
        (name, seed) for name in certainty.SETTINGS for seed in certainty.SEEDS
    ]
    assert not any(run["failure"] for run in runs)
    assert to_markdown(runs, certainty.COLUMNS, ("setting",)) in (ROOT / "docs" / "study.md").read_text()


def test_committed_choices_are_those_of_the_documentation():
    runs = json.loads((ROOT / "results" / "study" / "choice.json").read_text())["runs"]
    page = (ROOT / "docs" / "study.md").read_text()
    assert len({(run["task"], run["setting"], run["seed"]) for run in runs}) == len(runs) > 0
    for bench in {run["task"] for run in runs}:
        assert choice.show(runs, bench) in page
        assert {run["setting"] for run in runs if run["task"] == bench} <= set(choice.BENCHES[bench].settings)
    assert all(run["seed"] >= 20 for run in runs)


@pytest.mark.slow
def test_the_larger_tasks_are_chosen_between_by_validation_figures_alone(tmp_path):
    benches = {
        name: dataclasses.replace(bench, task=bench.task.make_smoke(tmp_path), precision="32-true")
        for name, bench in choice.BENCHES.items()
    }
    configs = {
        (name, *key): config for name, bench in benches.items() for key, config in choice.make_configs(bench, (20,)).items()
    }
    for name in benches:
        made = [json.dumps(config.as_dict(), sort_keys=True) for key, config in configs.items() if key[0] == name]
        assert len(set(made)) == len(made)
    wanted = {("digits-mixed", "no rule"), ("hwf", "default"), ("cifar100, VGG16", "each: default")}
    few = {key: config for key, config in configs.items() if key[:2] in wanted}
    path, machine = tmp_path / "choice.json", Machine(accelerator="cpu", data=tmp_path)
    first = dict(list(few.items())[1:])
    choice.collect(path, tmp_path / "runs", machine, first, benches=benches)
    runs = choice.collect(path, tmp_path / "more", machine, few, benches=benches)
    assert runs == json.loads(path.read_text())["runs"]
    assert [(run["task"], run["setting"], run["seed"]) for run in runs] == list(few)
    assert len(list((tmp_path / "more").rglob("result.json"))) == 1  # the others were in the file
    for run in runs:
        shown = set(benches[run["task"]].shown)
        kept = set(run) - {"task", "setting", "seed", "commit", "config", "method", "failure"}
        assert kept <= shown
        assert run["setting"] == "no rule" or kept == shown
    assert "| each: default | 1 |" in choice.show(runs, "cifar100, VGG16")
