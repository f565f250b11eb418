"""Evidence: parts of a formula that a rule reads without teaching them."""

from __future__ import annotations

import math
from typing import Any

from dualogic.errors import OptionError
from dualogic.formula.connective import Formula, as_formula


class Evidence(Formula):
    """``evidence(operand, share)``: means ``operand``, and holds back this share of the gradient into it."""

    operand: Formula
    share: float


def evidence(formula: Any, share: Any = True) -> Formula:
    """Take a formula as evidence: a rule may read it, but training the rule does not change it.

    ``evidence(a) >> b`` has the cost and the truth of ``a >> b``, and weights that move in the same way; but only ``b`` is
    taught. The rule can then no longer be met by arguing ``a`` away, which is the usual shortcut. The marker may stand anywhere
    in a formula, as in ``evidence(~a) | b``, and keeps its meaning below negations and quantifiers; a part inside two markers
    keeps the product of what each leaves. Another part of the rule that reads the same tensors, or the same network, still
    teaches them.

    Args:
        formula: any formula.
        share: how much of it is evidence: 1 or ``True`` lets no gradient pass, 0.9 lets a tenth of it pass, 0 or ``False`` all of
            it. An antecedent marked with 0 is out of reach of a method's ``evidence=`` default.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> rule = dl.evidence(a) >> b
        >>> rule
        evidence(a) >> b
        >>> rule is dl.Implies(a, b, evidence=True)
        True
        >>> p, q = torch.tensor([0.75], requires_grad=True), torch.tensor([0.5], requires_grad=True)
        >>> dl.LogicLoss(rule)(a=p, b=q).backward()
        >>> p.grad.abs(), q.grad
        (tensor([0.]), tensor([-0.6355]))
    """
    return Evidence(as_formula(formula, "evidence"), as_share(share, "the share of evidence"))


def as_share(value: Any, what: str) -> float:
    """``value`` as a number between 0 and 1; ``True`` is 1 and ``False`` is 0."""
    try:
        share = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, RuntimeError):
        share = math.nan
    if not 0 <= share <= 1:
        raise OptionError(
            f"{what} must be True (no gradient), False (all of it) or a number between 0 and 1, the share of the gradient that "
            f"is held back; got {value!r}"
        )
    return share
