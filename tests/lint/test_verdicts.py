"""Rule sets made by hand with a known verdict: all that is faulty is found, and nothing else."""

import pytest

import dualogic as dl
from witnesses import holds_at

SYMBOLS = """
var v, w, u
var p, q: 3
class f, g: 10
class pet: {cat, dog, owl}
bool a, b, c, d
axis n: max 4
var x: n
class s: 3 for each n
bool t: n
mask m: n
group furry = {cat, dog}
"""

IMPOSSIBLE = [
    ("r: f is 6 and f is 9", ["unsatisfiable r"]),
    ("r: v < 0 and v > 1", ["unsatisfiable r"]),
    ("r: a and not a", ["unsatisfiable r"]),
    ("r: not (a -> a)", ["unsatisfiable r"]),
    ("r: v ** 2 <= -1", ["unsatisfiable r"]),
    ("r: pet in furry and pet is owl", ["unsatisfiable r"]),
    ("r: pet != cat and pet != dog and pet != owl", ["unsatisfiable r"]),
    ("r: (p >= 0.5).all() and p.sum() <= 1", ["unsatisfiable r"]),
    ("r: pet.probabilities[0] >= 0.7 and pet.probabilities[1] >= 0.7", ["unsatisfiable r"]),
    ("r: pet is cat and pet.probabilities[1] >= 0.5", ["unsatisfiable r"]),
    ("r: f.probabilities.max() <= 0.05", ["unsatisfiable r"]),
    ("r: Iff(a, b) and Xor(a, b)", ["unsatisfiable r"]),
    ("r: ExactlyOne(a, b, c) and a and c", ["unsatisfiable r"]),
    ("r: AtMost(1, a, b, c) and AtMost(1, not a, not b, not c)", ["unsatisfiable r"]),
    ("r: (x > 1 and x < 0).all(where=m)", ["unsatisfiable r"]),
    ("r: (x > 0).all() and x[-1] <= 0", ["unsatisfiable r"]),
    ("r1: v <= 0; r2: v >= 1", ["conflict r1 r2"]),
    ("r1: a -> b; r2: a; r3: not b; r4: c or d", ["conflict r1 r2 r3"]),
    ("r1: v < w; r2: w < u; r3: u < v; r4: v >= 0", ["conflict r1 r2 r3"]),
    ("r1: f is 3; r2: f is 4; r3: g is 3; r4: g is not 3", ["conflict r1 r2", "conflict r3 r4"]),
]
REDUNDANT = [
    ("r: a or not a", ["tautology r"]),
    ("r: v <= 1 or v >= 0", ["tautology r"]),
    ("r: v ** 2 >= 0", ["tautology r"]),
    ("r: abs(v) >= v", ["tautology r"]),
    ("r: pet is cat or pet is dog or pet is owl", ["tautology r"]),
    ("r: pet in furry or pet is owl", ["tautology r"]),
    ("r: pet.probabilities.sum() <= 1", ["tautology r"]),
    ("r: if a and b then a", ["tautology r"]),
    ("r: (pet.probabilities >= 0).all()", ["tautology r"]),
    ("r: not (f is 6 and f is 9)", ["tautology r"]),
    ("r: x.max() >= x.min()", ["tautology r"]),
    ("r: if pet.probabilities[0] > 0.5 then pet is cat", ["tautology r"]),
    ("r1: v <= 1; r2: v <= 2", ["implied r2 r1"]),
    ("r1: a -> b; r2: b -> c; r3: a -> c", ["implied r3 r1 r2"]),
    ("r1: a -> b; r2: not b -> not a", ["implied r1 r2", "implied r2 r1"]),
    ("r1: v == 1; r2: w == 2; r3: v + w == 3", ["implied r1 r2 r3", "implied r2 r1 r3", "implied r3 r1 r2"]),
    ("r1: pet is cat; r2: pet != dog", ["implied r2 r1"]),
    ("r1: (p <= 1).all(); r2: p.sum() <= 3", ["implied r2 r1"]),
    ("r1: (x <= 1).all(); r2: (x <= 1).all(where=m)", ["implied r2 r1"]),
    ("r1: pet is cat; r2: pet.probabilities[0] > pet.probabilities[2]", ["implied r2 r1"]),
]
LIFELESS = [
    ("r: if f is 6 and f is 9 then v <= 0", ["vacuous r"]),
    ("r: if v < 0 and v > 1 then a", ["vacuous r"]),
    ("r: if v ** 2 < 0 then a", ["vacuous r"]),
    ("r: if pet.probabilities[0] > 1 then a", ["vacuous r"]),
    ("r: (x ** 2 < 0 -> x <= 1).all()", ["vacuous r"]),
    ("r1: if a then b; r2: not a", ["vacuous r1 r2"]),
    ("r1: if f is 6 then a; r2: f is 3 or f is 4", ["vacuous r1 r2"]),
    ("r1: if v >= 2 then a; r2: v <= w; r3: w <= 1", ["vacuous r1 r2 r3"]),
    ("r: a and (if b and not b then c)", ["vacuous r"]),
    ("r: if a then ((if b and not a then c) and d)", ["vacuous r"]),
    ("r: (v <= 0 or v >= 10) and v >= 2", ["dead-branch r"]),
    ("r: a or (f is 6 and f is 9)", ["dead-branch r"]),
    ("r: v <= 0 or v ** 2 < 0", ["dead-branch r"]),
    ("r1: a or b; r2: not a", ["dead-branch r1 r2"]),
    ("r: if f is 6 then f is 9", ["dead-branch r"]),
    ("r: if a then (v < 0 and v > 1)", ["dead-branch r"]),
    ("r: if (f is 1 and f is 2) or g is 3 then a", ["dead-branch r"]),
    ("r: ExactlyOne(a, b, c and not c)", ["dead-branch r"]),
    ("r: (x <= 0 or (x > 2 and x < 1)).all(where=m)", ["dead-branch r"]),
    ("r1: pet is cat or pet is owl; r2: pet.probabilities[2] <= 0.1", ["dead-branch r1 r2"]),
]
SOUND = [
    "r: if g is 9 then f is 6",
    "r: a -> b",
    "r1: a -> b; r2: b -> c",
    "r: f == g",
    "r: f != g",
    "r: v <= 0 or v >= 10",
    "r: (v == 1 or v == 2) or v == 3",
    "r: 0 <= v <= 1",
    "r1: v <= w; r2: w <= u",
    "r: (p @ [[1, 0], [0, 1], [0, 1]] == 0 or p @ [[1, 0], [0, 1], [0, 1]] == 1).all()",
    "r: (pet.probabilities == 0 or pet.probabilities == 1).all()",
    "r1: a -> (pet.probabilities <= 0.4).all(); r2: not a -> pet is cat",
    "r: if pet in furry then not a",
    "r: ExactlyOne(a, b, c)",
    "r: Iff(a, pet is owl)",
    "r: (s[1:] != s[:-1]).all()",
    "r: (x[1:] >= x[:-1]).all(where=m[1:])",
    "r: (t -> x >= 1).all()",
    "r: (s == 0).all(where=m) and (s == 1).all(where=~m)",
    "r: v * w <= 1",
    "r: (x <= 0).any()",
    "r1: x.sum() == 1; r2: (x >= 0).all()",
]


