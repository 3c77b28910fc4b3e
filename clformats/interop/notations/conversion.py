"""`convert`: a format's name in every notation, and the tensors in a line of oneDNN's log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

from ...errors import InvalidArgument, InvalidFormat, Unsupported, expect
from ...formats import Format
from ...formats.tags import is_meta
from ...pictures.words import columns
from . import NOTATIONS, guess, parse, render, verbose


@dataclass(frozen=True)
class Conversion:
    """A format's ``names`` by notation, None where there is none: ``why`` has the reason.

    ``notation`` is what ``text`` is in. As text by ``str``; ``data`` has the same for programs.
    """

    text: str
    notation: str
    format: Format
    names: dict[str, str | None]
    why: dict[str, str]

    @property
    def data(self) -> dict[str, Any]:
        """The names, of types that JSON has."""
        return {"text": self.text, "notation": self.notation, "dims": list(self.format.dims),
                "names": self.names, "why_not": self.why}  # fmt: skip

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Each notation with the name, or with a dash and the reason."""
        return [(n, name or f"-  {self.why[n]}") for n, name in self.names.items()]

    def __str__(self) -> str:
        head = f"{self.text}: {self.notation}, dimensions {' '.join(self.format.dims) or 'none'}"
        return "\n".join([head, *columns(self.rows, "  ")])

    def __repr__(self) -> str:
        return f"Conversion({self.text!r})"


@overload
def convert(
    name: str | Format, to: str, *, source: str | None = None, ndims: int | None = None
) -> str: ...
@overload
def convert(
    name: str | Format, to: None = None, *, source: str | None = None, ndims: int | None = None
) -> Conversion: ...
def convert(
    name: str | Format,
    to: str | None = None,
    *,
    source: str | None = None,
    ndims: int | None = None,
) -> str | Conversion:
    """A format's name in the notation ``to``; without it a `Conversion`, with all of them.

    ``source`` is the notation of ``name``, guessed by default; ``ndims`` the rank of meta tags such
    as ``aBx16b``. Raises `InvalidFormat`, and `Unsupported` (codes NO_FORMAT and NO_NOTATION).

    >>> convert("NCHW16c", "cldnn")
    'b_fs_yx_fsv16'
    >>> convert("nChw16c").names["xla"]
    '{3,2,1,0:T(16,1,1)}'
    """
    expect(name, str | Format, "name")
    expect(to, str | None, "to")
    expect(source, str | None, "source")
    text = str(name)
    if verbose.is_line(text):
        raise InvalidFormat(
            f"got a whole line of oneDNN's log, expected a name: {__name__}.convert_line, and the "
            f"command `clformats convert`, read those"
        )
    meta = ndims is not None or (source in (None, "onednn") and is_meta(text))
    fmt = Format(name, ndims) if meta or isinstance(name, Format) else parse(text, source)
    return conversion(text, source or guess(text), fmt) if to is None else render(fmt, to)


def conversion(text: str, notation: str, fmt: Format) -> Conversion:
    """All names of a format."""
    names: dict[str, str | None] = {}
    why: dict[str, str] = {}
    for other in NOTATIONS:
        try:
            names[other] = render(fmt, other)
        except Unsupported as error:
            names[other], why[other] = None, str(error).partition(": ")[2]
    return Conversion(text, notation, fmt, names, why)


@dataclass(frozen=True)
class LoggedTensor:
    """A tensor in a line of oneDNN's log: the argument, its text, and its names if it has any."""

    argument: str
    said: str
    names: Conversion | None


def convert_line(line: str, to: str | None = None) -> list[LoggedTensor]:
    """The tensors of a whole line of oneDNN's log (``onednn_verbose,...``).

    ``said`` is the name in the notation ``to``, else the descriptor or the format. Raises
    `InvalidArgument` for another text, and as `convert`.
    """
    expect(line, str, "line")
    if not verbose.is_line(line):
        raise InvalidArgument(f"line: got {line[:60]!r}, expected a line onednn_verbose,...")
    found = []
    for argument, log in verbose.read_line(line):
        said = log.format.name if log.kind in ("blocked", "any", "undef") else log.kind
        if to:
            said = render(log.format, to)
        elif log.dims:
            said = str(log.desc())
        names = conversion(log.text, "verbose", log.format) if log.kind == "blocked" else None
        found.append(LoggedTensor(argument or "?", said, names))
    return found
