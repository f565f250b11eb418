"""How every figure of the experiments looks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dualogic.errors import OptionError

INK, FAINT = "#333333", "#bbbbbb"
COLOURS: Mapping[str, str] = {
    "none": "#7a7a7a",
    "supervised": "#222222",
    "semantic": "#8e6c8a",
    "problog": "#5b8e7d",
    "pd1": "#bc6c25",
    "pd2": "#7b5ea7",
    "dl2": "#d1495b",
    "hard": "#a68a64",
    "uniform": "#e09f3e",
    "dual-paper": "#6fb7c4",
    "dual": "#00798c",
}
REST = ("#457b9d", "#9a8c98", "#6a994e", "#b56576", "#4d648d", "#3d5a80", "#84a59d", "#c08497")
SETTINGS: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), "#666666"),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 9),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "grid.color": "#eeeeee",
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "savefig.dpi": 150,
    "svg.hashsalt": "dualogic",
}


def choose_colours(rows: Sequence[tuple[str, str]]) -> dict[str, str]:
    """A colour for each row, from its method and label: a method's own for its first row, spare ones for the others."""
    found: dict[str, str] = {}
    spare = iter(REST * (1 + len(rows)))
    for method, label in rows:
        own = COLOURS.get(method)
        found[label] = own if own is not None and own not in found.values() else next(spare)
    return found


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move labels apart until neighbours are ``gap`` from each other, as little as possible and within [0, 1] if they fit.

    >>> spread([0.5, 0.0, 0.5], gap=0.25)
    [0.375, 0.0, 0.625]
    >>> spread([1.0, 1.0], gap=0.25)
    [0.75, 1.0]
    """
    order = sorted(range(len(places)), key=lambda item: places[item])
    blocks: list[tuple[float, int]] = []
    for rank, item in enumerate(order):
        total, count = places[item] - rank * gap, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            earlier = blocks.pop()
            total, count = total + earlier[0], count + earlier[1]
        blocks.append((total, count))
    ceiling = max(0.0, 1 - gap * (len(places) - 1))
    starts = [min(max(total / count, 0.0), ceiling) for total, count in blocks for _ in range(count)]
    found = [0.0] * len(places)
    for rank, item in enumerate(order):
        found[item] = starts[rank] + rank * gap
    return found


def make_figure(width: float, height: float, title: str) -> Any:
    """An empty figure, in inches, but for its title; call it, and draw, within ``rc_context(SETTINGS)``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure in the format that the ending of its name says."""
    known = sorted(figure.canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise OptionError(f"--out of a figure must end in one of {', '.join('.' + name for name in known)}; got {path.name!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    if path.suffix.lower() == ".png":
        from PIL import Image  # comes with matplotlib

        with Image.open(path) as picture:
            small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        small.save(path, optimize=True, dpi=picture.info.get("dpi", (150, 150)))
