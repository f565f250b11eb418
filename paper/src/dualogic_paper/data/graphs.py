"""Random weighted graphs and the shortest distances between all of their nodes."""

import torch
from torch import Tensor

LARGEST_WEIGHT = 9


def make_graphs(count: int, seed: int, nodes: int = 15) -> tuple[Tensor, Tensor]:
    """Draw connected graphs as in the paper's shortest distance task: adjacency and distances, float32 ``(count, nodes, nodes)``.

    A spanning tree first, then as many further edges, at random places, as bring the number of edges to one drawn uniformly
    between a tree's and the complete graph's. Weights are uniform on 1..9; an absent edge is 0.
    """
    generator = torch.Generator().manual_seed(seed)
    adjacency = torch.stack([_draw_graph(nodes, generator) for _ in range(count)])
    return adjacency, measure_distances(adjacency)


def measure_distances(adjacency: Tensor) -> Tensor:
    """All shortest distances of graphs ``(..., nodes, nodes)``, by Floyd and Warshall; infinite where no path leads."""
    nodes = adjacency.shape[-1]
    distances = adjacency.masked_fill(adjacency == 0, torch.inf)
    distances = distances.masked_fill(torch.eye(nodes, dtype=torch.bool, device=adjacency.device), 0)
    for k in range(nodes):
        distances = torch.minimum(distances, distances[..., :, k, None] + distances[..., None, k, :])
    return distances


def _draw_graph(nodes: int, generator: torch.Generator) -> Tensor:
    def draw(high: int) -> int:
        return int(torch.randint(high, (), generator=generator))

    order = torch.randperm(nodes, generator=generator).tolist()
    chosen = torch.zeros(nodes, nodes, dtype=torch.bool)
    for position in range(1, nodes):
        parent, child = order[draw(position)], order[position]
        chosen[min(parent, child), max(parent, child)] = True
    rows, columns = torch.triu_indices(nodes, nodes, offset=1)
    free = (~chosen[rows, columns]).nonzero().squeeze(1)
    extra = free[torch.randperm(len(free), generator=generator)[: draw(len(free) + 1)]]
    chosen[rows[extra], columns[extra]] = True
    weights = torch.randint(1, LARGEST_WEIGHT + 1, (nodes, nodes), generator=generator).float()
    upper = torch.where(chosen, weights, 0.0)
    return upper + upper.T
