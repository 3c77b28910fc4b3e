"""Index source of quantised tensors: functions that decode on load, as self-contained OpenCL C."""

from __future__ import annotations

from collections.abc import Iterator

from ..formats.expr import Var
from ..quantised import QuantisedDesc
from ..quantised.lanes import NotInTilesError, Symbols, Tile, placed_planes
from ..quantised.planes import Field
from ..quantised.values import Tables, codes, of_codes, source, value
from ..values.formula import Formula

WIDTH = 8
EIGHT = Tile(1, WIDTH)


def quantised_source(desc: QuantisedDesc, prefix: str) -> str:
    """The functions of a quantised tensor, with its sizes as constants.

    ``<prefix>_VALUE(w, n, k)`` is the value of an element in f32, ``w`` being its bytes;
    ``_VALUES8(w, n, k)`` those of eight columns from a multiple of 8 on, a ``float8``;
    ``_CODES8`` their codes. ``_GROUP(w, n, k)`` is a structure of the parameters that
    ``_GROUP_SIZE`` columns share, and ``_VALUES8_IN(w, n, k, group)`` takes it, so that a loop
    over columns reads parameters once. Experts come first: ``(w, e, n, k)``.
    """
    writer = _Writer(desc, prefix)
    return source("\n".join(writer.lines()), writer.tables)


def _own(field: str) -> str:
    """The variable of a field: a field may be called e or k, as the indices are."""
    return f"v_{field}"


class _Writer:
    def __init__(self, desc: QuantisedDesc, prefix: str) -> None:
        self.desc, self.prefix = desc, prefix
        self.tables = Tables(prefix)
        self.names = desc.dtype.formula.names
        self.formula = desc.dtype.formula.with_names(
            {name: Formula("name", _own(name)) for name in self.names}
        )
        self.fields = [desc.fields[n] for n in self.names]
        experts = "uint e, " if desc.ndims > 2 else ""
        self.parameters = f"global const uchar *w, {experts}uint n, uint k"
        self.given = f"w, {'e, ' if experts else ''}n, k"
        self.symbols = Symbols(f"{prefix}_STRIDE_")
        try:
            self.planes = placed_planes(desc, self.symbols)
            for plane in self.planes.values():
                plane.pointers(EIGHT, "w")
            self.in_tiles = desc.extents[2] % WIDTH == 0
        except NotInTilesError:
            self.in_tiles = False

    def lines(self) -> Iterator[str]:
        """All of the source behind the helpers."""
        p, (experts, rows, columns) = self.prefix, self.desc.extents
        yield f"// {self.desc}"
        yield f"#define {p}_ROWS {rows}"
        yield f"#define {p}_COLUMNS {columns}"
        yield f"#define {p}_EXPERTS {experts}"
        yield f"#define {p}_NBYTES {self.desc.nbytes}UL"
        for name, number in self.symbols.values.items():
            yield f"#define {name} {number}UL"
        yield from self._function("float", "VALUE", [
            *(f"const float {_own(f.name)} = {self._scalar(f)};" for f in self.fields),
            f"return {self.formula.source('float')};",
        ])  # fmt: skip
        yield from self._eight()
        yield from self._groups()

    def _function(self, kind: str, name: str, body: list[str], more: str = "") -> Iterator[str]:
        yield ""
        yield f"static inline {kind} {self.prefix}_{name}({self.parameters}{more})"
        yield "{"
        if self.desc.ndims < 3:
            yield "  const uint e = 0;"
        yield from (f"  {line}" for line in body)
        yield "}"

    def _eight(self) -> Iterator[str]:
        formula = self.formula.source("float", WIDTH)
        if not self.in_tiles:
            yield from self._function("float8", "VALUES8", [f"return {self._each('VALUE')};"])
            return
        body = [f"const {self._kind(f)} {_own(f.name)} = {self._lanes(f)};" for f in self.fields]
        yield from self._function(
            "float8", "VALUES8", [*self._pointers(self.fields), *body, f"return {formula};"]
        )
        own = self._elements()
        if own is not None:
            wide = "uchar8" if own.bits <= 8 else "ushort8"
            lanes = [(0, j) for j in range(WIDTH)]
            found = codes(own, self.planes, EIGHT, lanes)
            yield from self._function(wide, "CODES8", [*self._pointers([own]), f"return {found};"])

    def _groups(self) -> Iterator[str]:
        """The parameters by hand: those of fields that more than one column shares."""
        shared = [f for f in self.fields if f.group[1] != 1 and f.dtype.width == 1]
        if not shared or not self.in_tiles:
            return
        size = min(f.group[1] or self.desc.extents[2] for f in shared)
        if size % WIDTH:
            return
        kind = f"{self.prefix}_group"
        yield ""
        yield f"#define {self.prefix}_GROUP_SIZE {size}"
        yield f"typedef struct {{ float {', '.join(f.name for f in shared)}; }} {kind};"
        names = [f.name for f in shared]
        body = [f"{kind} group;"]
        body += [f"group.{f.name} = {self._scalar(f)};" for f in shared]
        yield from self._function(kind, "GROUP", [*body, "return group;"])
        others = [f for f in self.fields if f.name not in names]
        body = [f"const float {_own(name)} = group.{name};" for name in names]
        body += [f"const {self._kind(f)} {_own(f.name)} = {self._lanes(f)};" for f in others]
        formula = self.formula.source("float", WIDTH)
        yield from self._function(
            "float8", "VALUES8_IN", [*self._pointers(others), *body, f"return {formula};"],
            f", {kind} group",
        )  # fmt: skip

    def _elements(self) -> Field | None:
        own = [f for f in self.fields if f.group == (1, 1) and f.dtype.width == 1]
        return own[0] if own else None

    def _kind(self, field: Field) -> str:
        shared = field.group[1] != 1 and field.dtype.width == 1
        return "float" if shared and (field.group[1] or WIDTH) % WIDTH == 0 else "float8"

    def _lanes(self, field: Field) -> str:
        lanes = [(0, j) for j in range(WIDTH)]
        return value(field, self.planes, EIGHT, lanes, self.tables)

    def _pointers(self, fields: list[Field]) -> list[str]:
        names = [p.name for f in fields for p in f.planes]
        return [line.strip() for n in names for line in self.planes[n].pointers(EIGHT, "w")]

    def _each(self, function: str) -> str:
        head = self.given.removesuffix("k")
        calls = [f"{self.prefix}_{function}({head}k + {j})" for j in range(WIDTH)]
        return f"(float8)({', '.join(calls)})"

    def _scalar(self, field: Field) -> str:
        """The value of one element, by the address of its bits."""
        shift = 0
        parts = []
        for plane in field.planes:
            at = self.desc.address(plane, (Var("(ulong)e"), Var("(ulong)n"), Var("(ulong)k")))
            own = f"code_at(w, {at}, {plane.bits})"
            parts.append(f"{own} << {shift}" if shift else own)
            shift += plane.bits
        text = " | ".join(parts) if len(parts) == 1 else f"({' | '.join(f'({p})' for p in parts)})"
        if field.bias:
            mask = (1 << field.bits) - 1
            text = f"(({text}) + {-field.bias & mask} & {mask})"
        if field.dtype.width > 1:
            table, width = self.tables.of(field.dtype), field.dtype.width
            return f"(float){table}[{width} * ({text}) + k % {width}]"
        return of_codes(field.dtype, text, 1, self.tables)
