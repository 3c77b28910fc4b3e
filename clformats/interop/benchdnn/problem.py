"""One problem of benchdnn's command line, and its meaning as a reorder."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidAttr, Unsupported
from ...formats.names import ABSTRACT
from ...formats.sums import Extra
from ...formats.tags import expand_meta, is_meta
from ...tensors.desc import RUNTIME_DIM, MemoryDesc
from ...tensors.dtypes import as_dtype, convert
from ...values.attr import Attr, at_execution
from ...values.groups import Group, counts
from .attributes import PostOps, Quantity, Scales, ZeroPoints
from .knobs import DRIVER, Filter
from .values import ASYMMETRIC, S8S8, STRANGE_DTYPES, WITHOUT_LAYOUT, Flags, Strides, dims_text

PRINTED = sorted(DRIVER, key=lambda k: 6.5 if k.name == "runtime-dim-mask" else DRIVER.index(k))
"""The knobs in the order in which benchdnn prints them."""


@dataclass(frozen=True, slots=True)
class BenchProblem:
    """Sizes, a name, and a value of every knob of `DRIVER`; its ``str`` is read back as itself."""

    dims: tuple[int, ...]
    name: str
    sdt: str
    ddt: str
    stag: str
    dtag: str
    strides: Strides
    oflag: Flags
    cross_engine: str
    attr_scales: Scales
    attr_zero_points: ZeroPoints
    attr_post_ops: PostOps
    attr_scratchpad: str
    attr_fpmath: str
    attr_acc_mode: str
    attr_deterministic: bool
    attr_dropout: str
    attr_rounding_mode: str
    ctx_init: str
    ctx_exe: str
    runtime_dim_mask: int
    impl: Filter

    # --- in words ---------------------------------------------------------------------------------

    def words(self, *, canonical: bool = False) -> list[str]:
        """The options and the sizes, those options left out that have their default."""
        result = [
            knob.text(getattr(self, knob.field))
            for knob in PRINTED
            if canonical or knob.place == "always" or getattr(self, knob.field) != knob.default
        ]
        if self.impl.names:
            result.append(str(self.impl))
        return [*result, self.descriptor]

    def __str__(self) -> str:
        return " ".join(self.words())

    @property
    def descriptor(self) -> str:
        """Sizes and name: ``2x3_n"first"``."""
        return dims_text(self.dims) + (f"_n{self.name}" if self.name else "")

    @property
    def attributes(self) -> str:
        """The options of attributes only."""
        attributes = (k for k in PRINTED if k.name.startswith("attr-"))
        return " ".join(
            k.text(getattr(self, k.field))
            for k in attributes
            if getattr(self, k.field) != k.default
        )

    # --- as descriptors ---------------------------------------------------------------------------

    def descriptors(self) -> tuple[MemoryDesc, MemoryDesc]:
        """Source and destination with all of their sizes.

        Raises `InvalidFormat` and `InvalidDescriptor` where there are no such tensors,
        `Unsupported` for element types that only oneDNN has.
        """
        return self._sides(self.dims)

    def patterns(self) -> tuple[MemoryDesc, MemoryDesc]:
        """Source and destination as a reorder is made for: without what is known at execution."""
        unknown = (
            RUNTIME_DIM if self.runtime_dim_mask >> d & 1 else n for d, n in enumerate(self.dims)
        )
        return self._sides(tuple(unknown))

    def _sides(self, dims: tuple[int, ...]) -> tuple[MemoryDesc, MemoryDesc]:
        for name in (self.sdt, self.ddt):
            if name in STRANGE_DTYPES:
                raise Unsupported("NO_DTYPE", f"element type {name} is known to oneDNN alone")
        src = _side(dims, self.sdt, self.stag, self.strides.src)
        return src, _side(dims, self.ddt, self.dtag, self.strides.dst, self._extra())

    def _extra(self) -> Extra | None:
        """What follows the destination. Raises `Unsupported` for sums over unlike dimensions."""
        if not self.oflag.entries:
            return None
        flags = [name for name, _ in self.oflag.entries]
        masks = {mask for _, mask in self.oflag.entries}
        if len(masks) > 1:
            raise Unsupported(
                "COMPENSATION",
                f"the sums after a tensor all have one mask, got --oflag={self.oflag}",
            )
        return Extra(masks.pop(), s8s8=S8S8 in flags, asymmetric=ASYMMETRIC in flags)

    # --- as attributes ----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `Unsupported` for what no reorder here does."""
        for what in self._refused_attributes():
            raise Unsupported("ATTRIBUTE", f"a reorder here has no {what}")

    def _refused_attributes(self) -> list[str]:
        result = [f"post-op {e}" for e in self.attr_post_ops.entries if not _is_plain_sum(e)]
        if len(self.attr_post_ops.entries) > 1:
            result.append(f"second post-op in {self.attr_post_ops}")
        quantities = (*self.attr_scales.entries, *self.attr_zero_points.entries)
        result += [f"policy mx: {q.text('')}" for q in quantities if q.policy == "mx"]
        if self.attr_dropout:
            result.append(f"dropout: {self.attr_dropout}")
        if "stochastic" in self.attr_rounding_mode:
            result.append(f"rounding mode {self.attr_rounding_mode}")
        return result

    def attr(self) -> tuple[Attr, dict[str, NDArray[Any]]]:
        """The attributes with all values to be given at execution, and these values.

        Values that differ are powers of 2 or small whole numbers, the same for the same problem;
        those that a group shares are repeated.
        """
        terms: dict[str, Any] = {}
        given: dict[str, NDArray[Any]] = {}
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        for kind, entries in (("scale", self.attr_scales), ("zero_point", self.attr_zero_points)):
            for entry in entries.entries:
                name = f"{entry.side}_{kind}"
                mask, group = entry.mask(len(self.dims)), self._group(entry)
                terms[name] = at_execution(group=group) if group else at_execution(mask)
                given[name] = self._values(entry, kind, rng)
        for post_op in self.attr_post_ops.entries:
            terms["beta"] = at_execution()
            given["beta"] = np.array([float(post_op.arguments[0]) if post_op.arguments else 1.0])
        return Attr(**terms), given

    def _values(self, entry: Quantity, kind: str, rng: np.random.Generator) -> NDArray[Any]:
        if entry.dtype in STRANGE_DTYPES:
            raise Unsupported("NO_DTYPE", f"element type {entry.dtype} is known to oneDNN alone")
        dtype, wide = as_dtype(entry.dtype), as_dtype("f64")
        shape = self._shape(entry)
        if entry.has_value:
            values = np.array([entry.value])
        elif kind == "scale":
            values = 2.0 ** rng.integers(-3, 4, shape)
        else:
            values = rng.integers(0 if dtype.kind == "unsigned" else -3, 4, shape).astype(float)
        return np.asarray(convert(convert(values, wide, dtype), dtype, wide))

    def _shape(self, entry: Quantity) -> tuple[int, ...]:
        """How many values there are along each dimension."""
        mask = entry.mask(len(self.dims))
        each = tuple(1 if mask >> d & 1 else None for d in range(len(self.dims)))
        return counts(self.dims, self._group(entry) or each)

    def _group(self, entry: Quantity) -> Group | None:
        """How many neighbours share a value along each dimension: oneDNN's mask and groups."""
        if not entry.groups:
            return None
        mask, ndims = entry.mask(len(self.dims)), len(self.dims)
        groups = ([1] * ndims + list(entry.groups))[-ndims:]
        found = tuple(g if mask >> d & 1 else None for d, g in enumerate(groups))
        if any(g is not None and (g < 1 or n % g) for n, g in zip(self.dims, found, strict=True)):
            raise InvalidAttr(
                f"groups of {dims_text(entry.groups)} do not divide the last sizes of "
                f"{dims_text(self.dims)}"
            )
        return found


