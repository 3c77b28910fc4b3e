"""The named formats: every name that is listed, and what a name by itself cannot say.

A name is looked up here first and read by the grammars of `names` otherwise, so a name needs no
row here to work; the tables below exist for listing, and for the few names that mislead.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib import resources

from ..errors import InvalidFormat
from . import text
from .aliases import WORDS, canonical
from .digits import MAX_NDIMS
from .engines import called
from .names import GrammarError, Kind, Parsed, parse_cldnn
from .opaque import NAMES as OPAQUE
from .opaque import NOTES as _OPAQUE_NOTES
from .opaque import parse_opaque
from .tags import expand_meta, is_meta, is_short, parse_onednn, parse_short

# oneDNN aliases whose letters do not spell the tag they stand for.
MISNAMED = {
    "OhwI32o": "Ohwi32o",
    "gOhwI32o": "gOhwi32o",
    "OhwI24o": "Ohwi24o",
    "gOhwI24o": "gOhwi24o",
    "gIOhw2i8o16i2o": "gOIhw2i8o16i2o",
    "gIOdhw2i8o16i2o": "gOIdhw2i8o16i2o",
}

# Names that clDNN renamed, and the kernel selector's names where they differ from clDNN's.
RENAMED = {
    "bfyx_f16": "b_fs_yx_fsv16",
    "bfzyx_f16": "b_fs_zyx_fsv16",
    "bfzyx_b16f16": "bs_fs_zyx_bsv16_fsv16",
    "fs_bs_yx_bs4_fs32": "fs_bs_yx_bsv4_fsv32",
    "bs_fs_fsv8_bsv8": "bs_f_bsv8",
    "bs_fs_fsv8_bsv16": "bs_f_bsv16",
    "bs_xs_xsv8_bsv8": "bs_f_bsv8",
    "bs_xs_xsv8_bsv16": "bs_f_bsv16",
    "bs_x_bsv16": "bs_f_bsv16",
    # The buffer of these two is sized with f rounded up, the offsets are computed without.
    "bs_f_bsv8__af8": "bs_f_bsv8",
    "bs_f_bsv16__af8": "bs_f_bsv16",
    "oiyx_o16": "os_iyx_osv16",
    "o_i_yx_i16_o16": "os_is_yx_isv16_osv16",
    "o_i_zyx_i16_o16": "os_is_zyx_isv16_osv16",
    "i_o_zyx_o16_i16": "is_os_zyx_osv16_isv16",
    "lstm_weights_dio": "oixy",
    "dlstm_dir_io": "oixy",
    "bf_lyx_yx": "oiyx",
    "byxf_af32": "byxf__af32",
    "byx8_f4": "byx8f4",
    # Elements of one bit (u1): 32 neighbours are one word, the first in its lowest bit.
    "b_fs_yx_32fp": "b_fs_yx_fsv32",
    "os_is_yx_osv32_isv32p": "os_is_yx_osv32_isv32",
    # Only 1x1 filters exist in these, and y and x are not dimensions of theirs.
    "os_is_yx_osv32_isv2": "os_is_osv32_isv2",
    "os_is_yx_osv64_isv2": "os_is_osv64_isv2",
    "os_is_yx_osv32_isv2:i4": "os_is_osv32_isv2",
    "os_is_yx_osv64_isv2:i4": "os_is_osv64_isv2",
}

# Names whose digits no rule gives, as `clformats.formats.text` reads them.
# In the swizzled three, a block digit stands outside the open digit of another dimension.
DIGITS = {
    "os_is_yx_isa8_osv8_isv4_swizzled_by_4": "o/32 o%4 i/32 y x i/4%8 o/4%8 i%4",
    "is_o32_yx_isv32_swizzled_by_4": "i/32 o/32 o%4 o/4%8 y x i%32",
    "os_is_osv32_isv32_swizzled_by_4": "o/32 i/32 o%4 i/4%8 o/4%8 i%4",
    "os_is_y_x8_osv8_isv4_swizzled_by_4": "o/32 o%4 i/4 y x o/4%8 i%4 align x%8",
    "bf8_xy16": "b f/8 (y x)/16 f%8 (y x)%16",
    "brfyx": "b r f y x dims brfyx",
    # With elements of 4 bits the kernels mean another order by the same name. clDNN has no spelling
    # for the difference; here it is ":i4", and `for_bits` puts it after the name.
    "os_iyx_osv16:i4": "o/16 i/2 y x o%16 i%2",
    "os_iyx_osv32:i4": "o/32 i y x o%16 o/16%2",
    "os_iyx_osv64:i4": "o/64 i y x o/32%2 o%16 o/16%2",
    "winograd_2x3_s1_data": "b x y f",
    "winograd_2x3_s1_weights": "x y i o",
    "winograd_2x3_s1_fused_weights": "i o/8 x y o%8",
    "winograd_6x3_s1_fused_weights": "x i o/16 y o%16",
    # Where X is odd, the last column has other digits.
    "iy_xs_os_xsv2_osv8__ao32": "i y x/2 o/8 x%2 o%8 align o%32 tail x%2 i y x/2 o/32 x%2 o%32",
    "iy_xs_os_xsv2_osv16__ao32": "i y x/2 o/16 x%2 o%16 align o%32 tail x%2 i y x/2 o/32 x%2 o%32",
    "giy_xs_os_xsv2_osv8__ao32": "g i y x/2 o/8 x%2 o%8 align o%32 "
    "tail x%2 g i y x/2 o/32 x%2 o%32",
    "giy_xs_os_xsv2_osv16__ao32": "g i y x/2 o/16 x%2 o%16 align o%32 "
    "tail x%2 g i y x/2 o/32 x%2 o%32",
    # Images. image_2d_rgba: b is 1 and f 3 or 4 in clDNN; more would be stacked rows.
    # nv12: one plane of two; clDNN takes its dims as n, h, w, c.
    "image_2d_weights_c4_fyx_b": "o | (i y x)/4 | (i y x)%4",
    "image_2d_weights_c1_b_fyx": "(i y x) | o |",
    "image_2d_weights_winograd_6x3_s1_fbxyb": "i | o/16 x y o%16 |",
    "image_2d_weights_winograd_6x3_s1_xfbyb": "x i | o/16 y o%16 |",
    "image_2d_rgba": "b f/4 y | x | f%4",
    "nv12": "b f | y | x",
}
_TAILED = tuple(name for name, digits in DIGITS.items() if " tail " in digits)

# Names whose values are not those of the logical tensor but transformed ones.
_KINDS: dict[str, Kind] = {name: "wino" for name in DIGITS if name.startswith("winograd_")}

# The weights format that clDNN takes where a data tensor is used as weights.
AS_WEIGHTS = {
    "bfyx": "oiyx",
    "fbyx": "ioyx",
    "fyxb": "iyxo",
    "byxf": "oyxi",
    "byfx": "oyix",
    "bxfy": "oxiy",
    "yxfb": "yxio",
    "bfzyx": "oizyx",
    "bfwzyx": "goizyx",
    "b_fs_yx_fsv4": "o_is_yx_isv4",
    "b_fs_yx_fsv16": "o_is_yx_isv16",
    "bs_fs_fsv8_bsv8": "os_i_osv8__ai8",
    "bs_fs_fsv8_bsv16": "os_i_osv16__ai8",
    "bs_xs_xsv8_bsv8": "os_i_osv8__ai8",
    "bs_xs_xsv8_bsv16": "os_i_osv16__ai8",
    "bs_f_bsv16": "os_i_osv16",
    "bs_x_bsv16": "os_i_osv16",
}
AS_GROUPED_WEIGHTS = {"bfzyx": "goiyx", "bfwzyx": "goizyx"}

# What the letters of a name do not tell a reader.
NOTES = {
    **_OPAQUE_NOTES,
    **dict.fromkeys(_TAILED, "where x is odd, the last column has slices of 32 output channels"),
    "winograd_2x3_s1_data": "dims are those of the transformed tensor: x is 4 times the number of "
    "windows (4 wide, 2 apart)",
    "winograd_2x3_s1_weights": "dims are those of the transformed filter: 3 taps along x became 4",
    "winograd_2x3_s1_fused_weights": "dims are those of the transformed filter, y and x exchanged: "
    "x the 4 products, y the 3 filter columns; the kernels want whole blocks of o",
    "winograd_6x3_s1_fused_weights": "dims are those of the transformed filter, y and x exchanged: "
    "x the 8 products, y the 3 filter columns; the kernels want whole blocks of o",
    "bs_fs_fsv8_bsv8": "f is not blocked, whatever the name says: its kernels never split it",
    "bs_fs_fsv8_bsv16": "f is not blocked, whatever the name says: its kernels never split it",
    "lstm_weights_dio": "o is the direction, x the input size, y four times the hidden size",
    "dlstm_dir_io": "the kernel selector's name of lstm_weights_dio",
    "bf_lyx_yx": "local convolution: two more dimensions ly, lx are left out here; "
    "no kernel was found that defines it",
    "brfyx": "r is the region of interest; never more than a name: no kernel defines it",
    # Names that no kernel defines, or none that was at hand: the digits follow from the letters.
    "f": "everything flattened; no kernel defines an order of its own",
    "yxiog": "named in a list only: no kernel ever defined it, the order is that of the letters",
    **dict.fromkeys(
        ("bs_fs_zyx_bsv4_fsv4", "bs_fs_zyx_bsv4_fsv2"),
        "named in a list only: no kernel ever defined it, the order is that of the letters",
    ),
    **dict.fromkeys(
        ("bfzyx_f16", "bfzyx_b16f16", "o_i_zyx_i16_o16", "i_o_zyx_o16_i16"),
        "a name of 2019, read off its letters: the kernels of that year were not measured",
    ),
    "os_is_yx_osv16_isv32": "for compressed weights of 3 bits; how three bits are packed is not "
    "known, the order is that of the letters",
    # Names whose kernels do something else than the name, in some versions or for some sizes.
    "is_os_yx_isv16_osv8": "clDNN's index function has a wrong argument and gives the plain order",
    **dict.fromkeys(
        (
            *("os_is_yx_isv8_osv16_isv2", "os_is_zyx_isv8_osv16_isv2"),
            *("g_os_is_yx_isv8_osv16_isv2", "g_os_is_zyx_isv8_osv16_isv2"),
        ),
        "clDNN's index function lets slices overlap unless i (with groups also o) is a multiple "
        "of 16; here they never do, as in oneDNN",
    ),
    **dict.fromkeys(
        ("gs_oi_yxs_gsv4_yxsv4", "gs_oi_yxs_gsv16_yxsv4", "gs_oi_yxs_gsv32_yxsv4"),
        "clDNN's index function is right for one o and one i only (depthwise), its only use",
    ),
    **dict.fromkeys(
        ("o_is_yx_isv4", "o_is_yx_isv16"),
        "from 2024 on clDNN's reorder to it names an index function that no longer exists",
    ),
    "fs_b_yx_fsv32": "clDNN's index function ignores padding of b",
    "b_fs_yx_32fp": "for element type u1; a kernel sets the bit where the value is above 0",
    "os_is_yx_osv32_isv32p": "for element type u1",
    **dict.fromkeys(
        ("os_iyx_osv16", "os_iyx_osv32", "os_iyx_osv64"),
        "with elements of 4 bits another order, see the name with :i4 behind it",
    ),
    **dict.fromkeys(
        ("os_iyx_osv16:i4", "os_iyx_osv32:i4", "os_iyx_osv64:i4"),
        "what clDNN means by the name before :i4 where elements have 4 bits; only 1x1 filters were "
        "seen, with whole blocks of o",
    ),
    **dict.fromkeys(
        (
            "os_is_yx_osv32_isv2",
            "os_is_yx_osv64_isv2",
            "os_is_yx_osv32_isv2:i4",
            "os_is_yx_osv64_isv2:i4",
        ),
        "for elements of 4 bits; 1x1 filters only, y and x are no dimensions here",
    ),
    **dict.fromkeys(
        ("image_2d_weights_winograd_6x3_s1_fbxyb", "image_2d_weights_winograd_6x3_s1_xfbyb"),
        "the values of winograd_6x3_s1_fused_weights in an image of one channel",
    ),
    "image_2d_weights_c1_b_fyx": "an image of one channel: column o, row (i * Y + y) * X + x",
    "image_2d_weights_c4_fyx_b": "an RGBA image: row o, four neighbours of i, y, x in a pixel; "
    "clDNN allocated it wider than its kernel writes",
    "image_2d_rgba": "an RGBA image of 8-bit unorm (element type u8), in clDNN of b = 1 and f = 3 "
    "or 4, a missing channel 0; from clDNN's sources; its output was not compared",
    "nv12": "one of the two images of a picture, of 8-bit unorm (element type u8), dims taken as "
    "n, h, w, c: luma with c = 1, or chroma with c = 2 and half the height and width; from "
    "clDNN's sources; its output was not compared",
    "OhwI32o": "named as if I were blocked; it is not",
}


_LONGEST = 200
_LONGEST_DIGITS = 2000


@cache
def listed(notation: str) -> tuple[str, ...]:
    """The listed names of ``"onednn"`` or ``"cldnn"``, tags before their domain names."""
    text = resources.files(__package__).joinpath(f"{notation}.txt").read_text("ascii")
    return tuple(
        name for line in text.splitlines() if not line.startswith("#") for name in line.split()
    )


def all_names() -> Iterator[str]:
    """Every listed name, clDNN's first."""
    yield from listed("cldnn")
    known = set(listed("cldnn"))
    yield from (n for n in listed("onednn") if n not in known)
    yield from OPAQUE


