"""Random types in random layouts: places are apart, text comes back, bits go there and back."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest

import clformats as cf
from clformats.formats.expr import Var
from clformats.quantised import placing
from clformats.quantised.host import from_codes, moved
from clformats.quantised.owners import check_apart
from clformats.quantised.planes import Plane
from tests.quantised.test_table import described, random_codes, same
from tests.tiers import tiered

CASES = int(os.environ.get("CLFORMATS_RANDOM_QUANTISED", "30"))


def digits(rng: np.random.Generator, letter: str) -> tuple[list[str], int]:
    """A chain of digits of one letter, and the product of the blocks."""
    step, found = 1, []
    for size in rng.choice([2, 3, 4, 8], rng.integers(0, 3)):
        found.append(f"{letter}/{step}%{size}")
        step *= int(size)
    return [*found, f"{letter}/{step}"], step


def planes(rng: np.random.Generator, bits: int, letters: str) -> str:
    """A field in one or two planes, each with digits of its own."""
    cuts = [bits] if bits == 1 or rng.random() < 0.6 else [int(rng.integers(1, bits))]
    cuts += [bits - cuts[0]] if cuts[0] != bits else []
    texts = []
    for width in cuts:
        chain = [d for letter in letters for d in digits(rng, letter)[0]]
        own = " ".join(rng.permutation(chain))
        texts.append(f"{width} {own}" if len(cuts) > 1 else own)
    return " + ".join(texts)


@pytest.mark.parametrize("seed", tiered([11, 12, 13, 14], [11]))
def test_random_types_and_layouts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in range(CASES):
        bits, group = int(rng.integers(1, 9)), int(rng.choice([4, 6, 8, 16, 32]))
        fields = {"q": (f"u{bits}", (1, 1)), "d": ("f16", (1, group)), "z": ("u4", (1, group))}
        kind = cf.QuantisedType(f"random{case}", fields, f"d * (q - {1 << bits - 1}) + z")
        bias = f"+{rng.integers(1, 1 << bits)}" if rng.random() < 0.3 else ""
        dims = tuple(int(n) for n in rng.integers(1, 40, rng.integers(2, 4)))
        texts = [
            f"q{bias}={planes(rng, bits, 'nk')}; d={planes(rng, 16, 'ng')}; "
            f"z={planes(rng, 4, 'ng')}"
            for _ in range(2)
        ]
        one, two = (described(dims, kind, text) for text in texts)
        assert cf.MemoryDesc.parse(str(one)) == one
        taken = np.zeros(8 * one.nbytes, np.uint8)
        for field in one.fields.values():
            axes = dict(zip("enk", np.ogrid[tuple(map(slice, field.extents))], strict=True))
            for plane in field.planes:
                at = plane.address((Var("e"), Var("n"), Var("k"))).evaluate(axes)
                for b in range(plane.bits):
                    np.add.at(taken, np.broadcast_to(np.asarray(at) + b, field.extents).ravel(), 1)
        assert taken.max() == 1, str(one)
        codes = random_codes(one, case)
        raw = from_codes(codes, one)
        other = moved(raw, one, two)
        assert np.array_equal(moved(other, two, one), raw), (str(one), str(two))
        assert same(cf.unpack(raw, one), cf.unpack(other, two))
        for name, field in one.fields.items():
            found = cf.unpack(raw, one, field=name).reshape(field.extents)
            assert np.array_equal(found.view(codes[name].dtype), codes[name])


def strided(rng: np.random.Generator, bits: int, sizes: dict[str, int]) -> str:
    """The digits of a plane with strides a little off the dense ones: values meet, or do not."""
    chain = []
    for letter, size in sizes.items():
        block = int(rng.choice([1, 2, 4]))
        chain += [(f"{letter}%{block}", block)] * (block > 1)
        chain.append((f"{letter}/{block}", -(-size // block)))
    stride, result = bits, []
    for digit, count in rng.permutation(np.array(chain, object)):
        result.append(f"{digit}:{stride}")
        stride = int(stride * int(count) * rng.choice([0.5, 1, 1, 1, 1, 1.5, 2]))
    return " ".join(result)


def shares_bits(planes: Sequence[Plane]) -> bool:
    """Whether two values of planes have a bit in common, by looking at every bit."""
    taken: list[int] = []
    for p in planes:
        axes = dict(zip("enk", np.ogrid[tuple(map(slice, p.padded))], strict=True))
        at = p.address((Var("e"), Var("n"), Var("k"))).evaluate(axes)
        where = np.broadcast_to(np.asarray(at), p.padded).ravel()
        taken += [int(a) + b for a in where for b in range(p.bits)]
    return len(set(taken)) < len(taken)


@pytest.mark.parametrize("seed", [7])
def test_values_share_bits_where_every_bit_says_so(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random strides, streams and first bits: refused if, and only if, two values share a bit.

    Padding counts as values, and so do the bits of a stream's last word: streams here fill them.
    """
    rng = np.random.default_rng(seed)
    found: list[bool] = []

    def compared(planes: Sequence[Plane], outer: int = 0) -> None:
        expected = shares_bits(planes)
        found.append(expected)
        if expected:
            with pytest.raises(cf.InvalidFormat, match="another value's"):
                check_apart(planes, outer)
            raise cf.InvalidFormat("compared")
        check_apart(planes, outer)

    monkeypatch.setattr(placing, "check_apart", compared)
    fields = {"q": ("u3", (1, 1)), "d": ("u4", (1, 4))}
    kind = cf.QuantisedType("strided", fields, "d * q")
    for _ in range(3 * CASES):
        n, k = (int(n) for n in rng.integers(1, 9, 2))
        first = int(rng.choice([0, 8, 24, 64, 128, 200]))
        q = f"@{first} {strided(rng, 3, {'n': n, 'k': k})}"
        if rng.random() < 0.3:
            k, word, row = int(rng.choice([4, 8])), rng.choice([3, 6, 12]), rng.choice([6, 12, 32])
            streams = ("3k", "3k+1", "3k+2")
            q = " + ".join(f"1@{first} ({i})/{word}:{row * n} n:{row} ({i})%{word}:1"
                           for i in streams)  # fmt: skip
        text = f"{{d={strided(rng, 4, {'n': n, 'g': -(-k // 4)})}; q={q}}}"
        try:
            described((n, k), kind, text)
        except cf.InvalidFormat as error:
            assert str(error) == "compared", text  # noqa: PT017  # the other way is right too
    assert 0.1 < np.mean(found) < 0.9, np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_types_and_layouts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 of each together."""
    monkeypatch.setitem(globals(), "CASES", 500)
    test_random_types_and_layouts(seed)
    test_values_share_bits_where_every_bit_says_so(seed, monkeypatch)
