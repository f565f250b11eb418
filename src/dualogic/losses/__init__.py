"""The truncated-normal loss and the rules for its scale, as pure functions."""

from dualogic.losses.delta import DELTA_RULES, exact_delta
from dualogic.losses.truncated_normal import half_normal_loss, half_normal_slope, truncated_normal_loss, truncated_normal_slope

__all__ = ["DELTA_RULES", "exact_delta", "half_normal_loss", "half_normal_slope"]
__all__ += ["truncated_normal_loss", "truncated_normal_slope"]
