"""The logical questions: can a rule hold, can it fail, can all of its parts hold, and what do the others leave of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import z3

from dualogic.formula.connective import Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.lint.encode import Encoder
from dualogic.lint.finding import Finding, found
from dualogic.lint.sites import Site, find_sites
from dualogic.lint.world import Answer, Prover, World


class LogicCheck:
    """Asks the solver about rules by name.

    What can never hold is asked at the full length of ragged axes and with masks that leave something in, because an empty
    axis satisfies everything; what always holds is asked for all lengths and masks.
    """

    def __init__(self, rules: Mapping[str, Formula], world: World, prover: Prover) -> None:
        self.rules = dict(rules)
        self.world = world
        self.prover = prover
        self.encoder = Encoder(world)
        self.findings: list[Finding] = []
        self.unanswered: dict[tuple[str, ...], list[str]] = {}
        self.holds = {name: prover.name(self.encoder.formula(formula)) for name, formula in self.rules.items()}
        self.owner = {literal.get_id(): name for name, literal in self.holds.items()}
        self.occupied = prover.name(z3.And(self.encoder.nothing_empty(list(self.rules.values()))))
        self.base = [prover.name(z3.And(world.full_length())), self.occupied]  # what is assumed of what can never hold
        if prover.ask(self.base).verdict == "unsat":
            self.occupied = self.base[1] = prover.name(z3.BoolVal(True))

    def run(self) -> list[Finding]:
        """All findings about satisfaction."""
        possible = [name for name in self.rules if self._can_hold(name)]
        consistent = self._conflicts(possible)
        dead = self._dead_sites(possible, consistent)
        for name in possible:
            self._redundant(name, consistent, dead.get(name, []))
        for name, sites in dead.items():
            for item in sites:
                self._report_dead(name, item)
        for names, questions in self.unanswered.items():
            asked = "; ".join(dict.fromkeys(questions))
            message = f"{_rules(list(names))}: no answer within the time limit to {asked}"
            self.findings.append(found("unknown", names, message))
        return self.findings

    def _ask(self, names: tuple[str, ...], question: str, assumptions: Sequence[Any], *propositions: Any) -> Answer:
        answer = self.prover.ask(assumptions, *propositions)
        if answer.verdict == "unknown":
            self.unanswered.setdefault(names, []).append(question)
        return answer

    def _report(self, kind: str, names: Sequence[str], message: str, assumptions: Sequence[Any], shorter: bool = False) -> None:
        """Add a finding, with an example of the assumptions in the symbols of its rules; a warning if it can hold ``shorter``."""
        answer = self.prover.ask([*self.base, *assumptions])
        own = {symbol for name in names for symbol in self.rules[name].symbols}
        example = self.world.witness(answer.model) if answer.verdict == "sat" else {}
        finding = found(kind, tuple(names), message, {name: value for name, value in example.items() if name in own})
        self.findings.append(dataclasses.replace(finding, severity="warning") if shorter else finding)

    def _only_where(self, assumptions: Sequence[Any]) -> str:
        """At which lengths assumptions that exclude each other do so; nothing if at all."""
        shorter = self.prover.ask([self.occupied, *assumptions]).verdict != "unsat"
        return f" when {', '.join(f'{axis} = {most}' for axis, most in self.world.axes.items())}" if shorter else ""

    # Rules that cannot hold

    def _can_hold(self, name: str) -> bool:
        if self._ask((name,), "whether it can hold", [*self.base, self.holds[name]]).verdict != "unsat":
            return True
        where = self._only_where([self.holds[name]])
        parts = [(self.prover.name(self.encoder.formula(part)), part) for part in _conjuncts(self.rules[name])]
        core = self.prover.minimise([literal for literal, _ in parts], self.base)
        texts = [f"`{part.brief()}`" for literal, part in parts if any(literal is kept for kept in core)]
        nothing = f"nothing satisfies {texts[0] if texts else self.rules[name].brief()}"
        why = f"{_listed(texts)} exclude each other" if len(texts) > 1 else nothing
        self._report("unsatisfiable", [name], f"rule {name!r} cannot hold{where}: {why}", core[:-1], bool(where))
        return False

    def _conflicts(self, names: list[str]) -> list[str]:
        """Report minimal sets of rules that exclude each other; the rules that are in none of them."""
        rest = list(names)
        clashing: list[str] = []
        while core := self._clash(rest, []):
            clashing += core
            rest = [name for name in rest if name not in core]
        for name in clashing:
            # With a rule that is in a conflict already, another one may clash too.
            self._clash(rest, [name])
        return rest

    def _clash(self, names: list[str], fixed: list[str]) -> list[str]:
        if len(names) + len(fixed) < 2:
            return []
        together = (*fixed, *names)
        answer = self._ask(together, "whether they can hold together", [*self.base, *(self.holds[name] for name in together)])
        if answer.verdict != "unsat":
            return []
        core = self.prover.minimise([literal for literal in answer.core if literal.get_id() in self.owner], self.base)
        involved = sorted((self.owner[literal.get_id()] for literal in core), key=list(self.rules).index)
        where = self._only_where(core)
        fewer = "" if len(involved) == 2 else ", although any of them may be left out and the others can"
        message = f"{_rules(involved)} cannot hold together{where}{fewer}"
        self._report("conflict", involved, message, [self.holds[name] for name in involved[:-1]], bool(where))
        return involved

    # Rules that say nothing

    def _redundant(self, name: str, consistent: list[str], dead: list[DeadSite]) -> None:
        if any(item.site.role == "antecedent" and item.site.node is _core_of(self.rules[name]) for item in dead):
            return  # that its antecedent never holds says more than that it always does
        fails = self.encoder.formula(self.rules[name], (), False)
        if self._ask((name,), "whether it can fail", [], fails).verdict == "unsat":
            self._report("tautology", [name], f"rule {name!r} always holds, so it teaches nothing", [self.holds[name]])
            return
        others = [self.holds[other] for other in consistent if other != name]
        if not others:
            return
        answer = self._ask((name,), "whether it follows from the others", others, fails)
        if answer.verdict != "unsat":
            return
        core = self.prover.minimise(answer.core, [], fails)
        sources = sorted((self.owner[literal.get_id()] for literal in core), key=list(self.rules).index)
        other = self.encoder.formula(self.rules[sources[0]], (), False) if len(sources) == 1 else None
        if other is not None and self.prover.ask([self.holds[name]], other).verdict == "unsat":
            message = f"rule {name!r} says the same as rule {sources[0]!r}"
        else:
            message = f"rule {name!r} follows from {_rules(sources)}: deleting it alone changes nothing, deleting several may"
        self._report("implied", [name, *sources], message, [self.holds[other] for other in (*sources, name)])

    # Parts that cannot hold

    def _dead_sites(self, names: list[str], consistent: list[str]) -> dict[str, list[DeadSite]]:
        sites = {name: find_sites(self.rules[name], self.encoder) for name in names}
        alive: set[int] = set()
        dead: dict[str, list[DeadSite]] = {}
        model = self.prover.ask([*self.base, *(self.holds[name] for name in consistent)]).model
        self._mark(model, [site for name in consistent for site in sites[name]], alive)
        for name, group in sites.items():
            others = [other for other in consistent if other != name]
            context = [*self.base, *(self.holds[other] for other in others)]
            if name not in consistent and self.prover.ask([*context, self.holds[name]]).verdict == "unsat":
                context, others = self.base, []
            for dropped in {id(site.dropped): site.dropped for site in group}.values():
                if waiting := [site for site in group if site.dropped is dropped and id(site) not in alive]:
                    kept = None if dropped is None else self.encoder.without(self.rules[name], dropped)
                    own = self.holds[name] if kept is None else self.prover.name(kept)
                    dead.setdefault(name, []).extend(self._sift(name, waiting, own, context, others, alive))
            if gone := {id(item.site) for item in dead.get(name, [])}:
                dead[name] = [item for item in dead[name] if not gone & set(item.site.around)]
        return dead

    def _sift(
        self, name: str, waiting: list[Site], own: Any, context: list[Any], others: list[str], alive: set[int]
    ) -> list[DeadSite]:
        """Those of the waiting sites that can never hold; many are cleared by each answer."""
        question = "whether all of its parts can hold"
        wanted = max(1, len(waiting) // 2)
        while waiting:
            # As many at once as possible: one answer then clears many of them.
            wanted = min(wanted, len(waiting))
            answer = self.prover.ask([*context, own], z3.AtLeast(*(site.possible for site in waiting), wanted))
            if answer.verdict == "sat":
                self._mark(answer.model, waiting, alive)
                still = [site for site in waiting if id(site) not in alive]
                if len(still) == len(waiting):
                    break  # a model that leaves something open decides nothing
                waiting = still
            elif wanted > 1:
                wanted = max(1, wanted // 4)
            elif answer.verdict == "unsat":
                return [self._explain(site, own, others) for site in waiting]
            else:
                break
        verdicts = [(site, self._ask((name,), question, [*context, own], site.possible).verdict) for site in waiting]
        return [self._explain(site, own, others) for site, verdict in verdicts if verdict == "unsat"]

    @staticmethod
    def _mark(model: Any, sites: list[Site], alive: set[int]) -> None:
        if model is not None:
            alive.update(id(site) for site in sites if z3.is_true(model.eval(site.possible, model_completion=True)))

    def _explain(self, site: Site, own: Any, others: list[str]) -> DeadSite:
        beside = [*(self.holds[other] for other in others), own]
        left_out: list[Formula] = []  # antecedents that are not to blame
        for antecedent in site.antecedents:
            weaker = site.possible_without([*left_out, antecedent])
            if self.prover.ask([*self.base, *beside], weaker).verdict == "unsat":
                left_out.append(antecedent)
        needed = [formula for formula in site.antecedents if all(formula is not other for other in left_out)]
        core = self.prover.minimise(beside, self.base, site.possible_without(left_out))
        names = [self.owner[literal.get_id()] for literal in core if literal is not own]
        return DeadSite(site, sorted(names, key=list(self.rules).index), any(literal is own for literal in core), needed)

    def _report_dead(self, name: str, item: DeadSite) -> None:
        site, operand = item.site, item.site.operand.brief()
        reasons = [*(["the rest of the rule"] if item.own else []), *([_rules(item.sources)] if item.sources else [])]
        given = f" beside {' and '.join(reasons)}" if reasons else ""
        if item.antecedents:
            texts = [f"`{formula.brief()}`" for formula in item.antecedents]
            words = ("antecedent", "holds") if len(texts) == 1 else ("antecedents", "hold")
            given = f" where the {words[0]} {_listed(texts)} {words[1]}{given}"
        kind, message = "dead-branch", f"the alternative `{operand}` can never hold{given}"
        if site.role == "antecedent":
            kind, message = "vacuous", f"the antecedent `{operand}` can never hold{given}, so nothing follows from it"
        elif isinstance(site.node, Implication):
            message = (
                f"the consequent `{operand}` can never hold together with its antecedent{given}: all that the implication "
                f"asks is that `{site.node.antecedent.brief()}` fails"
            )
        names = [name, *item.sources]
        self._report(kind, names, f"rule {name!r}: {message}", [self.holds[each] for each in names])


@dataclasses.dataclass(frozen=True)
class DeadSite:
    """A site that can never hold, the other rules that are to blame, whether its own rule is, and which antecedents around it."""

    site: Site
    sources: list[str]
    own: bool
    antecedents: list[Formula]


def _core_of(formula: Formula) -> Formula:
    """The formula below ``.all()`` and ``level``."""
    while isinstance(formula, (Evidence, Level)) or (isinstance(formula, Quantifier) and formula.operation == "all"):
        formula = formula.operand
    return formula


def _conjuncts(formula: Formula) -> list[Formula]:
    if isinstance(formula, (Evidence, Level)):
        return _conjuncts(formula.operand)
    if isinstance(formula, Junction) and formula.operation == "&":
        return [part for operand in formula.operands for part in _conjuncts(operand)]
    return [formula]


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _rules(names: list[str]) -> str:
    return f"rule {names[0]!r}" if len(names) == 1 else f"rules {_listed([repr(name) for name in names])}"
