"""Random quantised types and layouts on a device, between pages that may not be touched.

``python -m tests.quantised_fuzz SEED STRUCTURE CASES``, see `tests.fuzz_support`. Bits are moved,
values decoded, numbers quantised, for CPUs and as for GPUs; what is expected is the host's, whose
own random tests are in tests/quantised.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

import clformats as cf
from clformats.quantised import QuantisedDesc, QuantisedType, types
from clformats.quantised.bits import read_field
from clformats.quantised.host import from_codes, moved
from tests.device_support import CANARY, holding
from tests.fuzz_cases import PLACES, PLANS, nbytes_of
from tests.fuzz_support import POISON, Bench, main
from tests.groups_fuzz import Side, some_side

# Not tq2_0: without optimisation PoCL takes minutes for blocks of 256.
RULED = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_0", "mxfp4", "nvfp4", "u4g32", "u8g64",
         "s4g32", "s8g16", "u3g32", "u2g16", "u5g8", "mx_f4_e2m1", "mx_f6_e2m3", "mx_f6_e3m2",
         "mx_f8_e4m3", "mx_f8_e5m2")  # fmt: skip
OTHERS = ("tq2_0", "q1_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "iq4_nl", "iq4_xs", "iq2_xxs",
          "iq2_s", "iq3_xxs", "iq3_s", "iq1_s", "iq1_m", "u4gk", "s4gk", "u4sg32", "mlc_q4f16",
          "bnb_nf4")  # fmt: skip
FORMULAS = ("d * (q - {half}) + z", "d * q - z", "(q - z) * d", "d * (q * (z - 3))")


class Structure:
    """A type, two of its layouts, what is done with them, and where numbers lie."""

    def __init__(self, seed: int, number: int) -> None:
        rng = self.rng = random.Random(f"quantised {seed} {number}")  # noqa: S311  # not secrets
        self.does = rng.choice(("moves", "moves", "decodes", "decodes", "quantises"))
        own = self.does != "quantises" and rng.random() < 0.5
        self.kind = some_type(rng, f"own_{seed}_{number}") if own else table_type(rng, self.does)
        self.layouts = [some_layout(rng, self.kind) for _ in range(2)]
        self.plan = rng.choice(PLANS)
        self.ndims = rng.choice((2, 2, 2, 3))
        self.numbers = some_side(rng, self.ndims)
        if self.does == "quantises" and rng.random() < 0.6:
            text = "abc"[: self.ndims]
            self.numbers = Side(rng.choice(("f32", "f16")), text, ((0, 0),) * self.ndims, 0)

    def __str__(self) -> str:
        to = self.layouts[1] if self.does == "moves" else self.numbers
        return f"{self.does} {self.kind!r}, {self.layouts[0]}, {to} [{self.plan}]"

    def cases(self, most: int) -> Iterator[tuple[tuple[int, ...], int, tuple[str, str]]]:
        """Sizes, a seed for values, and where memories lie."""
        rng, group = self.rng, widest(self.kind)
        for _ in range(most):
            rows = rng.choice((1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 64))
            columns = rng.choice((1, 1, 2, 3, 4, 5, 7, 8)) * group
            columns = rng.randint(1, 300) if rng.random() < 0.25 else columns
            dims = (*[rng.choice((1, 2, 3)) for _ in range(self.ndims - 2)], rows, columns)
            yield dims, rng.getrandbits(31), (rng.choice(PLACES[:2]), rng.choice(PLACES[:2]))

    def run(self, case: Any, bench: Bench) -> bool:
        """Run a case, and compare every byte; False where there is no such tensor."""
        dims, seed, places = case
        try:
            one, other = (described(dims, self.kind, layout) for layout in self.layouts)
            numbers = self.numbers.desc(dims)
        except (cf.InvalidDescriptor, cf.Unsupported, cf.InvalidFormat):
            return False
        if max(one.nbytes, other.nbytes, nbytes_of(numbers)) > 1 << 20:
            return False
        rng = np.random.default_rng(seed)
        src: Any
        dst: Any
        if self.does == "quantises":
            src, dst = numbers, one
            values = some_numbers(rng, numbers)
            raw, want = cf.pack(values, src).view(np.uint8), cf.pack(values, dst)
        else:
            src, dst = one, (other if self.does == "moves" else numbers)
            raw = from_codes(some_codes(rng, one), one)
            with np.errstate(all="ignore"):
                if self.does == "moves":
                    want = moved(raw, src, dst)
                else:
                    values = cf.tensors.dtypes.convert(cf.unpack(raw, src), "f32", numbers.dtype)
                    want = holding(values, dst)[:-CANARY]
        self.compare(src, dst, raw, want, places, bench)
        return True

    def compare(
        self, src: Any, dst: Any, raw: Any, want: Any, places: tuple[str, str], bench: Bench
    ) -> None:
        """Run it for bytes, and compare those of the destination and around it."""
        stream = bench.stream(self.plan)
        reorder = cf.Reorder(src, dst, stream.engine)
        source, _ = bench.rooms[0].memory(src, raw, places[0], stream.engine)
        before = np.full(want.size, POISON, np.uint8)
        target, at = bench.rooms[1].memory(dst, before, places[1], stream.engine)
        reorder(stream, source, target).wait()
        with target.map("r"):  # a GPU brings what it wrote
            found = bench.rooms[1].bytes[at].copy()
        bench.rooms[1].check(target, at, as_found(want, found, dst, exact=self.does == "moves"))


def as_found(want: Any, found: Any, dst: Any, *, exact: bool) -> Any:
    """What is expected, but as it was found what no kernel promises.

    That is what lies between buffers, and the bits of a NaN where they are computed: processors
    differ in those.
    """
    if isinstance(dst, cf.MemoryDesc):
        whole = want.size // dst.dtype.nbytes * dst.dtype.nbytes
        return with_nans_of(found[:whole], want[:whole], dst.dtype)
    codes = {name: read_field(want, f) for name, f in dst.fields.items()}
    for name, f in dst.fields.items() if not exact else ():
        if f.dtype.kind == "float" and f.bits >= 16:
            t = cf.tensors.dtypes.as_dtype(f.dtype.name)
            codes[name] = with_nans_of(read_field(found, f), codes[name], t)
    want = from_codes(codes, dst)
    whole = found.copy()
    for b in dst.buffers:
        part = slice(b.start, b.start + b.nbytes)
        whole[part] = want[part]
    return whole


def with_nans_of(found: Any, want: Any, dtype: Any) -> Any:
    """The bits of elements, those of each NaN that both have as they were found."""
    if not dtype.is_float or dtype.is_packed:
        return want
    bits = f"u{dtype.nbytes}"
    values = [cf.tensors.dtypes.convert(x.view(dtype.numpy), dtype, "f64") for x in (found, want)]
    both = np.isnan(values[0]) & np.isnan(values[1])
    return np.where(both, found.view(bits), want.view(bits)).view(want.dtype)


def described(dims: tuple[int, ...], kind: Any, layout: str) -> QuantisedDesc:
    """What MemoryDesc makes of a quantised type."""
    desc: object = cf.MemoryDesc(dims, kind, layout)
    assert isinstance(desc, QuantisedDesc)
    return desc


def some_type(rng: random.Random, name: str) -> QuantisedType:
    """Codes of any width, a scale and a zero point."""
    bits, group = rng.randint(1, 8), rng.choice((4, 8, 16, 32, 64))
    scale, zero = rng.choice(("f16", "f16", "bf16", "f32")), rng.randint(1, 8)
    few = group * rng.choice((1, 1, 2, 4))
    fields = {"q": (f"u{bits}", (1, 1)), "d": (scale, (1, few)), "z": (f"u{zero}", (1, group))}
    formula = rng.choice(FORMULAS).format(half=1 << bits - 1)
    return QuantisedType(name, fields, formula)


def table_type(rng: random.Random, does: str) -> QuantisedType:
    """A type of the table, with a rule where numbers are quantised."""
    found = types.type_named(rng.choice(RULED if does == "quantises" else (*RULED, *OTHERS)))
    assert isinstance(found, QuantisedType)
    return found


def widest(kind: QuantisedType) -> int:
    """The columns that share the parameters that the most share."""
    return max(f.group[1] or 1 for f in kind.fields.values())


def some_layout(rng: random.Random, kind: QuantisedType) -> str:
    """One of the table, planes with any digits, or records."""
    named = list(kind.layouts)
    if len(named) > 1 and rng.random() < 0.5:
        return rng.choice(named)
    grouped = all(f.group[0] == 1 and f.group[1] for f in kind.fields.values())
    if grouped and rng.random() < 0.5:
        return some_records(rng, kind)
    texts = []
    for name, f in kind.fields.items():
        letters = "r" if f.group[0] != 1 else "n", "g" if f.group[1] != 1 else "k"
        texts.append(f"{name}{bias(rng, f.dtype)}={planes(rng, f.dtype.bits, letters)}")
    return "; ".join(texts)


def bias(rng: random.Random, dtype: Any) -> str:
    """Codes are stored with a number added, now and then."""
    if dtype.kind not in ("unsigned", "signed") or dtype.bits > 8 or rng.random() < 0.75:
        return ""
    return f"+{rng.randint(1, (1 << dtype.bits) - 1)}" if dtype.bits > 1 else ""


def cuts(rng: random.Random, bits: int) -> list[int]:
    """The widths of one to three planes."""
    found = [bits]
    while found[-1] > 1 and rng.random() < 0.3 and len(found) < 3:
        first = rng.randint(1, found[-1] - 1)
        found[-1:] = [first, found[-1] - first]
    return found


def chain(rng: random.Random, letter: str, first: int, whole: int | None) -> list[tuple[str, int]]:
    """Digits of an index from a step on, and their sizes; ``whole`` values, or all."""
    step, left, found = 1, whole, []
    for size in rng.choices((2, 2, 3, 4, 8, 16), k=rng.randint(0, 3)):
        if left is not None:
            if left % size:
                continue
            left //= size
        found.append((f"{letter}{f'/{first * step}' if first * step > 1 else ''}%{size}", size))
        step *= size
    if left is None:
        found.append((f"{letter}/{first * step}", 0))
    elif left > 1:
        found.append((f"{letter}{f'/{first * step}' if first * step > 1 else ''}%{left}", left))
    return found


def planes(rng: random.Random, bits: int, letters: tuple[str, ...]) -> str:
    """A field in one to three planes, each with digits of its own."""
    widths = cuts(rng, bits)
    texts = []
    for width in widths:
        digits = [d for letter in letters for d, _ in chain(rng, letter, 1, None)]
        rng.shuffle(digits)
        texts.append(f"{width} " * (len(widths) > 1) + " ".join(digits))
    return " + ".join(texts)


def some_records(rng: random.Random, kind: QuantisedType) -> str:
    """Records of a few rows and as many columns as share parameters, or more."""
    columns, rows = widest(kind) * rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 1, 2, 4))
    at, texts = 0, []
    for name, f in rng.sample(list(kind.fields.items()), len(kind.fields)):
        parts, widths = [], cuts(rng, f.dtype.bits)
        for width in widths:
            digits = chain(rng, "k", f.group[1], columns // f.group[1]) + chain(rng, "n", 1, rows)
            rng.shuffle(digits)
            if f.dtype.bits >= 16 or rng.random() < 0.3:
                at = -(-at // 16) * 16
            parts.append(f"{width}" * (len(widths) > 1) + f"@{at}")
            stride = width
            for digit, size in digits:
                parts[-1] += f" {digit}:{stride}"
                stride *= size
            at += stride
        texts.append(f"{name}{bias(rng, f.dtype)}=" + " + ".join(parts))
    nbytes = -(-at // 8)
    nbytes += rng.choice((0, 0, 0, 1, 2)) if rng.random() < 0.5 else -nbytes % 4
    outer = [f"n/{rows}" if rows > 1 else "n", f"k/{columns}"]
    rng.shuffle(outer)
    return f"{{{' '.join(outer)} * {nbytes}; {'; '.join(texts)}}}"


def some_codes(rng: np.random.Generator, desc: QuantisedDesc) -> dict[str, Any]:
    """Any codes, but those of scales that are no finite numbers."""
    found = {}
    for name, f in desc.fields.items():
        t = f.dtype
        raw = f"u{t.nbytes}"
        if t.kind == "float" and t.bits >= 16:
            found[name] = rng.standard_normal(f.extents).astype(t.numpy).view(raw)
            continue
        codes = rng.integers(0, 1 << t.bits, f.extents, np.uint64).astype(raw)
        found[name] = codes & 0x77 if t.bits == 8 and t.kind in ("float", "table") else codes
    return found


def some_numbers(rng: np.random.Generator, desc: cf.MemoryDesc) -> Any:
    """Numbers of many magnitudes, zeros, ties, and what is none."""
    x = rng.standard_normal(desc.dims) * np.exp2(rng.integers(-12, 12, (*desc.dims[:-1], 1)))
    hard = rng.random(desc.dims)
    x = np.where(hard < 0.05, np.rint(x), x)
    x = np.where((hard > 0.95) & (rng.random(desc.dims[:-1]) < 0.5)[..., None], -0.0, x)
    if desc.dtype.name in ("f32", "f16", "f64", "bf16") and rng.random() < 0.2:
        x = np.where(hard == hard.max(), rng.choice((np.inf, -np.inf, np.nan)), x)
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        return cf.tensors.dtypes.convert(x, "f32", desc.dtype)


if __name__ == "__main__":
    main(Structure)
