"""Digits as text: ``b f/16 y x f%16`` is ``nChw16c``.

    text   = part (| part)* [align rounded ...] [tail rounded digit ...] [dims letter ...]
    part   = digit digit ...
    digit  = [~] index [/step] [%size]        the value (index / step) % size
    index  = letter, or (letter letter ...)   (y x) is the fused index y * X + x

Digits stand in the order of memory, outermost first; one without a size is open. ``~`` counts an
index from the far end. Bars cut the axes of an image: ``n h | c/4 w | c%4`` has rows, columns and
components. ``align f%32`` rounds f up to a multiple of 32 without splitting it. ``tail x%2 ...``:
after the last whole slice of two x the digits are those that follow. ``dims kn`` gives letters of
one's own their logical order; those that `names.order_of` knows need none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import InvalidFormat
from .digits import Digit, Layout, Tail
from .names import GrammarError, Parsed, order_of

_INDEX = r"[a-z]|\(\s*[a-z](?:\s*[a-z])+\s*\)"
_DIGIT = re.compile(rf"\s*(~?)({_INDEX})(?:/([1-9][0-9]*))?(?:%([1-9][0-9]*))?(?=\s|$)")
_SECTIONS = re.compile(
    r"(?P<digits>.*?)(?:\balign\b(?P<align>.*?))?(?:\btail\b(?P<tail>.*?))?"
    r"(?:\bdims\s(?P<dims>[a-z\s]*[a-z]))?", re.DOTALL,
)  # fmt: skip
_NO_DIGITS = {
    "^": "an exclusive or of two indices is no digit of either",
    "+": "a rotation of one digit by another is no list of digits",
    "[": "an index that a table permutes is no list of digits",
}
"""What a layout may have that no list of digits can say, by the character one would write."""


def is_digits(name: str) -> bool:
    """Whether a text can only be meant as digits, right or wrong: a name has none of these."""
    sections = [section.strip() for section in name.split("|")]
    return name != name.strip() or any(
        section.startswith("(") or re.search(r"[\s/%~]", section) for section in sections
    )


def read(text: str, letters: str | None = None) -> Parsed:
    """What a list of digits says. Raises `GrammarError` with the bad token and the reason.

    ``letters``: the logical dimensions in order, if the text does not say it.
    """
    for character, reason in _NO_DIGITS.items():
        if character in text:
            raise GrammarError(character, reason)
    sections = _SECTIONS.fullmatch(text)
    if not sections:
        raise GrammarError(text, "expected digits")
    own = re.sub(r"\s", "", sections["dims"] or "") or letters
    if letters not in (None, own):
        raise GrammarError(f"dims {own}", f"another order was given beside the text: {letters!r}")
    parts = [list(_items(part)) for part in sections["digits"].split("|")]
    items = [item for part in parts for item in part]
    order = _order(dict.fromkeys(c for index, *_ in items for c in index), own)
    align = _aligned(sections["align"] or "", order)
    main = [_digit(item, order) for item in items]
    tail = _tail(sections["tail"], order)
    known = order_of(order)
    role = known[1] if known and known[0] == order else "generic"
    digits = tuple(d for d in main if d is not None)
    layout = layout_of(order, digits, align, tail)
    if len(parts) == 1:
        return Parsed(layout, order, role)
    rest = iter(main)
    counts = tuple(sum(next(rest) is not None for _ in part) for part in parts)
    return Parsed(layout, order, role, "image", counts)


_Item = tuple[str, bool, int, int | None]
"""A digit as it is written: the letters of its index, flipped?, step, size."""


def _items(text: str) -> Iterator[_Item]:
    at = 0
    while text[at:].strip():
        match = _DIGIT.match(text, at)
        if not match:
            raise GrammarError(
                text[at:].split(maxsplit=1)[0],
                "expected a digit: a letter, or letters in brackets, then perhaps /step and %size, "
                "as in k, k/8, k%8, k/2%4, (y x)/16; a space between two digits",
            )
        flip, index, step, size = match.groups()
        letters = "".join(re.findall("[a-z]", index))
        yield letters, bool(flip), int(step or 1), int(size) if size else None
        at = match.end()


def _order(seen: dict[str, None], letters: str | None) -> str:
    """The logical order of the dimensions."""
    named = "".join(seen)
    known = order_of(named)
    if letters is None and known is None:
        raise GrammarError(
            named, f"these dimensions have no usual order: say it, as in dims={named!r}, or with "
            f"dims {named} behind the digits"
        )  # fmt: skip
    order = letters or (known[0] if known else "")
    if sorted(order) != sorted(named):
        raise GrammarError(named, f"expected digits of each of the dims {' '.join(order)}")
    return order


def _digit(item: _Item, letters: str) -> Digit | None:
    """The digit; None for one of size 1, which is always 0."""
    index, flip, step, size = item
    dims = tuple(letters.index(c) for c in index)
    return None if size == 1 else Digit(dims, size, step, flip)


def _aligned(text: str, letters: str) -> tuple[int, ...]:
    align = dict.fromkeys(letters, 1)
    for index, flip, step, size in _items(text):
        if index not in align or flip or step != 1 or size is None:
            raise GrammarError(text.strip(), "expected dimensions and multiples, such as align f%8")
        align[index] = size
    return tuple(align.values())


def _tail(text: str | None, letters: str) -> Tail | None:
    if text is None:
        return None
    start, *items = [*_items(text)] or [("", False, 1, None)]
    index, flip, step, size = start
    if len(index) != 1 or index not in letters or flip or step != 1 or size is None:
        raise GrammarError(text.strip(), "expected a dimension, a size and digits: tail x%2 y x/2")
    if not {c for item in items for c in item[0]} <= set(letters):
        raise GrammarError(text.strip(), f"expected digits of the dims {' '.join(letters)}")
    digits = [_digit(item, letters) for item in items]
    return Tail(letters.index(index), size, tuple(d for d in digits if d is not None))


def layout_of(
    letters: str, digits: tuple[Digit, ...], align: tuple[int, ...] = (), tail: Tail | None = None
) -> Layout:
    """The layout of these digits. Raises `GrammarError`, with the digits as text."""
    for chain in _chains(digits).values():
        broken = _broken([_written(d, letters) for d in chain], chain, letters)
        if broken:
            said = " ".join(_written(d, letters) for d in reversed(chain))
            rule = "the digits of an index continue each other, as k%8, k/8%4, k/32 do"
            raise GrammarError(said, f"{broken}; {rule}")
    try:
        return Layout(len(letters), digits, align, tail)
    except InvalidFormat as error:
        raise GrammarError(" ".join(_written(d, letters) for d in digits), str(error)) from error


def _broken(words: Sequence[str], chain: Sequence[Digit], letters: str) -> str:
    """What keeps the digits of an index, the finest first, from continuing each other, if any."""
    step, before = 1, ""
    for word, d in zip(words, chain, strict=True):
        wanted = _written(replace(d, step=step), letters)
        if d.step != step and before:
            return f"{before} ends at {step}, so {wanted} comes next, got {word}"
        if d.step != step:
            return f"{_written(replace(d, step=1, size=d.step), letters)} is missing before {word}"
        if d.size is None:
            more = words[len(words) - 1]
            return "" if word == more else f"{word} has no end, so nothing is left for {more}"
        step, before = step * d.size, word
    missing = _written(replace(chain[-1], step=step, size=None), letters)
    return f"{before} ends at {step}, and {missing} is missing"


def _chains(digits: Sequence[Digit]) -> dict[object, list[Digit]]:
    """The digits of each index, the finest first, the open one last."""
    result: dict[object, list[Digit]] = {}
    for d in sorted(digits, key=lambda d: (d.step, d.size is None)):
        result.setdefault(d.index, []).append(d)
    return result


def written(p: Parsed) -> str:
    """The digits as text, the inverse of `read`."""
    layout, letters = p.layout, p.letters
    words = ["|".join(f" {_joined(part, letters)} " for part in p.parts()).strip()]
    rounded = [f"{c}%{n}" for c, n in zip(letters, layout.align, strict=True) if n > 1]
    words += ["align", *rounded] if rounded else []
    if layout.tail:
        words.append(f"tail {letters[layout.tail.dim]}%{layout.tail.size}")
        words.append(_joined(layout.tail.digits, letters))
    if (order_of(letters) or ("",))[0] != letters:
        words.append(f"dims {letters}")
    return re.sub(r" +", " ", " ".join(words))


def _joined(digits: Sequence[Digit], letters: str) -> str:
    return " ".join(_written(d, letters) for d in digits)


def _written(d: Digit, letters: str) -> str:
    """One digit: ``f/16``, ``~y``, ``(y x)%16``."""
    index = " ".join(letters[k] for k in d.dims)
    index = f"({index})" if len(d.dims) > 1 else index
    step = f"/{d.step}" if d.step > 1 else ""
    return f"{'~' * d.flip}{index}{step}{f'%{d.size}' if d.size else ''}"
