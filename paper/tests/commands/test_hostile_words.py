"""Options and files that make no sense are answered by one line, before any work."""

import bz2
import gzip
import io
import os
import zipfile

import numpy as np
import pytest
import torch

from command_answers import answer
from dualogic.cli import main
from dualogic.data import divide_by_class
from dualogic.errors import DataError, OptionError
from dualogic_paper.arms import parse_seeds
from dualogic_paper.data import convert as converting
from dualogic_paper.data import make_sample
from dualogic_paper.data.cache import load
from dualogic_paper.data.convert import convert
from dualogic_paper.runner import Config, Machine, train
from dualogic_paper.tasks import TASKS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["digits", "--jobs", "0"], "--jobs must be at least 1; got 0"),
        (["digits", "--jobs", "-3"], "--jobs must be at least 1; got -3"),
        (["digits", "--devices", "0"], "--devices must be at least 1; got 0"),
        (["digits", "--weight", "nan"], "--weight must be at least 0; got nan"),
        (["digits", "--weight", "inf"], "--weight must be at least 0; got inf"),
        (["digits", "--weight", "-1"], "--weight must be at least 0; got -1.0"),
        (["digits", "--held-out", "0"], "--held-out must be above 0 and below 1; got 0.0"),
        (["digits", "--held-out", "1"], "--held-out must be above 0 and below 1; got 1.0"),
        (["digits", "--held-out", "nan"], "--held-out must be above 0 and below 1; got nan"),
        (["digits", "--angle", "inf"], "--angle must be at least 0 and at most 180; got inf"),
        (["digits", "--learning-rate", "0"], "--learning-rate must be above 0; got 0.0"),
        (["digits", "--learning-rate", "nan"], "--learning-rate must be above 0; got nan"),
        (["digits", "--weight-decay", "-1"], "--weight-decay must be at least 0; got -1.0"),
        (["hwf", "--labelled-share", "2"], "--labelled-share must be at least 0 and at most 1; got 2.0"),
        (["digits", "--batch", "0"], "--batch must be at least 1; got 0"),
        (["hwf", "--held-out", "0"], "--held-out must be at least 1; got 0"),
        (["hwf", "--labelled-share", "nan"], "--labelled-share must be at least 0 and at most 1; got nan"),
        (["paths", "--held-out", "0"], "--held-out must be at least 1; got 0"),
        (["paths", "--nodes", "1"], "--nodes must be at least 2; got 1"),
        (["paths", "--width", "0"], "--width must be at least 1; got 0"),
        (["paths", "--first-output", "nan"], "--first-output must be a finite number; got nan"),
        (["cifar100", "--labelled", "0"], "--labelled must be at least 100; got 0"),
        (["cifar10-stl10", "--validation", "0"], "--validation must be at least 1; got 0"),
        (["digits", "--seeds", "0..99999999999"], "--seeds takes at most 10,000 numbers at once; got '0..99999999999'"),
        (["digits", "--seeds", "4..0"], "--seeds takes numbers such as 3, 0,2,5 or 0..4; got '4..0'"),
        (["digits", "--seeds", "²"], "--seeds takes numbers such as 3, 0,2,5 or 0..4; got '²'"),
        (["digits", "--seeds", "9" * 5000], "--seeds takes numbers such as 3, 0,2,5 or 0..4; got '9999"),
        (["digits", "--seeds", ","], "--seeds takes numbers such as 3, 0,2,5 or 0..4; got ','"),
    ],
)
def test_options_of_a_run(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert said in answer(["run", *words], capsys)
    assert list(tmp_path.iterdir()) == []


def test_seeds_are_taken_once():
    assert parse_seeds("3,0..2,2") == [3, 0, 1, 2]


@pytest.mark.parametrize("name", list(TASKS))
def test_every_number_of_every_task_must_be_finite(name):
    import dataclasses

    task = TASKS[name]()
    for field in dataclasses.fields(task):
        if isinstance(getattr(task, field.name), float):
            with pytest.raises(OptionError, match=f"--{field.name.replace('_', '-')} must be .*; got nan"):
                Config(dataclasses.replace(task, **{field.name: float("nan")}))


def test_sets_that_the_data_cannot_fill(tmp_path):
    import dataclasses

    machine = Machine(accelerator="cpu", data=tmp_path)
    digits = TASKS["digits"]().make_smoke(tmp_path)
    with pytest.raises(OptionError, match="--held-out 1e-09 leaves no image to choose by"):
        train(Config(dataclasses.replace(digits, held_out=1e-9)), machine)
    with pytest.raises(OptionError, match="class 0 has 3 samples, too few for sets of 2, 2; choose smaller sets"):
        divide_by_class(torch.zeros(3), 1, lambda count: [2, 2], 0)
    transfer = TASKS["cifar10-stl10"]().make_smoke(tmp_path)
    with pytest.raises(OptionError, match="must take at most 60 images together; got 9000 "):
        train(Config(dataclasses.replace(transfer, labelled=9000)), machine)
    formulas = TASKS["hwf-efficiency"]().make_smoke(tmp_path)
    with pytest.raises(OptionError, match=r"has no unlabelled samples for the rule; .* or --rule-on"):
        train(Config(dataclasses.replace(formulas, rule_on="unlabelled")), machine)


def header(shape, dtype="|u1", version=(1, 0)):
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape})
    length = len(text) + 1
    size = length.to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + text.encode() + b"\n"


