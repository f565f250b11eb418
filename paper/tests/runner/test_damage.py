"""Damaged run folders: what is wrong is named in one line, and the other runs of a sweep go on."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys

import pytest
import torch

from attacks.damage import KINDS, KINDS_OF_JSON, damage, flip_a_bit
from dualogic.cli import main
from dualogic.errors import DataError, OptionError, StateError
from dualogic.files import remove_leftovers, save_whole, write_whole
from dualogic.report import read_runs
from dualogic_paper.runner import Config, Machine, Result, RunFolder, run_all, sweep, train
from dualogic_paper.runner.folder import CHECKPOINT, CONFIG, METRICS, RESULT
from dualogic_paper.runner.sweep import folder_of
from dualogic_paper.tables.store import read_results
from dualogic_paper.tasks import Digits
from tables.fabricate import make_result, write_runs

SURE = ["empty", "zeros", "Latin-1", "nested too deeply", "a list", "null", "another object", "a pipe", "a folder"]
"""What no reader can take for a run."""


@pytest.fixture
def runs(tmp_path):
    """Three runs that have ended."""
    for file in write_runs(tmp_path, [make_result("digits", "dual", seed) for seed in range(3)]):
        rows = json.loads(file.read_text())["history"]
        file.with_name(METRICS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize("kind", KINDS_OF_JSON)
@pytest.mark.parametrize("name", [CONFIG, RESULT, METRICS])
def test_table_and_report_name_a_damaged_file_and_show_the_others(name, kind, runs, capsys):
    broken = runs / "digits" / "dual" / "1" / name
    damage(broken, kind, 0)
    for words, reads in (
        (["table", "digits", "--runs", str(runs)], (RESULT,)),
        (["report", str(runs), "--out", str(runs / "report.html")], (CONFIG, RESULT, METRICS)),
    ):
        status = main(words)
        captured = capsys.readouterr()
        # A changed value may be one of the configuration, and runs that differ in it are not averaged.
        assert "written" in captured.out or "Ours" in captured.out or kind == "a changed value"
        lines = captured.err.splitlines()
        assert status == len(lines) <= 1
        if kind in SURE and name in reads and (name, kind) not in ((METRICS, "empty"), (CONFIG, "a folder"), (CONFIG, "a pipe")):
            (line,) = lines
            assert line.startswith("dualogic: ")
            assert str(broken) in line
            assert line.endswith("the run is left out")


@pytest.mark.parametrize("kind", SURE)
@pytest.mark.parametrize("name", [CONFIG, RESULT])
def test_a_damaged_run_does_not_stop_the_others_of_a_sweep(name, kind, tmp_path, monkeypatch):
    configs = [Config(Digits(), seed=seed) for seed in range(3)]
    write_runs(tmp_path, [make_result("digits", "dual", 1)])
    broken = folder_of(tmp_path, configs[1]).path / name
    damage(broken, kind, 0)
    trained = []

    def pretend(config, machine, folder, on_epoch=None):
        trained.append(config.seed)
        folder.write_json(RESULT, make_result("digits", "dual", config.seed))

    monkeypatch.setattr(sweep, "train", pretend)
    with pytest.raises(StateError, match="1 of 3 runs stopped with an error: ") as caught:
        run_all(configs, Machine(), tmp_path)
    assert str(broken) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert trained == [0, 2]


def test_run_shows_what_has_ended_beside_what_is_damaged(tmp_path, monkeypatch, capsys):
    write_runs(tmp_path, [make_result("digits", "dual", seed) for seed in range(2)])
    broken = tmp_path / "digits" / "dual" / "1" / RESULT
    broken.write_text("{")
    assert main(["run", "digits", "--seeds", "0..1", "--runs", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "digits dual 0: accuracy" in captured.out
    assert "digits dual 1" not in captured.out
    (line,) = captured.err.splitlines()
    assert line.startswith(f"dualogic: 1 of 2 runs stopped with an error: {broken} is not whole JSON")


def test_an_error_without_words_and_a_full_disk_do_not_stop_the_others(tmp_path, monkeypatch):
    raised = {0: RuntimeError(), 1: OSError(28, "No space left on device"), 2: None}

    def fail(config, machine, folder, on_epoch=None):
        if raised[config.seed] is not None:
            raise raised[config.seed]

    monkeypatch.setattr(sweep, "train", fail)
    with pytest.raises(StateError, match=r"2 of 3 runs stopped .*/0: RuntimeError; .*/1: .*No space left on device"):
        run_all([Config(Digits(), seed=seed) for seed in range(3)], Machine(), tmp_path)


def test_a_run_of_another_configuration_is_refused_before_any_work(tmp_path):
    RunFolder(tmp_path / "digits" / "dual" / "0").open(Config(Digits(epochs=3)))
    with pytest.raises(StateError, match="another configuration"):
        run_all([Config(Digits(), seed=seed) for seed in (1, 0)], Machine(), tmp_path)


# ---------------------------------------------------------------------- checkpoints


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped after its first epoch: its configuration, its machine and its folder."""
    data = tmp_path_factory.mktemp("data")
    config = Config(dataclasses.replace(Digits().make_smoke(data), epochs=2, batch=64), "dual")
    machine = Machine(accelerator="cpu", data=data, checkpoint_seconds=0.0)

    class Stop(Exception):
        pass

    def stop(epoch, measures):
        raise Stop

    folder = RunFolder(data / "run")
    with pytest.raises(Stop):
        train(config, machine, folder, stop)
    return config, machine, folder, (folder.path / CHECKPOINT).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_checkpoint_is_named(stopped, kind):
    config, machine, folder, whole = stopped
    file = folder.path / CHECKPOINT
    try:
        if kind == "a sparse giant":
            os.truncate(file, len(whole) // 2)
        else:
            damage(file, kind, 0)
        with pytest.raises(DataError, match=r"checkpoint\.pt (is|does|cannot).*") as caught:
            folder.load(CHECKPOINT)
        assert "\n" not in str(caught.value)
        with pytest.raises(DataError, match=r"checkpoint\.pt"):
            train(config, machine, folder)
    finally:
        file.rmdir() if file.is_dir() else file.unlink()
        file.write_bytes(whole)


def test_every_flipped_bit_of_a_checkpoint_is_noticed(stopped):
    _, _, folder, whole = stopped
    draw = random.Random(0)
    file = folder.path / CHECKPOINT
    try:
        for _ in range(100):
            file.write_bytes(flip_a_bit(whole, draw))
            with pytest.raises(DataError, match="checksum"):
                folder.load(CHECKPOINT)
        for place in range(1, 100, 7):  # in the checksum itself
            file.write_bytes(whole[:-place] + bytes([whole[-place] ^ 1]) + whole[len(whole) - place + 1 :])
            with pytest.raises(DataError, match="checksum"):
                folder.load(CHECKPOINT)
    finally:
        file.write_bytes(whole)


def test_a_whole_checkpoint_of_something_else_is_named(stopped):
    config, machine, folder, whole = stopped
    there = folder.load(CHECKPOINT)
    for state in ({"progress": {}}, [1], {**there, "network": {}}, {**there, "progress": {"x": 1}}):
        folder.save(CHECKPOINT, state)
        with pytest.raises(DataError, match=r"checkpoint\.pt is not a checkpoint of this version .*starts from its beginning"):
            train(config, machine, folder)
    (folder.path / CHECKPOINT).write_bytes(whole)


def test_torch_reads_what_a_folder_saves(tmp_path):
    RunFolder(tmp_path).save("model.pt", {"weight": torch.ones(3)})
    assert torch.load(tmp_path / "model.pt", weights_only=True)["weight"].tolist() == [1, 1, 1]


# ---------------------------------------------------------------------- leftovers


def killed_while_writing(path):
    """Start a process, let it begin to write a file, and kill it."""
    code = (
        "import sys, time, pathlib\nfrom dualogic.files import write_whole\n"
        "with write_whole(pathlib.Path(sys.argv[1])) as file:\n"
        "    file.write(b'half'); file.flush(); print('writing', flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "writing\n"
    return child


def end(child):
    child.send_signal(signal.SIGKILL)
    child.communicate()


def test_what_a_killed_run_was_writing_is_gone_after_the_next(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open(Config(Digits()))
    child = killed_while_writing(folder.path / CHECKPOINT)
    living = [file.name for file in folder.path.glob(".*.part")]
    assert living == [f".{CHECKPOINT}.{child.pid}.part"]
    folder.open(Config(Digits()))
    save_whole({}, folder.path / CHECKPOINT)
    assert [file.name for file in folder.path.glob(".*.part")] == living, "a living process is still writing it"
    end(child)
    folder.open(Config(Digits()))
    assert not list(folder.path.glob(".*.part"))


def test_leftovers_by_number_and_age(tmp_path):
    mine, other, old = (tmp_path / f".x.{number}.part" for number in (os.getpid(), 1, os.getppid()))
    for file in (mine, other, old, tmp_path / ".x.part", tmp_path / "x.1.part", tmp_path / ".x.y.part"):
        file.write_text("half")
    os.utime(old, (1, 1))
    remove_leftovers(tmp_path, "y")
    assert mine.exists()
    remove_leftovers(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [".x.1.part", ".x.part", ".x.y.part", "x.1.part"]
    remove_leftovers(tmp_path / "absent")


def test_a_failed_write_leaves_nothing(tmp_path):
    def fail():
        with write_whole(tmp_path / "a") as file:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- from Python


def test_reading_raises_by_default(runs):
    (runs / "digits" / "dual" / "1" / RESULT).write_text("{")
    with pytest.raises(DataError, match=r"result\.json is not whole JSON"):
        read_results(runs, "digits")
    with pytest.raises(DataError, match=r"result\.json is not whole JSON"):
        read_runs([runs])
    named = []
    assert len(read_results(runs, "digits", named.append).runs) == 2
    assert len(read_runs([runs], named.append)) == 2
    assert len(named) == 2
    with pytest.raises(DataError, match=r"result\.json is not whole JSON"):
        read_runs([runs / "digits" / "dual" / "1"], named.append)


def test_a_damaged_baseline_is_no_baseline(runs):
    write_runs(runs, [make_result("digits", "none", 0)])
    (runs / "digits" / "none" / "0" / RESULT).write_text("{")
    (record,) = read_runs([runs / "digits" / "dual" / "0"])
    assert isinstance(Result(**record.result), Result)


def test_jobs_are_counted_from_one(tmp_path):
    with pytest.raises(OptionError, match="--jobs must be at least 1; got 0"):
        run_all([], Machine(), tmp_path, jobs=0)
