"""What is said about the real sets, where they are: DUALOGIC_DATA names their folder."""

import os

import numpy as np
import pytest

from dualogic_paper.data import NAMES, load, unseen_test_symbols
from dualogic_paper.data.cache import cache_path, open_cache


def load_real(name):
    if not os.environ.get("DUALOGIC_DATA") or not cache_path(name).exists():
        pytest.skip(f"needs the real {name} in DUALOGIC_DATA")
    return load(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_real_set_is_the_reference(name):
    load_real(name)
    manifest = open_cache(name, thorough=True)[1]
    assert manifest.reference
    assert not manifest.sample


def test_how_many_symbols_of_hwf_are_unseen():
    arrays = load_real("hwf")
    assert (arrays["test_images"] >= 0).sum() == 11_200
    assert unseen_test_symbols(arrays).sum() == 2_538
    assert (unseen_test_symbols(arrays) | (arrays["test_images"] < 0)).all(1).sum() == 69


def test_the_superclasses_of_cifar100_are_those_of_its_sample():
    from dualogic_paper.data.sample import CIFAR100_COARSE

    arrays = load_real("cifar100")
    np.testing.assert_array_equal(np.array(CIFAR100_COARSE)[arrays["train_y"]], arrays["train_coarse"])
