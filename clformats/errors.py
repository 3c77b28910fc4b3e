"""The exceptions of clformats: each message says what was got, what was expected, what to do."""

from __future__ import annotations

import operator
import re
import reprlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, get_args

_PACKAGE = str(Path(__file__).parent)


class Error(Exception):
    """Base of every exception that clformats raises on purpose.

    ``code`` names the rule that was broken, where docs/refusals.md lists it; else it is empty.
    """

    code: str = ""


class InvalidFormat(Error, ValueError):
    """A format name that no grammar and no table knows, or one that is incomplete.

    ``hint`` makes the end of the message when the message is read: finding similar names is slow,
    and programs that try names out do not read it.
    """

    def __init__(self, message: str, *, hint: Callable[[], str] | None = None) -> None:
        super().__init__(message)
        self._hint = hint

    def __str__(self) -> str:
        return super().__str__() + (self._hint() if self._hint else "")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the whole message."""
        return type(self), (str(self),)


class InvalidDescriptor(Error, ValueError):
    """A memory descriptor that cannot exist, or data that does not fit its descriptor.

    ``code`` names the rule that was broken where an operation has several (see docs/refusals.md).
    """

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(f"{message} [{code}]" if code else message)
        self.code = code


class InvalidAttr(Error, ValueError):
    """Scales, zero points or other values of a reorder that are missing or do not fit it."""


class InvalidExpression(InvalidAttr):
    """The text of an expression that cannot be read, or calls a function that is not allowed."""


class InvalidNetwork(Error, ValueError):
    """A network, a table of kernels or a log that cannot be planned; names the node or the line."""


class NotDigits(Error, ValueError):
    """A packing that is no list of digits; the message says which bits are not, and why."""


class InvalidRecording(Error, ValueError):
    """An exported recording that is damaged, was changed, or is of a newer version."""


class Unsupported(Error):
    """A legal request that clformats refuses; ``code`` names the reason (see docs/refusals.md)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        self._said = message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by what it was made from; processes pass exceptions on."""
        return type(self), (self.code, self._said)


class InvalidArgument(Error, TypeError, ValueError):
    """An argument of a wrong type, or a word that the function does not know."""


class MappedError(Error):
    """A memory object was used in a way that its current mapping to the host forbids."""


class DeviceError(Error):
    """An OpenCL call failed.

    ``name`` is OpenCL's name of the error (``"OUT_OF_RESOURCES"``). ``log`` is the compiler's
    log and the lines around those that it names if a build failed, else the empty string.
    """

    def __init__(self, message: str, *, name: str = "", log: str = "") -> None:
        super().__init__(f"{message}\n{log}" if log else message)
        self.name = name
        self.log = log


class CacheWarning(RuntimeWarning):
    """Built programs are not kept: the cache folder cannot be written, or others can write to it.

    Everything works, and each process builds its own. To be silent about it::

        warnings.filterwarnings("ignore", category=cf.CacheWarning)
    """


def caller() -> tuple[FrameType, int]:
    """The frame outside the library that called it, and how far up it is from who asks."""
    # inspect.stack() reads the files of every frame.
    frame, level = sys._getframe(1), 0  # noqa: SLF001
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return frame, level


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line that called the library."""
    warnings.warn(message, category, stacklevel=caller()[1] + 1)


def expect(value: object, kind: Any, what: str) -> None:
    """Raise `InvalidArgument` where an argument is of another type than a public function takes."""
    if not isinstance(value, kind):
        names = " or ".join(
            "None" if k is type(None) else k.__name__ for k in get_args(kind) or (kind,)
        )
        raise InvalidArgument(f"{what}: got {shown(value)}, expected {names}")


def expect_int(value: object, what: str) -> int:
    """The integer, numpy's too. Raises `InvalidArgument`."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgument(f"{what}: got {shown(value)}, expected an int") from None


def pattern(text: str | None, *, flags: int = 0) -> re.Pattern[str]:
    """The regular expression of --match; None fits everything. Raises `Error` for no expression."""
    try:
        return re.compile(text or "", flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise Error(f"--match {reprlib.repr(text)} is no regular expression: {error}") from error


def shown(value: object) -> str:
    """A value and its type, shortened."""
    return f"{reprlib.repr(value)} of type {type(value).__name__}"
