"""Moving tensors between the host and devices: `transfer` in pieces, `from_numpy`, `to_numpy`."""

from .calls import from_numpy, to_numpy
from .route import transfer

__all__ = ["from_numpy", "to_numpy", "transfer"]
