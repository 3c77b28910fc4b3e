"""A ctypes binding to oneDNN 2.6: memory descriptors and reorders on the CPU.

Conformance tests ask it what the right answer is; benchmarks race against it. It shows the library
as it is, defects included, and repeats none of its rules: only what would make the library touch
memory that is not ours is refused here, with ValueError. Every refusal by the library itself is a
`Status`.

    src = Desc.by_tag((2, 17, 5, 4), "f32", "nchw")
    dst = Desc.by_tag((2, 17, 5, 4), "f32", "nChw16c")
    out = np.empty(dst.span(), np.uint8)
    Reorder(src, dst).execute(np.ones(src.dims, np.float32), out)

Nothing is loaded before the first use; `available` tells whether that would work.
"""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

RUNTIME_DIM: Final = -(2**63)  # a dim or stride that is given at execution
RUNTIME_SIZE: Final = 2**63  # what `Desc.size` answers where there is one
MAX_NDIMS: Final = 12

# The index is the library's code.
DTYPES: Final = ("undef", "f16", "bf16", "f32", "s32", "s8", "u8")
ITEMSIZES: Final = (0, 2, 2, 4, 4, 1, 1)  # bytes
KINDS: Final = ("undef", "any", "blocked", "wino", "rnn_packed")

_SONAME: Final = "libdnnl.so.2"
_VERSION: Final = (2, 6)  # the tag numbers and the structures below are this version's
_MEND: Final = "on Debian 12: apt-get install libdnnl2"
_STATUS_NAMES: Final = {
    1: "out_of_memory",
    2: "invalid_arguments",
    3: "unimplemented",
    5: "runtime_error",
}
_CPU, _IN_ORDER, _IMPL_INFO_STR, _ARG_SRC, _ARG_DST = 1, 1, 8, 1, 17


class Status(Exception):
    """A call of the library that failed: the code it returned, its name, and the function."""

    def __init__(self, code: int, name: str, call: str) -> None:
        super().__init__(f"{call} returned {code} ({name})")
        self.code = code
        self.name = name
        self.call = call


def _read_tags(path: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Read the table of tags: canonical name -> number, alias -> canonical name."""
    numbers: dict[str, int] = {"undef": 0, "any": 1}
    aliases: dict[str, str] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            number, name, *others = line.split()
            numbers[name] = int(number)
            aliases.update(dict.fromkeys(others, name))
    return numbers, aliases


_NUMBERS, ALIASES = _read_tags(Path(__file__).with_name("onednn_2_6_tags.txt"))
TAGS = {name: number for name, number in _NUMBERS.items() if name not in ("undef", "any")}

_Dims = c_int64 * MAX_NDIMS


class Blocking(ctypes.Structure):
    """dnnl_blocking_desc_t: outer strides, then the inner blocks, outermost first."""

    _fields_ = (
        ("strides", _Dims),
        ("inner_nblks", c_int),
        ("inner_blks", _Dims),
        ("inner_idxs", _Dims),
    )


class Extra(ctypes.Structure):
    """dnnl_memory_extra_desc_t: what lies behind the data of quantised weights."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("compensation_mask", c_int),
        ("scale_adjust", c_float),
        ("asymm_compensation_mask", c_int),
        ("reserved", ctypes.c_char * 60),
    )


class MemoryDesc(ctypes.Structure):
    """dnnl_memory_desc_t of 2.6, 696 bytes.

    In C a union stands where `blocking` does. Its other members (Winograd, packed RNN weights)
    are not larger, and nothing here reads them.
    """

    _fields_ = (
        ("ndims", c_int),
        ("dims", _Dims),
        ("data_type", c_int),
        ("padded_dims", _Dims),
        ("padded_offsets", _Dims),
        ("offset0", c_int64),
        ("format_kind", c_int),
        ("blocking", Blocking),
        ("extra", Extra),
    )


