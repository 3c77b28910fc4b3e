"""Source with the offsets of elements, for kernels of users."""

from .constants import jit_constants
from .header import format_header
from .source import index_source

__all__ = ["format_header", "index_source", "jit_constants"]
