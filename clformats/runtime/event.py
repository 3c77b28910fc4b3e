"""`Event`: a command that was enqueued, to wait for."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import DeviceError
from ..opencl import OnDevice, named_errors, opencl

if TYPE_CHECKING:
    import pyopencl


class Event(OnDevice):
    """A command that was enqueued, to wait for. ``event`` is the pyopencl event.

    ``first`` is that of its first kernel, where it has two.
    """

    __slots__ = ("_first", "event")
    _travels_as = "wait for it here"

    def __init__(self, event: pyopencl.Event, first: pyopencl.Event | None = None) -> None:
        self.event, self._first = event, first or event

    def wait(self) -> None:
        """Wait until the command is done. Raises `DeviceError` where it failed."""
        with named_errors("waiting for an event"):
            self.event.wait()

    @property
    def done(self) -> bool:
        """Whether the command has ended, also by an error; does not wait. Raises `DeviceError`."""
        with named_errors("asking an event"):
            return int(self.event.command_execution_status) <= 0

    def __repr__(self) -> str:
        with suppress(DeviceError):
            return f"Event({'done' if self.done else 'not done'})"
        return "Event(failed)"

    def seconds(self) -> float:
        """How long the command ran on the device, in seconds. Needs a profiling stream."""
        self.wait()
        why = None
        try:
            if end := self.event.profile.end:  # 0 on rusticl where there are no times
                return float(end - self._first.profile.start) * 1e-9
        except opencl().Error as error:
            why = error
        raise DeviceError(
            "this event has no times: make the stream with Stream(engine, profiling=True)",
            name="PROFILING_INFO_NOT_AVAILABLE",
        ) from why
