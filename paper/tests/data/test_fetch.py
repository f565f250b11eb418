import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dualogic.errors import DataError, MissingDataError
from dualogic_paper.data import NAMES, load, make_sample, schema
from dualogic_paper.data.fetch import get
from official_files import make_official, pretend, serve

BY_MACHINE = [name for name in NAMES if name != "hwf"]


@pytest.fixture
def official(monkeypatch):
    """Make a tiny set stand for the real one, and serve its files."""
    servers = []

    def start(name):
        arrays, files = make_official(name)
        server = serve(files)
        base, behaviour = server.__enter__()
        servers.append(server)
        pretend(monkeypatch, name, arrays, files, base)
        return arrays, files, behaviour

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def put(folder, files):
    folder.mkdir()
    for name, body in files.items():
        (folder / name).write_bytes(body)
    return folder


@pytest.mark.parametrize("name", BY_MACHINE)
def test_from_the_server_to_the_arrays(name, official, tmp_path):
    arrays, files, behaviour = official(name)
    behaviour.cuts = 1
    path, manifest, made = get(name, tmp_path)
    assert made
    assert manifest.reference
    assert len(manifest.sources) == len(files)
    loaded = load(name, tmp_path)
    for key, array in arrays.items():
        np.testing.assert_array_equal(loaded[key], array)
    downloads = tmp_path / "downloads" / name
    assert not downloads.exists()
    count = len(behaviour.requests)
    assert get(name, tmp_path) == (path, manifest, False)
    assert len(behaviour.requests) == count


def test_hwf_is_fetched_by_hand(official, tmp_path):
    arrays, files, _ = official("hwf")
    with pytest.raises(MissingDataError, match=r"save HWF\.zip from https://\S+, then type: dualogic data get hwf --from FILE"):
        get("hwf", tmp_path)
    folder = put(tmp_path / "mine", files)
    _, manifest, _ = get("hwf", tmp_path, files=folder / "HWF.zip")
    assert manifest.reference
    np.testing.assert_array_equal(load("hwf", tmp_path)["test_images"], arrays["test_images"])
    assert (folder / "HWF.zip").exists()


def test_a_file_without_a_checksum_that_says_something_else_needs_consent(official, monkeypatch, tmp_path):
    _, files, _ = official("hwf")
    monkeypatch.setitem(schema.REFERENCE, "hwf", "0" * 64)
    folder = put(tmp_path / "mine", files)
    with pytest.raises(DataError, match=r"HWF\.zip gives other content .* add --accept-different"):
        get("hwf", tmp_path, files=folder)
    assert not (tmp_path / "hwf.npz").exists()
    assert not get("hwf", tmp_path, files=folder, accept_different=True)[1].reference
    assert len(load("hwf", tmp_path)["train_result"]) == 3


def test_files_with_the_published_checksum_are_believed_and_the_difference_recorded(official, monkeypatch, tmp_path):
    official("usps")
    monkeypatch.setitem(schema.REFERENCE, "usps", "0" * 64)
    assert not get("usps", tmp_path)[1].reference
    assert len(load("usps", tmp_path)["train_y"]) == 6


def test_official_files_that_are_here_are_checked_too(official, tmp_path):
    arrays, files, behaviour = official("mnist")
    folder = put(tmp_path / "mine", files)
    victim = folder / "t10k-labels-idx1-ubyte.gz"
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte\.gz is not the official file, or corrupt: its MD5 is"):
        get("mnist", tmp_path, files=folder)
    victim.unlink()
    with pytest.raises(MissingDataError, match=r"no .*t10k-labels-idx1-ubyte\.gz; it is the official file at http"):
        get("mnist", tmp_path, files=folder)
    victim.write_bytes(files[victim.name])
    get("mnist", tmp_path, files=folder)
    np.testing.assert_array_equal(load("mnist", tmp_path)["train_x"], arrays["train_x"])
    assert not behaviour.requests


def test_a_file_corrupt_on_the_server_leaves_no_cache(official, tmp_path):
    _, files, behaviour = official("stl10")
    behaviour.files["stl10_binary.tar.gz"] = files["stl10_binary.tar.gz"][:-1] + b"?"
    with pytest.raises(DataError, match=r"stl10_binary\.tar\.gz is not the official file, or came corrupt"):
        get("stl10", tmp_path)
    with pytest.raises(MissingDataError):
        load("stl10", tmp_path)


def test_a_damaged_cache_and_a_sample_are_replaced(official, tmp_path):
    arrays, _, _ = official("usps")
    get("usps", tmp_path)
    (tmp_path / "usps.npz").write_bytes(b"damaged")
    assert get("usps", tmp_path)[2]
    make_sample("usps", tmp_path)
    _, manifest, made = get("usps", tmp_path)
    assert made
    assert not manifest.sample
    np.testing.assert_array_equal(load("usps", tmp_path)["train_x"], arrays["train_x"])


def test_downloads_can_be_kept(official, tmp_path):
    _, files, _ = official("cifar10")
    get("cifar10", tmp_path, keep=True)
    kept = tmp_path / "downloads" / "cifar10" / "cifar-10-python.tar.gz"
    assert kept.read_bytes() == files["cifar-10-python.tar.gz"]


def test_the_manifest_says_where_the_cache_came_from(official, tmp_path):
    official("mnist")
    get("mnist", tmp_path)
    manifest = json.loads((tmp_path / "mnist.json").read_text())
    assert manifest["size"] == (tmp_path / "mnist.npz").stat().st_size
    assert all(url.startswith("http://127.0.0.1") and sha.startswith("sha256:") for url, sha in manifest["sources"].items())
    assert manifest["converter"] == 1


KILLED_WHILE_WRITING = """
import sys, threading, time
import numpy as np
from pathlib import Path
from dualogic_paper.data import make_sample

whole, both = np.savez, threading.Barrier(2)

def slowly(file, **arrays):
    whole(file, **arrays)
    file.truncate(file.seek(0, 2) // 2)
    file.flush()
    if both.wait() == 0:
        print("half", flush=True)
    time.sleep(60)

np.savez = slowly
threads = [threading.Thread(target=make_sample, args=("usps", Path(folder), 1)) for folder in sys.argv[1:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_a_process_killed_while_writing_leaves_nothing_that_can_be_read(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    make_sample("usps", old, train=7)
    words = [sys.executable, "-c", KILLED_WHILE_WRITING, str(new), str(old)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)
    assert len(load("usps", old)["train_x"]) == 7
    with pytest.raises(MissingDataError):
        load("usps", new)
    for folder in (new, old):
        (leftover,) = folder.glob(".usps.npz.*.part")
        make_sample("usps", folder, train=9)
        assert len(load("usps", folder)["train_x"]) == 9
        assert not leftover.exists()  # its process is dead


def test_old_leftovers_are_removed(official, tmp_path):
    official("usps")
    old, young = (tmp_path / f".usps.npz.{process}.part" for process in (os.getppid(), 1))  # both are alive
    for path in (old, young):
        path.write_bytes(b"half")
    long_ago = time.time() - 3 * 24 * 60 * 60
    os.utime(old, (long_ago, long_ago))
    get("usps", tmp_path)
    assert not old.exists()
    assert young.exists()
