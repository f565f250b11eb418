"""The semantic loss of "exactly one of 100" at batch 128, against klaycircuits on the same decision diagram.

Run: ``python -m dualogic_paper.speed.semantic`` (needs pysdd and klaycircuits). One thread; each figure is the median
of forward and backward passes, in blocks that take turns. Exits with status 1 if the circuit takes more than a tenth of
the time.

klaycircuits evaluates a batch in one call when the weights are two-dimensional, and that is what is timed; mapping its module
over single samples with ``torch.vmap`` is shown beside it.
"""

import statistics
import sys
import warnings

import klay
import torch

import dualogic as dl
from dualogic.circuits import Circuit, Compiler, factor_out, from_sdd
from dualogic_paper.speed.clock import time_in_turn

VARIABLES, BATCH, LIMIT = 100, 128, 0.1


def compile_both() -> tuple[Circuit, torch.nn.Module]:
    """The same decision diagram as a circuit of dualogic's and of klaycircuits'."""
    proposition = ("count", 1, True, tuple(("variable", number) for number in range(1, VARIABLES + 1)))
    compiler = Compiler(VARIABLES)
    root = compiler.compile(proposition)
    network = factor_out(from_sdd([root], VARIABLES), limit=100_000)
    assert network is not None
    theirs = klay.Circuit()
    theirs.add_sdd(root)
    return Circuit(network), theirs.to_torch_module(semiring="log", compile=False)


def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    mine, theirs = compile_both()
    probability = torch.randn(BATCH, VARIABLES).softmax(-1).requires_grad_()
    positive, negative = (side.detach().requires_grad_() for side in (probability.log(), torch.log1p(-probability)))
    symbol = dl.boolean("b", VARIABLES)
    logic = dl.LogicLoss(dl.ExactlyOne(*(symbol[i] for i in range(VARIABLES))), method="semantic")

    def backward(loss: torch.Tensor) -> torch.Tensor:
        probability.grad = positive.grad = negative.grad = None
        loss.mean().backward()
        return loss

    # Both compute the same numbers from the same weights.
    slopes = []
    for circuit in (mine, theirs):
        loss = backward(-circuit(positive, negative))
        slopes.append((loss.detach(), positive.grad, negative.grad))
    torch.testing.assert_close(slopes[0][0], slopes[1][0], atol=1e-5, rtol=1e-5)
    # The two circuits may differ in derivatives along which the weights of a variable would no longer sum to 1.
    along = [rise / probability.detach() - fall / (1 - probability.detach()) for _, rise, fall in slopes]
    torch.testing.assert_close(*along, atol=1e-3, rtol=1e-3)

    passes = {
        "dualogic, from log weights": lambda number: backward(-mine(positive, negative)),
        "klaycircuits, from log weights": lambda number: backward(-theirs(positive, negative)),
        "dualogic, from probabilities": lambda number: backward(-mine.of_probabilities(probability)),
        "dualogic, the whole LogicLoss": lambda number: backward(logic(b=probability)),
        "klaycircuits, from probabilities": lambda number: backward(-theirs(probability.log(), torch.log1p(-probability))),
    }
    mapped = {"klaycircuits, vmap, from log weights": lambda number: backward(-torch.vmap(theirs)(positive, negative))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has no batching rule for what klaycircuits uses, and says so
        blocks = time_in_turn(passes, 40, 25, "cpu") | time_in_turn(mapped, 3, 4, "cpu")
    times = {name: statistics.median(found) for name, found in blocks.items()}
    for name, value in times.items():
        print(f"{name:40s} {value:8.3f} ms")
    for kind in ("log weights", "probabilities"):
        ratio = times[f"dualogic, from {kind}"] / times[f"klaycircuits, from {kind}"]
        print(f"ratio from {kind:27s} {ratio:8.3f}")
    whole = times["dualogic, the whole LogicLoss"] / times["klaycircuits, from probabilities"]
    print(f"ratio of the whole LogicLoss, with its checks {whole:.3f}")
    return int(times["dualogic, from log weights"] > LIMIT * times["klaycircuits, from log weights"])


if __name__ == "__main__":
    sys.exit(main())
