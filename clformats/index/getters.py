"""ClDNN's index macros: ``GET_DATA_<LAYOUT>_INDEX(prefix, ...)`` and ``GET_FILTER_...``.

They take the prefix of a tensor, find its sizes, paddings and pitches as macros of that prefix, and
serve every shape. Names and the order of arguments are those of clDNN's kernels, as are the macros
that take the size of a block as an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..formats.expr import Expr, Var
from ..formats.format import Format
from .dense import Names, dense_offset
from .names import COUNTS, PITCHES, coordinates_of, identifier, is_plain, layout_of, letters_of

HELPERS = """\
// A number of a tensor, its extent along a dimension, and indices: from the start of its padding,
// and taken modulo its size.
#define CF_OF(prefix, name) prefix##_##name
#define CF_EXTENT(prefix, name) \\
    (prefix##_PAD_BEFORE_##name + prefix##_##name + prefix##_PAD_AFTER_##name)
#define CF_AT(prefix, name, i) ((i) + prefix##_PAD_BEFORE_##name)
#define CF_WRAP(prefix, name, i) ((i) % CF_OF(prefix, name))"""

# Plain formats: the macros, and their coordinates; others for the same.
_BY_PITCHES = {
    "DATA_INDEX": "bfyx",
    "DATA_INDEX_5D": "bfzyx",
    "DATA_INDEX_6D": "bfwzyx",
    "DATA_INDEX_7D": "bfuwzyx",
    "DATA_INDEX_8D": "bfvuwzyx",
    "FILTER_INDEX": "goiyx",
    "FILTER_INDEX_5D": "goizyx",
}
_SAME = {"GOIYX": "INDEX", "GIOYX": "INDEX", "GOIZYX": "INDEX_5D", "GIOZYX": "INDEX_5D"}

# Macros that serve several sizes of blocks: a format with blocks of different sizes, and the sizes'
# names, in the order in which they follow the coordinates.
_ANY_BLOCK: dict[str, tuple[str, dict[int, str]]] = {
    "DATA_BS_FYX_BSV8_INDEX": ("bs_f_bsv8__af8", {8: "sub_group_size"}),
    "FILTER_OS_IYX_OSV16": ("os_iyx_osv16", {16: "sub_group_size"}),
    "FILTER_OS_IYX_OSV_INDEX": ("os_iyx_osv16", {16: "sub_group_size"}),
    "FILTER_G_OS_IYX_OSV16": ("g_os_iyx_osv16", {16: "sub_group_size"}),
    "FILTER_GS_OIYX_GSV16": ("gs_oiyx_gsv16", {16: "sub_group_size"}),
    "FILTER_GS_OIZYX_GSV16": ("gs_oizyx_gsv16", {16: "sub_group_size"}),
    "FILTER_OS_IYX_OSV_ROTATE_180_INDEX": ("os_iyx_osv16_rotate_180", {16: "sub_group_size"}),
    "FILTER_G_OS_IYX_OSV16_ROTATE_180": ("g_os_iyx_osv16_rotate_180", {16: "sub_group_size"}),
    "FILTER_I_YXS_OS_YXSV2_OSV_INDEX": ("i_yxs_os_yxsv2_osv16", {16: "sub_group_size"}),
    "FILTER_GI_YXS_OS_YXSV2_OSV_INDEX": ("gi_yxs_os_yxsv2_osv16", {16: "sub_group_size"}),
    "FILTER_IY_XS_OS_XSV2_OSV_INDEX": ("iy_xs_os_xsv2_osv8__ao32", {8: "sub_group_size"}),
    "FILTER_GIY_XS_OS_XSV2_OSV_INDEX": ("giy_xs_os_xsv2_osv8__ao32", {8: "sub_group_size"}),
    "FILTER_OS_IS_YX_ISV_OSV_INDEX": ("os_is_yx_isv4_osv16", {16: "osv", 4: "isv"}),
    "FILTER_OS_IS_ZYX_ISV_OSV_INDEX": ("os_is_zyx_isv4_osv16", {16: "osv", 4: "isv"}),
    "FILTER_IS_OS_YX_OSV_ISV_INDEX": ("is_os_yx_osv16_isv4", {16: "osv", 4: "isv"}),
    "FILTER_IS_OS_YX_ISV_OSV_INDEX": ("is_os_yx_isv4_osv16", {16: "osv", 4: "isv"}),
    "FILTER_G_OS_IS_ZYX_ISA_OSV_ISV_INDEX": (
        "g_os_is_zyx_isa2_osv16_isv4",
        {2: "isa", 16: "osv", 4: "isv"},
    ),
    "FILTER_G_OS_ZYX_IS_OSV_ISV_INDEX": ("g_os_zyx_is_osv16_isv4", {16: "osv", 4: "isv"}),
    "FILTER_G_OS_Y_IS_X_OSV_ISV_INDEX": ("g_os_y_is_x_osv16_isv4", {16: "osv", 4: "isv"}),
    "FILTER_G_OS_ZY_IS_X_OSV_ISV_INDEX": ("g_os_zy_is_x_osv16_isv4", {16: "osv", 4: "isv"}),
}
# A macro without the ending of its like.
_ENDLESS = "os_zyxi_osv16"
# Formats whose macro has an argument sub_group_size, although the name tells their blocks.
_WITH_SUB_GROUP = re.compile(
    r"(is_os|g_is_os|g_os_is)_z?yx_isv16_osv16|(g_)?os_is_z?yx_isv8_osv16_isv2"
)


def getters(formats: Iterable[Format], *, any_block: bool) -> str:
    """The macros of plain formats, of these formats, and those that serve several blocks."""
    every: dict[str, Format] = {}
    for fmt in formats:
        every.setdefault(getter(fmt), fmt)
    sections: list[Iterable[str]] = [HELPERS.splitlines(), _plain()]
    sections += [_of_format(name, fmt) for name, fmt in every.items()]
    if any_block:
        sections.append(_of_blocks())
    return "\n\n".join("\n".join(section) for section in sections)


def getter(fmt: Format) -> str:
    """The macro of a format: ``GET_DATA_B_FS_YX_FSV16_INDEX``."""
    return f"GET_{_kind(fmt)}_{layout_of(fmt)}_INDEX"


def takes_sub_group(fmt: Format) -> bool:
    """Whether the macro of a format has a last argument sub_group_size."""
    return _WITH_SUB_GROUP.fullmatch(fmt.cldnn or fmt.name) is not None


def _kind(fmt: Format) -> str:
    return "FILTER" if fmt.role == "weights" else "DATA"


def _plain() -> Iterator[str]:
    yield "// Plain formats: by pitches, which tell their order."
    for name, letters in _BY_PITCHES.items():
        terms = [f"({c}) * CF_OF(prefix, {PITCHES[c]})" for c in letters]
        yield _macro(f"GET_{name}", letters, _sum(terms))
        yield _safe(f"GET_{name}", letters, letters)
        if name.startswith("DATA"):
            numbers = [f"i{k}" for k in range(len(letters))]
            terms = [f"({n}) * CF_OF(prefix, PITCHES)[{k}]" for k, n in enumerate(numbers)]
            yield _macro(f"GET_{name}_RAW", numbers, _sum(terms))
    for name, same in _SAME.items():
        yield from _alias(f"GET_FILTER_{name}", _BY_PITCHES[f"FILTER_{same}"], f"FILTER_{same}")


def plain_getter(letters: str) -> str:
    """The macro of plain formats of these dimensions: ``DATA_INDEX_5D``; empty for others."""
    wanted = coordinates_of(letters)
    found = (n for n, every in _BY_PITCHES.items() if wanted in (every, every.removeprefix("g")))
    return next(found, "")


def _alias(name: str, coordinates: str, plain: str) -> Iterator[str]:
    values = [c if c in coordinates else "0" for c in _BY_PITCHES[plain]]
    for safe in ("", "_SAFE"):
        call = f"GET_{plain}{safe}({', '.join(['prefix', *values])})"
        yield _macro(f"{name}{safe}", coordinates, call)


def _sum(terms: Iterable[str]) -> str:
    return f"(CF_OF(prefix, OFFSET) + {' + '.join(terms)})"


def _safe(name: str, coordinates: str, letters: str, more: Iterable[str] = ()) -> str:
    wrapped = [f"CF_WRAP(prefix, {COUNTS[c]}, {c})" if c in letters else c for c in coordinates]
    values = ", ".join(["prefix", *wrapped, *more])
    return _macro(f"{name}_SAFE", [*coordinates, *more], f"{name}({values})")


def _macro(name: str, parameters: Iterable[str], value: str) -> str:
    return f"#define {name}({', '.join(['prefix', *parameters])}) {value}"


def _of_format(name: str, fmt: Format) -> Iterator[str]:
    letters = letters_of(fmt)
    coordinates = coordinates_of(letters)
    yield f"// {fmt}"
    if is_plain(fmt):
        if plain := plain_getter(letters):
            yield from _alias(name, coordinates, plain)
        else:
            terms = [f"({c}) * CF_OF(prefix, {PITCHES[c]})" for c in letters]
            yield _macro(name, coordinates, _sum(terms))
            yield _safe(name, coordinates, letters)
        return
    more = ["sub_group_size"] if takes_sub_group(fmt) else []
    function = f"cf_{identifier(fmt.name)}"
    yield from _function(function, letters, fmt)
    yield _macro(name, [*coordinates, *more], _call(function, letters))
    yield _safe(name, coordinates, letters, more)


def _of_blocks() -> Iterator[str]:
    """The macros that take the sizes of blocks; several may share a function."""
    arguments = ", ".join(["prefix", *Format(_ENDLESS).letters])
    name = f"GET_FILTER_{_ENDLESS.upper()}"
    yield f"#define {name}({arguments}) {name}_INDEX({arguments})"
    done: set[str] = set()
    for name, (text, sizes) in _ANY_BLOCK.items():
        fmt = Format(text)
        names: dict[int, Expr] = {n: Var(parameter) for n, parameter in sizes.items()}
        if "isa" in sizes.values():
            names[8] = Var("isa") * Var("isv")
        letters = fmt.letters
        coordinates = coordinates_of(letters)
        parameters = list(sizes.values())
        numbers = "|".join(f"(?<=[va]){n}(?![0-9])" for n in sizes)
        function = f"cf_{re.sub(numbers, 'n', text)}"
        if function not in done:
            yield f"\n// {text} and its like, with blocks of any size"
            yield from _function(function, letters, fmt, names, parameters)
        done.add(function)
        call = _call(function, letters, parameters)
        yield _macro(f"GET_{name}", [*coordinates, *parameters], call)
        yield _safe(f"GET_{name}", coordinates, letters, parameters)


def _function(
    name: str, letters: str, fmt: Format, names: Names | None = None, more: Iterable[str] = ()
) -> Iterator[str]:
    """The offset as a function of extents and indices."""
    renamed = dict(zip(fmt.letters, letters, strict=True))
    text = re.sub(r"\b[A-Za-z]\b", lambda m: _renamed(renamed, m[0]), str(dense_offset(fmt, names)))
    parameters = [*letters.upper(), *letters, *more]
    yield f"static inline uint {name}({', '.join(f'uint {p}' for p in parameters)})"
    yield "{"
    yield f"    return {text};"
    yield "}"


def _renamed(letters: dict[str, str], letter: str) -> str:
    return letters[letter] if letter.islower() else letters[letter.lower()].upper()


def _call(function: str, letters: str, more: Iterable[str] = ()) -> str:
    extents = [f"CF_EXTENT(prefix, {COUNTS[c]})" for c in letters]
    indices = [f"CF_AT(prefix, {COUNTS[c]}, {c})" for c in letters]
    return f"{function}({', '.join([*extents, *indices, *more])})"