def read(rules):
    return dl.parse_rules(SYMBOLS + "".join(f"rule {rule.strip()}\n" for rule in rules.split(";")))


def verdict(findings):
    return sorted(f"{finding.kind} {' '.join(finding.rules)}" for finding in findings if finding.severity != "info")


@pytest.mark.parametrize(("rules", "expected"), [*IMPOSSIBLE, *REDUNDANT, *LIFELESS])
def test_faulty(rules, expected):
    formulas = read(rules)
    findings = dl.lint(formulas)
    assert verdict(findings) == sorted(expected)
    for finding in findings:
        if finding.severity == "info":
            continue
        assert set(finding.witness) == set().union(*(formulas[name].symbols for name in finding.rules))
        if finding.kind == "conflict":
            *others, last = finding.rules
            assert all(holds_at(formulas[name], finding.witness) for name in others)
            assert not holds_at(formulas[last], finding.witness)
        elif finding.kind == "unsatisfiable":
            assert not holds_at(formulas[finding.rules[0]], finding.witness)
        else:
            assert all(holds_at(formulas[name], finding.witness) for name in finding.rules)


@pytest.mark.parametrize("rules", SOUND)
def test_sound(rules):
    assert verdict(dl.lint(read(rules))) == []


def test_there_are_twenty_of_each():
    assert [len(group) for group in (IMPOSSIBLE, REDUNDANT, LIFELESS)] == [20, 20, 20]
    assert len(SOUND) >= 20
