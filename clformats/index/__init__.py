"""Source that tells where elements lie, for other people's kernels."""

from .constants import jit_constants
from .source import index_source

__all__ = ["index_source", "jit_constants"]