class _Version(ctypes.Structure):
    """The head of dnnl_version_t, which the library hands out by pointer."""

    _fields_ = (("major", c_int), ("minor", c_int), ("patch", c_int))


class _ExecArg(ctypes.Structure):
    """dnnl_exec_arg_t: which argument a memory object is."""

    _fields_ = (("arg", c_int), ("memory", c_void_p))


@functools.cache
def available() -> str | None:
    """Return None if the library can be used, else the reason and the command that mends it."""
    try:
        found = version()
    except OSError as error:
        return f"cannot load oneDNN ({error}); {_MEND}"
    if found[:2] != _VERSION:
        return f"{_SONAME} is oneDNN {'.'.join(map(str, found))}, not 2.6; {_MEND}"
    return None


def version() -> tuple[int, int, int]:
    """Return major, minor and patch number of the installed library; OSError if there is none."""
    ask = ctypes.CDLL(_SONAME).dnnl_version
    ask.restype = POINTER(_Version)
    head = ask().contents
    return (head.major, head.minor, head.patch)


@functools.cache
def _library() -> ctypes.CDLL:
    """Load the library; RuntimeError if it is not `available`."""
    reason = available()
    if reason is not None:
        raise RuntimeError(reason)
    library = ctypes.CDLL(_SONAME)
    library.dnnl_memory_desc_get_size.restype = c_size_t
    return library


def _call(name: str, *args: object) -> None:
    """Call dnnl_<name>; raise Status if it does not return success.

    Without a declared signature an int travels as a C int; all that is wider comes as ctypes.
    """
    code = getattr(_library(), f"dnnl_{name}")(*args)
    if code != 0:
        raise Status(code, _STATUS_NAMES.get(code, "unknown"), f"dnnl_{name}")


class _Handle:
    """An object of the library, destroyed together with this one, at the latest at exit.

    At exit the newest goes first, so the engine goes last.
    """

    def __init__(self, kind: str, *args: object, create: str = "") -> None:
        self.pointer = c_void_p()
        _call(create or f"{kind}_create", byref(self.pointer), *args)
        weakref.finalize(self, _call, f"{kind}_destroy", self.pointer)


@functools.cache
def _engine() -> _Handle:
    """Create the CPU engine, one per process."""
    return _Handle("engine", _CPU, c_size_t(0))


@functools.cache
def _stream() -> _Handle:
    """Create the stream of the CPU engine, one per process."""
    return _Handle("stream", _engine().pointer, _IN_ORDER)


def _int64s(values: Sequence[int]) -> ctypes.Array[c_int64]:
    """Make a C array of the values, long enough for whatever the library may read."""
    return (c_int64 * max(len(values), MAX_NDIMS))(*values)


def _of_length(ndims: int, what: str, values: Sequence[int]) -> ctypes.Array[c_int64]:
    """Make a C array of values whose number the library takes for granted."""
    if len(values) != ndims:
        raise ValueError(f"{what} {tuple(values)} has {len(values)} entries, needed are {ndims}")
    return _int64s(values)


