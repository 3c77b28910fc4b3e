"""einops text: ``b (f 16) y x -> b f y x 16``.

Grammar::

    text   = left -> right (, name = number)*
    left   = one entry for each logical dimension: a name, or (name block ...) if it is split,
             the coarsest digit first; the first name is the open part, it has no number
    block  = a number, or a name whose number follows at the end of the text
    right  = all names and blocks in the order of memory, outermost first

The text means what it means to `einops.rearrange`, with two exceptions: the tensor is first padded
to whole blocks, and a block may be written as its number, which einops does not accept. Numbers are
printed if no two blocks have the same size; otherwise all blocks have names (``i1``, ``i2``: blocks
of i, coarsest first), and then einops accepts text and numbers unchanged::

    (o o1) (i i1 i2) y x -> o i y x i1 o1 i2, i1=4, i2=4, o1=16

The names of the dimensions are free; those of clDNN (``b f y x``, ``o i y x``) and oneDNN
(``n c h w``, ``o i h w``) distinguish data and weights.

All digits of single dimensions can be expressed, in any order: also swizzled blocks and blocks
before the open part of another dimension.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...errors import InvalidFormat
from ...formats import Digit, Format, Layout
from .shared import format_of, need

_AXIS = r"[A-Za-z]\w*|\d+"
_TEXT = re.compile(r"(?P<left>[\w\s()]+)->(?P<right>[\w\s()]+)(?P<sizes>(?:,\s*\w+\s*=\s*\d+\s*)*)")


def render(fmt: Format) -> str:
    """Print the text. Raises `Unsupported` for fused, flipped and unsplit rounded-up indices."""
    layout = need(fmt, "einops", can=("between", "swizzle"))
    sizes = [d.size for d in layout.inner]
    numbers = len(set(sizes)) == len(sizes)
    names: dict[Digit, str] = {}
    for chain in layout.chains.values():
        letter = fmt.letters[chain[0].dims[0]]
        for k, digit in enumerate(reversed(chain)):
            names[digit] = str(digit.size) if k and numbers else f"{letter}{k or ''}"
    left = " ".join(_group(layout, d, names) for d in range(layout.ndims))
    right = " ".join(names[d] for d in layout.digits)
    tail = sorted(f", {names[d]}={d.size}" for d in layout.inner if not numbers)
    return f"{left} -> {right}{''.join(tail)}"


def _group(layout: Layout, dim: int, names: dict[Digit, str]) -> str:
    chain = [names[d] for d in reversed(layout.chains[(dim,), False])]
    return chain[0] if len(chain) == 1 else f"({' '.join(chain)})"


def parse(text: str) -> Format:
    """Read the text; brackets on its right side are ignored. Raises `InvalidFormat`."""
    match = _TEXT.fullmatch(text)
    if not match:
        raise _error(text, "expected something like b (f 16) y x -> b f y x 16")
    sizes = {k: int(n) for k, n in re.findall(r"(\w+)\s*=\s*(\d+)", match["sizes"])}
    digits: dict[str, Digit] = {}
    groups = _groups(text, match["left"])
    for dim, names in enumerate(groups):
        for name, digit in _digits(text, dim, names, sizes):
            if name in digits:
                raise _error(text, f"{name} occurs twice on the left; give the blocks names")
            digits[name] = digit
    order = re.findall(_AXIS, match["right"])
    if sorted(order) != sorted(digits):
        raise _error(text, "the two sides do not have the same names and numbers, each once")
    layout = Layout(len(groups), tuple(digits[name] for name in order))
    return format_of(layout, "".join(names[0] for names in groups))


def _groups(text: str, left: str) -> list[list[str]]:
    """The names of each logical dimension."""
    groups = re.findall(rf"\(\s*(?:(?:{_AXIS})\s*)+\)|{_AXIS}|\S", left)
    result = [re.findall(_AXIS, group) for group in groups]
    if not all(result):
        raise _error(text, "its brackets do not match")
    return result


def _digits(
    text: str, dim: int, names: Sequence[str], sizes: dict[str, int]
) -> list[tuple[str, Digit]]:
    """The digits of a dimension, the finest first."""
    result, step = [], 1
    for name in reversed(names[1:]):
        size = int(name) if name.isdigit() else sizes.get(name, 0)
        if size < 2:
            raise _error(text, f"the block {name} needs a size of 2 or more, as in {name}=16")
        result.append((name, Digit(dim, size, step)))
        step *= size
    if names[0].isdigit() or names[0] in sizes:
        raise _error(text, f"a dimension begins with a name that has no number, got {names[0]}")
    return [*result, (names[0], Digit(dim, None, step))]


def _error(text: str, reason: str) -> InvalidFormat:
    return InvalidFormat(f"cannot read {text!r} as einops: {reason}")
