"""Attributes, what a reorder computes on the way: scales, zero points, a sum, an expression.

The formula is oneDNN 3's. Every step is rounded to f32, or to f64 if one of the two types is f64::

    dst = cvt(((src - src_zero_point) * src_scale + beta * old) * (1 / dst_scale) + dst_zero_point)

``old`` is the destination's old value as stored: its zero point is not subtracted. An attribute
that is not given is left out of the formula, not multiplied by 1. An expression replaces
``(src - src_zero_point) * src_scale`` by its own value; this product is its ``x``.

Like oneDNN, the formula multiplies by the reciprocal of the destination's scale, which rounds
twice, so that results are equal to the bit. oneDNN's zero points are integers; here they may be
fractions. clDNN's input preparation, which subtracts a mean from each feature and multiplies by a
factor, is a source zero point and a source scale with the mask of the feature dimension.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidAttr
from ..tensors.dtypes import DType, as_array, as_dtype, convert, refuse_hidden
from .formula import ONE, Formula, parse
from .groups import Group, Grouped, checked, counts, grouping, spread

ZERO_SCALE = "a dst_scale is 0, or is in f32: values are divided by it, give another number"
VALUE, OLD = "x", "old"
"""The variables of the formula beside the attributes: the source's and the old value."""


@dataclass(frozen=True, eq=False, slots=True)
class Values:
    """The values of one attribute: a flat float64 array, or None if they are given at execution.

    ``mask`` says along which logical dimensions they vary, bit d for dimension d; they are in
    row-major order over these. 0 stands for one value for all elements. ``ndims`` is the rank of
    the tensor, if it is known. ``group`` is how many neighbours along each dimension share a value;
    None where each has its own.
    """

    values: NDArray[np.float64] | None
    mask: int = 0
    ndims: int | None = None
    group: Group | None = None
    shape: tuple[int, ...] = ()
    """The shape that the values were given in, if not one after the other."""

    def groups(self, dims: Sequence[int]) -> Group:
        """How many neighbours share a value along each dimension; None: all of them."""
        each = tuple(1 if self.mask >> d & 1 else None for d, _ in enumerate(dims))
        return self.group or each

    def strides(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The stride of each logical dimension without groups; 0 where values do not vary."""
        sizes = self.sizes(dims)
        return tuple(prod(sizes[d + 1 :]) if self.mask >> d & 1 else 0 for d, _ in enumerate(dims))

    def sizes(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The number of values along each dimension; 1 where they do not vary."""
        return counts(dims, self.groups(dims))

    def spread(self, flat: NDArray[Any], dims: Sequence[int]) -> NDArray[Any]:
        """The values as an array that broadcasts against a tensor of ``dims``."""
        return spread(flat.reshape(self.sizes(dims)), dims, self.groups(dims))

    def __str__(self) -> str:
        what = "given at execution" if self.values is None else f"{self.values.size} values"
        if self.values is not None and self.values.size == 1:
            what = f"{self.values[0]:g}"
        if self.group:
            return f"{what}, {grouping(self.group)}"
        return f"{what}, mask {self.mask}" if self.mask else what


def at_execution(mask: int = 0, *, group: Sequence[int | None] | None = None) -> Values:
    """Stands for values that are given when a reorder is called: ``r(stream, src, dst, beta=2)``.

    ``group`` is that of a `Grouped`, instead of a mask: ``at_execution(group=(1, 32))``. Raises
    `InvalidAttr` for a mask that is not a whole number of at least 0, and for both.
    """
    if group is None:
        return Values(None, _mask("values given at execution", mask))
    if mask:
        raise InvalidAttr(f"got mask={mask} and group={group}: the group says all, leave mask out")
    return _grouped(None, checked(group))


class Attr:
    """Attributes of a reorder: what it computes on the way, in the same pass.

    The formula is oneDNN's::

        dst = ((src - src_zero_point) * src_scale + beta * old) / dst_scale + dst_zero_point

    ``src_scale``, ``dst_scale``, ``src_zero_point``, ``dst_zero_point`` and ``beta`` are each a
    number, an array that broadcasts against the tensor (``np.ones((1, 3, 1, 1))``: one value for
    each channel), ``(values, mask)``, a `Grouped`, or `at_execution`. Bit d of the mask says that
    there is one value for each index of logical dimension d; the values are in row-major order over
    the dimensions of the mask. ``beta`` is the factor of the destination's old value (oneDNN's
    sum).

    ``expression`` is text over ``x``, in the part of OpenCL C that `clformats.values.formula`
    describes: ``"max(x, 0.f) * 0.5f"``. Padding stays zero, whatever the expression gives for 0.

    Attributes are immutable. Raises `InvalidAttr`; the reorder checks the numbers of values, once
    it knows the dims. docs/values.md has the rules of rounding.
    """

    terms: Mapping[str, Values]
    expression: str | None
    formula: Formula
    _inner: Formula | None

    NAMES = ("src_scale", "dst_scale", "src_zero_point", "dst_zero_point", "beta")

    def __init__(
        self,
        *,
        src_scale: Any = None,
        dst_scale: Any = None,
        src_zero_point: Any = None,
        dst_zero_point: Any = None,
        beta: Any = None,
        expression: str | None = None,
    ) -> None:
        given = (src_scale, dst_scale, src_zero_point, dst_zero_point, beta)
        terms = {
            name: _values(name, value)
            for name, value in zip(self.NAMES, given, strict=True) if value is not None
        }  # fmt: skip
        inner = None if expression is None else parse(expression, (VALUE,))
        set_ = object.__setattr__
        set_(self, "terms", MappingProxyType(terms))
        set_(self, "expression", expression)
        set_(self, "_inner", inner)
        set_(self, "formula", self._formula())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Attr is immutable: cannot set {name} to {value!r}, make another one")

    def __reduce__(self) -> tuple[Any, ...]:
        return _attr_again, (dict(self.terms), self.expression)

    def _formula(self) -> Formula:
        def name(text: str) -> Formula:
            return Formula("name", text)

        value = name(VALUE)
        if "src_zero_point" in self.terms:
            value = value - name("src_zero_point")
        if "src_scale" in self.terms:
            value = value * name("src_scale")
        if self._inner is not None:
            value = self._inner.with_names({VALUE: value})
        if "beta" in self.terms:
            value = value + name("beta") * name(OLD)
        if "dst_scale" in self.terms:
            value = value * (ONE / name("dst_scale"))
        if "dst_zero_point" in self.terms:
            value = value + name("dst_zero_point")
        return value

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute: the reorder only moves and converts."""
        return not self.terms and self._inner is None

    def resolve(
        self,
        dims: Sequence[int],
        given: Mapping[str, Any] | None,
        real: DType,
        elsewhere: Collection[str] = (),
    ) -> dict[str, NDArray[Any]]:
        """The values of every attribute for a tensor of ``dims``, in the type ``real``.

        ``given`` are the values given at execution. If it is None, only the values known already
        are checked. Attributes named in ``elsewhere`` are given on a device, and left out. Raises
        `InvalidAttr` for a wrong number of values, a mask beyond the rank, a value beyond the type,
        and for values that are missing or not expected.
        """
        for name in given or ():
            if name not in self.terms or self.terms[name].values is not None:
                asked = ", ".join(n for n, t in self.terms.items() if t.values is None) or "none"
                raise InvalidAttr(
                    f"got {name} at execution; the attributes ask only for these then: {asked}"
                )
        self.check_rank(len(dims))
        result = {}
        for name, term in self.terms.items():
            if name in elsewhere or (term.values is None and given is None):
                continue
            if term.values is None and name not in (given or {}):
                raise InvalidAttr(f"{name} is to be given at execution: pass {name}=...")
            values = term.values
            if values is None:
                values = _flat(name, (given or {})[name])
            if term.group:
                shape = term.shape if term.values is not None else np.shape((given or {})[name])
                _check_groups(name, replace(term, shape=shape), values, dims)
            count = prod(term.sizes(dims))
            if values.size != count:
                raise InvalidAttr(
                    f"got {values.size} values of {name} with mask {term.mask} for a tensor of "
                    f"{tuple(dims)}, expected {count}: one for each index of the masked dimensions"
                )
            result[name] = _as_real(name, values, real)
        return result

    def check_rank(self, ndims: int) -> None:
        """Raise `InvalidAttr` if a mask names a dimension of ``ndims`` or more."""
        for name, term in self.terms.items():
            if term.ndims not in (None, ndims):
                what = "a group" if term.group else "an array"
                raise InvalidAttr(
                    f"{name} is {what} of {term.ndims} axes, the tensor has {ndims} dimensions: "
                    f"give one axis for each, of size 1 where a value serves all"
                )
            if term.mask >> ndims:
                raise InvalidAttr(
                    f"the mask of {name} is {term.mask}, which names a dimension beyond the "
                    f"{ndims} of the tensor; expected at most {(1 << ndims) - 1}"
                )

    def apply(
        self, array: Any, src: object, dst: object, old: Any = None, **given: Any
    ) -> NDArray[Any]:
        """The formula in numpy, the reference that kernels are checked against.

        ``array`` has the logical shape and elements of type ``src``; the result is of type ``dst``.
        ``old``, elements of type ``dst`` in that shape, is needed with ``beta``; ``given`` are the
        values given at execution. Raises `InvalidAttr`.
        """
        source, target = as_dtype(src), as_dtype(dst)
        array = as_array(array)
        if self.is_empty:
            return convert(array, source, target)
        real = compute_type(source, target)
        env = {VALUE: convert(array, source, real)}
        for name, values in self.resolve(array.shape, given, real).items():
            env[name] = self.terms[name].spread(values, array.shape)
        if "beta" in self.terms:
            if old is None:
                raise InvalidAttr("beta is given: the sum needs old, what the destination holds")
            env[OLD] = convert(old, target, real)
            if env[OLD].shape != array.shape:
                raise InvalidAttr(f"old has shape {env[OLD].shape}, the array {array.shape}")
        result = np.broadcast_to(self.formula.evaluate(env, real.numpy), array.shape)
        return convert(result, real, target)

    def __repr__(self) -> str:
        texts = [f"{name}={value}" for name, value in self.terms.items()]
        texts += [f"expression={self.expression!r}"] if self.expression is not None else []
        return f"Attr({', '.join(texts)})"


def compute_type(*dtypes: DType) -> DType:
    """The type that values are computed in: f64 where one of the types is, else f32."""
    return as_dtype("f64" if any(t.name == "f64" for t in dtypes) else "f32")


def _values(name: str, value: Any) -> Values:
    if isinstance(value, Values):
        return value
    if isinstance(value, Grouped):
        return replace(
            _grouped(_flat(name, value.values), value.group), shape=np.shape(value.values)
        )
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InvalidAttr(
                f"got {len(value)} items for {name}, expected a number, (values, mask) or "
                f"cf.at_execution(mask)"
            )
        return Values(_flat(name, value[0]), _mask(name, value[1]))
    flat = _flat(name, value)
    if flat.size == 1:
        return Values(flat)
    shape = np.shape(value)
    if len(shape) < 2:
        raise InvalidAttr(
            f"got {flat.size} values of {name} without a mask: give an array with one axis for "
            f"each dimension, as values.reshape(1, {flat.size}, 1, 1), or (values, mask), where "
            f"bit d of the mask stands for logical dimension d"
        )
    return Values(flat, sum(1 << d for d, n in enumerate(shape) if n != 1), len(shape))


def _grouped(values: NDArray[np.float64] | None, group: Group) -> Values:
    mask = sum(1 << d for d, n in enumerate(group) if n is not None)
    return Values(values, mask, len(group), group)


def _check_groups(
    name: str, term: Values, values: NDArray[np.float64], dims: Sequence[int]
) -> None:
    """Raise `InvalidAttr` for values that are not one for each group, in this order."""
    sizes = term.sizes(dims)
    flat = len(term.shape) < 2 and values.size == prod(sizes)
    if not flat and [n for n in term.shape if n != 1] != [n for n in sizes if n != 1]:
        got = f"{values.size} values" if len(term.shape) < 2 else f"an array of {term.shape}"
        raise InvalidAttr(
            f"got {got} for {name} in {grouping(term.group or ())} of a tensor of {tuple(dims)}, "
            f"expected {sizes}: one for each group"
        )


def _flat(name: str, value: Any) -> NDArray[np.float64]:
    """Numbers as a flat array of its own."""
    refuse_hidden(value)
    try:
        array = np.asarray(value)
        flat = None if array.dtype.kind in "cOSUMm" else array.astype(np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise InvalidAttr(f"got {value!r} for {name}, expected numbers: {error}") from None
    if flat is None:
        raise InvalidAttr(f"got {value!r} for {name}, expected numbers")
    if not np.isfinite(flat).all():
        raise InvalidAttr(
            f"got NaN or an infinity for {name}, expected finite numbers: no element would keep "
            f"its value"
        )
    if name == "dst_scale" and not flat.all():
        raise InvalidAttr(ZERO_SCALE)
    flat.setflags(write=False)
    return flat


def _as_real(name: str, values: NDArray[np.float64], real: DType) -> NDArray[Any]:
    """The values in the type that is computed in."""
    with np.errstate(over="ignore", under="ignore"):
        result = values.astype(real.numpy)
    if (np.isinf(result) & np.isfinite(values)).any():
        raise InvalidAttr(f"a value of {name} is beyond {real}, in which the reorder computes")
    if name == "dst_scale" and not result.all():
        raise InvalidAttr(ZERO_SCALE)
    return result


def _mask(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidAttr(
            f"got the mask {value!r} for {name}, expected a whole number of at least 0: bit d "
            f"stands for logical dimension d"
        )
    return int(value)


def _attr_again(terms: Mapping[str, Values], expression: str | None) -> Attr:
    """The attributes that were pickled."""
    given = {
        n: v if v.values is None else replace(v, values=_flat(n, v.values))
        for n, v in terms.items()
    }
    return Attr(expression=expression, **given)
