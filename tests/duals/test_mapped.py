"""A table in a file: made in whole or not at all, opened for what it was made for, never replaced by zeros in silence."""

import errno
import json
import os
import pickle
import resource
import subprocess
import sys

import pytest
import torch

import dualogic as dl
from dualogic.duals import mapped

X, Y, P = dl.var("x"), dl.var("y"), dl.var("p", 500)
EITHER, BOTH = (X <= 0) | (Y <= 0), (X <= 0) & (Y <= 0)
REFUSED = dl.errors.StateError


def make(path, rules=EITHER, samples=7, method="dual", **options):
    return dl.LogicLoss(rules, samples, method, table=dl.Mapped(path, **options))


def train(logic, steps=3):
    for number in range(steps):
        generator = torch.Generator().manual_seed(number)
        x, y = torch.rand(2, 4, generator=generator) * 2
        logic(torch.randint(7, (4,), generator=generator), x=x.requires_grad_(), y=y)
    return logic


def test_a_file_has_its_space_from_the_start_and_is_opened_again(tmp_path):
    path = tmp_path / "table"
    logic = dl.LogicLoss((P <= 0).all(), 10_000, table=dl.Mapped(path), dtype=torch.bfloat16)
    assert os.stat(path).st_size == 4096 + 10_000 * 500 * 2
    assert os.stat(path).st_blocks * 512 >= os.stat(path).st_size
    index = torch.tensor([5, 9_999, 4_000])
    logic(index, p=torch.rand(3, 500, requires_grad=True))
    logic._table.state()
    again = dl.LogicLoss((P <= 0).all(), 10_000, table=dl.Mapped(path), dtype=torch.bfloat16)
    assert torch.equal(again.weights(index)["rule"], logic.weights(index)["rule"])
    assert again.weights(index)["rule"].std() > 0
    with pytest.raises(REFUSED, match=r"holds 10000 samples x 500 dual variables in bfloat16 .* needs 99 x 500"):
        dl.LogicLoss((P <= 0).all(), 99, table=dl.Mapped(path), dtype=torch.bfloat16)
    with pytest.raises(REFUSED, match="in float32"):
        dl.LogicLoss((P <= 0).all(), 10_000, table=dl.Mapped(path))


@pytest.mark.parametrize("content", ["something else", "", "[1]", "{}"])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "other"
    path.write_text(content)
    if not content:
        assert make(path)._table.values.shape == (7, 2)
        return
    with pytest.raises(REFUSED, match="other is not a table of dualogic"):
        make(path)
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": BOTH}, r"the rules are rule: \(x <= 0\) \| \(y <= 0\) there and rule: \(x <= 0\) & \(y <= 0\) here"),
        ({"rules": {"named": EITHER}}, r"the rules are rule: .* there and named: .* here"),
        (
            {"method": dl.methods.Dual(rule="projected")},
            "a row holds logits of weights there and differences from equal weights here",
        ),
        ({"method": "pd2"}, "the method is dual there and pd2 here"),
    ],
    ids=str,
)
def test_a_file_of_other_rules_or_another_method_is_refused(tmp_path, options, message):
    path = tmp_path / "table"
    before = train(make(path))._table.state()["table"].clone()
    with pytest.raises(REFUSED, match=rf"{path} was made for another loss: {message}; give another path"):
        make(path, **options)
    assert torch.equal(make(path)._table.values, before)
    # What checkpoints accept is accepted: the rows mean the same.
    assert torch.equal(make(path, method=dl.methods.Dual(rule="exponentiated", step=0.1))._table.values, before)


def test_the_order_of_the_rules_counts(tmp_path):
    rules = {"either": EITHER, "both": BOTH}
    make(tmp_path / "table", rules)
    with pytest.raises(REFUSED, match=r"the rules are either: .* there and both: "):
        make(tmp_path / "table", dict(reversed(rules.items())))


def test_long_rules_are_told_apart_where_their_beginnings_agree(tmp_path):
    parts = [number >= X for number in range(2000)]
    make(tmp_path / "table", dl.Or(*parts, Y <= 1))
    make(tmp_path / "table", dl.Or(*parts, Y <= 1))
    with pytest.raises(REFUSED, match="the rules are"):
        make(tmp_path / "table", dl.Or(*parts, Y <= 2))


def test_the_header_stays_within_its_page(tmp_path):
    """However long its texts are, and in whatever script."""
    classes = ["\N{OLD PERSIAN SIGN A}" * 20 + str(number) for number in range(2000)]
    f = dl.categorical("f", len(classes), classes=classes)
    rules = (f == classes[3]) | f.isin(classes[5:60]) | (X <= 0)
    several, more = (dl.methods.Dual(unlabelled={"f": list(range(0, last, 2))}) for last in (1900, 1902))
    logic = make(tmp_path / "table", rules, method=several)
    assert not logic._table.values.any()
    assert (tmp_path / "table").stat().st_size == 4096 + 4 * logic._table.values.numel()
    tensors = {"f": torch.full((1, len(classes)), 1 / len(classes), requires_grad=True), "x": torch.ones(1)}
    logic(torch.tensor([2]), **tensors)
    logic.state_dict()
    assert torch.equal(make(tmp_path / "table", rules, method=several)._table.values, logic._table.values)
    with pytest.raises(REFUSED, match="a row holds"):
        make(tmp_path / "table", rules, method=more)


