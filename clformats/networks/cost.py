"""`Cost`: seconds, how sure they are, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

from ..errors import InvalidNetwork, shown


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds with a lower and an upper end, and their source.

    ``source`` is ``"given"``, ``"measured"``, ``"measured in place"`` or ``"fitted"``, or says in
    other words where the figure comes from. ``low`` and ``high`` are the seconds themselves where
    nothing is known of their spread. An infinite cost stands for what cannot be done.

    >>> Cost(2e-3, high=3e-3)
    Cost(seconds=0.002, low=0.002, high=0.003, source='given')
    """

    seconds: float
    low: float = -1.0
    high: float = -1.0
    source: str = "given"

    def __post_init__(self) -> None:
        for name in ("seconds", "low", "high"):
            value = getattr(self, name)
            if type(value) is not float:
                object.__setattr__(self, name, as_float(value, name))
        for end in ("low", "high"):
            if getattr(self, end) == -1.0:
                object.__setattr__(self, end, self.seconds)
        ordered = self.low <= self.seconds <= self.high
        why = "" if ordered else "low <= seconds <= high does not hold"
        if isnan(self.seconds + self.low + self.high) or self.low < 0:
            why = "a cost is a number of seconds, 0 or more"
        if why:
            raise InvalidNetwork(
                f"got seconds={self.seconds!r}, low={self.low!r}, high={self.high!r}: {why}"
            )


def as_cost(value: object, what: str) -> Cost:
    """The cost of a number or a `Cost`. Raises `InvalidNetwork`, which begins with ``what``."""
    if isinstance(value, Cost):
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise InvalidNetwork(f"{what}: got the cost {value!r}, expected seconds or a Cost")
    try:
        return Cost(as_float(value, "seconds"))
    except InvalidNetwork as error:
        raise InvalidNetwork(f"{what}: {error}") from None


def as_float(value: Any, what: str) -> float:
    """The number. Raises `InvalidNetwork`."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError(what)  # noqa: TRY301  # one message
        return float(value)
    except OverflowError:
        raise InvalidNetwork(f"{what}: got {shown(value)}, which is beyond a double") from None
    except (TypeError, ValueError):
        raise InvalidNetwork(f"{what}: got {shown(value)}, expected a number") from None
