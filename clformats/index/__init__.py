"""Source that tells where elements lie, for other people's kernels."""

from .source import index_source

__all__ = ["index_source"]
