"""oneDNN's and clDNN's own names; their grammars are in `clformats.formats`."""

from __future__ import annotations

from ...errors import InvalidFormat
from ...formats import Format, names, opaque, registry, tags
from ...formats.text import written
from .shared import FEATURES, need, no_notation

_ABSTRACT = {"onednn": ("any", "undef"), "cldnn": ("any",)}


def is_onednn(text: str) -> bool:
    """Whether oneDNN's grammar reads the name, perhaps as a meta tag, which needs a rank."""
    if opaque.is_opaque(text):
        return True
    try:
        tags.parse_onednn(registry.MISNAMED.get(text, text))
    except names.GrammarError:
        return text in _ABSTRACT["onednn"] or tags.is_meta(text)
    return True


def _is_cldnn(text: str) -> bool:
    """Whether clDNN's grammar reads the name."""
    try:
        names.parse_cldnn(text)
    except names.GrammarError:
        return False
    return True


def parse_onednn(text: str) -> Format:
    """Read a tag (``aBcd16b``) or a domain name (``nChw16c``)."""
    result = Format(text)
    if not is_onednn(text):
        raise InvalidFormat(f"{text!r} is a clDNN name, expected a oneDNN tag such as aBcd16b")
    return result


def parse_cldnn(text: str) -> Format:
    """Read ``b_fs_yx_fsv16``."""
    result = Format(text)
    tables = (registry.listed("cldnn"), registry.RENAMED, registry.DIGITS)
    known = any(text in table for table in tables)
    if not (known or text in _ABSTRACT["cldnn"] or _is_cldnn(text)):
        raise InvalidFormat(f"{text!r} is a oneDNN name, expected a clDNN one: b_fs_yx_fsv16")
    return result


def parse_digits(text: str) -> Format:
    """Read ``b f/16 y x f%16``, or oneDNN's shorthand with bars: ``nh|Cw|4c``."""
    return Format(text)


def render_digits(fmt: Format) -> str:
    """The list of digits, for what is nothing else: no transformed or packed values."""
    if fmt.layout is None or fmt.kind != "image":
        need(fmt, "digits", FEATURES)
    return written(fmt.parsed)


def render_onednn(fmt: Format) -> str:
    """The abstract tag: ``aBcd16b``; of DNNL's opaque formats the name."""
    if fmt.name in _ABSTRACT["onednn"]:
        return fmt.name
    if opaque.is_opaque(fmt.name):
        return fmt.name  # no tag, and a name of DNNL nonetheless
    need(fmt, "onednn")
    return fmt.onednn or ""


def render_cldnn(fmt: Format) -> str:
    """The clDNN name; oneDNN's generic tags are read as data."""
    if fmt.name in _ABSTRACT["cldnn"]:
        return fmt.name
    if fmt.layout is None:
        raise no_notation(fmt, "cldnn", "it has no layout yet")
    if fmt.cldnn is not None:
        return fmt.cldnn
    if _is_cldnn(fmt.name) or fmt.name in registry.listed("cldnn"):
        return fmt.name  # an old name without a new one, or one that is not listed
    if fmt.role == "rnn":
        raise no_notation(fmt, "cldnn", "clDNN has no dimensions of recurrent networks")
    if opaque.is_opaque(fmt.name) or fmt.image:
        need(fmt, "cldnn")
    role = "weights" if fmt.role == "weights" else "data"
    if names.cldnn_letters(fmt.ndims, role, grouped=fmt.letters.startswith("g")) is None:
        raise no_notation(fmt, "cldnn", f"clDNN has no {role} of {' '.join(fmt.dims)}")
    raise no_notation(fmt, "cldnn", "clDNN uses the name that would say it for another layout")
