"""Shortest distances in a graph: symmetric, and no longer than any detour."""

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dualogic import Formula, LogicLoss, var
from dualogic.methods import Method
from dualogic_paper.arms import Setting, names
from dualogic_paper.data import make_graphs
from dualogic_paper.models.small import mlp
from dualogic_paper.tasks.measures import draw_outputs, in_chunks, percent, spread
from dualogic_paper.tasks.task import AT_LEAST_ONE, Column, Drawn, Limit, Outputs, Problem, Samples, Task

TOLERANCE = 1.0  # in units of distance; the paper's for this task
NOT_APPLICABLE = ("supervised", "semantic", "problog", "pd1")  # no unlabelled graphs; numbers, not worlds; costs above 1
TRAINING, VALIDATION, TEST = "training", "validation", "test"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paths(Task):
    """Distances from node 0 of a weighted graph, from its adjacency matrix (the paper's regression task).

    All training graphs are labelled, and the rule is taught on the same graphs: there is no other pool. DL2's weight, 0.1, was
    chosen by hand, as DL2 asks for. ``satisfied`` counts pairs of a graph and a node ``k``, as the paper does; for ``k = 0`` the
    rule holds by itself. ``dead`` counts the outputs, other than the source's own, that are 0 for every graph: behind the last
    ReLU they have no gradient and stay so.

    Attributes:
        graphs: the seed of all graphs, the same in every run, so that a run's seed is that of its weights and batches; ``None``
            draws other graphs for each seed.
        nodes: of each graph.
        width: of each of the three hidden layers.
        training: graphs to train on.
        held_out: graphs to choose by, and as many to test on.
        first_output: biases of the last layer before training, near a mean distance; 0 leaves them as torch draws them.
    """

    name: ClassVar[str] = "paths"
    title: ClassVar[str] = "Shortest distances in graphs"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mse", "MSE", "lower", 2),
        Column("mae", "MAE", "lower", 2),
        Column("satisfied", "sat."),
        Column("symmetric", "symmetry"),
        Column("triangle", "triangle"),
        Column("train_mse", "train MSE", "neither", 2),
        Column("train_mae", "train MAE", "neither", 2),
        Column("dead", "dead outputs", "neither"),
    )
    choose_by: ClassVar[str] = "mse"
    choose_higher: ClassVar[bool] = False
    limits: ClassVar[dict[str, Limit]] = {
        **dict.fromkeys(("width", "training", "held_out"), AT_LEAST_ONE),
        "nodes": Limit(2),
        "graphs": Limit(0),
    }
    settings: ClassVar[dict[str, Setting]] = {"dl2": Setting(weight=0.1)}
    arms: ClassVar[tuple[str, ...]] = tuple(name for name in names() if name not in NOT_APPLICABLE)

    epochs: int = 300
    learning_rate: float = 1e-4
    weight_decay: float = 5e-4
    rule_on: Literal["unlabelled", "labelled"] = "labelled"
    graphs: int | None = 0
    nodes: int = 15
    width: int = 1000
    training: int = 300
    held_out: int = 150
    first_output: float = 5.0

    def make_problem(self, seed: int, folder: Path | None, device: torch.device) -> "PathsProblem":
        return PathsProblem(self, seed, device)

    def draw(self, method: Method, samples: int, width: float, generator: torch.Generator) -> Drawn:
        outputs = draw_outputs(samples, self.nodes, self.nodes, width=width, generator=generator)
        e = outputs.relu()
        symmetric, triangle = _halves(self.nodes)
        return {"rule": symmetric & triangle}, (outputs, {"d": e[:, 0], "e": e})

    def make_smoke(self, folder: Path) -> "Paths":
        return dataclasses.replace(self, epochs=2, batch=16, nodes=6, width=32, training=48, held_out=24)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PathsDraws(Paths):
    """The same with other graphs for each seed: is a difference between methods one between networks, or between graphs?"""

    name: ClassVar[str] = "paths-draws"
    title: ClassVar[str] = "Shortest distances in graphs, other graphs for each seed"

    graphs: int | None = None


def make_rules(nodes: int) -> dict[str, Formula]:
    """What distances obey, for each node ``k``: ``symmetric``, ``triangle`` and ``satisfied``, which is both.

    ``d`` are the distances from node 0, and ``e[k, j]`` those from node ``k`` to node ``j``. No formula is quantified over ``k``.

    >>> print(make_rules(15)["satisfied"])
    (d == e[:, 0]) & (d[None, :] <= d[:, None] + e).all(1)
    """
    d, e = var("d", nodes), var("e", nodes, nodes)
    symmetric, triangle = d == e[:, 0], (d[None, :] <= d[:, None] + e).all(1)
    return {"symmetric": symmetric, "triangle": triangle, "satisfied": symmetric & triangle}


def _halves(nodes: int) -> tuple[Formula, Formula]:
    """Symmetry and the triangle inequality, for all nodes together: what is taught."""
    d, e = var("d", nodes), var("e", nodes, nodes)
    return (d == e[:, 0]).all(), (d[None, :] <= d[:, None] + e).all()


