"""Quantised types: fields over grouped dims, a formula, and their named layouts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidDescriptor, InvalidFormat, expect
from ..tensors.described import ElementType, register
from ..values.formula import Formula, parse
from . import text
from .codes import Codes, codes_named

FOLDER = Path(__file__).parent
WHOLE = 0
"""A group of all rows, or of all columns."""
_KEYWORDS = """
auto bool break case char complex const constant continue default do double else enum event_t
extern false float for generic global goto half if imaginary image1d_array_t image1d_buffer_t
image1d_t image2d_array_depth_t image2d_array_t image2d_depth_t image2d_t image3d_t inline int
kernel local long pipe private quad queue_t read_only read_write register restrict return
sampler_t short signed size_t sizeof static struct switch true typedef uchar uint ulong uniform
union unsigned ushort void volatile while write_only
"""
"""What cannot name a member of a structure in OpenCL C."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field: what its codes mean, and for how many rows and columns one value stands."""

    dtype: Codes
    group: tuple[int, int]

    @property
    def group_of_values(self) -> tuple[int, int]:
        """The rows and columns that share a value, once codes of several are taken apart."""
        rows, columns = self.group
        return rows, columns // self.dtype.width

    def __str__(self) -> str:
        rows, columns = self.group
        at = f"{rows or '*'}x{columns or 'k'}" if rows != 1 else str(columns or "k")
        if self.group == (1, 1):
            return self.dtype.name
        return f"{self.dtype.name}/{at if any(self.group) else '*'}"


class QuantisedType(ElementType):
    """A quantised type: fields, each one array over the tensor's dims in groups, and a formula.

    ``fields`` maps a name to an element type and the group, in rows and columns, that shares one
    value; 0 stands for all of them. ``formula`` is the value of an element, computed in f32 in the
    order written, every step rounded. ``layouts`` maps names to texts of layouts; each type has the
    layout ``"plain"``, every field row by row, by itself.

    >>> mine = QuantisedType("mine", {"q": ("u4", (1, 1)), "d": ("f16", (1, 32))}, "d * (q - 8)")
    >>> mine.fields["d"].group
    (1, 32)

    Raises `InvalidDescriptor`, `InvalidFormat` and `InvalidExpression`.
    """

    bits = 8
    nbytes = 1
    is_packed = True
    storage = raw = np.dtype(np.uint8)
    numpy = np.dtype(np.float32)

    def __init__(
        self,
        name: str,
        fields: Mapping[str, tuple[str, tuple[int, int]]],
        formula: str,
        *,
        layouts: Mapping[str, str] | None = None,
    ) -> None:
        expect(name, str, "name")
        expect(fields, Mapping, "fields")
        if _BUILT_IN.find(name) is not None or not re.fullmatch(r"[A-Za-z]\w+", name):
            raise InvalidDescriptor(
                f"got the name {name!r}: expected a C identifier of two characters or more that no "
                f"type of the library has"
            )
        expect(layouts, Mapping | None, "layouts")
        for key in (*fields, *(layouts or {})):
            expect(key, str, "the name of a field or layout")
        own = {n: _field(n, f) for n, f in fields.items()}
        self._set(name, own, formula, "", dict(layouts or {}))
        _own[name] = self

    def _set(
        self,
        name: str,
        fields: dict[str, FieldType],
        formula: str,
        rule: str,
        layouts: dict[str, str],
    ) -> None:
        self.name, self.rule = name, rule
        self.fields = fields
        self.formula: Formula = parse(formula, tuple(fields))
        self.formula_text = formula.strip()
        self.layouts = {"plain": _plain(fields), **layouts}
        unknown = [
            n for n in fields if not re.fullmatch(r"[a-z][a-z0-9_]*", n) or n in _KEYWORDS.split()
        ]
        if unknown or not fields:
            raise InvalidDescriptor(
                f"got the fields {list(fields)}: expected names of small letters that are no "
                f"keywords of OpenCL C"
            )
        for axis in (0, 1):
            _check_groups(
                name, sorted({f.group_of_values[axis] for f in fields.values()} - {WHOLE})
            )
        for layout in self.layouts.values():
            expect(layout, str, "the text of a layout")
            self.check_layout(layout)

    @classmethod
    def of_table(
        cls,
        name: str,
        fields: dict[str, FieldType],
        formula: str,
        rule: str,
        layouts: dict[str, str],
    ) -> QuantisedType:
        """A type of the library's table: as the constructor, under any name."""
        result = object.__new__(cls)
        result._set(name, fields, formula, rule, layouts)
        return result

    def check_layout(self, described: str) -> tuple[text.TextBuffer, ...]:
        """The buffers of a layout's text. Raises `InvalidFormat` where it does not fit the type."""
        buffers = _read(described)
        names = [f.name for b in buffers for f in b.fields]
        if sorted(names) != sorted(self.fields):
            raise InvalidFormat(
                f"the layout {described!r} has the fields {names}, expected {list(self.fields)} of "
                f"{self.name}, each once"
            )
        for field in (f for b in buffers for f in b.fields):
            bits = self.fields[field.name].dtype.bits
            widths = [p.bits for p in field.planes]
            if (len(widths) > 1 or widths[0]) and sum(w or 0 for w in widths) != bits:
                raise InvalidFormat(
                    f"field {field.name} of {described!r}: its planes have {widths} bits, "
                    f"expected {bits} together"
                )
        return buffers

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What two equal types have in common."""
        return self.name, tuple(self.fields.items()), self.formula_text

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, QuantisedType) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def is_built_in(self) -> bool:
        """Whether it is the library's; types of users have other names."""
        return _BUILT_IN.find(self.name) is not None

    def __reduce__(self) -> tuple[object, ...]:
        if self.is_built_in:
            return type_named, (self.name,)
        fields = {n: (f.dtype.name, f.group) for n, f in self.fields.items()}
        named = {n: t for n, t in self.layouts.items() if n != "plain"}
        return _remade, (self.name, fields, self.formula_text, named)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        fields = " ".join(f"{n}:{f}" for n, f in self.fields.items())
        return f"QuantisedType({self.name!r}: {fields} = {self.formula_text})"


