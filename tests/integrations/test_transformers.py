"""Rules in Hugging Face's Trainer: the plain loop's duals, and runs that go on exactly where they stopped."""

import pytest
import torch

import dualogic as dl
from dualogic.report import read_runs
from integrations.examples import assert_equal, load, run, tensors_of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
OPTIONS = {"optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0.0, "learning_rate": 0.1, "seed": 5}


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("transformers")
    return load("with_transformers")


def stop_after(steps):
    from transformers import TrainerCallback

    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_training_stop = state.global_step >= steps

    return Stop()


def plain(example, trainer, over_labels):
    """The same training without Trainer, from the same weights, on the same batches.

    Over accumulated batches the rule's loss is the mean of its means, and so is the task's unless it is a mean over labels.
    """
    model, data = trainer.model, trainer.train_dataset
    logic = dl.LogicLoss(example.rule, num_samples=len(data))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.train()
    for batches in trainer.seen:
        optimizer.zero_grad()
        known = sum((batch["labels"] != example.UNLABELLED).sum() for batch in batches)
        for batch in batches:
            outputs = model(input_ids=batch["input_ids"])
            task = torch.nn.functional.cross_entropy(outputs.logits, batch["labels"], reduction="sum")
            task = task / (known if over_labels else (batch["labels"] != example.UNLABELLED).sum() * len(batches))
            rule = logic(batch["index"], **example.tensors(model, batch, outputs))
            (task + rule / len(batches)).backward()
        optimizer.step()
    return model, logic


def record(trainer, accumulated=1):
    """Let a trainer remember its batches, by optimizer step."""
    trainer.seen, collate = [], trainer.data_collator
    flat = []

    def remember(items):
        flat.append(collate(items))
        if len(flat) % accumulated == 0:
            trainer.seen.append(flat[-accumulated:])
        return flat[-1]

    trainer.data_collator = remember
    return trainer


def mean_over_labels(outputs, labels, num_items_in_batch=None):
    return torch.nn.functional.cross_entropy(outputs.logits, labels, reduction="sum") / num_items_in_batch


@pytest.mark.parametrize(("accumulated", "over_labels"), [(1, False), (2, False), (2, True)])
def test_the_example_ends_like_the_plain_loop(example, tmp_path, accumulated, over_labels):
    options = {**OPTIONS, "gradient_accumulation_steps": accumulated, "per_device_train_batch_size": 8}
    trainer = record(example.make(tmp_path, **options), accumulated)
    # A BERT says that it divides by the number of labels, and does not.
    trainer.model_accepts_loss_kwargs = False
    trainer.compute_loss_func = mean_over_labels if over_labels else None
    for module in trainer.model.modules():  # random numbers are drawn in another order by two loops
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    start = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    trainer.train()
    found = trainer.model.state_dict(), trainer.logic.state_dict()
    found = [{name: value.clone() for name, value in state.items() if torch.is_tensor(value)} for state in found]
    trainer.model.load_state_dict(start)
    assert len(trainer.seen) == trainer.state.global_step == 24 // accumulated
    model, logic = plain(example, trainer, over_labels)
    for state, expected in zip(found, (model.state_dict(), logic.state_dict())):
        for name, value in state.items():
            torch.testing.assert_close(value, expected[name], rtol=1e-5, atol=1e-6)
    assert bool((found[1]["table"] != 0).any())


def test_it_goes_on_from_any_step(example, tmp_path):
    options = {"save_strategy": "steps", "save_steps": 1, "seed": 5}
    whole = example.make(tmp_path / "whole", **options)
    whole.train()
    expected = tensors_of(whole.model, whole.logic)
    for stop in (1, 6, 9):
        folder = tmp_path / f"stop{stop}"
        first = example.make(folder, **options)
        first.add_callback(stop_after(stop))
        first.train()
        again = example.make(folder, **options)
        again.train(resume_from_checkpoint=True)
        assert again.state.global_step == 12
        assert_equal(tensors_of(again.model, again.logic), expected)
    torch.load(folder / f"checkpoint-{stop}" / "logic.pt", weights_only=True)
    other = example.make(folder, **options)
    other.logic = dl.LogicLoss(example.rule, num_samples=97)
    with pytest.raises(RuntimeError, match="num_samples is 96 in the checkpoint and 97 here"):
        other.train(resume_from_checkpoint=True)


def test_satisfaction_is_reported_and_the_model_sees_its_own_inputs_only(example, tmp_path):
    from transformers import default_data_collator

    trainer = example.make(tmp_path, num_train_epochs=1)
    trainer.train()
    found = trainer.evaluate()
    batch = default_data_collator([trainer.eval_dataset[row] for row in range(96)])
    with torch.no_grad():
        outputs = trainer.model.eval()(input_ids=batch["input_ids"])
        holds = example.rule.satisfied(**example.tensors(trainer.model, batch, outputs))
    assert found["eval_satisfied_rule"] == pytest.approx(holds.float().mean().item())
    unlabelled = dl.data.WithIndex([{name: item[name] for name in ("input_ids", "negated")} for item in example.sentences()])
    assert trainer.predict(unlabelled).predictions.shape == (96, 2)


def test_a_folder_is_recorded_for_the_report(example, tmp_path, monkeypatch):
    make = example.LogicTrainer
    monkeypatch.setattr(example, "LogicTrainer", lambda **options: make(record=tmp_path / "run", **options))
    trainer = example.make(tmp_path / "out", eval_strategy="epoch")
    trainer.train()
    (record,) = read_runs([tmp_path / "run"])
    assert [row["epoch"] for row in record.history] == [1, 2]
    logged = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    for row, entry, point in zip(record.history, logged, record.points):
        assert row["measure/eval_loss"] == entry["eval_loss"]
        assert point["validation"]["rule"]["all"]["satisfied"] == pytest.approx(entry["eval_satisfied_rule"], abs=1e-3)
        assert {"task_loss", "rule_loss", "delta/rule"} <= row.keys()
    assert record.result is not None
    trainer.evaluate()  # is no part of the training
    assert len(read_runs([tmp_path / "run"])[0].history) == 2
    trainer.train_dataset = example.sentences()
    with pytest.raises(IndexError):
        trainer.train()
    assert read_runs([tmp_path / "run"])[0].result is None
    assert not trainer.recorder.is_open


def test_a_data_set_without_indices_is_told_how_to_get_them(example, tmp_path):
    trainer = example.make(tmp_path)
    trainer.train_dataset = example.sentences()
    with pytest.raises(
        IndexError, match=r"its entries are .*labels.*; wrap the data set, train_dataset=dl.data.WithIndex\(dataset\)"
    ):
        trainer.train()


def test_a_mask_among_the_inputs_selects_samples(example, tmp_path):
    trainer = example.make(tmp_path, num_train_epochs=1)
    items = [{**item, "where": row % 3 == 0} for row, item in enumerate(example.sentences())]
    trainer.train_dataset = dl.data.WithIndex(items)
    trainer.train()
    moved = (trainer.logic.state_dict()["table"] != 0).any(1)
    assert not bool(moved[torch.arange(96) % 3 != 0].any())
    assert bool(moved.any())


def test_the_script_runs(capsys, example):
    run("with_transformers")
    assert "tensor([[" in capsys.readouterr().out
