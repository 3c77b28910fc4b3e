"""Operations of networks as primitives of oneDNN 2.6: convolutions, pools, sums and others.

Each function takes memory descriptors and says how the library does the operation, or raises
`onednn.Status` where it does not. A descriptor made by the tag "any" leaves the choice to it::

    conv = convolution(src, weights, bias, dst, strides=(1, 1), pads=((1, 1), (1, 1)))
    conv.impl, conv.wants(DST)               what it chose
    run = conv.bound({SRC: (src, address), ...}); run()

Numbers of enumerators are those of the library's ``dnnl_types.h``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int64, c_void_p
from typing import Final

from .onednn import Desc, MemoryDesc, _call, _engine, _ExecArg, _Handle, _int64s, _library, _stream

SRC, SRC_1, DST, WEIGHTS, BIAS, MEAN, VARIANCE, MULTIPLE = 1, 2, 17, 33, 41, 49, 50, 1024
_FORWARD: Final = 96
_RELU, _BINARY_ADD, _DIRECT, _ACROSS = 0x1F, 0x1FFF0, 1, 0xAFF
_POOLS: Final = {"max": 0x1FF, "mean with border": 0x2FF, "mean": 0x3FF}
_GLOBAL_STATISTICS, _SCALE_SHIFT = 1, 2
_QUERY_IMPL = 8
_QUERIES: Final = {SRC: (129, 0), SRC_1: (129, 1), WEIGHTS: (131, 0), BIAS: (131, 1), DST: (133, 0)}
_LARGEST = 16384  # bytes, more than any operation descriptor has

Memories = Mapping[int, tuple[Desc, int]]
"""For each argument its descriptor and the address where its memory begins."""


def prepare() -> None:
    """One thread, and no primitives kept: by its lax equality the library mixes up 1 x 1 images."""
    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(1)
    _call("set_primitive_cache_capacity", 0)


class Operation:
    """An operation as the library will do it; ``impl`` names its implementation."""

    def __init__(self, handle: _Handle) -> None:
        self._handle = handle
        name = c_char_p()
        _call("primitive_desc_query", handle.pointer, _QUERY_IMPL, 0, byref(name))
        self.impl = (name.value or b"").decode()

    @property
    def is_reference(self) -> bool:
        """Whether it is the slow implementation that can do anything."""
        return self.impl.startswith("ref")

    def wants(self, argument: int) -> Desc:
        """The descriptor of an argument: what the library made of "any"."""
        query = _library().dnnl_primitive_desc_query_md
        query.restype = POINTER(MemoryDesc)
        found = query(self._handle.pointer, *_QUERIES[argument])
        copied = MemoryDesc()
        ctypes.memmove(byref(copied), found, ctypes.sizeof(MemoryDesc))
        return Desc(copied)

    def bound(self, memories: Memories) -> Callable[[], None]:
        """A function that does the operation on these memories, which must live as long."""
        primitive = _Handle("primitive", self._handle.pointer)
        engine, stream = _engine().pointer, _stream().pointer
        held = [
            _Handle("memory", byref(desc.raw), engine, c_void_p(address))
            for desc, address in memories.values()
        ]
        pairs = zip(memories, held, strict=True)
        arguments = (_ExecArg * len(held))(*[_ExecArg(k, m.pointer) for k, m in pairs])
        execute, wait = _library().dnnl_primitive_execute, _library().dnnl_stream_wait

        def run(keep: object = (primitive, held)) -> None:
            del keep
            if execute(primitive.pointer, stream, len(held), arguments) or wait(stream):
                raise RuntimeError(f"{self.impl} failed")

        return run


def _made(operation: str, *arguments: object, relu: bool = False) -> Operation:
    """The primitive descriptor of what ``dnnl_<operation>_desc_init`` is told."""
    described = (c_int64 * (_LARGEST // 8))()
    _call(f"{operation}_desc_init", byref(described), *arguments)
    attributes = _with_relu() if relu else None
    given = (byref(described), attributes.pointer if attributes else None, _engine().pointer, None)
    return Operation(_Handle("primitive_desc", *given))


def _with_relu() -> _Handle:
    attributes, after = _Handle("primitive_attr"), _Handle("post_ops")
    one, none = c_float(1), c_float(0)
    _call("post_ops_append_eltwise", after.pointer, one, _RELU, none, none)
    _call("primitive_attr_set_post_ops", attributes.pointer, after.pointer)
    return attributes


def _raw(desc: Desc | None) -> object:
    return None if desc is None else byref(desc.raw)


Pads = tuple[Sequence[int], Sequence[int]]
"""The border before and behind each dimension of the image."""


def convolution(
    src: Desc, weights: Desc, bias: Desc | None, dst: Desc, *, strides: Sequence[int], pads: Pads,
    relu: bool = False,
) -> Operation:  # fmt: skip
    """A convolution; weights of groups have a dimension more, in front."""
    sides = [_raw(d) for d in (src, weights, bias, dst)]
    border = [_int64s(p) for p in pads]
    return _made("convolution_forward", _FORWARD, _DIRECT, *sides, _int64s(strides), *border,
                 relu=relu)  # fmt: skip


def pool(
    src: Desc, dst: Desc, *, kind: str, window: Sequence[int], strides: Sequence[int], pads: Pads
) -> Operation:
    """The ``kind`` is "max", "mean", or "mean with border"."""
    numbers = [_int64s(n) for n in (strides, window, *pads)]
    return _made("pooling_forward", _FORWARD, _POOLS[kind], _raw(src), _raw(dst), *numbers)


def lrn(data: Desc, *, size: int, alpha: float, beta: float, k: float) -> Operation:
    """Local response normalisation over channels."""
    factors = [c_float(n) for n in (alpha, beta, k)]
    return _made("lrn_forward", _FORWARD, _ACROSS, _raw(data), c_int64(size), *factors)


def normalisation(data: Desc, *, epsilon: float, relu: bool = False) -> Operation:
    """Batch normalisation with known statistics; scale and shift are one tensor, [2][channels]."""
    flags = _GLOBAL_STATISTICS | _SCALE_SHIFT
    return _made("batch_normalization_forward", _FORWARD, _raw(data), c_float(epsilon), flags,
                 relu=relu)  # fmt: skip


def add(one: Desc, other: Desc, dst: Desc, *, relu: bool = False) -> Operation:
    """The sum of two tensors."""
    return _made("binary", _BINARY_ADD, _raw(one), _raw(other), _raw(dst), relu=relu)


def rectified(data: Desc) -> Operation:
    """The greater of an element and zero."""
    return _made("eltwise_forward", _FORWARD, _RELU, _raw(data), c_float(0), c_float(0))


def softmax(data: Desc, *, axis: int) -> Operation:
    """Softmax along an axis."""
    return _made("softmax_forward", _FORWARD, _raw(data), axis)


def product(src: Desc, weights: Desc, bias: Desc | None, dst: Desc, *, relu: bool) -> Operation:
    """A matrix times vectors: weights have a row for each output."""
    sides = [_raw(d) for d in (src, weights, bias, dst)]
    return _made("inner_product_forward", _FORWARD, *sides, relu=relu)


def concatenation(parts: Sequence[Desc], dst: Desc, *, axis: int) -> Operation:
    """Tensors one behind the other; the parts are the arguments MULTIPLE, MULTIPLE + 1, ..."""
    array = (MemoryDesc * len(parts))(*[p.raw for p in parts])
    given = (_raw(dst), len(parts), axis, array, None, _engine().pointer)
    return Operation(_Handle("primitive_desc", *given, create="concat_primitive_desc_create"))


def reorder(src: Desc, dst: Desc) -> Operation:
    """A copy into another layout."""
    engine = _engine().pointer
    given = (_raw(src), engine, _raw(dst), engine, None)
    return Operation(_Handle("primitive_desc", *given, create="reorder_primitive_desc_create"))
