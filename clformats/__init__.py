"""Memory formats of deep-learning tensors on OpenCL devices, in clDNN and oneDNN style.

Formats, descriptors, pack, unpack and plans need no OpenCL; what does is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import notations
from .attr import Attr, at_execution
from .compare import identify, same_bytes
from .desc import RUNTIME_DIM, MemoryDesc
from .dnnl import RnnPackedDesc, WinogradDesc
from .dtypes import DTYPES, DType
from .errors import (
    DeviceError,
    Error,
    InvalidArgument,
    InvalidAttr,
    InvalidDescriptor,
    InvalidExpression,
    InvalidFormat,
    MappedError,
    Unsupported,
)
from .formats import Digit, Format, Layout, formats
from .formats.sums import Extra
from .host import pack, unpack
from .hostmemory import HostMemory
from .index import format_header, index_source, jit_constants
from .planner import Plan, make_plan
from .planner.choices import Choices
from .transforms import transform, winograd
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .kernels.map import Map
    from .kernels.places import IndexKernels
    from .kernels.reorder import Reorder, reorder
    from .kernels.warm import warm_up
    from .runtime import (
        Engine,
        Event,
        Memory,
        Stream,
        devices,
        from_array,
        from_dlpack,
        from_host,
        from_numpy,
        to_array,
        to_numpy,
    )
    from .streaming import transfer
    from .tuned import TunedWarning
    from .tuning import tune

__all__ = [
    "DTYPES",
    "RUNTIME_DIM",
    "Attr",
    "Choices",
    "DType",
    "DeviceError",
    "Digit",
    "Engine",
    "Error",
    "Event",
    "Extra",
    "Format",
    "HostMemory",
    "IndexKernels",
    "InvalidArgument",
    "InvalidAttr",
    "InvalidDescriptor",
    "InvalidExpression",
    "InvalidFormat",
    "Layout",
    "Map",
    "MappedError",
    "Memory",
    "MemoryDesc",
    "Plan",
    "Reorder",
    "RnnPackedDesc",
    "Stream",
    "TunedWarning",
    "Unsupported",
    "WinogradDesc",
    "at_execution",
    "devices",
    "format_header",
    "formats",
    "from_array",
    "from_dlpack",
    "from_host",
    "from_numpy",
    "identify",
    "index_source",
    "jit_constants",
    "make_plan",
    "notations",
    "pack",
    "reorder",
    "same_bytes",
    "to_array",
    "to_numpy",
    "transfer",
    "transform",
    "tune",
    "unpack",
    "warm_up",
    "winograd",
]

_ON_A_DEVICE = {
    "IndexKernels": "clformats.kernels.places",
    "Map": "clformats.kernels.map",
    **dict.fromkeys(("Reorder", "reorder"), "clformats.kernels.reorder"),
    **dict.fromkeys(
        (
            "Engine",
            "Event",
            "Memory",
            "Stream",
            "devices",
            "from_array",
            "from_dlpack",
            "from_host",
            "from_numpy",
            "to_array",
            "to_numpy",
        ),
        "clformats.runtime",
    ),
    "transfer": "clformats.streaming",
    "TunedWarning": "clformats.tuned",
    "tune": "clformats.tuning",
    "warm_up": "clformats.kernels.warm",
}


def __getattr__(name: str) -> Any:
    """Import what needs OpenCL when it is first asked for."""
    if name not in _ON_A_DEVICE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ON_A_DEVICE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