class PathsProblem(Problem):
    """See :class:`Paths`; every graph is kept in each of its versions, in which another node is the source."""

    def __init__(self, task: Paths, seed: int, device: torch.device) -> None:
        self.task = task
        nodes = task.nodes
        symmetric, triangle = _halves(nodes)
        self.rules = {"rule": symmetric & triangle}
        self.words = {
            str(symmetric): "giving the same distance both ways",
            str(triangle): "giving no distance longer than a detour",
        }
        self.measured = make_rules(nodes)
        adjacency, distances = make_graphs(task.training + 2 * task.held_out, seed if task.graphs is None else task.graphs, nodes)
        sizes = [task.training, task.held_out, task.held_out]
        self.swaps = make_swaps(nodes).to(device)
        versions = swap_nodes(adjacency.to(device), self.swaps)
        self.versions = dict(zip((TRAINING, VALIDATION, TEST), versions.split(sizes)))
        self.distances = dict(zip((TRAINING, VALIDATION, TEST), distances[:, 0].to(device).split(sizes)))
        self.labelled = torch.arange(task.training, device=device)
        self.unlabelled = self.labelled[:0]

    def make_network(self) -> nn.Module:
        nodes = self.task.nodes
        return mlp(nodes * nodes, (self.task.width,) * 3, nodes, self.task.first_output)

    def outputs(self, network: nn.Module, labelled: Tensor, pool: Tensor | None, teacher: nn.Module | None = None) -> Outputs:
        graphs, distances = self.versions[TRAINING], self.distances[TRAINING][labelled]
        if pool is None:
            return functional.mse_loss(network(graphs[labelled, 0]), distances), {}
        # Each graph with its own source, and the rule's with every node as the source, in one pass through the network.
        answers = network(torch.cat([graphs[labelled, 0], graphs[pool].flatten(0, 1)]))
        predicted, swapped = answers.split([len(labelled), len(pool) * self.task.nodes])
        return functional.mse_loss(predicted, distances), self._bind(swapped)

    def _bind(self, answers: Tensor) -> dict[str, Any]:
        """From the answers for all versions of some graphs, ``(graphs * nodes, nodes)``: ``d`` is ``e`` from node 0."""
        e = unswap_nodes(answers.unflatten(0, (-1, self.task.nodes)), self.swaps)
        return {"d": e[:, 0], "e": e}

    def evaluate(self, network: nn.Module, part: Literal["validation", "test"]) -> dict[str, float]:
        bound = self._bind(in_chunks(network, self.versions[part].flatten(0, 1)))
        found = _errors(bound["d"], self.distances[part])
        found["dead"] = float((bound["d"][:, 1:] == 0).all(0).sum())
        found.update({key: percent(rule.satisfied(tol=TOLERANCE, **bound)) for key, rule in self.measured.items()})
        predicted = in_chunks(network, self.versions[TRAINING][:, 0])
        found.update({f"train_{key}": value for key, value in _errors(predicted, self.distances[TRAINING]).items()})
        return found

    def inspect(self, network: nn.Module, logic: LogicLoss | None, pool: Tensor) -> dict[str, float]:
        """Where the rule holds on the pool, what it costs, and how its weights are divided."""
        bound = self._bind(in_chunks(network, self.versions[TRAINING][pool].flatten(0, 1)))
        found = {f"{key}_holds": percent(rule.satisfied(tol=TOLERANCE, **bound)) for key, rule in self.measured.items()}
        found["cost"] = self.rules["rule"].cost(**bound).mean().item()
        weights = {} if logic is None else logic.weights(torch.arange(len(pool), device=pool.device))
        if "rule" in weights:
            symmetry, triangle = weights["rule"].mean(0).tolist()
            found.update({"symmetry_weight": symmetry, "triangle_weight": triangle})
        for position, key in enumerate(("symmetry", "triangle")):
            if f"rule/{position}" in weights:
                found[f"{key}_largest_weight"] = weights[f"rule/{position}"].flatten(1).amax(1).mean().item()
        return found

    def samples(self, network: nn.Module, rows: Tensor | None) -> Samples:
        versions = self.versions[VALIDATION if rows is None else TRAINING]
        graphs = versions[spread(len(versions)).to(versions.device) if rows is None else rows]
        bound = self._bind(in_chunks(network, graphs.flatten(0, 1)))
        d, e = bound["d"], bound["e"]

        def caption(position: int) -> str:
            back = (d[position] - e[position, :, 0]).abs().max().item()
            detour = (d[position].unsqueeze(0) - d[position].unsqueeze(1) - e[position]).max().item()
            return f"largest difference between there and back {back:.1f}; longest excess over a detour {max(detour, 0.0):.1f}"

        return Samples(bound, graphs[:, 0], tol=TOLERANCE, words=self.words, caption=caption)


def make_swaps(nodes: int) -> Tensor:
    """Which node takes whose place when node 0 and node ``k`` are exchanged, ``(nodes, nodes)``; each row is its own inverse.

    >>> make_swaps(3)
    tensor([[0, 1, 2],
            [1, 0, 2],
            [2, 1, 0]])
    """
    swaps = torch.arange(nodes).repeat(nodes, 1)
    swaps[:, 0] = torch.arange(nodes)
    swaps.fill_diagonal_(0)
    return swaps


def swap_nodes(adjacency: Tensor, swaps: Tensor) -> Tensor:
    """Graphs ``(graphs, nodes, nodes)`` with each of their nodes in the place of node 0, ``(graphs, source, nodes, nodes)``."""
    return adjacency[:, swaps[:, :, None], swaps[:, None, :]]


def unswap_nodes(answers: Tensor, swaps: Tensor) -> Tensor:
    """From distances ``(graphs, nodes, nodes)`` in swapped numbering to ``e[k, j]``, those from ``k`` to ``j`` in the graph's."""
    return answers.gather(2, swaps.expand_as(answers))


def _errors(predicted: Tensor, distances: Tensor) -> dict[str, float]:
    return {"mse": functional.mse_loss(predicted, distances).item(), "mae": functional.l1_loss(predicted, distances).item()}
