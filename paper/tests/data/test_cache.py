import io
import json
import os

import numpy as np
import pytest

from dualogic.errors import DataError, MissingDataError, OptionError
from dualogic_paper.data import NAMES, SHAPES, load, make_sample, schema
from dualogic_paper.data.cache import Manifest, cache_path, open_cache, write_cache


@pytest.fixture
def usps(tmp_path):
    return make_sample("usps", tmp_path, train=30, test=10)


@pytest.fixture
def real_stl10(monkeypatch):
    """Arrays that stand for the real STL-10, whose digest is taken for the reference."""
    arrays = {"test_x": np.zeros((8000, 32, 32, 3), np.uint8), "test_y": np.arange(8000, dtype=np.uint8)}
    monkeypatch.setitem(schema.REFERENCE, "stl10", schema.digest_content("stl10", arrays))
    return arrays


def without_manifest(path):
    Manifest.path(path).unlink()
    return path


def test_the_folder_is_the_variables_or_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DUALOGIC_DATA", str(tmp_path / "mine"))
    assert cache_path("usps").parent == tmp_path / "mine"
    monkeypatch.delenv("DUALOGIC_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_path("usps").parent.name == "dualogic"


def test_the_variable_says_where_to_load_from(monkeypatch, usps):
    monkeypatch.setenv("DUALOGIC_DATA", str(usps.parent))
    assert len(load("usps")["train_x"]) == 30


def test_an_absent_cache_is_named_with_the_line_to_type(monkeypatch, tmp_path):
    with pytest.raises(MissingDataError) as caught:
        load("mnist", tmp_path)
    assert str(caught.value) == f"no {tmp_path / 'mnist.npz'}; type: dualogic data get mnist --folder {tmp_path}"
    assert isinstance(caught.value, FileNotFoundError)
    monkeypatch.setenv("DUALOGIC_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"type: dualogic data get mnist$"):
        load("mnist")


def test_an_unknown_name(tmp_path):
    with pytest.raises(OptionError, match="one of mnist, usps, hwf, cifar100, cifar10, stl10; got 'MNIST'"):
        load("MNIST", tmp_path)


@pytest.mark.parametrize("keep_manifest", [True, False])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_partial_file_is_refused_and_named(usps, keep_manifest, kept):
    whole = usps.read_bytes()
    usps.write_bytes(whole[: int(kept * len(whole))])
    if not keep_manifest:
        without_manifest(usps)
    with pytest.raises(DataError, match=r"usps\.npz .*(bytes, not|not a whole).*dualogic data get usps"):
        load("usps", usps.parent)


@pytest.mark.parametrize("keep_manifest", [True, False])
def test_a_flipped_bit_is_refused_and_named(usps, keep_manifest):
    damaged = bytearray(usps.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    usps.write_bytes(damaged)
    if not keep_manifest:
        without_manifest(usps)
    with pytest.raises(DataError, match=r"usps\.npz (is corrupt: its SHA-256 is|is not a whole \.npz file \(Bad CRC-32)"):
        load("usps", usps.parent)


def test_the_checksum_is_compared_once_per_change_and_by_a_thorough_check(usps):
    load("usps", usps.parent)
    stamp = usps.stat()
    arrays = {**load("usps", usps.parent)}
    arrays["train_y"] = (arrays["train_y"] + 1) % 10
    buffer = io.BytesIO()
    np.savez(buffer, **arrays, sample=np.array(True))
    assert len(buffer.getvalue()) == stamp.st_size
    usps.write_bytes(buffer.getvalue())
    os.utime(usps, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    np.testing.assert_array_equal(load("usps", usps.parent)["train_y"], arrays["train_y"])  # not seen: same size and time
    with pytest.raises(DataError, match="corrupt"):
        open_cache("usps", usps.parent, thorough=True)
    os.utime(usps)
    with pytest.raises(DataError, match="corrupt"):
        load("usps", usps.parent)


def test_a_touched_file_is_compared_and_remembered(usps):
    os.utime(usps, ns=(1, 1))
    load("usps", usps.parent)
    assert json.loads(usps.with_suffix(".json").read_text())["modified"] == 1


def test_a_real_set_found_without_a_manifest_is_known_by_its_content(real_stl10, tmp_path):
    np.savez_compressed(tmp_path / "stl10.npz", **real_stl10)
    arrays, manifest = open_cache("stl10", tmp_path)
    assert manifest.reference
    assert not manifest.sample
    np.testing.assert_array_equal(arrays["test_y"], real_stl10["test_y"])
    assert Manifest.read(tmp_path / "stl10.npz") == manifest


def test_other_content_without_a_manifest_is_refused_with_the_way_out(real_stl10, tmp_path):
    np.savez(tmp_path / "stl10.npz", **{**real_stl10, "test_y": np.zeros(8000, np.uint8)})
    with pytest.raises(DataError, match=r"form of stl10 but not its content \(digest .*; delete it and type: dualogic data get"):
        load("stl10", tmp_path)
    assert not (tmp_path / "stl10.json").exists()


def test_a_small_cache_that_is_not_marked_as_a_sample_is_refused(usps):
    np.savez(without_manifest(usps), **load_raw(usps, drop="sample"))
    with pytest.raises(DataError, match=r"train_x should be uint8 \(7291, 16, 16\) and is uint8 \(30, 16, 16\)"):
        load("usps", usps.parent)


def load_raw(path, drop=""):
    with np.load(path) as archive:
        return {key: archive[key] for key in archive.files if key != drop}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_y": None}, r"train_y should be uint8 \(30,\) and is missing"),
        ({"train_y": np.zeros(30, np.int64)}, r"train_y should be uint8 \(30,\) and is int64 \(30,\)"),
        ({"train_y": np.zeros(29, np.uint8)}, r"train_y should be uint8 \(30,\) and is uint8 \(29,\)"),
        ({"test_x": np.zeros((10, 28, 28), np.uint8)}, r"test_x should be uint8 \(10, 16, 16\) and is uint8 \(10, 28, 28\)"),
        ({"more": np.zeros(1)}, "more should not be there"),
    ],
)
def test_a_cache_of_another_form_is_refused_with_the_difference(usps, change, message):
    arrays = {key: array for key, array in {**load_raw(usps), **change}.items() if array is not None}
    np.savez(without_manifest(usps), **arrays)
    with pytest.raises(DataError, match=message):
        load("usps", usps.parent)


@pytest.mark.parametrize("text", ["", "{}", "[]", "{", '{"sha256": 1, "size": 2, "content": "", "reference": true}'])
def test_a_broken_manifest_is_refused_and_named(usps, text):
    Manifest.path(usps).write_text(text)
    with pytest.raises(DataError, match=r"usps\.json is not a manifest"):
        load("usps", usps.parent)


def test_objects_are_never_unpickled(usps):
    np.savez(without_manifest(usps), train_x=np.array([object], dtype=object))
    with pytest.raises(DataError, match="allow_pickle"):
        load("usps", usps.parent)


def test_writing_refuses_what_is_not_the_set(tmp_path):
    with pytest.raises(DataError, match="test_x should be"):
        write_cache("stl10", {"test_y": np.zeros(8000, np.uint8)}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_write_leaves_the_old_cache(usps, monkeypatch):
    before = load("usps", usps.parent)

    def fail(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(KeyboardInterrupt):
        make_sample("usps", usps.parent, seed=1)
    assert sorted(path.name for path in usps.parent.iterdir()) == ["usps.json", "usps.npz"]
    np.testing.assert_array_equal(load("usps", usps.parent)["train_x"], before["train_x"])


def test_a_sample_is_never_taken_for_the_real_set(usps):
    assert open_cache("usps", usps.parent)[1].sample
    assert open_cache("usps", without_manifest(usps).parent)[1].sample
    assert not open_cache("usps", usps.parent)[1].reference
    manifest = json.loads(usps.with_suffix(".json").read_text())
    usps.with_suffix(".json").write_text(json.dumps({**manifest, "sample": False}))
    with pytest.raises(DataError, match="disagree on whether it is a sample"):
        load("usps", usps.parent)


def test_the_schema_covers_every_name():
    assert set(NAMES) == set(SHAPES) == set(schema.REFERENCE)
