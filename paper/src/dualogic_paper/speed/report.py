"""The figures that are measured, their bounds, the files they are kept in, and the tables on pages."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dualogic_paper.pages import pipe_table, replace_block

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results" / "benchmarks"
MACHINES = {"cpu": "CPU", "h200": "H200"}


@dataclasses.dataclass(frozen=True)
class Figure:
    """Something measured: what it is, and the most that it may be."""

    what: str
    bound: float
    unit: str = ""


NETWORKS = {"resnet50": "ResNet50", "vgg16": "VGG16", "densenet100": "DenseNet100"}
EAGER = ", batch 128+128, bfloat16, eager training step with rule / without"
SIZES = {"1e3": 10**3, "1e4": 10**4, "1e5": 10**5, "1e6": 10**6}
FIGURES: dict[str, Figure] = {
    "rule_eager": Figure("CIFAR-100 rule, batch 128, 30,000 samples: eager step / by hand", 1.1),
    "rule_fastest": Figure("the same, captured in a CUDA graph / by hand, eager", 0.35),
    "rule_gpu_time": Figure("the same, GPU time per step", 0.15, "ms"),
    **{f"eager_{name}": Figure(f"{title}{EAGER}", 1.02 if name == "vgg16" else 1.01) for name, title in NETWORKS.items()},
    **{f"network_{name}": Figure(f"{title}: the same, the whole step captured", 1.01) for name, title in NETWORKS.items()},
    "train_cifar": Figure("CIFAR-100 rule, batch 128: training step / the fastest of three layouts by hand", 1.0),
    "train_implication": Figure("`P >> Q`, batch 64: training step with duals / LTNtorch's, one flat variable, no duals", 1.0),
    "train_implication_hand": Figure("the same / by hand", 1.0),
    "train_shop": Figure("45 rules over 36 truth values, batch 100: training step / by hand", 1.0),
    "train_dl2": Figure('CIFAR-100 rule with `method="dl2"`: training step / DL2 by hand', 1.0),
    "eval_implication": Figure("`P >> Q` in `eval()`, forward and backward / LTNtorch's", 0.6),
    "eval_cifar": Figure("CIFAR-100 rule in `eval()`, forward and backward / LTNtorch's, one flat variable", 0.6),
    **{f"atoms_{name}": Figure(f"{size:,} atoms per sample: step / by hand", 1.2) for name, size in SIZES.items()},
    "table_bytes": Figure("1,281,167 samples x 2,000 weights in bfloat16: size of the table", 5.2, "GB"),
    "table_ratio": Figure("the same: step / step at 30,000 samples", 1.2),
    "table_host": Figure("the same in host memory, in a loop over a data loader: step / step with the table on the device", 1.2),
    "table_mapped": Figure("the same in a file", 1.2),
    "monitor": Figure("the demo's training step with `dl.Monitor(every=100)` / without", 1.02),
    "import_time": Figure("`import dualogic` / `import torch`", 1.2),
    "compiled_steps": Figure("1,000 compiled steps: graph breaks, recompilations and synchronisations", 0),
    "processes": Figure("two gloo processes against one, 50 steps, float64: largest relative difference", 1e-9),
    "processes_checkpoint": Figure("the same, saved on two and loaded on three", 1e-9),
}
SHORT = ("eager_resnet50", "eager_vgg16", "train_cifar", "table_bytes")  # the figures that the README shows


def entry(name: str, value: float, detail: dict[str, Any]) -> dict[str, Any]:
    """What the file keeps of a measurement."""
    bound = FIGURES[name].bound
    return {"value": value, "bound": bound, "passed": bool(value <= bound), "detail": detail}


def show_number(value: float, unit: str = "") -> str:
    """Three significant digits; whole numbers as they are.

    >>> show_number(1.2036), show_number(0.12345, "ms"), show_number(0.0), show_number(2.5e-16)
    ('1.20', '0.123 ms', '0', '2.50e-16')
    """
    text = f"{value:.0f}" if value == int(value) else f"{value:#.3g}".rstrip(".")
    return f"{text} {unit}".strip()


def show_entry(figure: Figure, found: dict[str, Any] | None) -> str:
    """A cell of the table: the value, and how it came about; a missed bound or an error is said."""
    if found is None:
        return "-"
    if "error" in found:
        return "failed"
    text = show_number(found["value"], figure.unit)
    how = found["detail"].get("how")
    text += f" ({how})" if how else ""
    return text if found["passed"] else f"**{text}, missed**"


def show_machine(title: str, data: dict[str, Any]) -> str:
    """One line about where the figures of a column come from."""
    machine = data["machine"]
    others: dict[str, list[str]] = {}
    for name, found in data["figures"].items():
        commit = found.get("commit", machine["commit"])
        if commit != machine["commit"]:
            others.setdefault(f"commit {commit}, {found['date']}", []).append(name)
    older = "".join(f" Of {when}: {', '.join(names)}." for when, names in others.items())
    return (
        f"{title}: {machine['name']}, {machine['threads']} CPU thread(s), torch {machine['torch']}, {machine['date']}, commit "
        f"{machine['commit']}, `{machine['command']}`.{older}"
    )


def load(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """The files of all machines that were measured."""
    paths = {name: folder / f"{name}.json" for name in MACHINES}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def table(found: dict[str, dict[str, Any]], names: Iterable[str] = FIGURES) -> str:
    """Some figures of all machines, in Markdown."""
    rows = []
    for name in names:
        figure, of_each = FIGURES[name], [found.get(machine, {"figures": {}})["figures"] for machine in MACHINES]
        cells = [show_entry(figure, figures.get(name)) for figures in of_each]
        rows.append([figure.what, f"{figure.bound:g} {figure.unit}".strip(), *cells])
    return pipe_table(["what", "bound", *MACHINES.values()], rows)


def block(found: dict[str, dict[str, Any]]) -> str:
    """All figures, and where they come from."""
    return "\n\n".join([table(found), *(show_machine(title, found[name]) for name, title in MACHINES.items() if name in found)])


PAGES = {  # what is made of the files: for each page its marks, and what stands between them
    ROOT / "docs" / "speed.md": ("benchmarks", block),
    ROOT.parent / "README.md": ("costs", lambda found: table(found, SHORT)),
}


def write_pages() -> None:
    """Bring the figures on pages up to date with the files."""
    for path, (name, make) in PAGES.items():
        path.write_text(replace_block(path.read_text(), name, make(load())))
