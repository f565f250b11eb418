import pytest
import torch

from dualogic.demo import POOLS, load_split, rotate
from dualogic.demo.data import load_digits
from dualogic.errors import MissingExtraError, OptionError


def _keys(images):
    return {tuple(image.flatten().tolist()) for image in images}


@pytest.mark.parametrize("pool", POOLS)
def test_no_six_is_labelled_and_every_other_class_is(pool):
    split = load_split(pool, seed=0)
    assert sorted(set(split.labels.tolist())) == [0, 1, 2, 3, 4, 5, 7, 8, 9]


def test_the_pool_of_sixes_holds_the_training_sixes_and_nothing_else():
    split = load_split("sixes", seed=0)
    images, labels = load_digits()
    held_out = int((split.held_out_labels == 6).sum())
    assert split.pool_is_six.all()
    assert len(split.pool) + held_out == int((labels == 6).sum())
    assert _keys(split.pool) <= _keys(images[labels == 6])


def test_the_mixed_pool_holds_every_training_image_and_knows_which_are_sixes():
    split = load_split("mixed", seed=0)
    images, labels = load_digits()
    assert len(split.pool) + len(split.held_out) == len(images)
    assert _keys(split.pool[split.pool_is_six]) <= _keys(images[labels == 6])
    assert _keys(split.pool[~split.pool_is_six]) == _keys(split.labelled)


@pytest.mark.parametrize("pool", POOLS)
def test_nothing_held_out_is_trained_on(pool):
    split = load_split(pool, seed=3)
    images, _ = load_digits()
    assert len(_keys(images)) == len(images), "images must differ for this test to mean anything"
    assert not _keys(split.held_out) & (_keys(split.labelled) | _keys(split.pool))
    assert len(split.held_out_sixes) > 50


def test_the_seed_decides_the_split():
    first, again, other = load_split("mixed", 0), load_split("mixed", 0), load_split("mixed", 1)
    assert torch.equal(first.held_out, again.held_out)
    assert not torch.equal(first.held_out, other.held_out)


def test_images_are_scaled_to_the_unit_interval():
    images = load_split("mixed", seed=0).pool
    assert images.shape[1:] == (1, 8, 8)
    assert images.min() == 0
    assert images.max() == 1


def test_rotation_is_half_a_turn():
    image = torch.arange(64.0).reshape(1, 1, 8, 8)
    assert torch.equal(rotate(image), torch.rot90(image, 2, dims=(-2, -1)))
    assert torch.equal(rotate(rotate(image)), image)


def test_a_turned_six_looks_more_like_a_nine_than_like_any_other_digit():
    images, labels = load_digits()
    means = torch.stack([images[labels == digit].mean(0) for digit in range(10)])
    distances = (means - rotate(means[6])).flatten(1).norm(dim=1)
    assert distances.argmin() == 9


def test_an_unknown_pool_is_refused():
    with pytest.raises(OptionError, match="pool must be one of 'sixes', 'mixed'; got 'nines'"):
        load_split("nines", seed=0)


def test_without_scikit_learn_the_pip_line_is_given(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[demo\]'"):
        load_split("sixes", seed=0)
