"""The exceptions of clformats: each message says what was got, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Callable


class Error(Exception):
    """Base of every exception that clformats raises on purpose.

    ``code`` names the rule that was broken, where docs/refusals.md lists it; else it is empty.
    """

    code: str = ""


class InvalidFormat(Error, ValueError):
    """A format name that no grammar and no table knows, or one that needs more to be said.

    ``hint`` gives the end of the message, when it is read: programs that try names out need none,
    and looking for similar names takes longer than all else.
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
    """Scales, zero points or other values of a reorder that do not fit it, or are missing."""


class InvalidExpression(InvalidAttr):
    """The text of an expression that cannot be read, or calls what is not allowed."""


class Unsupported(Error):
    """A legal request that clformats refuses; ``code`` names the reason (see docs/refusals.md)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        self._said = message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by what it was made from; processes pass exceptions on."""
        return type(self), (self.code, self._said)


class MappedError(Error):
    """A memory object was used in a way that its current mapping to the host forbids."""


class DeviceError(Error):
    """An OpenCL call failed.

    ``name`` is OpenCL's name of the error (``"OUT_OF_RESOURCES"``), ``log`` the build log with the
    numbered source where a build failed, else the empty string.
    """

    def __init__(self, message: str, *, name: str = "", log: str = "") -> None:
        super().__init__(f"{message}\n{log}" if log else message)
        self.name = name
        self.log = log