def for_bits(name: str, bits: int) -> str:
    """What a name means for elements of so many bits: ``os_iyx_osv16`` has its own order at 4."""
    return f"{name}:i4" if bits == 4 and f"{name}:i4" in DIGITS else name


def without_bits(name: str) -> str:
    """The name as clDNN has it, at any width of element: without ``:i4``."""
    return name.removesuffix(":i4")


def concrete(name: str, ndims: int | None) -> str:
    """The name with a meta tag (``axb``, ``aBx16b``) written out for the rank.

    What frameworks call otherwise becomes oneDNN's name (see `aliases`).
    """
    if is_short(name) and not text.is_digits(name):
        return re.sub(r"\s", "", name)
    if name not in OPAQUE:
        name = canonical(name, ndims)
    if not is_meta(name):
        return name
    least = len({c for c in name.lower() if c.isalpha()}) - 1
    if ndims is None:
        raise InvalidFormat(
            f"{name!r} is a meta tag, x stands for any number of dimensions: say how many, as in "
            f"Format({name!r}, ndims={least + 2})"
        )
    if not least <= ndims <= MAX_NDIMS:
        raise InvalidFormat(
            f"{name!r} names {least} dimensions and cannot have {ndims}: "
            f"expected {least} to {MAX_NDIMS}"
        )
    return expand_meta(name, ndims)


