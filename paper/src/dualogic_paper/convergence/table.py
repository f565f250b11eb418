"""The measurements as Markdown tables, from what is saved in ``results.json``."""

from collections.abc import Callable
from typing import Any

from dualogic_paper.convergence.cycles import CLASSES
from dualogic_paper.pages import pipe_table

Results = dict[str, Any]
OPERATIONS = {"&": "and", "|": "or"}


def rate_table(results: Results) -> str:
    """Theorem 3: the squared gradient at the smallest and the largest number of iterations, and the fitted slope."""
    rate = results["rate"]
    first, last = rate["horizons"][0], rate["horizons"][-1]
    header = ("delta", "from the costs of", "step", "unit of cost", f"T = {first}", f"T = {last:,}", "slope")
    steps = {"constant": "gamma / sqrt(T + 1)", "decreasing": "gamma / sqrt(t + 1)"}
    costs = {"all": "all samples", "batch": "a batch"}
    rows = []
    for run in rate["runs"]:
        words = (run["delta"], costs[run["costs"]], steps[run["steps"]], f"{run['scale']:g}")
        ends = (f"{run['mean_square'][place]:.3f}" for place in (0, -1))
        rows.append((*words, *ends, f"{run['slope']:.2f} ± {run['slope_error']:.2f}"))
    return pipe_table(header, rows)


def plateau_table(results: Results) -> str:
    """Where descent without noise comes to rest."""
    header = ("delta", "unit of cost", "gradient it follows", "gradient of the whole loss", "delta / exact", "excess loss")
    rows = []
    for run in results["plateau"]["runs"]:
        slopes = ("< 1e-6" if run[key] < 1e-6 else f"{run[key]:.3f}" for key in ("settled", "gradient"))
        excess = "0" if abs(run["excess"]) < 1e-9 else f"{run['excess']:.5f}"
        rows.append((run["delta"], f"{run['scale']:g}", *slopes, f"{run['ratio']:.2f}", excess))
    return pipe_table(header, rows)


def _count_visits(results: Results, kind: str, down: str, across: str, word: str) -> str:
    """A row for each update rule, connective and value of ``down``, a column for each value of ``across``."""
    entries, limit = results["dual_steps"][kind], results["dual_steps"]["limit"]
    rows: dict[tuple[Any, ...], dict[float, str]] = {}
    for entry in entries:
        visits = f"> {limit:,}" if entry["visits"] is None else f"{entry['visits']:,}"
        rows.setdefault((entry["rule"], entry["operation"], entry[down]), {})[entry[across]] = visits
    values = sorted({entry[across] for entry in entries})
    header = ("update rule", "connective", down, *(f"{word} {value:g}" for value in values))
    cells = [(rule, OPERATIONS[sign], f"{size:g}", *map(row.get, values)) for (rule, sign, size), row in rows.items()]
    return pipe_table(header, cells)


def cycle_table(results: Results) -> str:
    """What became of each pair of steps, split by whether the linearised iteration contracts."""
    cycles = results["cycles"]
    rows = []
    for problem in cycles["problems"]:
        for label, name in (("stable", "yes"), ("unstable", "no")):
            count = problem["count"][label]
            pairs = [pair for row in zip(problem["periods"], problem["stable"]) for pair in zip(*row)]
            periods = sorted({period for period, stable in pairs if period > 1 and stable is (label == "stable")})
            rows.append((str(problem["seed"]), name, *(str(count[kind]) for kind in CLASSES), ", ".join(map(str, periods))))
    return pipe_table(("problem", "contracts at the minimum", *CLASSES, "periods"), rows)


def exact_table(results: Results) -> str:
    """The largest step on the weights with which each way of setting ``delta`` came to rest."""
    cycles = results["cycles"]
    steps = cycles["weight_steps"]
    rows = []
    for problem in cycles["problems"]:
        gradient = [step for step, row in zip(steps, problem["kinds"]) if row[0] == "converged"]
        best = [step for step, kind in zip(steps, problem["exact"]) if kind == "converged"]
        after = [kind for step, kind in zip(steps, problem["exact"]) if step > max(best, default=0)]
        largest = (f"{max(found, default=float('nan')):.2f}" for found in (gradient, best))
        rows.append((str(problem["seed"]), *largest, after[0] if after else ""))
    return pipe_table(("problem", "small gradient steps on delta", "exact delta", "next larger step, exact delta"), rows)


TABLES: dict[str, Callable[[Results], str]] = {
    "rate": rate_table,
    "plateau": plateau_table,
    # Visits from equal weights to the neighbourhood of the optimum, and until a weight that was decided changes its mind.
    "settle": lambda results: _count_visits(results, "settle", "operands", "step", "step"),
    "reverse": lambda results: _count_visits(results, "reverse", "step", "start", "from"),
    "cycles": cycle_table,
    "exact": exact_table,
}
