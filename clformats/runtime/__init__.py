"""The runtime: engines, streams and memory objects. Knows buffers and queues, knows no kernel."""

from .engine import Engine
from .memory import Memory, from_numpy, to_numpy
from .opencl import devices
from .stream import Event, Stream

__all__ = ["Engine", "Event", "Memory", "Stream", "devices", "from_numpy", "to_numpy"]
