"""Elements that share bytes go as words, which trade some of them: GPTQ's order, AWQ's, any."""

from __future__ import annotations

import os
import random
from itertools import permutations

import numpy as np
import pytest

import clformats as cf
from clformats.problems.computation import from_attr
from clformats.problems.refine import problem
from clformats.problems.traits import DEFAULT
from clformats.problems.words import in_words, in_words_of_a_side
from clformats.schedule.scheduled import as_scheduled
from clformats.schedule.search import ranked
from clformats.tensors.dtypes import as_dtype
from clformats.values.groups import counts
from tests.device_support import check_reorder

D = cf.MemoryDesc
ORDERS = {"gptq": "Abcd8a", "awq": "abdc", "plain": "abcd", "transposed": "bcda"}
"""Of weights (k, n), by the digits k, n / 8, n / 2 % 4 and n % 2."""
PLAIN = ("bfyx", "byxf", "yxfb", "abdc", "acbd", "dcab")
COUNT = int(os.environ.get("CLFORMATS_WORDS", "40"))
"""How many structures of random words; four sizes of each."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("src", "dst"), [*permutations(ORDERS.values(), 2)])
def test_orders_of_packed_weights(src: str, dst: str, stream: cf.Stream) -> None:
    """Each as words of 32 bits, whatever the sizes."""
    for k, n8 in ((64, 32), (40, 18), (136, 5), (8, 1)):
        a, b = (D((k, n8, 4, 2), "u4", fmt) for fmt in (src, dst))
        words = in_words(problem(a, b), 64)
        assert words.word
        assert words.word.bits == 32
        check_reorder(a, b, stream)


def test_words_are_no_longer_than_memory_is_aligned() -> None:
    a, b = (D((64, 64), "u4", fmt) for fmt in ("ab", "ba"))
    found = [in_words(problem(a, b), n).word for n in (64, 4, 2, 1)]
    assert [w.nbytes for w in found if w] == [4, 4, 2, 1]
    assert in_words(problem(a, D((64, 64), "s4", "ba")), 64).word is None


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(COUNT))
def test_random_words(seed: int, stream: cf.Stream) -> None:
    """Blocks of two to 32 in any order, sizes that fill them and sizes that do not."""
    r = random.Random(seed)  # noqa: S311  # formats, not secrets
    dtype = r.choice(["u4", "s4"])
    tags = [_tag(r), _tag(r)]
    unit = r.choice([2, 8, 8, 16])
    for _ in range(4):
        dims = [r.choice([1, 2, 3, 5, 8, 12, 17]) * r.choice([1, unit, unit]) for _ in "abc"]
        pads = [
            [(0, r.choice([0, unit])) for _ in dims] if r.random() < 0.2 else None for _ in tags
        ]
        try:
            a, b = (D(dims, dtype, t, padding=p) for t, p in zip(tags, pads, strict=True))
            check_reorder(a, b, stream, seed=seed, front=r.choice([0, 8, 16]))
        except cf.Unsupported as error:
            assert error.code == "ODD_NIBBLES"  # noqa: PT017  # some sizes cannot be written
        except cf.InvalidDescriptor:
            continue


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(COUNT))
def test_random_activations_as_large_ones_are_stored(seed: int, streaming: cf.Stream) -> None:
    """Past the cache, in whole lines or by line buffers."""
    r = random.Random(seed)  # noqa: S311  # sizes, not secrets
    formats = [*PLAIN, "b_fs_yx_fsv4", "b_fs_yx_fsv16", "b_fs_yx_fsv32", "bs_fs_yx_bsv16_fsv16"]
    for _ in range(6):
        dtype, (src, dst) = r.choice(["s4", "u4"]), r.sample(formats, 2)
        image = r.choice([1, 2, 8, 14]), r.choice([2, 6, 7, 14, 16, 28, 36])
        dims = r.choice([1, 3, 16, 33]), r.choice([16, 20, 32, 72, 96]), *image
        try:
            check_reorder(D(dims, dtype, src), D(dims, dtype, dst), streaming, seed=seed)
        except cf.Unsupported as error:
            assert error.code == "ODD_NIBBLES"  # noqa: PT017  # some sizes cannot be written


@pytest.mark.parametrize(("dst", "dims"), [
    ("b_fs_yx_fsv32", (33, 72, 1, 36)), ("byxf", (3, 32, 8, 7)), ("b_fs_yx_fsv4", (8, 8, 1, 56)),
])  # fmt: skip
def test_rows_of_exchanged_elements_do_not_wait(
    dst: str, dims: tuple[int, ...], streaming: cf.Stream
) -> None:
    """A line buffer stored parts of lines that it never got."""
    check_reorder(D(dims, "s4", "bfyx"), D(dims, "s4", dst), streaming, seed=1)


@pytest.mark.parametrize("dtype", ["s4", "u4"])
def test_pairs_of_elements_that_share_bytes_are_no_whole_lines(
    dtype: str, streaming: cf.Stream
) -> None:
    """Such a line was stored where its number of elements, taken for an address, pointed to."""
    dims = (16, 64, 5, 28)
    src, dst = D(dims, dtype, "abdc"), D(dims, dtype, "fs_b_yx_fsv32")
    check_reorder(src, dst, streaming, seed=1)


@pytest.mark.parametrize(("dtype", "columns", "together"), [
    ("u8", 4096, 4), ("u8", 12288, 4), ("u8", 4160, 1), ("u8", 2048, 1), ("u8", 6144, 1),
    ("f16", 2048, 2), ("bf16", 4096, 2), ("f16", 3072, 1), ("f32", 4096, 1),
])  # fmt: skip
def test_bytes_of_rows_in_one_set_of_the_cache_go_as_words(
    dtype: str, columns: int, together: int
) -> None:
    a, b = (D((256, columns), dtype, fmt) for fmt in ("ab", "ba"))
    p = as_scheduled(problem(a, b), 64)
    assert (p.word.nbytes // a.dtype.nbytes if p.word else 1) == together
    assert len(p.exchanges) == together.bit_length() - 1


@pytest.mark.parametrize(("dtype", "columns", "held"), [
    ("f16", 4096, 4), ("bf16", 8192, 4), ("f16", 4160, 1), ("f32", 4096, 1), ("s8", 4096, 1),
])  # fmt: skip
def test_bytes_of_such_rows_are_words_of_the_source_where_each_gets_two(
    dtype: str, columns: int, held: int
) -> None:
    p = as_scheduled(problem(D((256, columns), "u8", "ab"), D((256, columns), dtype, "ba")), 64)
    assert (p.held("src"), p.held("dst")) == (held, 1)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(COUNT))
def test_random_bytes_of_rows_in_one_set_of_the_cache(seed: int, stream: cf.Stream) -> None:
    """Rows and planes of whole pages, into blocks that they fill and into others."""
    r = random.Random(seed)  # noqa: S311  # formats, not secrets
    dtype = r.choice(["s8", "u8", "f8_e4m3", "f16", "bf16"])
    a, b = r.choice([1, 2, 3, 8, 17, 20, 64, 100, 132]), 4096 * r.choice([1, 1, 2])
    formats = ["ba", "Ba4b", "AB16b16a", "BA16a16b", "BA32b4a", "BA4b32a", "BA16b64a", "Ab32a"]
    padding = [(0, r.choice([0, 4, 16])), (0, 0)]
    src = D((a, b), dtype, r.choice(["ab", "ab", "Ab4a"]))
    stored = r.choice([dtype, "f16", "bf16"]) if src.dtype.bits == 8 else dtype
    dst = D((a, b), stored, r.choice(formats), padding=padding)
    scales = np.array([r.choice([0.5, 1.0, 2.0]) for _ in range(a)], np.float32)
    attr = r.choice([None, cf.Attr(src_scale=(scales, 1))]) if stored != dtype else None
    check_reorder(src, dst, stream, seed=seed, attr=attr, front=r.choice([0, 0, 1, 2, 4, 64]))


@pytest.mark.parametrize(("dtype", "channels", "word", "cut"), [
    ("u8", 17, 4, 4), ("u8", 3, 4, 4), ("u8", 18, 4, 2), ("u8", 20, 4, 1), ("f16", 17, 4, 2),
    ("f16", 18, 4, 1), ("f32", 17, None, 1),
])  # fmt: skip
def test_channels_that_fill_no_word_are_cut_from_it(
    dtype: str, channels: int, word: int | None, cut: int
) -> None:
    a, b = (D((2, channels, 5, 7), dtype, fmt) for fmt in ("nChw8c", "b_fs_yx_fsv16"))
    p = as_scheduled(problem(a, b), 64)
    assert p.word == (as_dtype({4: "f32"}[word]) if word else None)
    assert [g.word for g in p.guards] == [cut]
    assert [g.word for g in in_words(problem(a, b), 64).guards] == [1]


def test_no_word_is_read_beyond_the_end_of_memory() -> None:
    """Rows of 17 that begin every 20 elements: the last one ends after its first element."""
    strides = (20 * 35, 1, 20 * 7, 20)
    src = D((2, 17, 5, 7), "u8", strides=strides)
    dst = D((2, 17, 5, 7), "u8", "acdB4b")
    assert as_scheduled(problem(src, dst), 64).word is None


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(COUNT))
def test_random_words_that_are_cut(seed: int, stream: cf.Stream) -> None:
    """Blocks that a dimension does not fill, with whatever the source has in its padding."""
    r = random.Random(seed)  # noqa: S311  # formats, not secrets
    dtype = r.choice(["u8", "s8", "f16", "bf16", "s4"])
    formats = ["Abc4a", "Abc8a", "Abc16a", "bAc8a", "bcA32a", "ABc4b16a", "BAc16b16a", "ABc2b4a"]
    for _ in range(4):
        dims = [r.randrange(1, 40), r.choice([1, 2, 7, 16, 19]), r.choice([1, 5, 33])]
        pads = [[(r.choice([0, 0, 4, 3]), r.choice([0, 0, 5])), (0, 0), (0, 0)] for _ in "ab"]
        try:
            a, b = (D(dims, dtype, r.choice(formats), padding=p) for p in pads)
            check_reorder(a, b, stream, seed=seed, front=r.choice([0, 0, 4, 8, 64]))
        except cf.Unsupported as error:
            assert error.code == "ODD_NIBBLES"  # noqa: PT017  # some sizes cannot be written
        except cf.InvalidDescriptor:
            continue


def test_words_of_a_side_are_taken_apart_or_put_together() -> None:
    """Eight of b in each: in the kernel's loop, but those that are in one line of 64 bytes."""
    src = D((64, 64), "u4", "ab")
    for dtype, fmt, rolled in (
        ("f16", "ba", [8]),
        ("f16", "BA16b16a", [4]),
        ("s8", "BA16b16a", [2]),
    ):
        p = in_words_of_a_side(problem(src, D((64, 64), dtype, fmt)), 64)
        assert [str(t) for t in p.dtypes] == ["f32", dtype]
        assert [p.nodes[k].size.value for k in p.rolled] == rolled
        assert p.held("src") == 8
    for dst in (D((64, 64), "f16", "ab"), D((64, 64), "s4", "ba")):  # lanes of one word; no bytes
        assert not in_words_of_a_side(problem(src, dst), 64).inside
    packed = in_words_of_a_side(problem(D((64, 64), "f16", "ba"), src), 64)
    assert [str(t) for t in packed.dtypes] == ["f16", "f32"]
    assert packed.held("dst") == 8
    p = problem(src, D((64, 64), "f16", "ba"))
    assert [in_words_of_a_side(p, n).held("src") for n in (4, 2, 1)] == [8, 4, 2]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(COUNT))
