"""Times of functions that take turns."""

import time

import pytest

from dualogic_paper.speed import clock, training


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_functions_take_turns_and_the_processor_is_timed(monkeypatch):
    monkeypatch.setattr(clock.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    calls = []
    found = clock.take_turns(
        {"short": lambda number: (calls.append(("short", number)), spin(1e-3)), "asleep": lambda number: time.sleep(5e-3)}, 6
    )
    assert calls == [("short", number) for number in range(6)]
    assert found["us"]["short"] >= 1000
    assert found["us"]["asleep"] < 2000 < found["us wall"]["asleep"]
    assert found["busy"]  # it waited for most of the time, as it would for others


@pytest.mark.parametrize(("load", "busy"), [(0.0, False), (1000.0, True)])
def test_a_loaded_machine_is_said(monkeypatch, load, busy):
    monkeypatch.setattr(clock.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(clock, "BUSY", 1e9)
    assert clock.take_turns({"one": lambda number: spin(1e-4)}, 6)["busy"] is busy


def test_steps_by_hand_have_the_results_of_the_library(monkeypatch):
    """Each compares them at its end."""
    monkeypatch.setattr(training, "REPEATS", 12)
    for measure in (training.cifar, training.many_rules, training.dl2):
        (figure,) = measure("cpu").values()
        assert figure["value"] > 0
