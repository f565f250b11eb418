"""Collects, batch by batch, how rules are satisfied."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.arguments import check_choice, check_offset, check_rules, check_tolerances
from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import CLASS_COSTS, autocast_off
from dualogic.compile.extreme import take_extreme
from dualogic.compile.plan import compile_rules
from dualogic.diagnosis import tally
from dualogic.diagnosis.assemble import assemble
from dualogic.diagnosis.expectation import check_truths, count_labels, find_classes, read_labels
from dualogic.diagnosis.observation import fit_weights, observe
from dualogic.diagnosis.outline import outline
from dualogic.diagnosis.report import SampleReport, ShortcutReport
from dualogic.diagnosis.tally import Tally
from dualogic.errors import BindingError, SampleIndexError, StateError
from dualogic.formula.connective import Formula
from dualogic.loss import LogicLoss

CHUNK = 8192  # samples that are evaluated at a time at most, so that a whole data set can be passed in one call ...
CHUNK_VALUES = 2**22  # ... and truth values of operands, for rules of many clauses


class Diagnosis:
    """How rules are satisfied, collected over the batches of a data loader; :func:`diagnose` is the one-shot form.

    Args:
        rules: as for :func:`diagnose`, and so are ``tol``, ``lead``, ``class_cost`` and ``worst``.
        classes: names of the labels, in their order; those of the labelled symbol if they are not given.

    Attributes:
        samples: how many were counted so far.

    Example:
        >>> import dualogic as dl, torch
        >>> wet, rain = dl.boolean("wet"), dl.boolean("rain")
        >>> diagnosis = Diagnosis(rain >> wet)
        >>> diagnosis.update(rain=torch.tensor([0.9, 0.1]), wet=torch.tensor([0.8, 0.2]))
        >>> diagnosis.update(rain=torch.tensor([0.2, 0.1]), wet=torch.tensor([0.8, 0.2]))
        >>> diagnosis.compute().rules["rule"].antecedent.denied
        0.75
    """

    def __init__(
        self,
        rules: Formula | Mapping[str, Formula] | LogicLoss,
        *,
        tol: float = 0.0,
        lead: float = 0.0,
        class_cost: str | None = None,
        worst: int = 5,
        classes: Sequence[str] | None = None,
    ) -> None:
        self._logic = rules if isinstance(rules, LogicLoss) else None
        self.rules = dict(rules.rules) if isinstance(rules, LogicLoss) else check_rules(rules)
        self.tol, self.lead = check_tolerances(tol, lead)
        if class_cost is None:
            class_cost = getattr(self._logic.method if self._logic is not None else None, "class_cost", "probability")
        check_choice("class_cost", class_cost, CLASS_COSTS)
        self.class_cost: str = class_cost
        self.worst = check_offset("worst", worst)
        self.classes = None if classes is None else tuple(map(str, classes))
        self._truth = compile_rules(self.rules.items(), "truth")
        self._costs = compile_rules(self.rules.items(), self.class_cost)
        self._parts = {name: outline(name, formula) for name, formula in self.rules.items()}
        self._outline = {part.path: part for parts in self._parts.values() for part in parts}
        self._consequents = tally.number_consequents(self._outline.values())
        self._values = max(1, sum(level.operands * math.prod(level.rest) for level in self._truth.levels))
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._tally = Tally()
        self._worst: dict[str, list[SampleReport]] = {name: [] for name in self.rules}
        self.samples = 0

    def update(self, index: Any = None, labels: Any = None, **tensors: Any) -> None:
        """Count a batch.

        Args:
            index: which samples these are, ``(batch,)`` integers, by which the worst ones are named. With a
                :class:`~dualogic.LogicLoss` they are its training samples, whose dual variables are then looked at; leave it out
                for other samples, which have none. Rows of a sharded table are fetched by all processes together, so each
                then passes batches of the same sizes.
            labels: the class of each sample, ``(batch,)`` integers; a negative one means that it is not known. Or a mapping from
                names of symbols to their true values: classes, truth values or numbers, shaped like the symbol. Antecedents
                whose symbols are all labelled are then compared with what they should be; the first labelled categorical
                without axes gives the classes of the report.
            tensors: one for each symbol, by name, with a leading batch axis.
        """
        bound = self._truth.bind(tensors, validate=True)
        index = _check_integers("index", index, bound)
        truths: dict[str, Tensor] = {}
        if isinstance(labels, Mapping):
            truths = check_truths(labels, self._truth.symbols, bound)
            labels, names = find_classes(truths, self._truth.symbols)
            self.classes = self.classes or names
        else:
            labels = _check_integers("labels", labels, bound)
        self._check_rows(index)
        size = max(1, min(CHUNK, CHUNK_VALUES // self._values))
        for start in range(0, bound.batch, size):
            rows = slice(start, min(start + size, bound.batch))
            tensors = {name: value[rows] for name, value in bound.tensors.items()}
            part = dataclasses.replace(bound, tensors=tensors, batch=rows.stop - start)
            shares = {name: truth[rows] for name, truth in truths.items()}
            chosen = None if index is None else index[rows]
            known = self._logic is not None and (self._logic.num_samples is None or chosen is not None)
            weights = self._logic.weights(chosen) if self._logic is not None and known else {}
            self._count(part, chosen, None if labels is None else labels[rows], shares, weights)

    def _check_rows(self, index: Tensor | None) -> None:
        """Refuse an index outside of the loss's table before anything is counted."""
        rows = None if self._logic is None else self._logic.num_samples
        if index is None or rows is None or not len(index):
            return
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= rows:
            raise SampleIndexError(
                f"index must lie between 0 and {rows - 1}, the training samples of the LogicLoss; got values between {low} and "
                f"{high}; leave it out for samples that have no dual variables"
            )

    @torch.no_grad()
    def _count(
        self,
        bound: Bound,
        index: Tensor | None,
        labels: Tensor | None,
        truths: Mapping[str, Tensor],
        weights: Mapping[str, Tensor],
    ) -> Mapping[str, Tensor]:
        """Count samples; gives where no rule asks for the consequent of each implication, by path."""
        groups = None if labels is None or not len(labels) else labels.unique(return_inverse=True)

        def add(key: Hashable, columns: Tensor) -> None:
            self._tally.add(key, columns, groups)

        with autocast_off(bound.device):
            costs = self._costs.fold(self._costs.evaluate(bound), take_extreme)
        holds, decided, seen = observe(self._truth, bound, self.tol, self.lead, self._outline)
        finite = torch.isfinite(costs)
        columns = [torch.ones_like(costs), holds, holds & ~decided, torch.where(finite, costs, 0.0), ~finite]
        add("rules", torch.stack([column.double() for column in columns], -1))
        add("together", holds.all(1))
        elsewhere = tally.find_elsewhere(self._consequents, seen)
        for path, observed in seen.items():
            junction = observed.level.order != ()
            add(("counts", path), tally.count_junctions(observed) if junction else tally.count_entries(observed))
            if junction and path in weights:
                fitted = fit_weights(weights[path].to(bound.device), observed.axes, bound.batch)
                add(("weights", path), tally.count_weights(observed, fitted))
        for path, apart in elsewhere.items():
            add(("elsewhere", path), torch.stack([apart, apart & seen[path].decided[..., 1]], -1).sum(1))
            if truths:
                for name, counts in count_labels(self._outline[path], truths, bound, self.tol, seen[path], apart):
                    add((name, path), counts)
        for name, formula in self.rules.items() if truths else ():
            # Which rules the labels themselves break, for rules without an implication.
            implied = any(part.consequent is not None for part in self._parts[name])
            found = None if implied else read_labels(formula, truths, bound, self.tol)
            if found is not None:
                known, true = found
                add(("broken", name), torch.stack([known, known & ~true[:, 0]], -1))
        self._keep_worst(costs, holds, index, labels)
        self.samples += bound.batch
        return elsewhere

    def _keep_worst(self, costs: Tensor, holds: Tensor, index: Tensor | None, labels: Tensor | None) -> None:
        """For each rule the samples of the largest cost; of equal ones the earliest, whatever the batches."""
        if not self.worst:
            return
        order = costs.sort(dim=0, descending=True, stable=True).indices[: self.worst].T
        numbers, classes = (None if each is None else each[order].tolist() for each in (index, labels))
        facts = (order.tolist(), costs.T.gather(1, order).tolist(), holds.T.gather(1, order).tolist())
        for rule, (name, *columns) in enumerate(zip(self.rules, *facts)):
            found = []
            for place, (position, cost, satisfied) in enumerate(zip(*columns)):
                number = None if numbers is None else numbers[rule][place]
                label = None if classes is None or classes[rule][place] < 0 else classes[rule][place]
                found.append(SampleReport(self.samples + position, number, label, cost, satisfied))
            self._add_worst(name, found)

    def _add_worst(self, name: str, found: Sequence[SampleReport]) -> None:
        self._worst[name] = sorted([*self._worst[name], *found], key=lambda sample: -sample.cost)[: self.worst]

    def merge_(self, other: Diagnosis) -> Diagnosis:
        """Add what another diagnosis of the same rules counted, in another process for instance."""
        mine, theirs = (
            (each.rules, each.tol, each.lead, each.class_cost, each.worst) if isinstance(each, Diagnosis) else None
            for each in (self, other)
        )
        if mine != theirs:
            raise StateError("only diagnoses of the same rules with the same options can be merged")
        self._tally.merge_(other._tally)
        for name, worst in other._worst.items():
            self._add_worst(name, [dataclasses.replace(each, position=each.position + self.samples) for each in worst])
        self.samples += other.samples
        return self

    def compute(self) -> ShortcutReport:
        """The report on all samples so far; counting may go on."""
        return assemble(self)


def _check_integers(name: str, values: Any, bound: Bound) -> Tensor | None:
    if values is None:
        return None
    try:
        tensor = torch.as_tensor(values, device=bound.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BindingError(f"{name} must be a tensor of integers of shape (batch,); got {type(values).__name__}") from error
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool or tensor.shape != (bound.batch,):
        raise BindingError(
            f"{name} must hold one integer for each sample, shape ({bound.batch},); got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}"
        )
    return tensor.long()