def test_random_words_of_a_side(seed: int, stream: cf.Stream) -> None:
    """To and from types of whole bytes, with groups and without, by any of the schedules."""
    r = random.Random(seed)  # noqa: S311  # formats, not secrets
    dtype, other = (r.choice(t.split()) for t in ("u4 s4 u2 f4_e2m1", "f16 f16 f32 s8 bf16"))
    src, dst = r.choice(["abc", "acb", "Abc8a", "aCb8c", _tag(r)]), _tag(r)
    group = r.choice([None, (1, 1, 8), (1, 16, 1), (1, 12, 1), (1, None, 32)])
    back = r.random() < 0.4
    for _ in range(4):
        dims = (
            r.choice([1, 3, 16]),
            *(r.choice([1, 2, 3, 5, 8, 12, 17, 33]) * r.choice([1, 4, 8, 16]) for _ in "bc"),
        )
        attr = cf.Attr()
        if group and not back:
            values = np.random.default_rng(seed).integers(1, 9, counts(dims, group))
            scale, zero = cf.Grouped(values / 4, group), cf.Grouped(values % 3, group)
            attr = cf.Attr(src_scale=scale, src_zero_point=zero)
        a, b = D(dims, dtype, src), D(dims, other, dst)
        a, b = (b, a) if back else (a, b)
        p = as_scheduled(problem(a, b, from_attr(attr, a, b)), 64)
        chosen = cf.Choices(schedule=str(r.choice(ranked(p, DEFAULT))))
        check_reorder(a, b, stream, seed=seed, front=r.choice([0, 8]), attr=attr, choices=chosen)


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize("dtype", ["u4", "s4"])
def test_a_vector_of_several_elements_of_words(dtype: str, stream: cf.Stream) -> None:
    """Rows of 17 follow each other: 16 lanes have the end of one and the beginning of the next."""
    src, dst = D((3, 17, 24), dtype, "abc"), D((3, 17, 24), "bf16", "acb")
    attr = cf.Attr(src_scale=cf.Grouped(np.ones((3, 2, 24)) / 2, (1, 16, 1)))
    chosen = cf.Choices(schedule="tile b3 c4 d2 e2 f16 of 16 | a | ahead 0 | ordinary")
    source = check_reorder(src, dst, stream, attr=attr, choices=chosen).source
    assert "(uint16)(0, 4, 4, " in source or "(uint16)(28, 24, 24, " in source


def _tag(r: random.Random) -> str:
    letters = r.sample("abc", 3)
    blocks = [(r.choice([2, 4, 8, 8, 16, 32]), x)
              for x in r.sample("abc", r.choice([0, 1, 1, 2, 3]))]  # fmt: skip
    split = {x for _, x in blocks}
    outer = "".join(x.upper() if x in split else x for x in letters)
    return outer + "".join(f"{n}{x}" for n, x in blocks)


def test_tiles_beyond_what_a_destination_has_store_whole_bytes(stream: cf.Stream) -> None:
    """Of a block of 16 there is one: its other places are those of the next loop."""
    dst = D.parse("u4:dbca:1x100x19x1:strides=1x19x1x1901")
    check_reorder(D((1, 100, 19, 1), "f32", "os_is_yx_osv16_isv4"), dst, stream)
