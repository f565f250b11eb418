import json
import math
import threading

import pytest

from dualogic.errors import DataError
from dualogic_paper.everyday.store import Run, Store
from everyday.fabricate import make_run


def test_runs_come_back_as_they_were(tmp_path):
    store = Store(tmp_path / "new" / "folder")
    assert store.read() == []
    run = Run("loans", "dual", 1.0, 0, {"rmse": 1.25}, "Dual()", None, 2.5, "abc", "2026-01-01", {"torch": "2"})
    store.add([run])
    assert Store(store.folder).read() == [run]
    assert {run.key for run in store.read()} == {("loans", "dual", 1.0, 0)}


def test_a_run_is_kept_once_and_the_last_one_counts(tmp_path):
    store = Store(tmp_path)
    store.add([make_run("loans", "dual", 1, 2.0), make_run("loans", "dual", 0, 1.0), make_run("shop", "dual", 0, 80.0)])
    store.add([make_run("loans", "dual", 1, 3.0)])
    assert [(run.seed, run.metrics["rmse"]) for run in store.read("loans")] == [(0, 1.0), (1, 3.0)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loans.json", "shop.json"]
    assert len(json.loads((tmp_path / "loans.json").read_text())["runs"]) == 2


def test_what_is_not_a_number_comes_back(tmp_path):
    Store(tmp_path).add([make_run("loans", "dual", 0, math.nan)])
    assert "NaN" not in (tmp_path / "loans.json").read_text()
    assert math.isnan(Store(tmp_path).read()[0].metrics["rmse"])


def test_two_writers_lose_nothing(tmp_path):
    def write(method):
        for seed in range(10):
            Store(tmp_path).add([make_run("loans", method, seed, 1.0)])

    writers = [threading.Thread(target=write, args=(method,)) for method in ("dual", "hard")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(Store(tmp_path).read()) == 20


def test_a_broken_file_is_an_error_and_stays(tmp_path):
    (tmp_path / "loans.json").write_text("[1, 2")
    with pytest.raises(DataError, match=r"loans\.json must be an object"):
        Store(tmp_path).add([make_run("loans", "dual", 0, 1.0)])
    assert (tmp_path / "loans.json").read_text() == "[1, 2"