class Desc:
    """A memory descriptor: the library's answer to one of the constructors or methods below.

    `dims`, `padded_dims`, `padded_offsets`, `strides` (of the outer index, index // block),
    `inner_blks` and `inner_idxs` are tuples, `offset0` and `ndims` are ints, all in elements;
    `dtype` is one of DTYPES, `kind` one of KINDS. Where kind is not "blocked", strides and blocks
    are (). `raw` is the C structure, for what has no method: `raw.extra.flags = 1` asks for s8s8
    compensation. Descriptors compare by the library's rule, and cannot be hashed.
    """

    __hash__ = None  # type: ignore[assignment]  # raw.extra may change

    def __init__(self, raw: MemoryDesc) -> None:
        ndims = raw.ndims
        self.raw = raw
        self.ndims: int = ndims
        self.dims: tuple[int, ...] = tuple(raw.dims[:ndims])
        self.padded_dims: tuple[int, ...] = tuple(raw.padded_dims[:ndims])
        self.padded_offsets: tuple[int, ...] = tuple(raw.padded_offsets[:ndims])
        self.offset0: int = raw.offset0
        self.dtype = DTYPES[raw.data_type]
        self.kind = KINDS[raw.format_kind]
        blocking = raw.blocking if self.kind == "blocked" else Blocking()
        self.strides: tuple[int, ...] = tuple(blocking.strides[: ndims * (self.kind == "blocked")])
        self.inner_blks: tuple[int, ...] = tuple(blocking.inner_blks[: blocking.inner_nblks])
        self.inner_idxs: tuple[int, ...] = tuple(blocking.inner_idxs[: blocking.inner_nblks])

    @classmethod
    def _made_by(cls, function: str, *args: object) -> Desc:
        raw = MemoryDesc()
        _call(f"memory_desc_{function}", byref(raw), *args)
        return cls(raw)

    @classmethod
    def by_tag(cls, dims: Sequence[int], dtype: str, tag: str) -> Desc:
        """Lay out by a tag, an alias, "any" or "undef"; ValueError for names it does not know."""
        number = _NUMBERS.get(ALIASES.get(tag, tag))
        if number is None:
            raise ValueError(f"oneDNN 2.6 has no format tag {tag!r}")
        code = DTYPES.index(dtype)
        return cls._made_by("init_by_tag", len(dims), _int64s(dims), code, number)

    @classmethod
    def by_strides(
        cls, dims: Sequence[int], dtype: str, strides: Sequence[int] | None = None
    ) -> Desc:
        """Lay out without blocks, by one stride per dim; row-major if there are none."""
        steps = None if strides is None else _of_length(len(dims), "strides", strides)
        code = DTYPES.index(dtype)
        return cls._made_by("init_by_strides", len(dims), _int64s(dims), code, steps)

    def submemory(self, dims: Sequence[int], offsets: Sequence[int]) -> Desc:
        """Describe the region of the given dims that starts at the logical index `offsets`."""
        size = _of_length(self.ndims, "dims", dims)
        start = _of_length(self.ndims, "offsets", offsets)
        return self._made_by("init_submemory", byref(self.raw), size, start)

    def reshape(self, dims: Sequence[int]) -> Desc:
        """Describe the same memory with other dims: of the same volume, any number of them."""
        return self._made_by("reshape", byref(self.raw), len(dims), _int64s(dims))

    def permute_axes(self, perm: Sequence[int]) -> Desc:
        """Rename dim i to perm[i], in the same memory: the inverse of numpy's transpose."""
        axes = (c_int * MAX_NDIMS)(*_of_length(self.ndims, "perm", perm))
        return self._made_by("permute_axes", byref(self.raw), axes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Desc):
            return NotImplemented
        return bool(_library().dnnl_memory_desc_equal(byref(self.raw), byref(other.raw)))

    def __repr__(self) -> str:
        fields = ("dims", "padded_dims", "offset0", "strides", "inner_blks", "inner_idxs")
        values = " ".join(f"{name}={getattr(self, name)}" for name in fields)
        return f"<Desc {self.kind} {self.dtype} {values}>"

    def size(self) -> int:
        """Count the bytes as the library does: 0 for a submemory with an offset (see `span`)."""
        return int(_library().dnnl_memory_desc_get_size(byref(self.raw)))

    def span(self) -> int:
        """Count the bytes from the start of the buffer to the end of the last block in use.

        Unlike `size` this includes offset0 and broadcast dims, and excludes the gap behind the
        last row. It is `size` where blocks do not tell: other kinds, compensation, runtime dims.
        """
        size = self.size()
        if self.kind != "blocked" or self.raw.extra.flags or size == RUNTIME_SIZE:
            return size
        if 0 in self.dims:
            return 0
        block = [1] * self.ndims
        for width, dim in zip(self.inner_blks, self.inner_idxs, strict=True):
            block[dim] *= width
        last = self.offset0 + math.prod(block) - 1
        for padded, width, stride in zip(self.padded_dims, block, self.strides, strict=True):
            last += ((padded - 1) // width) * stride
        return (last + 1) * ITEMSIZES[self.raw.data_type]


@dataclass(frozen=True)
class Attributes:
    """What version 2 computes: scale * (src - src_zero_point) + dst_zero_point + beta * old.

    ``scales`` are (values, mask). Arguments 1 and 17 are a reorder's source and destination.
    """

    scales: tuple[Sequence[float], int] | None = None
    src_zero_point: int = 0
    dst_zero_point: int = 0
    beta: float = 0.0

    def handle(self) -> _Handle:
        """The library's object."""
        attr = _Handle("primitive_attr")
        if self.scales is not None:
            values, mask = self.scales
            array = (c_float * len(values))(*values)
            set_scales = "primitive_attr_set_output_scales"
            _call(set_scales, attr.pointer, c_int64(len(values)), mask, array)
        for argument, point in ((_ARG_SRC, self.src_zero_point), (_ARG_DST, self.dst_zero_point)):
            if point:
                value = (c_int * 1)(point)
                set_point = "primitive_attr_set_zero_points"
                _call(set_point, attr.pointer, argument, c_int64(1), 0, value)
        if self.beta:
            after = _Handle("post_ops")
            _call("post_ops_append_sum", after.pointer, c_float(self.beta))
            _call("primitive_attr_set_post_ops", attr.pointer, after.pointer)
        return attr


class Reorder:
    """A prepared copy from one layout and element type to another, with attributes perhaps.

    Status if the library cannot do it, or if a dim or stride is RUNTIME_DIM. `impl` names the
    implementation that it chose. Two threads must not execute one object at the same time.
    """

    def __init__(self, src: Desc, dst: Desc, *, attributes: Attributes | None = None) -> None:
        engine = _engine().pointer
        attr = attributes.handle() if attributes else None
        ends = (byref(src.raw), engine, byref(dst.raw), engine, attr.pointer if attr else None)
        plan = _Handle("primitive_desc", *ends, create="reorder_primitive_desc_create")
        name = c_char_p()
        _call("primitive_desc_query", plan.pointer, _IMPL_INFO_STR, 0, byref(name))
        self.impl = (name.value or b"").decode()
        self._primitive = _Handle("primitive", plan.pointer)
        self._memory = [_Handle("memory", byref(desc.raw), engine, None) for desc in (src, dst)]
        read, written = self._memory
        self._args = (_ExecArg * 2)(
            _ExecArg(_ARG_SRC, read.pointer), _ExecArg(_ARG_DST, written.pointer)
        )
        self._needed = (src.span(), dst.span())

    def execute(self, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> None:
        """Read the bytes of src, write those of dst, in place, and wait until it is done.

        Shape, dtype and alignment of the arrays do not matter. ValueError if one is not contiguous
        (C order) or shorter than `span` of its descriptor, or if dst is read-only. They must not
        overlap, which is not checked.
        """
        self.bind(src, dst)
        self.run()

    def bind(self, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> None:
        """Make `run` read src and write dst, which must live as long; errors as in `execute`."""
        for array, memory, needed in zip((src, dst), self._memory, self._needed, strict=True):
            if not array.flags.c_contiguous or array.nbytes < needed:
                got = f"{array.dtype} array of shape {array.shape}, strides {array.strides}"
                raise ValueError(f"needed are {needed} contiguous bytes, got is an {got}")
            _call("memory_set_data_handle", memory.pointer, c_void_p(array.ctypes.data))
        if not dst.flags.writeable:
            raise ValueError("dst is read-only")

    def run(self) -> None:
        """Do the bound reorder and wait until it is done."""
        _call("primitive_execute", self._primitive.pointer, _stream().pointer, 2, self._args)
        _call("stream_wait", _stream().pointer)
