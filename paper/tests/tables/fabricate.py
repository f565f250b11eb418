"""Results with made-up numbers, for tests only."""

import json

import numpy as np

from dualogic_paper.runner import Config, Result
from dualogic_paper.tables.store import collect
from dualogic_paper.tasks import TASKS

GROUPS = ("sixes", "others")
BRANCHES = ("not_p", "q")


def make_result(task="digits", method="dual", seed=0, *, options=None, failure=None, epochs=20, level=None, **hyper):
    """A result as ``dualogic run`` writes it, with seeded random numbers that rise along the epochs."""
    random = np.random.default_rng([seed, *map(ord, task + method)])
    kind = TASKS[task]
    made = Config(kind(**hyper), method, options or {}, seed=seed)
    config, teacher = made.as_dict(), made.arm.method
    level = 50 + 49 * np.random.default_rng([*map(ord, task + method)]).random() if level is None else level
    keys = dict.fromkeys(
        [column.key for column in kind.columns if not column.key.startswith("usps_")] + [f"train_{kind.choose_by}", "satisfied"]
    )
    history = []
    for epoch in range(1, (epochs // 2 if failure else epochs) + 1):
        row = {"epoch": float(epoch), "task_loss": 1 / epoch, "rule_loss": 0.1, "delta/rule": 0.1}
        row |= {key: level * (1 - np.exp(-epoch / 4)) + random.normal() for key in keys}
        if epoch % 2 == 0:
            row |= {f"pool/{key}": value for key, value in _make_pool(random, epoch / epochs).items()}
        history.append(row)
    test = {column.key: level + random.normal() for column in kind.columns}
    pool = _make_pool(random, 1.0) if method not in ("none", "supervised") and not failure else {}
    return Result(
        config=config,
        method="" if teacher is None else teacher.describe(),
        chosen_epoch=len(history),
        validation=history[-1],
        test=test,
        last={} if failure else test,
        pool=pool,
        history=history,
        steps=100,
        seconds=36.0,
        machine={"device": "a test"},
        commit="0000000",
        failure=failure,
        settings=made.settings,
        date="2026-01-31",
    ).as_dict()


MODELS = ("vgg16", "resnet50", "densenet100")


def make_images(method, seed=0, model="resnet50", *, accuracy=50.0, entropy=1.0, satisfied=40.0, **hyper):
    """A result of CIFAR-100: satisfaction is a straight line from 100 at entropy 0 to 0 at twice the given entropy."""
    result = make_result("cifar100", method, seed, model=model, **hyper)
    slope = (100 - satisfied) / entropy
    test = {"accuracy": accuracy, "superclass": accuracy + 13, "satisfied": satisfied, "entropy": entropy}
    for temperature in (2.0, 0.5, 0.06):
        test[f"entropy_t{temperature}"] = entropy * min(temperature, 1.5)
        test[f"satisfied_t{temperature}"] = max(0.0, 100 - slope * test[f"entropy_t{temperature}"])
    return {**result, "test": test, "pool": {}}


def write_images(folder, results):
    """Committed files of results of CIFAR-100: their run folders would collide, as models are not part of their names."""
    for number, result in enumerate(results):
        write_runs(folder / f"runs-{number}", [result])
        collect(folder / f"runs-{number}", "cifar100", folder / "results")
    return folder / "results"


def write_times(folder, variants=("captured",), bound="made up"):
    """Times as ``speed/cifar100.py`` writes them: 20 ms without a rule, 21 ms with one, a tenth of that if compiled."""
    made = {}
    for place, name in enumerate(variants):
        ms = {"none": 20 / 10**place, "dl2": 21 / 10**place, "dual": 21 / 10**place}
        times = {method: {"ms": value, "steps": 40} for method, value in ms.items()}
        networks = {model: {"times": times, "profile": {"bound": bound}} for model in MODELS}
        made[name] = {"machine": {"name": "a test", "commit": "0000000"}, "steps_per_epoch": 79, "networks": networks}
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "cifar100.json").write_text(json.dumps({"variants": made}))
    steps = {"none": {"ms": 50.0, "steps": 8, "ratio": 1.0}, "published, recorded": {"ms": 60.0, "steps": 8, "ratio": 1.25}}
    eager = {f"eager_{model}": {"detail": steps, "commit": "1111111"} for model in MODELS}
    content = {"machine": {"name": "another", "commit": "1111111"}, "figures": {**eager, "rule_eager": {"detail": {}}}}
    (folder / "benchmarks" / "h200.json").write_text(json.dumps(content))


def _make_pool(random, share):
    found = {}
    for group, side in zip(GROUPS, (1, -1)):
        weight = 0.5 + side * share * (0.4 + 0.02 * random.normal())
        for branch, value in zip(BRANCHES, (1 - weight, weight)):
            found[f"{branch}_holds_{group}"] = 100 * value
            found[f"{branch}_weight_{group}"] = value + 0.01 * random.normal()
    return found


def write_runs(folder, results):
    """Run folders as ``dualogic run`` leaves them; returns the files."""
    written = []
    for result in results:
        config = result["config"]
        place = folder / config["task"]["name"] / config["method"] / str(config["seed"])
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps(config))
        (place / "result.json").write_text(json.dumps(result))
        written.append(place / "result.json")
    return written
