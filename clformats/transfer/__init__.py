"""Moving tensors between the host and devices, in pieces: `clformats.transfer.transfer`."""

from .route import transfer

__all__ = ["transfer"]
