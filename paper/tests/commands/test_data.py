import os

import pytest

from dualogic.cli import main
from dualogic_paper.data import make_sample
from official_files import make_official, pretend, serve


@pytest.fixture
def usps(monkeypatch):
    """A server with a tiny USPS that stands for the real one."""
    arrays, files = make_official("usps")
    with serve(files) as (base, behaviour):
        pretend(monkeypatch, "usps", arrays, files, base)
        yield behaviour


def test_get_list_and_check(usps, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DUALOGIC_DATA", str(tmp_path))
    usps.cuts = 1
    assert main(["data", "get", "usps"]) == 0
    assert capsys.readouterr().out == f"usps: made, {tmp_path / 'usps.npz'} (0.0 MB)\n"
    assert main(["data", "get", "usps", "usps"]) == 0
    assert capsys.readouterr().out == f"usps: already there, {tmp_path / 'usps.npz'} (0.0 MB)\n"
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(tmp_path)
    states = {line.split()[0]: line.split()[-1] for line in lines[1:]}
    assert states == {**dict.fromkeys(["mnist", "hwf", "cifar100", "cifar10", "stl10"], "absent"), "usps": "verified"}
    assert main(["data", "check"]) == 0
    assert capsys.readouterr().out == "usps: verified\n"


def test_a_set_that_fails_is_named_and_the_others_are_made(usps, tmp_path, capsys):
    assert main(["data", "get", "hwf", "usps", "--folder", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("usps: made")
    assert captured.err.strip().startswith("dualogic: hwf has to be fetched by hand: save HWF.zip from ")


def test_a_folder_that_cannot_be_made_is_one_line(usps, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["data", "get", "usps", "--folder", str(tmp_path / "file" / "data")]) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("dualogic: ")
    assert str(tmp_path / "file") in error
    assert "\n" not in error


def test_files_that_are_here(tmp_path, monkeypatch, capsys):
    arrays, files = make_official("hwf")
    pretend(monkeypatch, "hwf", arrays, files)
    (tmp_path / "mine.zip").write_bytes(files["HWF.zip"])
    assert main(["data", "get", "hwf", "--from", str(tmp_path / "mine.zip"), "--folder", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.startswith("hwf: made")
    assert (tmp_path / "new" / "hwf.npz").exists()


def test_check_finds_what_list_cannot_see(tmp_path, capsys):
    path = make_sample("usps", tmp_path)
    make_sample("stl10", tmp_path)
    stamp = path.stat()
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert main(["data", "list", "--folder", str(tmp_path)]) == 0
    assert "verified, a sample and not the real set" in capsys.readouterr().out
    assert main(["data", "check", "--folder", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == "stl10: verified, a sample and not the real set\n"
    assert captured.err.startswith(f"dualogic: {path} is corrupt: its SHA-256 is ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.write_bytes(b"half"), "refused: partial or replaced"),
        (lambda path: os.utime(path, ns=(1, 1)), "changed since it was verified, a sample and not the real set"),
        (lambda path: path.with_suffix(".json").unlink(), "not checked yet"),
        (lambda path: path.with_suffix(".json").write_text("{"), "is not a manifest"),
    ],
)
def test_list_says_what_is_known(change, said, tmp_path, capsys):
    change(make_sample("usps", tmp_path))
    assert main(["data", "list", "--folder", str(tmp_path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("usps ")]
    assert said in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["get"], "name one or more of mnist, "),
        (["get", "imagenet"], "a data set is one of mnist, usps, hwf, cifar100, cifar10, stl10; got 'imagenet'"),
        (["check"], "no data set in "),
        (["check", "mnist"], "type: dualogic data get mnist"),
    ],
)
def test_mistakes_are_one_line_and_status_1(words, said, tmp_path, capsys):
    assert main(["data", *words, "--folder", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_other_content_than_the_reference_is_said(usps, tmp_path, monkeypatch, capsys):
    from dualogic_paper.data import schema

    monkeypatch.setitem(schema.REFERENCE, "usps", "0" * 64)
    assert main(["data", "get", "usps", "--folder", str(tmp_path)]) == 0
    assert "usps: its content differs from what the project's results were measured on" in capsys.readouterr().out
    assert main(["data", "list", "--folder", str(tmp_path)]) == 0
    assert "verified, other content than the results were measured on" in capsys.readouterr().out