def archive(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"test_x.npy": header((10**12,))}, "test_x claims 1,000,000,000,000 bytes, more than"),
        ({"test_x.npy": header((2007, 16, 16), "<U100000000")}, "test_x claims 205,516,800,000,000 bytes"),
        ({"test_x.npy": header((-5, 16, 16))}, "test_x claims "),
        ({"sample.npy": header((10**12,), "|b1")}, "sample claims 1,000,000,000,000 bytes, more than 1"),
        ({"bomb.npy": bytes(1 << 27)}, "bomb should not be there"),
        ({"test_x.npy": header((10,), version=(2, 0))}, "is not a whole .npz file (test_x has a header of another version)"),
        ({"test_x.npy": header((10,), "|O")}, "is not a whole .npz file"),
        ({"test_x.npy": b"\x93NUMPY"}, "is not a whole .npz file"),
        ({"test_x.npy": b""}, "is not a whole .npz file"),
    ],
)
def test_caches_that_claim_too_much(members, said, tmp_path, capsys):
    archive(tmp_path / "usps.npz", members)
    line = answer(["data", "check", "usps", "--folder", str(tmp_path)], capsys)
    assert said in line
    assert str(tmp_path / "usps.npz") in line


def test_a_cache_that_is_a_pipe_or_was_made_by_numpy(tmp_path, capsys):
    os.mkfifo(tmp_path / "usps.npz")
    assert "usps.npz is a pipe" in answer(["data", "check", "usps", "--folder", str(tmp_path)], capsys)
    (tmp_path / "usps.npz").unlink()
    made = make_sample("usps", tmp_path / "sample", train=20, test=10)
    with np.load(made) as arrays:
        np.savez_compressed(tmp_path / "usps.npz", **arrays)
    assert load("usps", tmp_path)["train_x"].shape == (20, 16, 16)


@pytest.mark.parametrize("command", ["list", "check usps"])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "usps.json is a pipe"),
        (lambda path: path.mkdir(), "usps.json is a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "usps.json is a device"),
        (lambda path: path.write_bytes(b"[" * 100_000), "usps.json is not a manifest"),
        (lambda path: path.touch() or os.truncate(path, 1 << 36), "usps.json has 68,719,476,736 bytes"),
    ],
)
def test_a_manifest_that_is_no_file_or_no_manifest(command, make, said, tmp_path, capsys):
    make_sample("usps", tmp_path, train=20, test=10)
    (tmp_path / "usps.json").unlink()
    make(tmp_path / "usps.json")
    main(["data", *command.split(), "--folder", str(tmp_path)])
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


def bomb(kind):
    content = bytes(1 << 24)
    if kind == "zip":
        buffer = io.BytesIO()
        archive(buffer, {"expr_train.json": content})
        return buffer.getvalue()
    return gzip.compress(content) if kind == "gz" else bz2.compress(content)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("mnist", ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"]),
        ("usps", ["usps.bz2", "usps.t.bz2"]),
        ("hwf", ["HWF.zip"]),
    ],
)
def test_official_files_that_are_bombs(name, files, tmp_path, monkeypatch):
    monkeypatch.setattr(converting, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(converting._read_at_most, "__defaults__", (1 << 20,))
    for file in files:
        (tmp_path / file).write_bytes(bomb(file.rpartition(".")[2].replace("bz2", "bz")))
    with pytest.raises(DataError, match=r"grows to more than 1,048,576 bytes when unpacked"):
        convert(name, {file: tmp_path / file for file in files})


def test_an_official_file_that_is_a_giant_or_a_pipe(tmp_path, capsys):
    with (tmp_path / "giant").open("wb") as file:
        file.truncate(1 << 40)
    words = ["data", "get", "usps", "--folder", str(tmp_path / "new"), "--from"]
    assert "1,099,511,627,776 bytes, more than any official file" in answer([*words, str(tmp_path / "giant")], capsys)
    os.mkfifo(tmp_path / "pipe")
    assert "pipe; it is the official file at" in answer([*words, str(tmp_path / "pipe")], capsys)


def test_errors_of_the_system_are_one_line(tmp_path, capsys):
    from tables.fabricate import make_result, write_runs

    write_runs(tmp_path / "runs", [make_result("digits", "dual", 0)])
    (tmp_path / "file").write_text("in the way")
    for words in (
        ["table", "digits", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)],
        ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "file" / "report.html")],
        ["run", "digits", "--runs", str(tmp_path / "file" / "runs")],
    ):
        assert str(tmp_path) in answer(words, capsys)
