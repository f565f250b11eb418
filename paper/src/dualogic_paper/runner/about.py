"""What a run folder says to ``dualogic report``, which knows no task: title, label, and the facts that a reader wants."""

from __future__ import annotations

from typing import Any

from dualogic_paper.arms import CONTROLS, NO_RULE, SUPERVISED
from dualogic_paper.runner.config import Config
from dualogic_paper.runner.result import Result


def describe_run(config: Config) -> dict[str, Any]:
    """What stands in ``config.json`` besides the configuration.

    Example:
        >>> from dualogic_paper.tasks import Digits
        >>> describe_run(Config(Digits(epochs=5), "none"))["label"]
        'none[epochs=5]'
    """
    from dualogic_paper.tables import make_label  # which reads run folders

    taught = config.method not in (NO_RULE, SUPERVISED, *CONTROLS)
    return {"title": config.task.title, "label": make_label(config.as_dict()), "taught": taught}


def list_facts(config: Config, result: Result) -> list[list[str]]:
    """Label and value of the settings and measures of a run that has ended, for ``result.json``."""
    from dualogic_paper.tables.naming import describe_column

    facts = [["method", result.method or config.method]]
    if config.options:
        facts.append(["options", ", ".join(f"{key}={value}" for key, value in config.options.items())])
    facts += [["epochs", str(config.task.epochs)], ["chosen epoch", str(result.chosen_epoch)]]
    facts.append(["training", f"{result.seconds:.0f} s"])
    columns = config.task.columns
    for column in columns:
        value = result.test.get(column.key)
        if value is not None:
            facts.append([f"test {describe_column(column, columns)}", f"{value:.{column.decimals}f}"])
    return [*facts, ["commit", result.commit]]
