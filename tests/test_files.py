"""A file is whole or not there."""

import pytest
import torch

import dualogic as dl
from dualogic.files import save_whole


class Unsavable:
    def __reduce__(self):
        raise RuntimeError("no")


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "logic.pt"
    x = dl.var("x")
    logic = dl.LogicLoss((x <= 0) | (x >= 1), num_samples=3)
    save_whole({"logic": logic.state_dict()}, path)
    with pytest.raises(RuntimeError, match="no"):
        save_whole({"logic": logic.state_dict(), "more": Unsavable()}, path)
    assert [file.name for file in tmp_path.iterdir()] == ["logic.pt"]
    logic.load_state_dict(torch.load(path, weights_only=True)["logic"])