def takes_rank(name: str) -> bool:
    """Whether a name means another format at each rank: ``axb``, ``channels_last``."""
    return is_meta(name) or name in WORDS


@cache
def parse(name: str, letters: str | None = None) -> Parsed:
    """What a concrete name says. Raises `InvalidFormat` with the bad token and the nearest names.

    The exceptions come first, then the grammar that the name looks like. ``letters`` gives letters
    of one's own their logical order; then a name is a tag or digits.
    """
    if letters is not None or text.is_digits(name) or is_short(name):
        return _listed_digits(name, letters)
    if name in DIGITS:
        parsed = text.read(DIGITS[name])
        # With dimensions of its own brfyx is data nonetheless.
        role = "data" if parsed.role == "generic" else parsed.role
        return replace(parsed, role=role, kind=_KINDS.get(name, parsed.kind))
    if opaque := parse_opaque(name):
        return opaque
    if other := RENAMED.get(name) or MISNAMED.get(name):
        return parse(other)
    if name != (plain := without_bits(name)):
        parse(plain)
        raise InvalidFormat(
            f"{plain} has the same order at any width of element: leave :i4 out. It stands behind "
            f"{', '.join(without_bits(n) for n in listed('cldnn') if n != without_bits(n))}"
        )
    return _read(name)


