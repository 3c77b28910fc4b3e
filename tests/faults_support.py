"""Making the n-th OpenCL call of a program fail, and counting what the driver still holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CONSTRUCTORS = ("Buffer", "CommandQueue", "Image", "Kernel")
FUNCTIONS = (
    "enqueue_copy",
    "enqueue_fill_buffer",
    "enqueue_fill_image",
    "enqueue_map_buffer",
    "enqueue_marker",
    "enqueue_nd_range_kernel",
    "enqueue_svm_memfill",
)
METHODS = {
    "CommandQueue": ("finish", "flush"),
    "Event": ("wait",),
    "Kernel": ("set_arg",),
    "MemoryMap": ("release",),
    "Program": ("build",),
    "SVMMap": ("release",),
    "SVMPointer": ("map",),
}


class Faults:
    """Counts the OpenCL calls and makes number ``at`` fail, by an error of OpenCL or Control-C.

    ``for_ever``: and all that follow.
    """

    def __init__(self, at: int, *, interrupt: bool = False, for_ever: bool = False) -> None:
        self.at, self.interrupt, self.for_ever = at, interrupt, for_ever
        self.calls: list[str] = []
        self._inside = threading.local()

    @property
    def happened(self) -> bool:
        return len(self.calls) > self.at

    def around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def passed(*arguments: Any, **more: Any) -> Any:
            before, self._inside.of_pyopencl = self._is_inside, True
            try:
                return real(*arguments, **more)
            finally:
                self._inside.of_pyopencl = before

        def call(*arguments: Any, **more: Any) -> Any:
            if self._is_inside:
                return real(*arguments, **more)
            self.calls.append(name)
            number = len(self.calls) - 1
            if number != self.at and not (self.for_ever and number > self.at):
                return passed(*arguments, **more)
            if self.interrupt:
                raise KeyboardInterrupt
            if name.endswith((".wait", ".finish")):
                passed(*arguments, **more)  # a wait ends by an error when the command has ended
            raise error()

        return call

    @property
    def _is_inside(self) -> bool:
        """Whether this is a call that pyopencl makes in another one, as for some drivers."""
        return getattr(self._inside, "of_pyopencl", False)


def error(name: str = "OUT_OF_RESOURCES") -> Exception:
    """What pyopencl raises for an error of OpenCL."""
    import pyopencl as cl

    record = cl._cl._ErrorRecord(
        msg="on purpose", code=getattr(cl.status_code, name), routine="clSomething"
    )
    result: Exception = cl.RuntimeError(record)
    return result


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """Inside, every call of pyopencl that the library makes is counted."""
    import pyopencl as cl

    with pytest.MonkeyPatch.context() as patch:
        for kind, names in METHODS.items():
            for name in names:
                real = getattr(getattr(cl, kind), name)
                patch.setattr(getattr(cl, kind), name, faults.around(f"{kind}.{name}", real))
        for name in FUNCTIONS:
            patch.setattr(cl, name, faults.around(name, getattr(cl, name)))
        for name in CONSTRUCTORS:
            patch.setattr(cl, name, _stand_in(getattr(cl, name), faults))
        yield


def _stand_in(real: type, faults: Faults) -> type:
    """A class that makes objects of the real one, counted, and takes those for its own."""
    make = faults.around(real.__name__, real)

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

        def __call__(cls, *arguments: Any, **more: Any) -> Any:
            return make(*arguments, **more)

    return Meta(real.__name__, (), {})
