"""Moving tensors between the host and devices: `transfer` in pieces, `from_numpy`, `to_numpy`."""

import sys
from types import ModuleType

from .calls import from_numpy, to_numpy
from .route import transfer


class _Room(ModuleType):
    """A module that is called as its function is.

    Python names a package after its folder in the package around it, there in place of the
    function: ``cf.transfer`` is this module once anything of it was imported.
    """

    __call__ = staticmethod(transfer)
    __wrapped__ = staticmethod(transfer)


sys.modules[__name__].__class__ = _Room

__all__ = ["from_numpy", "to_numpy", "transfer"]
