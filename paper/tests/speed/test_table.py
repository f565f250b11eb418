"""The loops that compare where a table is held: a table elsewhere changes how long a step takes, and nothing else."""

import torch

from dualogic_paper.speed import start, table


def test_a_loop_over_a_loader_gives_the_same_losses_wherever_the_table_is(monkeypatch):
    monkeypatch.setattr(table, "BATCH", 8)
    monkeypatch.setattr(table, "CLAUSES", 5)
    found = {}
    for place in ("device", "host", "mapped"):
        losses = []
        for loss in table.loop(place, "cpu", samples=40):
            loss.backward()
            losses.append(loss.detach())
        found[place] = torch.stack(losses)
    assert len(found["device"]) == 4  # the fifth batch is fetched ahead, and not trained on
    assert torch.equal(found["host"], found["device"])
    assert torch.equal(found["mapped"], found["device"])


def test_time_to_import_is_that_of_a_process_of_its_own():
    assert 0 < start.measure("json") < start.measure("torch")
