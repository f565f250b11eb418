"""Results with made-up numbers, for tests only."""

import json

import numpy as np

from dualogic.experiments.runner import Config, Result
from dualogic.experiments.tasks import TASKS

GROUPS = ("sixes", "others")
BRANCHES = ("not_p", "q")


def make_result(task="digits", method="dual", seed=0, *, options=None, failure=None, epochs=20, level=None, **hyper):
    """A result as ``dualogic run`` writes it, with seeded random numbers that rise along the epochs."""
    random = np.random.default_rng([seed, *map(ord, task + method)])
    kind = TASKS[task]
    config = Config(kind(**hyper), method, options or {}, seed=seed).as_dict()
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
        method=f"{method}()",
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
    ).as_dict()


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
