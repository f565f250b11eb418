"""The paper's figures: "Learning with Logical Constraints but without Shortcut Satisfaction", ICLR 2023; means of five runs."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

EPOCH_SECONDS = "epoch_seconds"  # the key of the time that an epoch of training takes
ALIASES = {"dual-paper": "dual"}  # methods that are variants of a published one
FIGURE_2 = "Figure 2, by a table in the text's source"


@dataclasses.dataclass(frozen=True)
class Published:
    """One figure."""

    text: str  # as printed
    value: float  # the mean
    source: str  # where in the paper

    @classmethod
    def parse(cls, text: str, source: str) -> "Published":
        """Read ``"98.8"`` or ``"56.0 ± 1.78"``."""
        return cls(text, float(text.partition("±")[0]), source)


@dataclasses.dataclass(frozen=True)
class Source:
    """A column of a printed table."""

    name: str  # the table's number, in the order of the text and then of the appendix
    task: str  # the name of the task here
    where: Mapping[str, str]  # hyper-parameters of the task that the figures are for; all others by default
    column: str  # its key
    rows: Mapping[str, str]  # the figure of each method, by its name here


# Figure 2 has no numbers on it; a table that the text's source has and the print leaves out gives them. It has none for PD1, and
# for PD2 on DenseNet100 its other figure is not the printed one.
PRINTED = f"""
Table 1 | digits | accuracy satisfied not_p q usps_accuracy usps_satisfied usps_not_p usps_q
none      89.4  27.4  27.4   0.0  75.4  81.1  81.1   0.0
semantic  85.5  97.0  97.0   0.0  48.7  98.8  98.8   0.0
problog   88.0  78.0  78.0   0.0  25.6   8.8   8.8   0.0
pd1       89.2  44.2  44.2   0.0  73.7  87.0  87.0   0.0
pd2       89.3  63.1  63.1   0.0  74.3  87.6  87.6   0.0
dl2       89.3  91.3  91.3   0.0  69.9  98.8  98.8   0.0
dual      98.8  98.9  49.7  97.7  80.2  98.8  90.5  75.2

Section 4.1 | digits | usps_accuracy
supervised  82.1

Table 2 | hwf | accuracy satisfied
none  57.4  64.0
pd1   62.1  63.2
pd2   62.5  62.5
dl2   62.9  57.5
dual  65.1  82.4

Table 2 | hwf-5-20 | accuracy satisfied
none  75.6  81.5
pd1   76.5  78.6
pd2   76.4  78.4
dl2   79.3  86.6
dual  79.5  92.8

Table 3 | paths | mse mae satisfied
none   8.90  2.07  43.9
pd2    9.11  2.11  46.1
dl2   14.21  2.68  65.3
dual   7.09  1.87  69.0

Table 5 | cifar10-stl10 | accuracy stl10_accuracy superclass stl10_superclass satisfied stl10_satisfied
none  65.8  32.6  92.7  76.4  90.1  88.4
dual  68.1  35.4  93.9  78.1  92.6  91.9

Table 7; {FIGURE_2}; Table 8; Table 6 | cifar100 model=vgg16 | accuracy superclass satisfied {EPOCH_SECONDS}
none  51.0±0.52  64.6  63.0±0.74  30.2
pd1   46.7±0.99  -     57.7±3.01  -
pd2   46.9±0.10  61.1  57.5±1.86  -
dl2   32.6±9.66  48.9  31.2±17.9  -
dual  53.4±0.43  68.5  81.1±0.37  32.5

Table 7; {FIGURE_2}; Table 8; Table 6 | cifar100 model=resnet50 | accuracy superclass satisfied {EPOCH_SECONDS}
none  46.6±1.38  59.8  48.5±2.37  26.4
pd1   52.7±0.86  -     63.9±0.62  -
pd2   54.2±0.58  67.1  69.2±0.90  -
dl2   45.3±1.37  58.7  78.4±1.32  -
dual  56.0±1.78  69.7  87.2±0.62  27.0

Table 7; {FIGURE_2}; Table 8; Table 6 | cifar100 model=densenet100 | accuracy superclass satisfied {EPOCH_SECONDS}
none  36.2±0.61  50.2  39.7±1.13  26.7
pd1   42.3±0.67  -     53.5±0.46  -
pd2   42.4±0.48  -     54.9±0.91  -
dl2   40.8±0.50  54.2  62.2±0.56  -
dual  51.4±0.27  66.4  88.2±0.27  28.1
"""
"""The printed tables: where a table (or each of its columns) is from, the task, keys of columns; figures by method, or -."""


def _read(block: str) -> Iterator[Source]:
    (head, *lines) = block.splitlines()
    names, about, columns = (part.strip() for part in head.split("|"))
    task, *where = about.split()
    sources, cells = names.split("; "), [line.split() for line in lines]
    for place, column in enumerate(columns.split()):
        rows = {method: row[place].replace("±", " ± ") for method, *row in cells if row[place] != "-"}
        yield Source(sources[place % len(sources)], task, dict(pair.split("=") for pair in where), column, rows)


SOURCES = tuple(source for block in PRINTED.strip().split("\n\n") for source in _read(block))


def find_published(task: str, method: str, hyper: Mapping[str, Any] | None = None) -> dict[str, Published]:
    """The paper's figures for one method, by the key of the column; ``hyper`` says for which of the task's hyper-parameters.

    >>> find_published("digits", "dual")["q"].text
    '97.7'
    >>> find_published("cifar100", "dual", {"model": "vgg16"})["satisfied"].text
    '81.1 ± 0.37'
    >>> find_published("digits", "godel")
    {}
    """
    method = ALIASES.get(method, method)
    found = [source for source in _sources(task, hyper) if method in source.rows]
    return {source.column: Published.parse(source.rows[method], source.name) for source in found}


def methods_of(task: str, hyper: Mapping[str, Any] | None = None) -> set[str]:
    """The methods for which the paper has a figure of this task."""
    return {method for source in _sources(task, hyper) for method in source.rows}


def _sources(task: str, hyper: Mapping[str, Any] | None) -> list[Source]:
    return [source for source in SOURCES if source.task == task and source.where.items() <= (hyper or {}).items()]
