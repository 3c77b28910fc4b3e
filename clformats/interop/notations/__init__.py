"""Formats in the notations of oneDNN, clDNN, TVM, einops and XLA, as digits, and in oneDNN's log.

>>> render(parse("NCHW16c"), "xla")
'{3,2,1,0:T(16,1,1)}'
>>> render(parse("b (f 16) y x -> b f y x 16"), "cldnn")
'b_fs_yx_fsv16'

The notations differ in what they can express; the module of each has its grammar and limits:

====================  ======  ==========  =======  ============  ===========
beside plain blocks   flips   round up    fused    block before  swizzled
                              unsplit     indices  an open index blocks
====================  ======  ==========  =======  ============  ===========
onednn, tvm           no      no          no       no            no
einops                no      no          no       yes           yes
xla                   no      no          yes      no            yes
digits                yes     yes         yes      yes           yes
cldnn                 each where a clDNN name exists
====================  ======  ==========  =======  ============  ===========
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ...errors import InvalidFormat, expect
from ...formats import Format
from ...formats.registry import without_bits
from ...formats.tags import is_short
from ...formats.text import is_digits
from ...tensors.desc import MemoryDesc
from ...tensors.given import as_desc
from . import einops, native, tvm, verbose, xla

__all__ = ["NOTATIONS", "guess", "parse", "parse_desc", "render", "render_desc"]

Reader = TypeVar("Reader")

_PARSE: dict[str, Callable[[str], Format]] = {
    "onednn": native.parse_onednn,
    "cldnn": native.parse_cldnn,
    "tvm": tvm.parse,
    "einops": einops.parse,
    "xla": xla.parse,
    "digits": native.parse_digits,
    "verbose": verbose.parse,
}
_RENDER: dict[str, Callable[[Format], str]] = {
    "onednn": native.render_onednn,
    "cldnn": native.render_cldnn,
    "tvm": tvm.render,
    "einops": einops.render,
    "xla": xla.render,
    "digits": native.render_digits,
}
_PARSE_DESC: dict[str, Callable[[str], MemoryDesc]] = {
    "verbose": verbose.parse_desc,
    "xla": xla.parse_desc,
}
_RENDER_DESC: dict[str, Callable[[MemoryDesc], str]] = {
    "verbose": verbose.render_desc,
    "xla": xla.render_desc,
}

NOTATIONS = tuple(_RENDER)
"""The notations that `render` prints. `parse` also reads ``"verbose"``, oneDNN's log."""


def parse(text: str, notation: str | None = None) -> Format:
    """The format that a text in a notation means; without ``notation`` it is guessed.

    Raises `InvalidFormat` for a text that the notation does not allow, and `Unsupported` with the
    code ``NO_FORMAT`` for one that no format here can express.
    """
    expect(text, str, "text")
    return _pick(_PARSE, guess(text) if notation is None else notation)(text.strip())


def render(format: str | Format, notation: str) -> str:
    """The format's name in a notation, one of `NOTATIONS`; ``parse(render(f, n), n) == f``.

    Raises `Unsupported` with the code ``NO_NOTATION`` and the reason if there is no such name.
    """
    return _pick(_RENDER, notation)(Format(format))


def parse_desc(text: str, notation: str | None = None) -> MemoryDesc:
    """The descriptor that a text with sizes means: ``"verbose"`` or ``"xla"``.

    ``"src:f32:p:blocked:aBcd16b::f0 2x17x5x4"`` or ``"bf16[8,16]{1,0:T(8,128)(2,1)}"``.
    """
    expect(text, str, "text")
    guessed = "xla" if "{" in text else "verbose"
    return _pick(_PARSE_DESC, guessed if notation is None else notation)(text.strip())


def render_desc(desc: MemoryDesc | str, notation: str) -> str:
    """The descriptor with its sizes in a notation, ``"verbose"`` or ``"xla"``."""
    return _pick(_RENDER_DESC, notation)(as_desc(desc, "desc"))


def guess(text: str) -> str:
    """The notation that a text is in, judged by its looks.

    A text that both oneDNN's and TVM's grammar take, such as ``OI16i16o``, means the same in both.
    """
    expect(text, str, "text")
    if "->" in text:
        return "einops"
    if "{" in text:
        return "xla"
    if ":" in without_bits(text.strip()):
        return "verbose"
    if is_digits(text.strip()) or is_short(text.strip()):
        return "digits"
    if "_" not in text and re.fullmatch(tvm.LOOKS, text.strip()):
        return "tvm"
    return "onednn" if native.is_onednn(text.strip()) else "cldnn"


def _pick(table: Mapping[str, Reader], notation: str) -> Reader:
    expect(notation, str, "notation")
    if notation not in table:
        raise InvalidFormat(
            f"unknown notation {notation!r}: expected one of {', '.join(sorted(table))}"
        )
    return table[notation]
