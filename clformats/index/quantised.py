"""Index source of quantised tensors: functions that decode on load, as self-contained OpenCL C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import InvalidArgument
from ..formats.expr import Const, Expr, Var, total
from ..quantised import QuantisedDesc
from ..quantised.lanes import NotInTilesError, Symbols, Tile, placed_planes
from ..quantised.planes import Field, Plane
from ..quantised.types import WHOLE
from ..quantised.values import Tables, codes, of_codes, source, value
from ..values.formula import Formula
from .sizes import SIZE_NAMES, Size, any_size, expr_of

COLUMNS_AT_ONCE = (4, 8, 16)
SIZES_FROM = ("arguments", "macros")


def quantised_source(
    desc: QuantisedDesc, prefix: str, sizes: str | None = None, *, buffers: bool = False
) -> str:
    """The functions of a quantised tensor; ``w`` is its bytes, ``n`` a row, ``k`` a column.

    ``<prefix>_VALUE(w, n, k)`` is the value of an element in f32, ``_CODE(w, n, k)`` its code,
    unsigned. ``_VALUES8`` and ``_CODES8`` are those of eight columns from a multiple of 8 on, a
    ``float8`` and a ``uchar8``; there are ``4`` and ``16`` too. ``_GROUP(w, n, k)`` is a structure
    of the parameters that ``_GROUP_SIZE`` columns share, and ``_VALUE_IN(w, n, k, group)`` and
    ``_VALUES8_IN`` take it, so that a loop over columns reads parameters once. Experts come first:
    ``(w, e, n, k)``. ``_ROWS``, ``_COLUMNS``, ``_EXPERTS`` and ``_NBYTES`` are numbers.

    ``sizes``: None for constants; ``"arguments"`` for those of the kernel, which
    ``<prefix>_PARAMETERS`` declares and ``_ARGUMENTS`` passes on: experts where there are some,
    rows, columns, each a uint; ``"macros"`` for these names, defined before. The descriptor then
    stands for all tensors of its type and layout whose dims are multiples of its own.

    With ``buffers`` fields lie in buffers of their own: ``w`` is a structure ``<prefix>_buffers``
    of pointers, a member for each buffer of the descriptor, named as by `QuantisedDesc.split`.
    """
    if sizes not in (None, *SIZES_FROM):
        raise InvalidArgument(
            f"sizes: got {sizes!r}, expected None or {', '.join(SIZES_FROM)} for {desc}"
        )
    writer = _Writer(desc, prefix, sizes, buffers=buffers)
    return source("\n".join(writer.lines()), writer.tables)


def _own(field: str) -> str:
    """The variable of a field: a field may be called e or k, as the indices are."""
    return f"v_{field}"


class _Named(Symbols):
    """Symbols by what they are: numbers that are equal for some sizes only are two."""

    def of(self, value: int) -> str:
        """The symbol of a number of bytes."""
        for name, known in self.values.items():
            if expr_of(known) == expr_of(value):
                return name
        name = f"{self.prefix}{len(self.values)}"
        self.values[name] = value
        return name


class _Writer:
    def __init__(
        self, desc: QuantisedDesc, prefix: str, form: str | None, *, buffers: bool
    ) -> None:
        self.given, self.prefix, self.form, self.buffers = desc, prefix, form, buffers
        self.desc = any_size(desc, prefix) if form else desc
        self.tables = Tables(prefix)
        names = desc.dtype.formula.names
        self.formula = desc.dtype.formula.with_names({n: Formula("name", _own(n)) for n in names})
        self.fields = [self.desc.fields[n] for n in names]
        self.shared = [f for f in self.fields if f.group[1] != 1 and f.dtype.width == 1]
        own = [f for f in self.fields if f.group == (1, 1) and f.dtype.width == 1]
        self.elements = own[0] if own else None
        self.indices = ["e", "n", "k"] if desc.ndims > 2 else ["n", "k"]
        self.memory = f"const {prefix}_buffers w" if buffers else "global const uchar *w"
        self.symbols: Symbols = (_Named if form else Symbols)(f"{prefix}_STRIDE_")
        self.tiles = {w: Tile(1, w) for w in COLUMNS_AT_ONCE if self._has_tiles(w)}

    def _has_tiles(self, width: int) -> bool:
        """Whether so many neighbours lie alike wherever they begin."""
        columns = self.given.extents[2]
        cut = any(f.group[1] and columns % f.group[1] for f in self.fields)
        if (
            columns % width
            or (self.form and cut)
            or any(f.dtype.width > width for f in self.fields)
        ):
            return False
        try:
            self.planes = placed_planes(self.desc, self.symbols, apart=self.buffers)
            for plane in self.planes.values():
                plane.pointers(Tile(1, width), "w")
        except NotInTilesError:
            return False
        return True

    # --- the source ---------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """All of the source after the helpers."""
        yield f"// {self.given}"
        yield from self._sizes()
        for name, number in self.symbols.values.items():
            yield f"#define {name} {_number(number)}"
        if self.buffers:
            members = ", *".join(self._members())
            yield f"typedef struct {{ global const uchar *{members}; }} {self.prefix}_buffers;"
        yield from self._one()
        for width in COLUMNS_AT_ONCE:
            yield from self._many(width)

    def _sizes(self) -> Iterator[str]:
        p = self.prefix
        given = SIZE_NAMES[3 - min(self.given.ndims, 3) :] if self.form else ()
        if self.form == "arguments":
            yield f"#define {p}_PARAMETERS {', '.join(f'const uint {p}_{n}' for n in given)}"
            yield f"#define {p}_ARGUMENTS {', '.join(f'{p}_{n}' for n in given)}"
        if self.form == "macros":
            yield f"// define before: {', '.join(f'{p}_{n}' for n in given)}"
        for name, number in zip(SIZE_NAMES, self.desc.extents, strict=True):
            if name not in given:
                yield f"#define {p}_{name} {number}"
        yield f"#define {p}_NBYTES {_number(self.desc.nbytes)}"
        if self.shared:
            sizes = [f.group[1] for f in self.shared if f.group[1] != WHOLE]
            yield f"#define {p}_GROUP_SIZE {min(sizes, default=f'{p}_COLUMNS')}"

    def _function(
        self, kind: str, name: str, body: Sequence[str], more: Sequence[str] = ()
    ) -> Iterator[str]:
        """A function; with sizes as arguments also a macro of its name that passes them on."""
        full = f"{self.prefix}_{name}"
        parameters = [self.memory, *(f"const uint {i}" for i in self.indices)]
        parameters += [f"const {self.prefix}_group {m}" for m in more]
        given = ["w", *self.indices, *more]
        passes_on = self.form == "arguments"
        yield ""
        parameters += [f"{self.prefix}_PARAMETERS"] * passes_on
        yield f"static inline {kind} {full}({', '.join(parameters)})"
        yield "{"
        if "e" not in self.indices:
            yield "  const uint e = 0;"
        yield from (f"  {line}" for line in body)
        yield "}"
        if passes_on:
            call = ", ".join([*(f"({g})" for g in given), f"{self.prefix}_ARGUMENTS"])
            yield f"#define {full}({', '.join(given)}) {full}({call})"

    def _one(self) -> Iterator[str]:
        """The functions of one element, and of the parameters of a group."""
        formula, kind = self.formula.source("float"), f"{self.prefix}_group"
        fields = [f"const float {_own(f.name)} = {self._scalar(f)};" for f in self.fields]
        yield from self._function("float", "VALUE", [*fields, f"return {formula};"])
        if self.elements:
            body = [f"return {self._code(self.elements)};"]
            yield from self._function("uint", "CODE", body)
        if not self.shared:
            return
        yield f"typedef struct {{ float {', '.join(f.name for f in self.shared)}; }} {kind};"
        body = [f"{kind} group;"]
        body += [f"group.{f.name} = {self._scalar(f)};" for f in self.shared]
        yield from self._function(kind, "GROUP", [*body, "return group;"])
        fields = [f"const float {_own(f.name)} = {self._scalar(f)};" for f in self._others()]
        body = [*self._hoisted(), *fields, f"return {formula};"]
        yield from self._function("float", "VALUE_IN", body, ["group"])

    def _many(self, width: int) -> Iterator[str]:
        """The functions of so many columns."""
        formula = self.formula.source("float", width)
        kind, body = f"float{width}", self._loads(self.fields, width, formula, "VALUE")
        yield from self._function(kind, f"VALUES{width}", body)
        own = self.elements
        if own:
            wide = f"{ {1: 'uchar', 2: 'ushort', 4: 'uint'}[own.dtype.nbytes] }{width}"
            body = [f"return {self._each('CODE', width, wide)};"]
            if width in self.tiles:
                lanes = [(0, j) for j in range(width)]
                found = codes(own, self.planes, self.tiles[width], lanes)
                body = [*self._pointers([own], width), f"return {found};"]
            yield from self._function(wide, f"CODES{width}", body)
        if self.shared and all((f.group[1] or width) % width == 0 for f in self.shared):
            body = [*self._hoisted(), *self._loads(self._others(), width, formula, "VALUE_IN")]
            yield from self._function(kind, f"VALUES{width}_IN", body, ["group"])

    # --- parts of functions -------------------------------------------------------------------

    def _others(self) -> list[Field]:
        return [f for f in self.fields if f not in self.shared]

    def _hoisted(self) -> list[str]:
        return [f"const float {_own(f.name)} = group.{f.name};" for f in self.shared]

    def _loads(self, fields: list[Field], width: int, formula: str, one: str) -> list[str]:
        """The statements that load fields in vectors and compute values; else one by one."""
        if width not in self.tiles:
            return [f"return {self._each(one, width, f'float{width}')};"]
        lanes = [(0, j) for j in range(width)]
        found = self._pointers(fields, width)
        for f in fields:
            text = value(f, self.planes, self.tiles[width], lanes, self.tables)
            shared = f in self.shared and (f.group[1] or width) % width == 0
            found.append(f"const float{'' if shared else width} {_own(f.name)} = {text};")
        return [*found, f"return {formula};"]

    def _each(self, function: str, width: int, kind: str) -> str:
        head = ", ".join(["w", *self.indices[:-1]])
        more = ", group" * function.endswith("_IN")
        calls = [f"{self.prefix}_{function}({head}, k + {j}{more})" for j in range(width)]
        return f"({kind})({', '.join(calls)})"

    def _pointers(self, fields: Sequence[Field], width: int) -> list[str]:
        tile, planes = self.tiles[width], [p for f in fields for p in f.planes]
        found = (self.planes[p.name].pointers(tile, self._begin(p)) for p in planes)
        return [line.strip() for lines in found for line in lines]

    def _members(self) -> list[str]:
        return [b.first for b in self.desc.buffers]

    def _begin(self, plane: Plane) -> str:
        """The C of the memory in which a plane lies."""
        return f"w.{self._members()[plane.buffer]}" if self.buffers else "w"

    def _bit(self, field: Field, plane: Plane) -> Expr:
        """The bit of an element's part, counted from `_begin`."""
        start = 8 * self.desc.buffers[plane.buffer].start if self.buffers else 0
        terms = []
        for d in plane.digits:
            group = (1, *field.group)[d.dim]
            if d.size == 1 or group == WHOLE:
                continue
            index = Var(f"(ulong){'enk'[d.dim]}") // group
            own = (index * d.mul + d.add) // d.step
            terms.append((own if isinstance(d.size, Size) else own % d.size) * expr_of(d.stride))
        return total(terms) + expr_of(plane.first_bit - start)

    def _code(self, field: Field) -> str:
        """The code of one element, by the address of its bits."""
        parts = []
        for low, plane in field.parts:
            own = f"code_at({self._begin(plane)}, {self._bit(field, plane)}, {plane.bits})"
            parts.append(f"{own} << {low}" if low else own)
        text = " | ".join(parts) if len(parts) == 1 else f"({' | '.join(f'({p})' for p in parts)})"
        if field.bias:
            mask = (1 << field.bits) - 1
            text = f"(({text}) + {-field.bias & mask} & {mask})"
        return text

    def _scalar(self, field: Field) -> str:
        """The value of one element."""
        text = self._code(field)
        if field.dtype.width > 1:
            table, width = self.tables.of(field.dtype), field.dtype.width
            return f"(float){table}[{width} * ({text}) + k % {width}]"
        return of_codes(field.dtype, text, 1, self.tables)


def _number(number: int) -> str:
    """A number of bytes as C of 64 bits."""
    expr = expr_of(number)
    return f"{expr}UL" if isinstance(expr, Const) else f"({expr})"
