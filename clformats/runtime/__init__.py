"""The runtime: engines, streams and memory objects. Knows buffers and queues, knows no kernel."""

from ..opencl import devices
from ..programs.outcomes import CompilerDied
from .engine import Engine
from .event import Event
from .interop import from_array, from_dlpack, from_host, to_array
from .memory import Memory
from .stream import Stream

__all__ = [
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
]
