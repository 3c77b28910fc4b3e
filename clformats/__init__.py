"""Memory formats of deep-learning tensors on OpenCL devices, in clDNN and oneDNN style.

Formats, descriptors, pack, unpack and plans need no OpenCL; what does is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    CacheWarning,
    DeviceError,
    Error,
    InvalidArgument,
    InvalidAttr,
    InvalidDescriptor,
    InvalidExpression,
    InvalidFormat,
    InvalidNetwork,
    InvalidRecording,
    MappedError,
    NotDigits,
    Unsupported,
)
from .formats import Digit, Format, Layout, formats
from .formats.sums import Extra
from .host.memory import HostMemory
from .host.packing import pack, unpack
from .schedule import Plan, make_plan
from .schedule.choices import Choices
from .tensors.desc import RUNTIME_DIM, MemoryDesc
from .tensors.described import register
from .tensors.dtypes import BY_NAME, DTYPES, DType
from .values.attr import Attr, at_execution
from .values.groups import Grouped
from .values.transforms import transform, winograd
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .audits import audit
    from .files.checkpoints import read_safetensors
    from .files.gguf import read_gguf
    from .index import format_header, index_source, jit_constants
    from .interop import notations
    from .interop.dnnl import RnnPackedDesc, WinogradDesc
    from .interop.notations.conversion import convert
    from .networks import (
        Choice,
        Cost,
        Costs,
        FormatPlan,
        Kernels,
        Network,
        Node,
        Value,
        propagate,
    )
    from .pictures.calls import draw
    from .pictures.explaining import explain
    from .problems.compare import identify, same_bytes
    from .quantised import QuantisedDesc, QuantisedType, infer, layouts
    from .recording.load import load
    from .recording.recording import Recording
    from .recording.replay import Replay
    from .records import TunedWarning
    from .records.kernels import KernelRecords
    from .reorders.index_kernels import IndexKernels
    from .reorders.map import Map
    from .reorders.profiles import calibrate
    from .reorders.reorder import Reorder, reorder
    from .reorders.warm import warm_up
    from .runtime import (
        CompilerDied,
        Engine,
        Event,
        Memory,
        Stream,
        devices,
        from_array,
        from_dlpack,
        from_host,
        to_array,
    )
    from .transfers import from_numpy, to_numpy, transfer
    from .tuning.run import tune

__all__ = [
    "DTYPES",
    "RUNTIME_DIM",
    "Attr",
    "CacheWarning",
    "Choice",
    "Choices",
    "CompilerDied",
    "Cost",
    "Costs",
    "DType",
    "DeviceError",
    "Digit",
    "Engine",
    "Error",
    "Event",
    "Extra",
    "Format",
    "FormatPlan",
    "Grouped",
    "HostMemory",
    "IndexKernels",
    "InvalidArgument",
    "InvalidAttr",
    "InvalidDescriptor",
    "InvalidExpression",
    "InvalidFormat",
    "InvalidNetwork",
    "InvalidRecording",
    "KernelRecords",
    "Kernels",
    "Layout",
    "Map",
    "MappedError",
    "Memory",
    "MemoryDesc",
    "Network",
    "Node",
    "NotDigits",
    "Plan",
    "QuantisedDesc",
    "QuantisedType",
    "Recording",
    "Reorder",
    "Replay",
    "RnnPackedDesc",
    "Stream",
    "TunedWarning",
    "Unsupported",
    "Value",
    "WinogradDesc",
    "at_execution",
    "audit",
    "calibrate",
    "convert",
    "devices",
    "draw",
    "explain",
    "format_header",
    "formats",
    "from_array",
    "from_dlpack",
    "from_host",
    "from_numpy",
    "identify",
    "index_source",
    "infer",
    "jit_constants",
    "layouts",
    "load",
    "make_plan",
    "notations",
    "pack",
    "propagate",
    "read_gguf",
    "read_safetensors",
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

_ON_FIRST_USE = {
    **dict.fromkeys(
        (
            "Choice",
            "Cost",
            "Costs",
            "FormatPlan",
            "Kernels",
            "Network",
            "Node",
            "Value",
            "propagate",
        ),
        "clformats.networks",
    ),
    "audit": "clformats.audits",
    "convert": "clformats.interop.notations.conversion",
    "draw": "clformats.pictures.calls",
    "explain": "clformats.pictures.explaining",
    "notations": "clformats.interop",
    **dict.fromkeys(("RnnPackedDesc", "WinogradDesc"), "clformats.interop.dnnl"),
    **dict.fromkeys(("format_header", "index_source", "jit_constants"), "clformats.index"),
    **dict.fromkeys(("identify", "same_bytes"), "clformats.problems.compare"),
    **dict.fromkeys(("QuantisedDesc", "QuantisedType", "infer", "layouts"), "clformats.quantised"),
    "IndexKernels": "clformats.reorders.index_kernels",
    "Map": "clformats.reorders.map",
    "Recording": "clformats.recording.recording",
    "Replay": "clformats.recording.replay",
    "load": "clformats.recording.load",
    **dict.fromkeys(("Reorder", "reorder"), "clformats.reorders.reorder"),
    **dict.fromkeys(
        (
            "CompilerDied",
            "Engine",
            "Event",
            "Memory",
            "Stream",
            "devices",
            "from_array",
            "from_dlpack",
            "from_host",
            "to_array",
        ),
        "clformats.runtime",
    ),
    **dict.fromkeys(("from_numpy", "to_numpy", "transfer"), "clformats.transfers"),
    "KernelRecords": "clformats.records.kernels",
    "TunedWarning": "clformats.records",
    "calibrate": "clformats.reorders.profiles",
    "read_gguf": "clformats.files.gguf",
    "read_safetensors": "clformats.files.checkpoints",
    "tune": "clformats.tuning.run",
    "warm_up": "clformats.reorders.warm",
}


def __getattr__(name: str) -> Any:
    """Import what needs OpenCL, and what few programs need, when it is first used."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_ON_FIRST_USE[name]), name)
    return found


def _load_quantised_types(name: str) -> None:
    """Import the room that finds quantised types, for a name that no other element type has."""
    if name not in BY_NAME:
        import_module("clformats.quantised")


register(_load_quantised_types)  # the room registers what finds them after it


def __dir__() -> list[str]:
    return sorted(__all__)
