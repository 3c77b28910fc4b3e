"""Intel's own index macros, read from the installed wheel of `openvino`, and how to call them.

The GPU plugin carries the OpenCL C of its kernels as text. The two headers with the index macros
are taken from there when a test asks; none of their text is kept here, only names of macros and of
the constants that they want. Those constants are made from the name, the sizes and the padding,
not from the digits of the format: what the macros compute is an independent answer.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from math import prod
from pathlib import Path
from typing import Final

import clformats as cf

PLUGIN: Final = "libs/libopenvino_intel_gpu_plugin.so"
HEADERS: Final = ("fetch_data", "fetch_weights")
LETTERS: Final = "gobfivuwzyx"

# Data tensors and weights: what the constants of each dimension are called.
COUNTS: Final = {"b": "BATCH_NUM", "f": "FEATURE_NUM", "g": "GROUPS_NUM", "o": "OFM_NUM",
                 "i": "IFM_NUM"} | {c: f"SIZE_{c.upper()}" for c in "vuwzyx"}  # fmt: skip
PITCHES: Final = {"b": "BATCH_PITCH", "f": "FEATURE_PITCH", "g": "GROUPS_PITCH", "o": "OFM_PITCH",
                  "i": "IFM_PITCH"} | {c: f"{c.upper()}_PITCH" for c in "vuwzyx"}  # fmt: skip
CONSTANTS: Final = (
    "OFFSET",
    *COUNTS.values(),
    *PITCHES.values(),
    *(f"PAD_{side}_{name}" for side in ("BEFORE", "AFTER") for name in COUNTS.values()),
)

# Where the macro is called neither after the format nor after one that is more general.
BORROWED: Final = {
    "bs_fs_fsv8_bsv8": "BS_FYX_BSV8",
    "bs_fs_fsv8_bsv16": "BS_FYX_BSV8",
    "bs_f_bsv16": "BS_FYX_BSV8",
    "bs_f_bsv8__af8": "BS_FYX_BSV8",
    "bs_f_bsv16__af8": "BS_FYX_BSV8",
    "os_i_osv16": "OS_IYX_OSV",
    "os_i_osv8__ai8": "OS_IYX_OSV",
    "os_i_osv16__ai8": "OS_IYX_OSV",
    "os_iyx_osv8": "OS_IYX_OSV16",
    "g_os_iyx_osv8": "G_OS_IYX_OSV16",
    "g_os_iyx_osv32": "G_OS_IYX_OSV16",
    "gs_oiyx_gsv8": "GS_OIYX_GSV16",
    "gs_oiyx_gsv32": "GS_OIYX_GSV16",
    "gs_oizyx_gsv8": "GS_OIZYX_GSV16",
    "gs_oizyx_gsv32": "GS_OIZYX_GSV16",
}
# Names of earlier years for the same format, as OpenVINO renamed them.
OLD_NAMES: Final = {
    "bfyx_f16": "b_fs_yx_fsv16",
    "bfzyx_f16": "b_fs_zyx_fsv16",
    "bfzyx_b16f16": "bs_fs_zyx_bsv16_fsv16",
    "bs_xs_xsv8_bsv8": "bs_fs_fsv8_bsv8",
    "bs_xs_xsv8_bsv16": "bs_fs_fsv8_bsv16",
    "bs_x_bsv16": "bs_f_bsv16",
    "o_i_yx_i16_o16": "os_is_yx_isv16_osv16",
    "o_i_zyx_i16_o16": "os_is_zyx_isv16_osv16",
}
PLAIN: Final = {4: "GET_{}_INDEX", 5: "GET_{}_INDEX_5D", 6: "GET_{}_INDEX_6D",
                7: "GET_{}_INDEX_7D", 8: "GET_{}_INDEX_8D"}  # fmt: skip


@cache
def unavailable() -> str:
    """Why there are no macros to compare with; empty where there are."""
    if importlib.util.find_spec("openvino") is None:
        return "no wheel of openvino here: pip install openvino"
    if not _plugin().is_file():
        return "this wheel of openvino has no GPU plugin for Linux: pip install openvino"
    if not headers():
        return "this wheel of openvino has no readable headers: pip install -U openvino"
    return ""


def _plugin() -> Path:
    spec = importlib.util.find_spec("openvino")
    folders = spec.submodule_search_locations if spec else None
    return Path(next(iter(folders or ["."]))) / PLUGIN


@cache
def headers() -> str:
    """The text of the two headers; empty where this version of the plugin stores them otherwise.

    They lie in the library as a name and a text, each closed by a zero byte.
    """
    library = _plugin().read_bytes()
    texts = []
    for name in HEADERS:
        found = re.search(rb"\0%s\0(#[^\0]+)\0" % name.encode(), library)
        if found is None:
            return ""
        texts.append(re.sub(r"#include[^\n]*", "", found[1].decode("ascii")))
    return "\n".join(texts)


@cache
def kernels() -> dict[str, str]:
    """The kernels that lie in the plugin as one whole text, by name, without the headers they name.

    Longer ones are in pieces, which nothing tells how to put together.
    """
    found = {}
    for piece in _plugin().read_bytes().split(b"\0"):
        if not re.search(rb"\bKERNEL\s*\(", piece) or len(piece) < 120:
            continue
        text = re.sub(r"#include[^\n]*", "", piece.decode("latin1"))
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
        starts, ends = (re.findall(rf"^\s*#\s*{w}", code, re.MULTILINE) for w in ("if", "endif"))
        name = re.search(r"\bKERNEL\s*\(\s*(\w+)\s*\)", text)
        if name and code.count("{") == code.count("}") and len(starts) == len(ends):
            found[name[1]] = text
    return found


@cache
def macros() -> dict[str, tuple[str, ...]]:
    """The index macros of the wheel by name: their parameters, without the tensor."""
    found = re.findall(r"#define (GET_(?:DATA|FILTER)_\w+)\(\s*\w+\s*,([^)]*)\)", headers())
    return {name: tuple(p.strip() for p in parameters.split(",")) for name, parameters in found}


def call(fmt: cf.Format) -> str | None:
    """The call of a format's macro for the tensor T; None where the wheel has no macro for it."""
    for macro in _candidates(fmt):
        if macro in macros():
            arguments = [_argument(fmt, p) for p in macros()[macro]]
            return f"{macro}(T, {', '.join(arguments)})"
    return None


