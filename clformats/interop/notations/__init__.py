"""Formats in the notations of oneDNN, clDNN, TVM, einops, XLA and QNN, and as digits.

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
qnn                   no      no          no       yes           no
digits                yes     yes         yes      yes           yes
cldnn, engines        each where a name exists
====================  ======  ==========  =======  ============  ===========
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ...errors import InvalidFormat, expect
from ...formats import Format
from ...formats.engines import rows
from ...formats.registry import without_bits
from ...formats.tags import is_short
from ...formats.text import is_digits
from ...tensors.desc import MemoryDesc
from ...tensors.given import as_desc
from . import einops, engines, native, tvm, verbose, xla

__all__ = ["NOTATIONS", "guess", "parse", "parse_desc", "render", "render_desc"]

Reader = TypeVar("Reader")

_PARSE: dict[str, Callable[[str], Format]] = {
    "onednn": native.parse_onednn,
    "cldnn": native.parse_cldnn,
    "tvm": tvm.parse,
    "einops": einops.parse,
    "xla": xla.parse,
    "digits": native.parse_digits,
    "qnn": engines.parse_qnn,
    "engines": engines.parse,
    "verbose": verbose.parse,
}
_RENDER: dict[str, Callable[[Format], str]] = {
    "onednn": native.render_onednn,
    "cldnn": native.render_cldnn,
    "tvm": tvm.render,
    "einops": einops.render,
    "xla": xla.render,
    "digits": native.render_digits,
    "qnn": engines.render_qnn,
    "engines": engines.render,
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
    text = text.strip()
    return next((notation for notation, looks in _LOOKS if looks(text)), "cldnn")


_LOOKS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("engines", lambda text: text in rows()),
    ("einops", lambda text: "->" in text),
    ("xla", lambda text: "{" in text),
    ("verbose", lambda text: ":" in without_bits(text)),
    ("qnn", lambda text: "Layout<" in text),
    ("tvm", lambda text: bool(re.search(tvm.CUT, text))),
    ("digits", lambda text: is_digits(text) or is_short(text)),
    ("tvm", lambda text: "_" not in text and bool(re.fullmatch(tvm.LOOKS, text))),
    ("onednn", native.is_onednn),
)
"""What a text of a notation looks like; the first that fits is taken."""


def _pick(table: Mapping[str, Reader], notation: str) -> Reader:
    expect(notation, str, "notation")
    if notation not in table:
        raise InvalidFormat(
            f"unknown notation {notation!r}: expected one of {', '.join(sorted(table))}"
        )
    return table[notation]
