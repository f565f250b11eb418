"""The options of a dual method without what starts from beliefs: equal first weights, implications as an ``or``, rules summed."""

import dualogic as dl

PLAIN = {
    "implication": "or",
    "first": "equal",
    "and_step": None,
    "rules": "sum",
    "delta": "mean",
    "floor": 0.7,
    "step": 0.7,
    "evidence": True,
}


def plain(**options):
    """The mechanics of learned weights alone, for tests that follow them step by step."""
    return dl.methods.Dual(**{**PLAIN, **options})
