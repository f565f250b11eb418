"""Options and files that make no sense are answered by one line, before any work."""

import json
import os
import random
import sys

import pytest

import dualogic as dl
from command_answers import answer
from dualogic.cli import main
from dualogic.errors import ParseError


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs", "0"], "--epochs must be at least 1; got 0"),
        (["--seed", "-1"], "--seed must be a whole number from 0 to "),
        (["--seed", "9" * 30], "--seed must be a whole number from 0 to "),
    ],
)
def test_options_of_the_demo(words, said, tmp_path, capsys):
    assert said in answer(["demo", "--quick", *words, "--out", str(tmp_path / "out")], capsys)


@pytest.mark.parametrize("seconds", ["nan", "0", "-1", "inf"])
def test_options_of_lint(seconds, tmp_path, capsys):
    file = tmp_path / "a.rules"
    file.write_text("bool a\nrule r: a\n")
    assert "timeout must be a number of seconds above 0" in answer(["lint", "--timeout", seconds, str(file)], capsys)


def test_a_rule_file_in_latin_1_shows_the_place(tmp_path, capsys):
    file = tmp_path / "wetter.rules"
    file.write_bytes("# R\xe4nder\nbool rain\nrule r: rain\n".encode("latin-1"))
    with pytest.raises(ParseError, match=r"wetter\.rules, line 1, column 4: the byte 0xe4 is not UTF-8") as caught:
        dl.load_rules(file)
    assert (caught.value.line, caught.value.column) == (1, 4)
    assert str(caught.value).endswith("save the file as UTF-8")
    file.write_bytes(b"\xef\xbb\xbfbool rain\r\n\xff")
    with pytest.raises(ParseError, match="line 2, column 1: the byte 0xff is not UTF-8"):
        dl.load_rules(file)
    assert main(["lint", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"dualogic: {file}, line 2, column 1: the byte 0xff is not UTF-8")
    assert captured.out == "1 file: 1 not read\n"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is a pipe, not a regular file; save what it holds in a file first"),
        (lambda path: path.mkdir(), "is a folder, not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is a device, not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda path: None, "No such file or directory"),
        (lambda path: path.write_bytes(b"#" * (5 << 20)), "a file of its kind has 4,194,304 at most"),
    ],
)
def test_what_is_no_rule_file(make, said, tmp_path, capsys):
    path = tmp_path / "a.rules"
    make(path)
    good = tmp_path / "good.rules"
    good.write_text("bool a\nrule r: a\n")
    assert main(["lint", str(path), str(good)]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith(f"dualogic: {path}")
    assert said in line
    assert "2 files" in captured.out


def test_line_ends_of_other_systems(tmp_path):
    file = tmp_path / "a.rules"
    for end in (b"\n", b"\r\n", b"\r"):
        file.write_bytes(b"\xef\xbb\xbfbool a, b" + end + b"rule r:" + end + b"    if a then b" + end)
        assert str(dl.load_rules(file)["r"]) == "a >> b"
        assert dl.load_rules(file).lines == {"r": 2}


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (RecursionError(), 1, "dualogic: the input is nested too deeply\n"),
        (MemoryError(), 1, "dualogic: the input needs more memory than there is\n"),
        (KeyboardInterrupt(), 130, "dualogic: interrupted; a run goes on where it was when started again\n"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_the_last_resort(raised, status, said, monkeypatch, capsys):
    from dualogic.cli import dispatch

    class Command:
        def run(self):
            raise raised

    monkeypatch.setattr(dispatch, "_parse", lambda arguments: Command())
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert main([]) == status
    assert capsys.readouterr().err == said


def test_random_bytes_are_no_rules(tmp_path):
    draw = random.Random(0)
    file = tmp_path / "noise.rules"
    for length in (1, 10, 1000):
        file.write_bytes(draw.randbytes(length))
        with pytest.raises(ParseError):
            dl.load_rules(file)
    file.write_bytes(json.dumps({"a": 1}).encode())
    with pytest.raises(ParseError):
        dl.load_rules(file)
