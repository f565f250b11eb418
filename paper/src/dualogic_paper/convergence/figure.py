"""The measurements as one figure of four panels."""

from pathlib import Path
from typing import Any

from dualogic_paper.convergence.cycles import CLASSES

LOWEST = 1e-9  # gradients below are rounding
INK, GUIDE = "#333333", "#b0b0b0"
TEAL, RED, AMBER, PURPLE = "#00798c", "#d1495b", "#e09f3e", "#7b5ea7"
DELTA_COLOURS = {"exact": TEAL, "square": AMBER, "mean": RED}
RULE_COLOURS = {"softmax": RED, "exponentiated": AMBER, "projected": TEAL}
CLASS_COLOURS = {"converged": "#cfe8e5", "cycle": "#e09f3e", "wandering": "#d1495b", "diverged": "#333333"}
PANELS = {  # what is drawn, with the title of its panel and the name of its horizontal axis
    "rate": ("Squared gradient at a random iterate, and its slope", "iterations T"),
    "plateau": ("Gradient of the whole loss, descent without noise", "iteration"),
    "dual_steps": ("Distance from the optimal cost of an and, step 0.2", "visits of the sample"),
    "cycles": ("Gradient steps on weights and delta in turn", "step on delta"),
}


def save_figure(results: dict[str, Any], path: Path) -> None:
    """Draw what :func:`~dualogic_paper.convergence.run_convergence` found."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    FigureCanvasAgg(figure)
    draws = (_draw_rate, _draw_plateau, _draw_duals, _draw_cycles)
    for draw, axes, (name, (title, below)) in zip(draws, figure.subplots(2, 2).flatten(), PANELS.items()):
        draw(axes, results[name])
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel(below)
        axes.title.set_color(INK)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=110)


def _draw_rate(axes: Any, rate: dict[str, Any]) -> None:
    horizons = rate["horizons"]
    for run in rate["runs"]:
        marks = ":" if run["costs"] == "batch" else {"decreasing": "--", "constant": "-"}[run["steps"]]
        label = run["delta"] + (", decreasing steps" if run["steps"] == "decreasing" else "")
        label += ", from a batch" if run["costs"] == "batch" else ""
        label += f", unit {run['scale']:g}" if run["scale"] != 1 else ""
        colour = PURPLE if run["scale"] != 1 else DELTA_COLOURS[run["delta"]]
        axes.loglog(horizons, run["mean_square"], marks, color=colour, label=f"{label}: {run['slope']:.2f}")
    first = min(run["mean_square"][0] for run in rate["runs"])
    guide = [0.8 * first * ((horizons[0] + 1) / (horizon + 1)) ** 0.5 for horizon in horizons]
    axes.loglog(horizons, guide, color=GUIDE, linewidth=4, alpha=0.5, label="Theorem 3: -0.50", zorder=0)
    axes.legend(frameon=False, fontsize=8)


def _draw_plateau(axes: Any, plateau: dict[str, Any]) -> None:
    styles = dict(zip(sorted({run["scale"] for run in plateau["runs"]}), (":", "-", "--")))
    for run in plateau["runs"]:
        if run["delta"] != "mean" and run["scale"] != 1:
            continue
        label = run["delta"] + (f", unit {run['scale']:g}" if run["delta"] == "mean" else "")
        seen = [(look, value) for look, value in zip(plateau["iterations"], run["curve"]) if value > LOWEST]
        axes.loglog(*zip(*seen), styles[run["scale"]], color=DELTA_COLOURS[run["delta"]], label=label)
    axes.set_ylim(bottom=LOWEST)
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _draw_duals(axes: Any, duals: dict[str, Any]) -> None:
    for name, distances in duals["curves"].items():
        # What is 0 goes straight down and out of the panel.
        shown = [max(distance, 1e-9) for distance in distances]
        axes.loglog(duals["looks"], shown, color=RULE_COLOURS[name], marker=".", label=name)
    axes.axhline(duals["close"], color=GUIDE, linewidth=1, zorder=0)
    axes.set_ylim(1e-6, 1)
    axes.legend(frameon=False, fontsize=8)


def _draw_cycles(axes: Any, cycles: dict[str, Any]) -> None:
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    problem = cycles["problems"][0]
    kinds = [[CLASSES.index(kind) for kind in row] for row in problem["kinds"]]
    colours = ListedColormap([CLASS_COLOURS[kind] for kind in CLASSES])
    norm = BoundaryNorm([position - 0.5 for position in range(len(CLASSES) + 1)], len(CLASSES))
    sides = cycles["delta_steps"], cycles["weight_steps"]
    axes.pcolormesh(*sides, kinds, cmap=colours, norm=norm, shading="nearest")
    stable = [[float(entry) for entry in row] for row in problem["stable"]]
    axes.contour(*sides, stable, levels=[0.5], colors=INK, linewidths=1.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylabel("step on the weights")
    seen = {CLASSES[kind] for row in kinds for kind in row}
    patches = [Patch(color=CLASS_COLOURS[kind], label=kind) for kind in CLASSES if kind in seen]
    line = Line2D([], [], color=INK, label="contracts at the\nminimum (below)")
    axes.legend(handles=[*patches, line], fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
