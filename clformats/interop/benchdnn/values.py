"""The values of benchdnn's knobs: each is read from text, and its ``str`` is read back as itself.

What is written here are facts of benchdnn's grammar (its parser and its pages on attributes, tags,
strides and data types), for the reorder driver. Reading is strict: a value that cannot be read
raises `BadValue`, which says what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from ...errors import Error, InvalidFormat
from ...formats.format import Format
from ...formats.tags import is_meta
from ...tensors.dtypes import DTYPES, named

T = TypeVar("T")

STRANGE_DTYPES = ("f4_e3m0", "boolean")
"""Element types that oneDNN has and this library has not."""
WITHOUT_LAYOUT = ("any", "undef")
S8S8, ASYMMETRIC = "s8s8_comp", "zp_comp"
"""What ``--oflag`` can append: the sums of `clformats.Extra`, in its words s8s8 and asymmetric."""


class BadValue(Error):
    """A word of the command line or of a batch file that is no option, or no value of one."""


# --- plain values ---------------------------------------------------------------------------------


def shown(number: float) -> str:
    """A number as benchdnn prints it, with as many digits as reading it back needs."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def whole(text: str) -> int:
    """A whole number, written as plainly as benchdnn wants it."""
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", text):
        raise BadValue(f"expected a whole number, got {text!r}")
    return int(text)


def counted(text: str) -> int:
    """A whole number that is not negative."""
    if (number := whole(text)) < 0:
        raise BadValue(f"expected a number that is not negative, got {text}")
    return number


def real(text: str) -> float:
    """A real number, without the asterisk that older versions of benchdnn wanted after it."""
    if not re.fullmatch(
        r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?f?\*?", text, re.IGNORECASE
    ):
        raise BadValue(f"expected a real number, got {text!r}")
    return float(text.rstrip("*fF"))


def truth(text: str) -> bool:
    """``true`` or ``1``, ``false`` or ``0``."""
    if text.lower() not in ("true", "false", "1", "0"):
        raise BadValue(f"expected true or false, got {text!r}")
    return text.lower() in ("true", "1")


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader of one of these words, in any case."""

    def read(text: str) -> str:
        if text.lower() not in choices:
            raise BadValue(f"expected one of {', '.join(choices)}, got {text!r}")
        return text.lower()

    return read


def words(text: str) -> tuple[str, ...]:
    """Names separated by commas, quotes around them dropped."""
    return tuple(re.sub("[\"']", "", text).split(","))


# --- what a problem is made of --------------------------------------------------------------------


def dtype(text: str) -> str:
    """The name of an element type, also of those that only oneDNN has."""
    name = text.lower()
    if name not in (*DTYPES, *named("onednn"), *STRANGE_DTYPES):
        raise BadValue(f"unknown data type {text!r}: expected one of {', '.join(DTYPES)}")
    return name


@lru_cache(maxsize=4096)
def tag(text: str) -> str:
    """A format's name: a tag or meta tag of benchdnn, or a name of clDNN's."""
    if text not in WITHOUT_LAYOUT and not is_meta(text.replace("y", "x")):
        try:
            Format(text)
        except InvalidFormat as error:
            raise BadValue(str(error)) from error
    return text


def dims(text: str) -> tuple[int, ...]:
    """Sizes such as ``2x64x3x3``."""
    return tuple(counted(n) for n in text.split("x"))


def dims_text(sizes: tuple[int, ...]) -> str:
    """The inverse of `dims`."""
    return "x".join(map(str, sizes))


def named_dims(text: str) -> tuple[tuple[int, ...], str]:
    """A problem: sizes, and after ``_n`` or ``n`` its name, kept as it is written."""
    match = re.fullmatch(r"([0-9x]+)(?:_?n(\S*))?", text)
    if not match or not re.match("[0-9]", text):
        raise BadValue(f"expected a problem such as 2x64x3x3, got {text!r}")
    return dims(match[1]), match[2] or ""


@dataclass(frozen=True, slots=True)
class Strides:
    """``SRC:DST``, each a stride per dimension in elements, or empty."""

    src: tuple[int, ...] = ()
    dst: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Strides:
        """Read ``8x1:`` or ``:``; empty text is no strides either."""
        sides = text.split(":") if text else ["", ""]
        if len(sides) != 2:
            raise BadValue(f"expected SRC:DST with one colon, such as 8x1:2x16, got {text!r}")
        src, dst = (dims(side) if side else () for side in sides)
        return cls(src, dst)

    def __str__(self) -> str:
        return f"{dims_text(self.src)}:{dims_text(self.dst)}"


@dataclass(frozen=True, slots=True)
class Flags:
    """What is appended to the destination: pairs of `S8S8` or `ASYMMETRIC` and a mask."""

    entries: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Flags:
        """Read ``s8s8_comp:1+zp_comp:1``."""
        return cls(tuple(_flag(entry) for entry in text.split("+")) if text else ())

    def __str__(self) -> str:
        return "+".join(f"{name}:{mask}" for name, mask in self.entries)


def _flag(text: str) -> tuple[str, int]:
    name, colon, mask = text.partition(":")
    if not colon:
        raise BadValue(f"expected FLAG:MASK such as s8s8_comp:1, got {text!r}")
    return one_of(S8S8, ASYMMETRIC)(name), counted(mask)
