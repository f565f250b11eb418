"""Networks and weights of model counting by themselves."""

import torch

from dualogic.circuits.circuit import Circuit
from dualogic.circuits.network import Network
from dualogic.circuits.vocabulary import log_softmax_and_rest, switch_weights


def test_a_network_of_exclusive_or():
    network = Network(2)  # x and not y, or not x and y
    x, y, no_x, no_y = 0, 1, 2, 3
    network.roots = [network.sum([network.product([x, no_y]), network.product([no_x, y])])]
    p = torch.tensor([[0.5, 0.25]])
    torch.testing.assert_close(Circuit(network)(p.log(), (1 - p).log()).exp(), torch.tensor([[0.5]]))


def test_the_rest_of_a_likely_class_is_accurate():
    logarithm, rest = log_softmax_and_rest(torch.tensor([0.0, 30.0]))
    torch.testing.assert_close(torch.stack([logarithm[0], rest[1]]), torch.tensor([-30.0, -30.0]))


def test_switches_divide_what_is_left():
    on, off = switch_weights(torch.tensor([0.25, 0.25, 0.5]).log())
    torch.testing.assert_close(on.exp(), torch.tensor([1 / 4, 1 / 3]))
    torch.testing.assert_close(off.exp(), torch.tensor([3 / 4, 2 / 3]))
