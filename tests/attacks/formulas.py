"""Random formulas against the independent evaluator.

Call: ``PYTHONPATH=tests python tests/attacks/formulas.py FORMULAS [SEED]``.
"""

import contextlib
import math
import random
import sys

import torch

import dualogic as dl
from attacks.evaluator import build, cost, draw_formula, draw_sample, holds, to_tensors

SAMPLES = 2


def close(found, expected):
    return found == expected if math.isinf(expected) else abs(found - expected) <= 1e-9 * max(1.0, abs(expected))


def check_one(choose, thorough=True):
    """Draw a formula and samples and compare what holds, or costs, or both; ``None``, or what differs."""
    node = draw_formula(choose, depth=choose.choice([1, 2, 2, 3] if thorough else [1, 1, 2]))
    formula = build(node)
    length = choose.randrange(1, 5)
    samples = [draw_sample(choose, length) for _ in range(SAMPLES)]
    tensors = to_tensors(samples, formula.symbols)
    tol, lead, class_cost = choose.choice([0.0, 0.25]), choose.choice([0.0, 0.1, 0.3]), choose.choice(["probability", "log"])
    if thorough or choose.random() < 0.5:
        expected = [holds(node, sample, tol, lead) for sample in samples]
        found = formula.satisfied(tol=tol, lead=lead, **tensors).tolist()
        if found != expected:
            return f"satisfied(tol={tol}, lead={lead}) gives {found}, expected {expected}: {formula} at {samples}"
        if not thorough:
            return None
    prices = [cost(node, sample, class_cost) for sample in samples]
    forms = {"cost": formula}
    if choose.random() < 0.2:
        forms["cost in negation normal form"] = formula.to_nnf()
    if choose.random() < 0.1:
        with contextlib.suppress(dl.errors.SizeError):
            forms["cost in conjunctive normal form"] = formula.to_cnf(max_clauses=50)
    if choose.random() < 0.1 and dl.parse(str(formula), formula) is not formula:
        return f"reads back as another formula: {formula}"
    for name, form in forms.items():
        found = form.cost(class_cost=class_cost, **tensors).tolist()
        if not all(map(close, found, prices)):
            return f"{name} ({class_cost}) gives {found}, expected {prices}: {formula} at {samples}"
    return None


def check(count, seed=0, thorough=True):
    """Raise at the first of ``count`` random formulas that the library evaluates otherwise."""
    for place in range(count):
        difference = check_one(random.Random(f"{seed} {place}"), thorough)
        assert difference is None, f"formula {place} of seed {seed}: {difference}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    check(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(f"formulas: {int(sys.argv[1]):,} with {SAMPLES} assignments each, no mismatch")
