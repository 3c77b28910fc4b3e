"""Random types in random layouts: places are apart, text comes back, bits go there and back."""

from __future__ import annotations

import os

import numpy as np
import pytest

import clformats as cf
from clformats.formats.expr import Var
from clformats.quantised.host import from_codes, moved
from tests.quantised.test_table import described, random_codes, same

CASES = int(os.environ.get("CLFORMATS_RANDOM_QUANTISED", "100"))


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


def test_random_types_and_layouts() -> None:
    rng = np.random.default_rng(11)
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


@pytest.mark.slow
def test_many_random_types_and_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "CASES", 10_000)
    test_random_types_and_layouts()
