"""`format_header`: functions of every format in one file, for OpenCL C and for C."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..errors import InvalidFormat, expect
from ..formats.format import Format, formats
from ..pictures.words import formula
from .dense import dense_coordinates, dense_offset, dense_places
from .lines import folded
from .names import identifier

HEAD = """\
// Where the elements of tensors lie, format by format; made by `clformats header`.
//
// For a format F with dimensions b, f, y, x, in their logical order:
//   uint cf_F(B, F, Y, X, b, f, y, x)                       the offset of an element, in elements
//   bool cf_F_coords(B, F, Y, X, offset, &b, &f, &y, &x)    the inverse; false for padding
//   uint cf_F_places(B, F, Y, X)                            the elements that a buffer must hold
//
// Capital letters are extents: sizes with the padding of both sides; indices count from the start
// of the padding. Offsets count elements, also where several share a byte, and in an image the
// channels of its pixels. OpenCL C 1.2, C99 and C++; for offsets of up to 32 bits.
#ifndef CLFORMATS_FORMATS_H
#define CLFORMATS_FORMATS_H

#ifndef __OPENCL_VERSION__
#include <stdbool.h>
#define uint unsigned int
#endif
"""
FOOT = """
#ifndef __OPENCL_VERSION__
#undef uint
#endif

#endif
"""


def format_header(names: Iterable[Format | str] | None = None, *, wide: bool = False) -> str:
    """A header with functions of these formats, by default of every registered one.

    For each format it has three functions of the extents: the offset of an element, the inverse,
    and the number of elements that a buffer must hold. It compiles as OpenCL C 1.2, C99 and C++.
    ``wide`` counts in 64 bits instead of 32. Raises `InvalidFormat` for ``any``.
    """
    expect(names, Iterable | None, "names")
    expect(wide, bool, "wide")
    if isinstance(names, str):
        raise InvalidFormat(f"got the text {names!r}: expected a list of formats")
    wanted = formats() if names is None else map(Format, names)
    done: dict[tuple[object, int], str] = {}
    sections: list[str] = []
    for fmt in {identifier(f.name): f for f in wanted}.values():
        key = fmt.structure, fmt.ndims
        name = identifier(fmt.name)
        if key in done:
            sections[-1] += "".join(_same(name, done[key]))
        else:
            done[key] = name
            sections.append("\n".join(_functions(name, fmt)) + "\n")
    aside, back = _letters_aside("".join(sections))
    text = folded(HEAD + aside + "\n".join(sections) + back + FOOT)
    return _widened(text) if wide else text


def _widened(text: str) -> str:
    """The same in 64 bits."""
    text = text.replace("unsigned int", "unsigned long long").replace("to 32 bits", "to 64 bits")
    return re.sub(r"\buint\b", "ulong", text)


def _letters_aside(text: str) -> tuple[str, str]:
    """Lines that undefine the user's macros of one capital letter, and lines that restore them."""
    letters = sorted(set(re.findall(r"\buint ([A-Z])\b", text)))
    aside = "".join(f'#pragma push_macro("{c}")\n#undef {c}\n' for c in letters)
    back = "".join(f'#pragma pop_macro("{c}")\n' for c in letters)
    note = "// Macros of these names, such as I of complex.h, are set aside until the end.\n"
    return (f"\n{note}{aside}\n", f"\n{back}") if letters else ("\n", "")


def _same(name: str, other: str) -> Iterator[str]:
    for what in ("", "_coords", "_places"):
        yield f"#define cf_{name}{what} cf_{other}{what}\n"


def _functions(name: str, fmt: Format) -> Iterator[str]:
    letters = fmt.letters
    extents = ", ".join(f"uint {c}" for c in letters.upper())
    indices = ", ".join(f"uint {c}" for c in letters)
    pointers = ", ".join(f"uint *{c}" for c in letters)
    yield f"// {fmt}: {', '.join(formula(fmt, d) for d in fmt.digits)}"
    outer = _unused(letters, str(dense_offset(fmt)))
    yield f"static inline uint cf_{name}({extents}, {indices})"
    yield "{"
    yield from outer
    yield f"    return {dense_offset(fmt)};"
    yield "}"
    yield f"static inline bool cf_{name}_coords({extents}, uint offset, {pointers})"
    yield "{"
    yield "    uint rest = offset;"
    yield from (f"    {line}" for line in dense_coordinates(fmt, fmt.structure))
    tail = fmt.structure.tail
    if tail is not None:
        letter = letters[tail.dim]
        yield f"    if (*{letter} >= {letter.upper()} - {letter.upper()} % {tail.size}) {{"
        yield "        rest = offset;"
        for line in dense_coordinates(fmt, fmt.structure.behind):
            # Names of its own: some compilers warn of one that hides another.
            yield "        " + re.sub(r"\b([a-z]_\d+)\b", r"\1_behind", line)
        yield "    }"
    yield f"    return {' && '.join(f'*{c} < {c.upper()}' for c in letters)};"
    yield "}"
    yield f"static inline uint cf_{name}_places({extents})"
    yield "{"
    yield from _unused(letters, str(dense_places(fmt)))
    yield f"    return {dense_places(fmt)};"
    yield "}"


def _unused(letters: str, text: str) -> Iterator[str]:
    """The extents that a formula does not need, such as the outermost: compilers would warn."""
    unused = [c for c in letters.upper() if not re.search(rf"\b{c}\b", text)]
    if unused:
        yield "    " + " ".join(f"(void){c};" for c in unused)
