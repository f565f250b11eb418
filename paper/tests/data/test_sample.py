import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from dualogic.errors import OptionError
from dualogic_paper.data import NAMES, SHAPES, load, make_sample, unseen_test_symbols


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_has_the_sets_keys_types_and_image_sizes(name, tmp_path):
    make_sample(name, tmp_path)
    arrays = load(name, tmp_path)
    assert set(arrays) == set(SHAPES[name])
    for key, entry in SHAPES[name].items():
        assert arrays[key].dtype == entry.dtype
        assert arrays[key].shape[1:] == entry.shape[1:]


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_decides_a_sample(name, tmp_path):
    def draw(seed):
        make_sample(name, tmp_path, seed)
        return load(name, tmp_path)

    first, again, other = draw(3), draw(3), draw(4)
    assert all(np.array_equal(first[key], again[key]) for key in first)
    images = "symbols" if name == "hwf" else "test_x"
    assert not np.array_equal(first[images], other[images])


@pytest.mark.parametrize(
    ("trained", "tested", "chance"), [("mnist", "mnist", 0.1), ("usps", "usps", 0.1), ("cifar10", "cifar10", 0.1)]
)
def test_something_can_be_learned(trained, tested, chance, tmp_path):
    make_sample(trained, tmp_path)
    arrays = load(trained, tmp_path)
    model = KNeighborsClassifier(1).fit(arrays["train_x"].reshape(len(arrays["train_x"]), -1), arrays["train_y"])
    assert model.score(arrays["test_x"].reshape(len(arrays["test_x"]), -1), arrays["test_y"]) > 5 * chance


def test_cifar10_transfers_to_the_shared_classes_of_stl10(tmp_path):
    for name in ("cifar10", "stl10"):
        make_sample(name, tmp_path)
    source, target = load("cifar10", tmp_path), load("stl10", tmp_path)
    model = KNeighborsClassifier(1).fit(source["train_x"].reshape(len(source["train_x"]), -1), source["train_y"])
    same = {0: 0, 1: 2, 2: 1, 3: 3, 4: 4, 5: 5, 6: 7, 8: 8, 9: 9}  # of STL-10 in CIFAR-10; 7 is a monkey
    shared = np.isin(target["test_y"], list(same))
    predicted = model.predict(target["test_x"][shared].reshape(shared.sum(), -1))
    assert (predicted == [same[label] for label in target["test_y"][shared]]).mean() > 0.9


def test_formulas_are_well_formed_and_rightly_evaluated(tmp_path):
    make_sample("hwf", tmp_path, train=300)
    arrays = load("hwf", tmp_path)
    for labels, images, result in zip(arrays["train_labels"], arrays["train_images"], arrays["train_result"]):
        text = "".join(arrays["alphabet"][label] for label in labels if label >= 0)
        assert len(text) in (1, 3, 5, 7)
        assert text[::2].isdigit()
        assert set(text[1::2]) <= set("+-*/")
        assert result == pytest.approx(eval(text))
        np.testing.assert_array_equal(images < 0, labels < 0)


def test_symbols_of_a_class_look_alike(tmp_path):
    make_sample("hwf", tmp_path)
    arrays = load("hwf", tmp_path)
    shown = {split: arrays[f"{split}_images"][arrays[f"{split}_images"] >= 0] for split in ("train", "test")}
    named = {split: arrays[f"{split}_labels"][arrays[f"{split}_labels"] >= 0] for split in ("train", "test")}
    pixels = arrays["symbols"].reshape(len(arrays["symbols"]), -1)
    model = KNeighborsClassifier(1).fit(pixels[shown["train"]], named["train"])
    assert model.score(pixels[shown["test"]], named["test"]) > 0.8


def test_some_test_symbols_of_hwf_are_unseen(tmp_path):
    make_sample("hwf", tmp_path)
    arrays = load("hwf", tmp_path)
    unseen = unseen_test_symbols(arrays)
    train = {arrays["symbols"][row].tobytes() for row in arrays["train_images"].ravel() if row >= 0}
    for (i, j), row in np.ndenumerate(arrays["test_images"]):
        assert unseen[i, j] == (row >= 0 and arrays["symbols"][row].tobytes() not in train)
    assert 0 < unseen.sum() < (arrays["test_images"] >= 0).sum()


def test_the_sample_of_cifar100_is_sorted_and_its_superclasses_are_right(tmp_path):
    make_sample("cifar100", tmp_path)
    arrays = load("cifar100", tmp_path)
    assert (np.diff(arrays["train_y"].astype(int)) >= 0).all()
    assert len(np.unique(arrays["train_y"])) == 100
    coarse = dict(zip(arrays["train_y"].tolist(), arrays["train_coarse"].tolist()))
    assert [coarse[k] for k in (2, 11, 35, 46, 98)] == [14] * 5  # baby, boy, girl, man, woman: people
    assert sorted(coarse.values()) == sorted(list(range(20)) * 5)


@pytest.mark.parametrize("sizes", [{"rows": 5}, {"train": 0}, {"test": -1}])
def test_sizes_that_make_no_sense(sizes, tmp_path):
    with pytest.raises(OptionError, match="sizes of a sample of mnist are train, test, each at least 1"):
        make_sample("mnist", tmp_path, **sizes)
