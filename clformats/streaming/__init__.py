"""Moving tensors between the host and devices, in pieces: `clformats.streaming.transfer`."""

from .route import transfer

__all__ = ["transfer"]