def _candidates(fmt: cf.Format) -> Iterator[str]:
    """What the macro may be called, the most special first."""
    if not set(fmt.letters) <= set(LETTERS):
        return
    kind = "DATA" if fmt.role == "data" else "FILTER"
    if is_plain(fmt):
        planes = max(4, len(fmt.letters) - ("g" in fmt.letters))
        yield PLAIN[planes].format(kind)
        return
    name = OLD_NAMES.get(str(fmt), str(fmt))
    own = re.sub(r"__A[A-Z]\d+$", "", name.upper())
    general = re.sub(r"(?<=[IO]S[AV])\d+", "", own)
    stems = [BORROWED[name]] if name in BORROWED else [own, general]
    if kind == "FILTER":  # one group of many, one plane of a volume
        stems += [f"G_{s}" for s in stems]
        stems += [s.replace("_YX_", "_ZYX_") for s in stems]
        stems += [s.replace("_Y_", "_ZY_") for s in stems]
    for stem in stems:
        yield from (f"GET_{kind}_{stem}_INDEX", f"GET_{kind}_{stem}")


def _argument(fmt: cf.Format, parameter: str) -> str:
    if parameter in LETTERS:
        return parameter if parameter in fmt.letters else "0"
    name = OLD_NAMES.get(str(fmt), str(fmt))
    numbers = re.findall(r"(?:osv|bsv|gsv)(\d+)" if parameter == "sub_group_size"
                         else rf"{parameter}(\d+)", name)  # fmt: skip
    return str(numbers[-1])


def is_plain(fmt: cf.Format) -> bool:
    """Whether the name is an order of the dimensions and no more."""
    return sorted(str(fmt)) == sorted(fmt.letters)


def constants(desc: cf.MemoryDesc) -> list[int]:
    """The values of `CONSTANTS` for a descriptor."""
    letters = desc.format.letters
    dims = dict.fromkeys(LETTERS, 1) | dict(zip(letters, desc.dims, strict=True))
    pads = dict.fromkeys(LETTERS, (0, 0)) | dict(zip(letters, desc.padding, strict=True))
    name = OLD_NAMES.get(str(desc.format), str(desc.format))
    pitches = _pitches(name, letters, {c: dims[c] + sum(pads[c]) for c in dims})
    offset = sum(pads[c][0] * pitches[c] for c in letters)
    return [
        offset,
        *(dims[c] for c in COUNTS),
        *(pitches[c] for c in PITCHES),
        *(pads[c][0] for c in COUNTS),
        *(pads[c][1] for c in COUNTS),
    ]


def _pitches(name: str, letters: str, extents: dict[str, int]) -> dict[str, int]:
    """Running products of the extents, innermost first in the order that the name tells.

    Those of weights are rounded up to the blocks and to what the name aligns; of data they are not.
    """
    blocks: dict[str, int] = {}
    if "o" in letters or "i" in letters:
        for index, n in re.findall(r"([a-z]+?)s[av](\d+)", name):
            blocks[index] = blocks.get(index, 1) * int(n)
        for index, n in re.findall(r"__a([a-z])(\d+)", name):
            blocks[index] = int(n)
    parts = takewhile(lambda part: not re.search(r"s[av]?\d", part), name.split("_"))
    groups = ["".join(c for c in part if c in letters) for part in parts]
    pitches, pitch = dict.fromkeys(LETTERS, 1), 1
    for group in reversed(groups):
        start = pitch
        for c in reversed(group):
            pitches[c] = pitch
            pitch *= _up(extents[c], blocks.get(c, 1))
        if group in blocks:
            pitch = start * _up(prod(extents[c] for c in group), blocks[group])
    return pitches


def _up(n: int, block: int) -> int:
    return -(-n // block) * block


def program(calls: list[str], text: str = "") -> str:
    """OpenCL C with one kernel: element i by the macro of a number, under constants from memory.

    ``text`` defines the macros; by default it is Intel's.
    """
    defines = [f"#define T_{name} constants[{k}]" for k, name in enumerate(CONSTANTS)]
    cases = [f"    case {k}: out[element] = {text}; break;" for k, text in enumerate(calls)]
    sizes = [f"dims[{k}]" for k in range(len(LETTERS))]
    indices = [
        f"    const uint {letter} = rest % {size}; rest /= {size};"
        for letter, size in reversed(list(zip(LETTERS, sizes, strict=True)))
    ]
    return "\n".join([
        "#define CAT_(a, b) a##b",
        "#define CAT(a, b) CAT_(a, b)",
        *([text] if text else ["#define inline static inline", headers()]),
        *defines,
        "__kernel void offsets(int which, __constant int *constants, __constant uint *dims,",
        "                      __global uint *out)",
        "{",
        "    const size_t element = get_global_id(0);",
        "    uint rest = element;",
        *indices,
        "    switch (which) {",
        *cases,
        "    }",
        "}",
    ])  # fmt: skip