def _remade(
    name: str, fields: dict[str, Any], formula: str, layouts: dict[str, str]
) -> QuantisedType:
    return QuantisedType(name, fields, formula, layouts=layouts)


_read = cache(text.read)


def _field(name: str, described: Any) -> FieldType:
    """A field as users say it: an element type, and the group that shares a value."""
    if not isinstance(described, tuple | list) or len(described) != 2:
        raise InvalidDescriptor(
            f"field {name}: got {described!r}, expected such as ('f16', (1, 32))"
        )
    return FieldType(codes_named(described[0]), _group(name, described[1]))


def _group(name: str, group: Any) -> tuple[int, int]:
    pair = tuple(group) if isinstance(group, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(n, int) and n >= 0 for n in pair):
        raise InvalidDescriptor(f"field {name}: got the group {group!r}, expected (rows, columns), "
                                f"0 for all of them")  # fmt: skip
    return pair[0], pair[1]


def _check_groups(name: str, groups: list[int]) -> None:
    for small, large in pairwise(groups):
        if large % small:
            raise InvalidDescriptor(
                f"{name}: groups of {small} and of {large} do not nest; expected multiples"
            )


def _plain(fields: Mapping[str, FieldType]) -> str:
    return "; ".join(
        f"{n}={'r' if f.group[0] != 1 else 'n'} {'g' if f.group[1] != 1 else 'k'}"
        for n, f in fields.items()
    )


