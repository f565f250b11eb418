"""Hard satisfaction as a metric; needs torchmetrics (``pip install -e '.[metrics]'``)."""

from dualogic.metrics.satisfaction import Satisfaction

__all__ = ["Satisfaction"]