def _is_plain_sum(entry: Any) -> bool:
    return entry.kind == "sum" and len(entry.arguments) <= 1


def _side(
    dims: tuple[int, ...],
    dtype: str,
    tag: str,
    strides: tuple[int, ...],
    extra: Extra | None = None,
) -> MemoryDesc:
    if strides:
        return MemoryDesc(dims, dtype, strides=strides, extra=extra)
    return MemoryDesc(dims, dtype, concrete(tag, len(dims)), extra=extra)


def concrete(tag: str, ndims: int) -> str:
    """The name that a tag stands for at a given rank.

    As in benchdnn a meta tag of more letters than there are dimensions loses those beyond the rank:
    ``axb`` of one dimension is ``a``. With ``y`` in place of ``x`` the last two are exchanged.
    """
    if tag in WITHOUT_LAYOUT or not is_meta(tag.replace("y", "x")):
        return tag
    name = expand_meta(tag.replace("y", "x"), ndims)
    if "y" in tag and ndims > 1:
        last, before = ABSTRACT[ndims - 1], ABSTRACT[ndims - 2]
        pair = last + before + last.upper() + before.upper()
        name = name.translate(str.maketrans(pair, before + last + before.upper() + last.upper()))
    return _trimmed(name, ndims)


def _trimmed(name: str, ndims: int) -> str:
    """The tag without the letters beyond the rank, and without their blocks."""
    result, digits = "", ""
    for c in name:
        if c.isdigit():
            digits += c
        else:
            if ABSTRACT.index(c.lower()) < ndims:
                result += digits + c
            digits = ""
    return result
