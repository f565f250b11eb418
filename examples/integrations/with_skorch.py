"""A rule in a scikit-learn estimator: `pip install 'dualogic[skorch]'`, then `python examples/integrations/with_skorch.py`.

Tabular data: the diagnosis of a tumour (scikit-learn's breast cancer data, 0 malignant, 1 benign). A rule of the house: what is
far above the mean by area and by concavity is not called benign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import dualogic as dl
from dualogic.integrations.skorch import LogicClassifier

AREA, CONCAVITY = 3, 6

area, concavity = dl.var("area"), dl.var("concavity")
tumour = dl.categorical("tumour", 2, classes=["malignant", "benign"], input="logits")
rule = ((area >= 1.3) & (concavity >= 1.3)) >> (tumour == "malignant")


def tensors(net: Any, X: torch.Tensor, y_pred: torch.Tensor) -> dict[str, torch.Tensor]:
    """What the rule's symbols stand for."""
    return {"area": X[:, AREA], "concavity": X[:, CONCAVITY], "tumour": y_pred}


def data() -> tuple[np.ndarray, np.ndarray]:
    """Features and diagnoses."""
    found = load_breast_cancer()
    return found.data[:200].astype(np.float32), found.target[:200].astype(np.int64)


def make(samples: int, **options: Any) -> LogicClassifier:
    """A net with a rule."""
    torch.manual_seed(0)
    settings = {"max_epochs": 3, "batch_size": 32, "lr": 0.01, "optimizer": torch.optim.Adam, "verbose": 0}
    return LogicClassifier(
        nn.Sequential(nn.Linear(30, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 2)),
        criterion=nn.CrossEntropyLoss,
        iterator_train__shuffle=True,
        logic__rules=rule,
        logic__num_samples=samples,
        tensors=tensors,
        **{**settings, **options},
    )


if __name__ == "__main__":
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), make(len(X), verbose=1, max_epochs=10))
    pipeline.fit(X, y)
    print(pipeline.score(X, y), pipeline[-1].history[-1]["valid_satisfied"])
    print(pipeline[-1].logic_.weights(torch.arange(len(X) - 4, len(X)))["rule"])  # the first ones are kept for validation
