"""What a recording has in the place of a queue, an order and events: nothing runs."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..runtime import Event
from ..runtime.order import QueueOrder

NO_QUEUE = (
    "a recording has no queue, and nothing that is enqueued past it is recorded: use "
    "recording.run(kernel, ...), reorders, maps, and memory objects that are on the device already"
)


class Recorded(Event):
    """Stands for a command that was recorded: nothing runs, so there is nothing to wait for."""

    __slots__ = ()

    def __init__(self) -> None:
        """Stand for no event."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("event", "wait", "done", "seconds", "_first"):
            raise Unsupported(
                "RECORDING",
                f"{name}: a recording runs nothing, its commands run in recording.replay()",
            )
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        return "Event(recorded)"


class NoOrder(QueueOrder):
    """Stands for the order of a queue that there is not."""

    __slots__ = ()

    def __init__(self) -> None:
        """Keep no queue."""
