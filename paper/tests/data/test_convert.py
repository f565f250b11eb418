import bz2
import gzip
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dualogic.errors import DataError
from dualogic_paper.data import NAMES
from dualogic_paper.data.convert import convert
from official_files import make_official, make_tar


def put(folder, files):
    for name, body in files.items():
        (folder / name).write_bytes(body)
    return {name: folder / name for name in files}


@pytest.mark.parametrize("name", NAMES)
def test_the_official_format_becomes_the_documented_one(name, tmp_path):
    expected, files = make_official(name)
    arrays = convert(name, put(tmp_path, files))
    assert arrays.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_array_equal(arrays[key], array, err_msg=key)
        assert arrays[key].dtype == array.dtype, key


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_a_partial_official_file_is_refused_and_named(name, kept, tmp_path):
    _, files = make_official(name)
    paths = put(tmp_path, {file: body[: int(kept * len(body))] for file, body in files.items()})
    with pytest.raises(DataError) as caught:
        convert(name, paths)
    assert any(str(path) in str(caught.value) for path in paths.values())


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "stl10"])
def test_an_archive_without_the_files_is_refused(name, tmp_path):
    _, files = make_official(name)
    with pytest.raises(DataError, match=r"should hold .* and "):
        convert(name, put(tmp_path, {file: make_tar({"readme": b""}) for file in files}))


class Attack:
    def __reduce__(self):
        return Path.touch, (Path("attacked"),)


def test_a_batch_that_would_run_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    batch = pickle.dumps(Attack(), protocol=2)
    body = make_tar({"cifar-10-batches-py/data_batch_1": batch, "cifar-10-batches-py/test_batch": batch})
    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz .* has no place in a batch of images"):
        convert("cifar10", put(tmp_path, {"cifar-10-python.tar.gz": body}))
    assert not Path("attacked").exists()


def test_a_file_that_is_not_idx_is_refused(tmp_path):
    _, files = make_official("mnist")
    files["t10k-labels-idx1-ubyte.gz"] = gzip.compress(b"\0\0\x0d\1 floats")
    with pytest.raises(
        DataError, match=r"t10k-labels-idx1-ubyte\.gz should begin with the bytes 0 0 8 1 and begins with 00 00 0d 01"
    ):
        convert("mnist", put(tmp_path, files))


def test_the_values_of_usps_are_rounded_to_even(tmp_path):
    # What the published values with three decimals become, at the places where a rule for halves matters.
    line = "10 " + " ".join(f"{k}:{value}" for k, value in enumerate(["-1", "1", "0", "-0.4", "0.4", "0.307"], start=1))
    files = {"usps.bz2": bz2.compress(line.encode()), "usps.t.bz2": bz2.compress(line.encode())}
    arrays = convert("usps", put(tmp_path, files))
    assert arrays["train_x"].ravel()[:6].tolist() == [0, 255, 128, 76, 178, 167]
    assert arrays["test_y"].tolist() == [9]


def test_usps_with_other_labels_or_values_is_refused(tmp_path):
    for line in ("0 1:0.5", "11 1:0.5", "3 1:1.5", ""):
        files = {"usps.bz2": bz2.compress(line.encode()), "usps.t.bz2": bz2.compress(line.encode())}
        with pytest.raises(DataError, match=r"usps\.bz2"):
            convert("usps", put(tmp_path, files))


def test_stl10_is_shrunk_by_a_triangle_as_wide_as_the_step():
    large = np.random.default_rng(0).integers(0, 256, (96, 96), dtype=np.uint8)
    small = np.asarray(Image.fromarray(large).resize((32, 32), Image.Resampling.BILINEAR))
    weights = np.array([1, 2, 3, 2, 1]) / 9
    for row, column in ((5, 9), (16, 2), (30, 30)):
        window = large[3 * row - 1 : 3 * row + 4, 3 * column - 1 : 3 * column + 4]
        assert abs(weights @ window @ weights - small[row, column]) <= 1


def test_a_formula_with_an_image_of_another_symbol_is_refused(tmp_path):
    _, files = make_official("hwf")
    with zipfile.ZipFile(io.BytesIO(files["HWF.zip"])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["data/expr_train.json"] = members["data/expr_train.json"].replace(b'"expr": "7"', b'"expr": "8"')
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    with pytest.raises(DataError, match=r"the images of 8 should be from the folders \['8'\] and are from \['7'\]"):
        convert("hwf", put(tmp_path, {"HWF.zip": buffer.getvalue()}))
