"""TensorBoard events, read back by TensorBoard itself."""

import dataclasses

import pytest

from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.tasks import DigitsMixed

pytest.importorskip("tensorboard")


def test_events_say_what_the_metrics_say(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    task = DigitsMixed().make_smoke(tmp_path)
    machine = Machine(accelerator="cpu", data=tmp_path, events=True)
    result = train(Config(dataclasses.replace(task, epochs=3)), machine, RunFolder(tmp_path / "run"))
    events = EventAccumulator(str(tmp_path / "run" / "events"), {"scalars": 0, "histograms": 0})
    events.Reload()
    for key in ("accuracy", "delta/rule", "pool/q_weight_sixes", "pool/not_p_holds_others"):
        found = {event.step: event.value for event in events.Scalars(key)}
        assert found == pytest.approx({int(row["epoch"]): row[key] for row in result.history})
    assert set(events.Tags()["histograms"]) == {"weights/rule/operand_0", "weights/rule/operand_1"}
    assert len(events.Histograms("weights/rule/operand_0")) == 3


def test_off_by_default(tmp_path):
    task = DigitsMixed().make_smoke(tmp_path)
    train(Config(task), Machine(accelerator="cpu", data=tmp_path), RunFolder(tmp_path / "run"))
    assert not (tmp_path / "run" / "events").exists()
