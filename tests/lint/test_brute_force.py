"""Random small rule sets against enumeration: every verdict, and every reason given for it."""

import itertools
import random
from collections import Counter

import numpy as np

import dualogic as dl
from dualogic.lint import gradient

SYMBOLS = {"a": dl.boolean("a"), "b": dl.boolean("b"), "k": dl.categorical("k", 3), "v": dl.var("v"), "w": dl.var("w")}
# Thirds between whole numbers: two variables can meet, or pass each other between any two thresholds.
GRID = [third / 3 for third in range(-2, 9)]
POINTS = np.array(list(itertools.product([0, 1], [0, 1], range(3), GRID, GRID)))
VALUES = dict(zip(SYMBOLS, POINTS.T))
COMPARE = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater, "==": np.isclose}
MAKE = {"<=": dl.le, "<": dl.lt, ">=": dl.ge, ">": dl.gt, "==": dl.eq}
ALL = np.ones(len(POINTS), dtype=bool)


# A formula is a nested tuple: it is drawn, turned into the library's, and enumerated.


def draw_atom(choose):
    kind = choose.choice(["truth", "class", "classes", "number", "number", "order"])
    if kind == "truth":
        return ("truth", choose.choice("ab"))
    if kind == "class":
        return ("class", (choose.randrange(3),))
    if kind == "classes":
        return ("class", tuple(sorted(choose.sample(range(3), 2))))
    if kind == "number":
        return ("number", choose.choice(list(COMPARE)), choose.choice("vw"), choose.randrange(3))
    return ("number", choose.choice(list(COMPARE)), "v", "w")


def draw(choose, depth):
    if depth == 0 or choose.random() < 0.2:
        return draw_atom(choose)
    kind = choose.choice(["and", "and", "or", "or", "not", "implies", "implies", "iff", "xor", "one", "most"])
    if kind == "not":
        return (kind, draw(choose, depth - 1))
    count = choose.choice([2, 3]) if kind in ("and", "or", "one", "most") else 2
    parts = [draw(choose, depth - 1) for _ in range(count)]
    if kind in ("and", "or"):  # one chain, as the library has it
        parts = [inner for part in parts for inner in (part[1:] if part[0] == kind else [part])]
    return (kind, *parts)


def build(node):
    kind, *rest = node
    if kind == "truth":
        return SYMBOLS[rest[0]]
    if kind == "class":
        return SYMBOLS["k"].isin(rest[0])
    if kind == "number":
        return MAKE[rest[0]](SYMBOLS[rest[1]], SYMBOLS.get(rest[2], rest[2]))
    parts = list(map(build, rest))
    if kind == "most":
        return dl.AtMost(1, *parts)
    names = {"and": "And", "or": "Or", "not": "Not", "implies": "Implies", "iff": "Iff", "xor": "Xor", "one": "ExactlyOne"}
    return getattr(dl, names[kind])(*parts)


def truth(node, dropped=None):
    """Where a formula holds, with nothing asked of the part ``dropped``."""
    if node == dropped:
        return ALL
    kind, *rest = node
    if kind == "truth":
        return VALUES[rest[0]] == 1
    if kind == "class":
        return np.isin(VALUES["k"], rest[0])
    if kind == "number":
        return COMPARE[rest[0]](VALUES[rest[1]], VALUES[rest[2]] if isinstance(rest[2], str) else rest[2])
    parts = [truth(part, dropped) for part in rest]
    if kind == "not":
        return ~parts[0]
    if kind == "implies":
        return ~parts[0] | parts[1]
    if kind in ("iff", "xor"):
        return (parts[0] == parts[1]) == (kind == "iff")
    if kind == "and":
        return np.all(parts, axis=0)
    if kind == "or":
        return np.any(parts, axis=0)
    count = np.sum(parts, axis=0)
    return count == 1 if kind == "one" else count <= 1


def sites(node, path=ALL, dropped=None, around=(), found=None):
    """Alternatives, antecedents and consequents by node, place and surroundings: where each holds and matters; where it holds."""
    found = {} if found is None else found
    kind, *rest = node
    outermost = node if dropped is None else dropped

    def record(place, part, path, dropped, around):
        key = (node, place, dropped, around)
        matters, anywhere = found.get(key, (~ALL, ~ALL))
        own = truth(rest[0]) if place == "consequent" else ALL
        found[key] = (matters | (path & truth(part)), anywhere | (own & truth(part)))
        return (*around, key)

    if kind == "and":
        for part in rest:
            sites(part, path, dropped, around, found)
    elif kind in ("or", "one"):
        for place, part in enumerate(rest):
            inner = record(place, part, path, dropped, around)
            sites(part, path, dropped if kind == "or" else outermost, inner, found)
    elif kind == "implies":
        inside = record("antecedent", rest[0], path, outermost, around)
        sites(rest[0], path, outermost, inside, found)
        path = path & truth(rest[0])
        sites(rest[1], path, dropped, record("consequent", rest[1], path, dropped, inside), found)
    elif kind in ("not", "iff", "xor", "most"):
        for part in rest:
            sites(part, path, outermost, around, found)
    return found