class _Table:
    """The types of types.txt and their layouts of layouts.txt, read when first asked for."""

    def __init__(self) -> None:
        self._known: dict[str, QuantisedType | None] = {}

    @cached_property
    def rows(self) -> list[tuple[str, str]]:
        """Name and definition of each type."""
        return [(w, rest) for w, _, rest in (r.partition(" ") for r in _rows("types.txt"))]

    @cached_property
    def layouts(self) -> list[tuple[list[str], str, str]]:
        """Patterns of types, the layout's name, its text."""
        found = []
        for row in _rows("layouts.txt"):
            at = re.search(r"[{=]", re.sub(r"\{[A-Z]\}", lambda m: "_" * len(m[0]), row))
            cut = row.rindex(" ", 0, at.start()) if at else 0
            *patterns, name = row[:cut].split()
            found.append((patterns, name, row[cut:].strip()))
        return found

    def find(self, name: str) -> QuantisedType | None:
        """The type of a name, or None."""
        if name not in self._known:
            found = ((d, _matched(pattern, name)) for pattern, d in self.rows)
            first = next(((d, numbers) for d, numbers in found if numbers is not None), None)
            # What is none is remembered, too: every descriptor of "f32" asks here first.
            self._known[name] = first and self._made(name, _filled(*first), first[1])
        return self._known[name]

    def _made(self, name: str, definition: str, numbers: dict[str, int]) -> QuantisedType:
        fields, _, rest = definition.partition("=")
        formula, _, rule = rest.partition("|")
        own = {}
        for word in fields.split():
            field, _, typed = word.partition(":")
            dtype, _, group = typed.partition("/")
            own[field] = FieldType(codes_named(dtype), _GROUPS.get(group) or (1, int(group)))
        found = {
            layout: _filled(described, numbers)
            for patterns, layout, described in self.layouts
            if any(_matched(p, name.removesuffix("_bf16")) is not None for p in patterns)
        }
        return QuantisedType.of_table(name, own, formula, rule.strip(), found)


_GROUPS = {"": (1, 1), "k": (1, WHOLE), "*": (WHOLE, WHOLE)}
_own: dict[str, QuantisedType] = {}


def _rows(file: str) -> Iterator[str]:
    lines = (FOLDER / file).read_text(encoding="utf-8").splitlines()
    return (line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _matched(pattern: str, name: str) -> dict[str, int] | None:
    """The numbers of a name under a pattern such as ``u{B}g{G}``, and what follows from them."""
    expected = re.sub(r"\{([A-Z])\}", r"(?P<\1>[1-9][0-9]{0,5})", pattern)
    found = re.fullmatch(expected, name)
    if found is None:
        return None
    numbers = {k: int(v) for k, v in found.groupdict().items()}
    whole = re.match(r"[us](\d+)g", name)
    bits = int(whole[1]) if whole else 4
    if bits > 8:
        return None
    numbers |= {"B": bits, "W": 32 // bits, "H": 1 << bits - 1}
    return numbers | {"A": 8 * max(1, 128 // numbers.get("G", 128))}


def _filled(template: str, numbers: Mapping[str, int]) -> str:
    def number(found: re.Match[str]) -> str:
        return str(int(found[1] or 1) * numbers[found[2]])

    return re.sub(r"\{(\d*)([A-Z])\}", number, template)


_BUILT_IN = _Table()


def find(name: str) -> QuantisedType | None:
    """The quantised type of a name: of the library or of yours; None where there is none."""
    return _own.get(name) or _BUILT_IN.find(name)


def find_or_hint(name: str) -> QuantisedType | None:
    """As `find`; raises `InvalidDescriptor` for a name that differs in capitals only."""
    found = find(name)
    if found is None:
        low = name.lower()
        meant = [n for n in (low, low.replace("_k", "_K"), *_own) if n.lower() == low and find(n)]
        if meant:
            raise InvalidDescriptor(f"unknown element type {name!r}: did you mean {meant[0]!r}?")
    return found


def type_named(name: str | QuantisedType) -> QuantisedType:
    """The quantised type of a name. Raises `InvalidDescriptor`."""
    found = name if isinstance(name, QuantisedType) else find_or_hint(name)
    if found is None:
        names = ", ".join(n for n, _ in _BUILT_IN.rows)
        raise InvalidDescriptor(
            f"unknown quantised type {name!r}: expected one of {names}, with bits for {{B}} and "
            f"columns for {{G}}, or one of yours"
        )
    return found


def type_names() -> tuple[str, ...]:
    """The names of the table; ``{B}`` and ``{G}`` stand for bits and the size of a group."""
    return tuple(name for name, _ in _BUILT_IN.rows)


def layout_names() -> frozenset[str]:
    """The names of the layouts of the table, of whatever type."""
    return frozenset(["plain", *(name for _, name, _ in _BUILT_IN.layouts)])


def layouts(name: str | QuantisedType) -> dict[str, str]:
    """The named layouts of a quantised type, each with the text of its digits.

    >>> layouts("q4_0")["transposed"]
    'd=g n; q=k/4 n k%4'

    Raises `InvalidDescriptor` for an unknown type.
    """
    expect(name, str | QuantisedType, "type")
    return dict(type_named(name).layouts)


register(find_or_hint)
