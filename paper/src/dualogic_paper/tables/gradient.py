"""Whether a method can teach a task's rule anything: some losses are constant on it."""

import torch

from dualogic import LogicLoss
from dualogic.errors import MissingExtraError
from dualogic.methods import Method
from dualogic_paper.tasks import Task

SAMPLES, VISITS = 16, 3
WIDTHS = (3.0, 0.3, 0.03, 0.003)  # deviations of outputs: a loss may be constant only where a rule is far from being met
NONE = 1e-12  # gradients below this are what rounding leaves of none
_KNOWN: dict[tuple[Task, str], bool] = {}
NO_GRADIENT = "no gradient"
NO_GRADIENT_NOTE = (
    f"{NO_GRADIENT}: on outputs drawn at random the method's loss has no gradient on this rule; nothing was taught, and the row "
    "is one of training without it."
)


def teaches(task: Task, method: Method) -> bool:
    """Whether a method's loss on the task's rule has a gradient, at some of a few visits of outputs drawn at random.

    >>> from dualogic import methods
    >>> from dualogic_paper.tasks import Transfer
    >>> teaches(Transfer(), methods.PD1()), teaches(Transfer(), methods.PD2())
    (False, True)
    """
    key = (task, method.describe())
    if key in _KNOWN:
        return _KNOWN[key]
    generator = torch.Generator().manual_seed(0)
    rules, _ = task.draw(method, 1, 1.0, generator)
    try:
        logic = LogicLoss(rules, SAMPLES, method, dtype=torch.float64)
    except MissingExtraError:
        return True  # a table of runs that others made needs no package of theirs; what counts worlds has a gradient
    for width in WIDTHS * VISITS:
        outputs, tensors = task.draw(method, SAMPLES, width, generator)[1]
        loss = logic(torch.arange(SAMPLES), **tensors)
        (slope,) = torch.autograd.grad(loss, outputs, allow_unused=True, materialize_grads=True)
        _KNOWN[key] = bool((slope.abs() > NONE).any())
        if _KNOWN[key]:
            break
    return _KNOWN[key]
