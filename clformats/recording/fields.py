"""The members of a JSON object, asked for by name and kind: what is not as expected is refused."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NoReturn

from ..errors import InvalidRecording

MOST = 1 << 62
"""Numbers are below it: sizes and places, with room to add two."""


class Fields:
    """The members of an object; ``where`` names it in messages. Raises `InvalidRecording`."""

    def __init__(self, members: Any, where: str) -> None:
        self.where = where
        if not isinstance(members, Mapping):
            self.refuse("")
        self._members: Mapping[str, Any] = members

    def refuse(self, name: str) -> NoReturn:
        """Raise for a member."""
        raise InvalidRecording(f"{self.where}: {name} is missing, or not as it should be")

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def text(self, name: str) -> str:
        """A text."""
        found = self._members.get(name)
        if not isinstance(found, str):
            self.refuse(name)
        return found

    def word(self, name: str, known: Container[str]) -> str:
        """One of the words that are known."""
        found = self.text(name)
        if found not in known:
            self.refuse(name)
        return found

    def flag(self, name: str) -> bool:
        """True or false."""
        found = self._members.get(name)
        if not isinstance(found, bool):
            self.refuse(name)
        return found

    def number(self, name: str, least: int = 0, most: int = MOST) -> int:
        """A whole number."""
        return self._whole(name, self._members.get(name), least, most)

    def _whole(self, name: str, found: Any, least: int, most: int) -> int:
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            self.refuse(name)
        return found

    def items(self, name: str) -> list[Any]:
        """A list of anything."""
        found = self._members.get(name)
        if not isinstance(found, list):
            self.refuse(name)
        return found

    def list(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [Fields(m, f"{name} {k} of {self.where}") for k, m in enumerate(self.items(name))]

    def sizes(self, name: str, count: int | None = None) -> tuple[int, ...]:
        """Whole numbers: sizes of at least 1, up to three, or ``count`` of any."""
        found, least = self.items(name), 1 if count is None else 0
        if len(found) > 3 or count not in (None, len(found)):
            self.refuse(name)
        return tuple(self._whole(name, n, least, MOST) for n in found)

    def of(self, name: str, known: Sequence[Any]) -> Any:
        """What a number stands for."""
        return known[self.number(name, 0, len(known) - 1)]

    def within(self, first: int, nbytes: int, end: int) -> None:
        """Refuse bytes beyond an end."""
        if first + nbytes > end:
            self.refuse("bytes")

    def part(self, data: bytes, first: int, nbytes: int) -> bytes:
        """A part of the data."""
        self.within(first, nbytes, len(data))
        return data[first : first + nbytes]
