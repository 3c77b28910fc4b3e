"""`infer` finds the digits of packings that know nothing of digits, or says why there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats import cli
from tests.quantised import packers

Array = NDArray[Any]


@pytest.mark.parametrize(
    ("rule", "dims", "bits", "text"),
    [
        (packers.gptq, {"n": 64, "k": 128}, 4, "k/8 n k%8"),
        (lambda q: packers.gptq(q, 2), {"n": 48, "k": 96}, 2, "k/16 n k%16"),
        (lambda q: packers.gptq(q, 8), {"n": 40, "k": 72}, 8, "k/4 n k%4"),
        (packers.awq, {"n": 64, "k": 24}, 4, "k n/8 n%2 n/2%4"),
        (packers.awq_gemv, {"n": 24, "k": 64}, 4, "n k"),
        (packers.awq_gemv_fast, {"n": 16, "k": 192}, 4,
         "n/4 k/64 n%4 k/32%2 k%8 k/8%4"),
        (packers.marlin, {"n": 192, "k": 64}, 4,
         "k/16 n/64 n%8 k/2%4 n/16%4 k%2 n/8%2 k/8%2"),
        (packers.swizzled, {"m": 256, "g": 12}, 8, "m/128 g/4 m%32 m/32%4 g%4"),
        (lambda q: packers.in_bits(q, 6), {"n": 16, "k": 64}, 6, "n k"),
    ],
)  # fmt: skip
def test_digits_of_known_packings(rule: Any, dims: dict[str, int], bits: int, text: str) -> None:
    def packing(q: Array) -> Array:
        return np.asarray(rule(q.astype(np.uint8)))

    found = cf.infer(packing, dims, bits)
    assert str(found) == text
    assert (found.bias, found.planes[0].bits) == (0, bits)


def test_what_is_found_is_what_is_in_the_table() -> None:
    """As a layout of a type: the same bytes."""
    rng = np.random.default_rng(0)
    q = rng.integers(0, 16, (128, 128)).astype(np.uint8)
    found = cf.infer(
        lambda q: packers.marlin((q.astype(np.uint8) + 8) & 15), {"n": 128, "k": 128}, 4
    )
    assert found.bias == 8
    kind = cf.QuantisedType("found", {"q": ("u4", (1, 1))}, "q - 8")
    desc = cf.MemoryDesc((128, 128), kind, found.layout())
    assert found.layout() == "q+8=k/16 n/64 n%8 k/2%4 n/16%4 k%2 n/8%2 k/8%2"
    assert np.array_equal(
        cf.pack({"q": q}, desc), packers.marlin((q + 8) & 15).ravel().view(np.uint8)
    )


def test_a_stream_of_bits_in_words() -> None:
    found = cf.infer(lambda q: packers.gptq3(q.astype(np.uint8)), {"n": 8, "k": 96}, 3)
    assert [d.text for d in found.planes[2].digits] == ["(3k+2)/32", "n", "(3k+2)%32"]
    layout = cf.layouts("u3g32")["gptq"]
    assert found.layout() in layout.replace(" (3k+1)", "@0 (3k+1)") or found.layout() in layout


def test_zero_points_less_one() -> None:
    found = cf.infer(lambda z: packers.gptq_zeros(z.astype(np.uint8)), {"n": 64, "g": 8}, 4)
    assert (found.text, found.bias) == ("g n", 15)


def test_records_with_strides() -> None:
    """Codes in ggml's q5_0: two planes, between scales that do not change."""
    desc: Any = cf.MemoryDesc((4, 96), "q5_0", "gguf")
    d = np.ones((4, 3), np.float16)
    found = cf.infer(lambda q: cf.pack({"q": q, "d": d}, desc), {"n": 4, "k": 96}, 5)
    assert [p.bits for p in found.planes] == [4, 1]
    assert found.planes[0].text == "n:528 k/32:176 k%16:8 k/16%2:4"
    assert found.planes[1].first_bit == 16


@pytest.mark.parametrize(
    ("packing", "why"),
    [
        (lambda q: (q ^ np.roll(q, 1, 0)).astype(np.uint8), "computed with others"),
        (lambda q: np.concatenate([q, q]).astype(np.uint8), "more than one place"),
        (lambda q: q[:, :-1].astype(np.uint8), "lost"),
        (lambda q: q[:, np.random.default_rng(0).permutation(32)].astype(np.uint8), "no digits"),
        (lambda q: q[np.arange(16)[:, None], np.arange(32) ^ np.arange(16)[:, None] % 4]
         .astype(np.uint8), "exclusive or"),
    ],
)  # fmt: skip
def test_what_is_no_digits_is_told(packing: Any, why: str) -> None:
    with pytest.raises(cf.NotDigits, match=why):
        cf.infer(packing, (16, 32), 4)


def test_random_layouts_are_found_again() -> None:
    """Digits of random orders and blocks, of any sizes: the same bytes."""
    rng = np.random.default_rng(5)
    kind = cf.QuantisedType("random4", {"q": ("u4", (1, 1))}, "q - 8")
    for _ in range(30):
        digits = []
        dims = {}
        for letter in "nk":
            step = 1
            for size in rng.choice([2, 3, 4, 8], rng.integers(0, 3)):
                digits.append(f"{letter}/{step}%{size}")
                step *= int(size)
            digits.append(f"{letter}/{step}")
            dims[letter] = step * int(rng.integers(2, 5))
        text = "q=" + " ".join(rng.permutation(digits))
        desc = cf.MemoryDesc(tuple(dims.values()), kind, text)
        found = cf.infer(lambda q, desc=desc: cf.pack({"q": q}, desc), dims, 4)  # type: ignore[misc]
        again = cf.MemoryDesc(tuple(dims.values()), kind, found.layout())
        q = rng.integers(0, 16, desc.dims)
        assert np.array_equal(cf.pack({"q": q}, desc), cf.pack({"q": q}, again)), text


def test_the_command_finds_digits_in_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["infer", str(tmp_path), "--write", "64x48", "--bits", "4"]) == 0
    for file in sorted(tmp_path.glob("probe*.npy")):
        np.save(file.with_suffix(".packed.npy"), packers.awq(np.load(file)))
    capsys.readouterr()
    assert cli.main(["infer", str(tmp_path), "--bits", "4", "--letters", "nk"]) == 0
    assert capsys.readouterr().out == "q=k n/8 n%2 n/2%4\n"
    few = [str(f) for f in sorted(tmp_path.glob("probe0[0-3]*.npy"))]
    few = [f for pair in zip(few[1::2], few[::2], strict=True) for f in pair]
    assert cli.main(["infer", *few, "--bits", "4"]) == 1
    assert "give more" in capsys.readouterr().err
    assert cli.main(["infer", str(tmp_path), "--write", f"{10**8}x{10**8}", "--bits", "4"]) == 1
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("packing", "dims", "bits"), [(1, (4, 4), 4), (len, (4, "a"), 4), (len, (), 4), (len, (4,), 0)]
)
def test_wrong_arguments_are_told(packing: Any, dims: Any, bits: int) -> None:
    with pytest.raises(cf.InvalidArgument, match="expected"):
        cf.infer(packing, dims, bits)
