"""Generated source as it is read: one file for each kind, and nothing in it that nobody needs.

A change of the generators shows as a difference of these files; write them anew by

    UPDATE_GOLDEN=1 pytest tests/index/test_golden.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import clformats as cf
from clformats.index.lines import WIDTH

FOLDER = Path(__file__).parent.parent / "golden"
TENSORS = {
    "INPUT0": cf.MemoryDesc(
        (2, 17, 5, 4), "f32", "b_fs_yx_fsv16", padding=((0, 0), (0, 0), (1, 1), (1, 1))
    ),
    "FILTER": cf.MemoryDesc((19, 17, 3, 3), "f32", "os_is_yx_isv16_osv16"),
    "BIAS": cf.MemoryDesc((1, 19, 1, 1), "f32", "bfyx"),
    "OUTPUT": cf.MemoryDesc((2, 19, cf.RUNTIME_DIM, cf.RUNTIME_DIM), "s8", "bfyx"),
}


def _texts() -> dict[str, str]:
    source, parse = cf.index_source, cf.MemoryDesc.parse
    padded = "f16:bfyx:2x17x5x4:pad=1+0x3+2x0+1x2+2"
    return {
        "b_fs_yx_fsv16.cl": source(parse("f32:b_fs_yx_fsv16:2x17x5x4")),
        "bfyx_padded.cl": source(parse(padded), "INPUT", vector="f8"),
        "byxf_vectors.cl": source(parse("u8:byxf:2x17x5x4"), vector="f16"),
        "strides.cl": source(parse("f32:abc:2x3x5:strides=100x2x17:offset=7"), "T"),
        "macros.cl": source("bf8_xy16"),
        "arguments.cl": source("os_is_yx_isv16_osv16", "WEIGHTS", sizes="arguments"),
        "arguments_partly.cl": source(parse("f32:b_fs_yx_fsv16:2x*x5x*"), sizes="arguments"),
        "shape_info.cl": source("bs_fs_yx_bsv16_fsv16", sizes="shape_info", padded="yx"),
        "wide.cl": source("os_iyx_osv16_rotate_180", "W", sizes="arguments", wide=True),
        "two_orders.cl": source(parse("f32:iy_xs_os_xsv2_osv8__ao32:19x3x5x7"), "W"),
        "jit_constants.cl": cf.jit_constants(TENSORS),
        "header.h": cf.format_header(["b_fs_yx_fsv16", "nChw16c", "bf8_xy16"]),
    }


TEXTS = _texts()

# What each kind of text is for; the rest of its names must be used in it.
PUBLIC = {
    "SRC|INPUT|T|WEIGHTS|W": r"_(SIZE|EXTENT|PAD_BEFORE|PAD_AFTER|BLOCK|BLOCKS|PITCH)_[A-Z_0-9]+"
    r"|_(OFFSET|LENGTH|PLACES|INDEX|INDEX_SAFE|COORDS|PARAMETERS|ARGUMENTS)"
    r"|_(LOAD|STORE)_[A-Z](2|4|8|16)",
    "INPUT0|FILTER|BIAS|OUTPUT": r"_[A-Z]\w+",
    "GET_DATA|GET_FILTER|INIT_FILTER|TO_\\w+|AS_\\w+|DECODE_\\w+": r"_[A-Z]\w+",
    "IS_DYNAMIC|OPTIONAL_SHAPE_INFO_ARG|OPTIONAL_SHAPE_INFO_TENSOR|CLFORMATS_FORMATS_H": "",
    "cf_(b_fs_yx_fsv16|nChw16c|bf8_xy16)": "(_coords|_places)?",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_as_it_was(name: str) -> None:
    file = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(TEXTS[name], encoding="ascii")
    assert TEXTS[name] == file.read_text(encoding="ascii"), "see the head of this file"


def test_no_file_is_left_over() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_defined_in_vain(name: str) -> None:
    text = re.sub(r"//[^\n]*", "", TEXTS[name])
    defined = re.findall(r"#define (\w+)", text)
    defined += re.findall(r"^static inline \w+ (\w+)\(", text, re.MULTILINE)
    defined += re.findall(r"^__constant \w+ (\w+)\[", text, re.MULTILINE)
    assert len(defined) >= 10
    public = re.compile("|".join(f"({head})({tail})" for head, tail in PUBLIC.items()))
    for word in set(defined):
        uses = len(re.findall(rf"\b{word}\b", text)) - defined.count(word)
        # A helper that pastes names is used by what it is pasted to.
        assert uses > 0 or public.fullmatch(word), f"{word} is not needed in {name}"


@pytest.mark.parametrize("name", TEXTS)
def test_it_is_pleasant_to_read(name: str) -> None:
    lines = TEXTS[name].splitlines()
    assert not [line for line in lines if line != line.rstrip()]
    assert not [line for line in lines if len(line) > WIDTH + 2]
    assert "\n\n\n" not in TEXTS[name]
    # Brackets around one word are for the arguments of macros alone.
    assert not re.search(r"^ .*[+*/%] \(\w+\)[^\\\n]*;$", TEXTS[name], re.MULTILINE)
    assert not re.search(r"\(\((\w+)\)\)|\* 1\b|\+ 0\b", TEXTS[name])
    assert lines[0].startswith("// ")