def _listed_digits(name: str, letters: str | None) -> Parsed:
    """A list of digits, as text or in oneDNN's shorthand."""
    _check_length(name, _LONGEST_DIGITS)
    try:
        return text.read(name, letters) if text.is_digits(name) else parse_short(name, letters)
    except GrammarError as error:
        what = "a list of digits" if text.is_digits(name) else "a tag with bars or steps"
        plain = not set(name) & set("/%|()~")  # perhaps names, with spaces in them
        said = f"unknown format {name!r}: as {what}, {error}."
        raise InvalidFormat(said, hint=partial(_suggestion, name) if plain else None) from None


def _check_length(name: str, most: int) -> None:
    if len(name) > most:
        raise InvalidFormat(
            f"got a name of {len(name)} characters, {name[:20]!r}...: expected the name of a format"
        )


def _read(name: str) -> Parsed:
    """Try both grammars, the likelier first; where both refuse, say why each did."""
    _check_length(name, _LONGEST)
    readers = {"a oneDNN tag": parse_onednn, "a clDNN name": parse_cldnn}
    if "_" in name or not any(c.isupper() or c in "acdhnt" for c in name):
        readers = dict(reversed(readers.items()))
    reasons: list[str] = []
    for kind, reader in readers.items():
        try:
            return reader(name)
        except GrammarError as error:
            reasons.append(f"as {kind}, {error}")
    with suppress(GrammarError):  # a tag with blocks between its letters
        return parse_short(name)
    if "_" in name:
        reasons = reasons[:1]  # no oneDNN tag has an underscore
    said = f"unknown format {name!r}: {'; '.join(reasons)}."
    raise InvalidFormat(said, hint=partial(_suggestion, name))


def _suggestion(name: str) -> str:
    if theirs := [f"{row.digits} in {row.engine}" for row in called(name)]:
        return f" {name} is {', '.join(theirs)}."
    known = [*all_names(), *WORDS]
    near = [n for n in known if n.lower() == name.lower()]
    near += [n for n in difflib.get_close_matches(name, known, n=3, cutoff=0.6) if n not in near]
    if not near:
        by_lower = {n.lower(): n for n in reversed(known)}
        lower = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.6)
        near = [by_lower[n] for n in lower]
    if near:
        return f" Did you mean {', '.join(near)}?"
    return " `clformats list` shows every known name."
