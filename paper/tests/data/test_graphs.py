import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, shortest_path

from dualogic_paper.data.graphs import make_graphs, measure_distances


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 4), seed=st.integers(0, 2**31), nodes=st.integers(1, 12))
def test_graphs_are_connected_symmetric_and_measured_as_scipy_does(count, seed, nodes):
    adjacency, distances = make_graphs(count, seed, nodes)
    assert adjacency.dtype == distances.dtype == torch.float32
    assert adjacency.shape == distances.shape == (count, nodes, nodes)
    assert torch.equal(adjacency, adjacency.mT)
    assert set(adjacency.unique().tolist()) <= set(range(10))
    assert not adjacency.diagonal(dim1=1, dim2=2).any()
    for graph, measured in zip(adjacency.numpy(), distances.numpy()):
        assert connected_components(graph)[0] == 1
        np.testing.assert_array_equal(shortest_path(graph, method="D"), measured)


def test_the_number_of_edges_is_uniform_between_a_tree_and_complete():
    adjacency, _ = make_graphs(2000, seed=1, nodes=4)
    edges = torch.bincount((adjacency > 0).sum((1, 2)) // 2, minlength=7)
    assert edges.sum() == edges[3:].sum() == 2000
    assert (edges[3:] - 500).abs().max() < 100  # five deviations


def test_weights_are_uniform():
    adjacency, _ = make_graphs(300, seed=2)
    counts = torch.bincount(adjacency[adjacency > 0].long(), minlength=10)[1:].float()
    assert (counts / counts.mean() - 1).abs().max() < 0.1


def test_a_seed_gives_the_same_graphs_everywhere():
    adjacency, distances = make_graphs(2, seed=0, nodes=4)
    assert adjacency[0].tolist() == [[0, 9, 3, 0], [9, 0, 3, 1], [3, 3, 0, 0], [0, 1, 0, 0]]
    again, _ = make_graphs(5, seed=0, nodes=4)
    assert torch.equal(again[:2], adjacency)
    assert not torch.equal(make_graphs(2, seed=1, nodes=4)[0], adjacency)
    assert torch.equal(measure_distances(adjacency), distances)


def test_nodes_without_a_path_are_infinitely_far():
    assert measure_distances(torch.zeros(2, 2)).tolist() == [[0, torch.inf], [torch.inf, 0]]
