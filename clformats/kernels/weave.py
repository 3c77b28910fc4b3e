"""Words put together from several registers: the texts for `clformats.schedule.weave`."""

from __future__ import annotations

from collections.abc import Sequence

from ..schedule.lanes import Weave


def woven_words(weave: Weave, word: int, registers: Sequence[str], bits: int) -> str:
    """One word of the destination in each lane, of elements of so many ``bits``.

    ``registers`` hold the source's words. What is to be turned equally far is chosen before, so
    that most words are turned once.
    """
    turned: dict[int, list[tuple[str, int]]] = {}
    for j, (k, place) in enumerate(weave.elements(word)):
        turned.setdefault((j - place) % weave.count, []).append((registers[k], place))
    values = []
    for places, parts in turned.items():
        value = _chosen([(name, _mask([place], bits)) for name, place in parts])
        ends = _mask([(place + places) % weave.count for _, place in parts], bits)
        values.append((f"TURN({value}, {places * bits})" if places else value, ends))
    return _chosen(values)


def _chosen(parts: Sequence[tuple[str, int]]) -> str:
    """The bits of each value that its mask has."""
    value = parts[0][0]
    for other, mask in parts[1:]:
        value = f"CHOOSE({value}, {other}, {mask:#010x}u)"
    return value


def _mask(places: Sequence[int], bits: int) -> int:
    return sum(((1 << bits) - 1) << place * bits for place in places)