def lifeless(name, rules, others):
    """The sites of a rule that can never hold beside other rules, without those inside of another one."""
    dead = []
    beside = np.all([ALL, *(truth(rules[other]) for other in others)], axis=0)
    for key, (matters, anywhere) in sites(rules[name]).items():
        _, _, dropped, _ = key
        possible = beside & truth(rules[name], dropped)
        if not (matters & possible).any():
            # Where it could hold at all, the antecedents around it are to blame.
            dead.append((key, bool((anywhere & possible).any())))
    keys = [key for key, _ in dead]
    return [(key, blamed) for key, blamed in dead if not any(outer in keys for outer in key[3])]


def expected(rules, findings):
    """All that lint should say above info, given the conflicts that it chose to report."""
    verdict = Counter()
    possible = [name for name in rules if truth(rules[name]).any()]
    verdict.update(("unsatisfiable", name) for name in rules if name not in possible)
    cores = [finding.rules for finding in findings if finding.kind == "conflict"]
    verdict.update(("conflict", core[0]) for core in cores)
    consistent = possible
    for core in cores:
        if set(core) <= set(consistent):  # the others clash with a rule that is in a conflict already
            consistent = [name for name in consistent if name not in core]
    for name in possible:
        others = [other for other in consistent if other != name]
        beside = np.all([ALL, *(truth(rules[other]) for other in others)], axis=0)
        clashes = not (beside & truth(rules[name])).any()
        dead = lifeless(name, rules, [] if clashes else others)
        verdict.update(("vacuous" if key[1] == "antecedent" else "dead-branch", name, blamed) for key, blamed in dead)
        if any(key[0] == rules[name] and key[1] == "antecedent" for key, _ in dead):
            continue
        if truth(rules[name]).all():
            verdict["tautology", name] += 1
        elif others and not (beside & ~truth(rules[name])).any():
            verdict["implied", name] += 1
    return verdict


def check_reasons(rules, findings):
    """Conflicts and sources are as small as can be, and all conflicts are found."""
    possible = [name for name in rules if truth(rules[name]).any()]
    cores = [finding.rules for finding in findings if finding.kind == "conflict"]
    assert bool(cores) == (len(possible) > 1 and not np.all([truth(rules[name]) for name in possible], axis=0).any())
    for core in cores:
        assert not np.all([truth(rules[name]) for name in core], axis=0).any()
        for left_out in core:
            assert np.all([ALL, *(truth(rules[name]) for name in core if name != left_out)], axis=0).any()
    for finding in findings:
        if finding.kind == "implied":
            name, *sources = finding.rules
            for kept in (sources, *itertools.combinations(sources, len(sources) - 1)):
                follows = not (np.all([ALL, *(truth(rules[source]) for source in kept)], axis=0) & ~truth(rules[name])).any()
                assert follows == (len(kept) == len(sources))


def summary(finding):
    """Kind and rule; of a part that can never hold also whether antecedents around it are said to be to blame."""
    if finding.kind not in ("vacuous", "dead-branch"):
        return finding.kind, finding.rules[0]
    return finding.kind, finding.rules[0], " where the antecedent" in finding.message


def check_rule_sets(count, seed):
    """Random rule sets against enumeration; how often each kind of finding occurred."""
    choose = random.Random(seed)
    seen = Counter()
    for _ in range(count):
        rules = {f"r{number}": draw(choose, choose.choice([1, 2, 2, 3])) for number in range(choose.choice([1, 2, 3, 4]))}
        formulas = {name: build(node) for name, node in rules.items()}
        findings = dl.lint(formulas)
        above = [finding for finding in findings if finding.severity != "info"]
        verdict = Counter(summary(finding) for finding in above)
        assert verdict == expected(rules, findings), (formulas, findings)
        assert not any(finding.kind == "unknown" for finding in findings), findings
        check_reasons(rules, findings)
        seen.update({finding.kind for finding in above} or {"sound"})
        seen["blamed on an antecedent"] += any(" where the antecedent" in finding.message for finding in above)
    return seen


def test_random_rule_sets_agree_with_enumeration(monkeypatch):
    # Most of the time would go into gradients, which are tested elsewhere.
    monkeypatch.setattr(gradient, "check_gradient", lambda *_: [])
    seen = check_rule_sets(500, seed=0)
    for kind in ("unsatisfiable", "conflict", "tautology", "implied", "vacuous", "dead-branch", "sound"):
        assert seen[kind] >= 20, seen
    assert seen["blamed on an antecedent"] >= 5, seen
