"""Tensors in files: pack the weights of a .npy, .safetensors or .onnx file, and restore them.

`pack_file` and `unpack_file` do the jobs; docs/files.md says what is written where. Each kind of
file is one module with one class, a `common.Container`: its tensors, the texts that say how packed
ones lie, and a way to write a copy in which some tensors are others.
"""

from .common import Container, Options, Record, Tensor, Watch
from .jobs import pack_file, unpack_file
from .kinds import open_file
from .repack import is_layout, is_packed, pack_quantised, unpack_quantised
from .run import Mismatch, Summary

__all__ = [
           "Container",
           "Mismatch",
           "Options",
           "Record",
           "Summary",
           "Tensor",
           "Watch",
           "is_layout",
           "is_packed",
           "open_file",
           "pack_file",
           "pack_quantised",
           "unpack_file",
           "unpack_quantised",
]  # fmt: skip
