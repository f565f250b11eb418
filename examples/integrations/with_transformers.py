"""A rule in Hugging Face's Trainer: `pip install -e '.[transformers]'`, `python examples/integrations/with_transformers.py`.

A tiny text classifier, built from a configuration. Few sentences are labelled; of the others we only know that a sentence and its
negation ("the film is good", "the film is not good") do not say the same.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

import dualogic as dl
from dualogic.integrations.transformers import LogicTrainer

WORDS = ["[PAD]", "the", "a", "film", "plot", "cast", "end", "is", "was", "not", "good", "fine", "great", "bad", "poor", "dull"]
NUMBER = {word: number for number, word in enumerate(WORDS)}
UNLABELLED = -100  # what the model's loss passes over

f = dl.categorical("f", 2, classes=["negative", "positive"], input="logits")  # of the sentence
g = dl.categorical("g", 2, classes=["negative", "positive"], input="logits")  # of its negation
rule = (f == "positive") >> (g == "negative")


def sentences() -> list[dict[str, Any]]:
    """Sentences with their negations; every fifth has a label."""
    found = []
    for place, words in enumerate(itertools.product(["the", "a"], ["film", "plot", "cast", "end"], ["is", "was"], WORDS[10:])):
        negated = [*words[:3], "not", words[3]]
        label = int(words[3] in ("good", "fine", "great"))
        found.append(
            {
                "input_ids": [NUMBER[word] for word in (*words, "[PAD]")],
                "negated": [NUMBER[word] for word in negated],
                "labels": label if place % 5 == 0 else UNLABELLED,
            }
        )
    return found


def tensors(model: torch.nn.Module, inputs: dict[str, Any], outputs: Any) -> dict[str, torch.Tensor]:
    """What the rule's symbols stand for."""
    return {"f": outputs.logits, "g": model(input_ids=inputs["negated"]).logits}


def make(folder: str | Path, **options: Any) -> LogicTrainer:
    """A trainer with a rule."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2
        )
    )
    data = dl.data.WithIndex(sentences())
    arguments = {"num_train_epochs": 2, "per_device_train_batch_size": 16, "learning_rate": 0.01, "save_strategy": "no"}
    return LogicTrainer(
        model=model,
        args=TrainingArguments(str(folder), report_to=[], disable_tqdm=True, use_cpu=True, **{**arguments, **options}),
        train_dataset=data,
        eval_dataset=data,
        logic=dl.LogicLoss(rule, num_samples=len(data)),
        tensors=tensors,
        columns=("negated",),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        trainer = make(folder)
        trainer.train()
        print(trainer.evaluate()["eval_satisfied_rule"])
        print(trainer.logic.weights(torch.arange(4))["rule"])