def test_a_pickled_table_does_not_start_from_zeros(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logic = train(make("table"))
    pickled = pickle.dumps(logic)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert torch.equal(pickle.loads(pickled)._table.values, logic._table.values)
    (tmp_path / "table").rename(tmp_path / "moved")
    with pytest.raises(REFUSED, match=r"are in .*/table, which is not there; put the file back"):
        pickle.loads(pickled)
    assert not (tmp_path / "table").exists()
    make(tmp_path / "table")
    with pytest.raises(REFUSED, match="is not the file that this LogicLoss was pickled with, but another run's"):
        pickle.loads(pickled)
    (tmp_path / "moved").replace(tmp_path / "table")
    assert pickle.loads(pickled)._table.values.abs().max() > 0
    grown = pickle.loads(pickled).extend(9)
    assert torch.equal(pickle.loads(pickle.dumps(grown))._table.values, grown._table.values)


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    path = tmp_path / "table"
    size = train(make(path))._table._header.size
    whole = path.read_bytes()
    os.truncate(path, size - 8)
    with pytest.raises(REFUSED, match=rf"is not whole: it has {size - 8} bytes of {size}"):
        make(path)
    os.truncate(path, 100)
    with pytest.raises(REFUSED, match="is not a table of dualogic"):
        make(path)
    path.write_bytes(whole)
    make(path)
    path.write_bytes(json.dumps({"title": mapped.TITLE, "samples": 7}).encode().ljust(4096) + whole[4096:])
    with pytest.raises(REFUSED, match=r"the header of .* is damaged"):
        make(path)
    path.write_bytes(json.dumps({"title": "dualogic table 1", "samples": 7}).encode().ljust(4096) + whole[4096:])
    with pytest.raises(REFUSED, match=r"is a table of another version of dualogic \(dualogic table 1\)"):
        make(path)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_an_error_that_leaves_nothing_behind(tmp_path, monkeypatch, error):
    def fail(descriptor, offset, length):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    with pytest.raises(REFUSED, match=r"a table of 7 samples x 2 dual variables cannot be made: 4\.15 kB are needed on the disk"):
        make(tmp_path / "table")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_grow_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "table"
    logic = train(make(path))
    before, size = logic._table.state()["table"].clone(), os.stat(path).st_size

    def fail(descriptor, offset, length):
        os.ftruncate(descriptor, length)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", fail)
        with pytest.raises(REFUSED, match=r"table cannot grow: .* are needed on the disk"):
            logic.extend(1000)
    assert os.stat(path).st_size == size
    assert logic.num_samples == 7
    train(logic, 1)
    assert torch.equal(make(path)._table.values, logic._table.state()["table"])
    assert not torch.equal(logic._table.values, before)


@pytest.mark.parametrize("error", [AttributeError("posix_fallocate"), OSError(errno.EOPNOTSUPP, "not supported")], ids=str)
def test_space_is_taken_without_the_help_of_the_system_too(tmp_path, monkeypatch, error):
    def fail(descriptor, offset, length):
        raise error

    monkeypatch.setattr(os, "posix_fallocate", fail)
    path = tmp_path / "table"
    dl.LogicLoss((P <= 0).all(), 2000, table=dl.Mapped(path))
    assert os.stat(path).st_size == 4096 + 2000 * 500 * 4
    assert os.stat(path).st_blocks * 512 >= os.stat(path).st_size


@pytest.mark.parametrize("size", [4096, 4100, 1_000_000])
def test_a_file_whose_making_was_cut_short_is_made_again(tmp_path, monkeypatch, size):
    path = tmp_path / "table"
    # What is on the disk when the process ends while space is being reserved: nobody was there to clean up.
    with monkeypatch.context() as patched:
        patched.setattr(mapped, "reserve", lambda file, *_: file.truncate(size))
        patched.setattr(mapped.Header, "page", lambda *_: 1 / 0)
        patched.setattr(os, "unlink", lambda _: None)
        with pytest.raises(ZeroDivisionError):
            make(path)
    assert os.stat(path).st_size == size
    train(make(path))
    assert make(path)._table.values.abs().max() > 0


def test_a_disk_that_is_too_small_does_not_kill_the_process(tmp_path):
    """In a process that may not write files of more than a megabyte, as on a disk that has no more left."""
    code = (
        "import sys, torch, dualogic as dl\n"
        "rule = (dl.var('p', 500) <= 0).all()\n"
        "try:\n"
        "    dl.LogicLoss(rule, 100_000, table=dl.Mapped(sys.argv[1]))\n"
        "except dl.errors.StateError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "table")],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert found.returncode == 0, found.stderr
    assert "200.00 MB are needed on the disk and cannot be had" in found.stdout
    assert list(tmp_path.iterdir()) == []
