"""Hard satisfaction as a metric; needs torchmetrics (``pip install 'dualogic[metrics]'``)."""

from dualogic.metrics.satisfaction import Satisfaction

__all__ = ["Satisfaction"]
