"""What oneDNN's verbose log prints: ``src_f32::blocked:acdb::f0``.

Grammar (``md2fmt_str`` in oneDNN's src/common; the versions differ, each of these is read)::

    f32:p:blocked:aBcd16b:f0                dtype : flags : kind : tag : extra     version 1, 2
    src_f32:p:blocked:aBcd16b::f0           argument _ dtype : ... : tag : strides : extra
    src:f32:ap:blocked:aBcd16b:strides:f0   argument : dtype : ...                 version 3
    dst_f32::any                            what has no layout may end with its kind

flags: ``a`` was format any, ``p`` padded, ``o`` padded offsets, ``0`` an offset. Strides are
printed if the tensor has gaps (``640x20x4x1``). Extra is ``f0`` unless compensation follows the
tensor. The log has the sizes elsewhere in its line; here they may follow after a space, as in
``f32::blocked:acdb::f0 2x16x7x7``, and then the text is a descriptor.

The log does not print the values of offsets: such a text gives a format, but no descriptor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ...errors import InvalidDescriptor, InvalidFormat
from ...formats import Format
from ...formats.digits import RUNTIME, place
from ...tensors.desc import MemoryDesc
from ...tensors.geometry import by_blocking
from .shared import need, no_format

_KINDS = "blocked|any|undef|wino|rnn_packed|opaque|sparse|cublaslt_blocked"
_TEXT = re.compile(
    r"(?:(?:\w+:)?(?:\w*?_)?(?P<dtype>undef|[a-z]+\d+(?:_e\dm\d)?):(?P<flags>[apo0]*):)?"
    rf"(?P<kind>{_KINDS})(?::(?P<tag>\w*)|(?<=:any)|(?<=:undef))"
    r"(?::(?P<strides>[\dx*]*))?(?::(?P<extra>f[^ ,]*?))?:*"
    r"(?:[ ,]+(?P<dims>[\d*]+(?:x[\d*]+)*))?"
)


@dataclass(frozen=True, slots=True)
class LogText:
    """The fields of a text of the log; missing ones are empty."""

    text: str
    kind: str
    tag: str
    dtype: str = ""
    flags: str = ""
    strides: str = ""
    extra: str = ""
    dims: str = ""

    @property
    def format(self) -> Format:
        """The format. Raises `InvalidFormat`, and `Unsupported` for kinds without a layout."""
        if self.kind not in ("blocked", "any", "undef"):
            raise no_format(self.text, f"the layout of memory of kind {self.kind} is not printed")
        return Format(self.tag if self.kind == "blocked" else self.kind)

    def desc(self, dims: str = "", dtype: str = "") -> MemoryDesc:
        """The descriptor, with these dims (``2x16x7x7``) if the text has none.

        ``dtype`` replaces the text's. Raises `Unsupported` if the log does not print enough.
        """
        if set(self.flags) & set("o0"):
            raise no_format(self.text, "the log does not print the offset")
        if self.extra not in ("", "f0"):
            raise no_format(self.text, "compensation follows the tensor")
        sizes = self.dims or dims
        if not sizes and self.kind != "undef":
            raise InvalidDescriptor(f"{self.text!r} has no sizes: add them, as in ... 2x16x7x7")
        strides = f":strides={self.strides}" if self.strides else ""
        text = f"{dtype or self.dtype or 'f32'}:{self.format}:{sizes}{strides}"
        return MemoryDesc.parse(text)


def read(text: str) -> LogText | None:
    """Split a text of the log into its fields; None if it is something else."""
    match = _TEXT.fullmatch(text.strip())
    if not match:
        return None
    return LogText(text, **{k: v or "" for k, v in match.groupdict().items()})


_HEAD = re.compile(r"(?:onednn|dnnl|mkldnn)_verbose,")
_ARGUMENT = re.compile(
    r"(?:src|wei|bia|dst|data|diff|ws|scratchpad|stat|ss|attr)[a-z0-9_]*?(?=[_:])"
)
_SIZES = re.compile(r"[1-9]\d*(?:x[1-9]\d*)*")


def is_line(text: str) -> bool:
    """Whether a text is a whole line of the log."""
    return bool(_HEAD.match(text.strip()))


def read_line(text: str) -> list[tuple[str, LogText]]:
    """The tensors of a whole line of the log: what each is called (``"src"``), and its text.

    Of a reorder, whose line tells the sizes, they are in each text. Raises `InvalidFormat`.
    """
    fields = text.strip().split(",")
    at = next((k for k, field in enumerate(fields) if field.split() and all(
        read(part) for part in field.split())), None)  # fmt: skip
    if not is_line(text) or at is None:
        raise InvalidFormat(
            f"cannot read {text!r} as a line of oneDNN's log: expected onednn_verbose,...,"
            f"src_f32::blocked:abcd::f0 dst_f32::blocked:acdb::f0,..."
        )
    same = {"reorder", "eltwise", "softmax", "softmax_v2", "layer_normalization"} & set(fields)
    sizes = next((f for f in fields[at + 1 :] if same and _SIZES.fullmatch(f)), "")
    result = []
    for part in fields[at].split():
        found = _must_read(part)
        name = _ARGUMENT.match(part)
        fits = sizes and found.kind == "blocked" and len(sizes.split("x")) == found.format.ndims
        dims = sizes if fits else ""
        result.append((name[0] if name else "", replace(found, dims=found.dims or dims)))
    return result


def parse(text: str) -> Format:
    """The format of a text of the log. Raises `InvalidFormat` and `Unsupported`."""
    return _must_read(text).format


def parse_desc(text: str) -> MemoryDesc:
    """The descriptor of a text of the log that is followed by sizes."""
    return _must_read(text).desc()


def _must_read(text: str) -> LogText:
    found = read(text)
    if found is None:
        raise InvalidFormat(
            f"cannot read {text!r} as oneDNN's log: expected src_f32::blocked:acdb::f0"
        )
    return found


def render_desc(desc: MemoryDesc, name: str = "") -> str:
    """Print a descriptor as version 3 does, followed by the sizes.

    ``name`` is that of the argument (``"src"``). Raises `Unsupported` if the format has no tag.
    """
    kind = desc.format_kind
    tag, strides = kind, ""
    if kind == "blocked":
        need(desc.format, "verbose")
        tag, strides = _tag(desc), _strides(desc)
    flags = "p" * (desc.padded_dims != desc.dims) + "o" * any(desc.padded_offsets)
    flags += "0" * bool(desc.offset0)
    head = f"{name}:" * bool(name)
    return f"{head}{desc.dtype}:{flags}:{kind}:{tag}:{strides}:f0 {_by(desc.dims)}".rstrip()


def _tag(desc: MemoryDesc) -> str:
    """The tag that fits the strides; of several, the one that oneDNN prints."""
    if not desc.dims or desc.has_runtime:
        return desc.format.onednn or ""
    blocks = list(zip(desc.inner_blks, desc.inner_idxs, strict=True))
    return by_blocking(desc.dims, desc.padded_dims, desc.strides, blocks).format.name


def _strides(desc: MemoryDesc) -> str:
    """The strides, unless they are those of the dense tensor; size 1 as in equality."""
    natural = {p.digit: p.stride for p in place(desc.format.structure, desc.padded_dims)}
    dense = all(
        natural[p.digit] == p.stride or desc.dims[d] == desc.padded_dims[d] == 1
        for p in desc.placed
        for d in p.digit.dims
    )
    return "" if dense else _by(desc.strides)


def _by(numbers: tuple[int, ...]) -> str:
    return "x".join("*" if n == RUNTIME else str(n) for n in numbers)
