"""Programs of shuffles: that each store has its elements, whatever the arrangement."""

from __future__ import annotations

import random

import pytest

import clformats as cf
from clformats.shuffles.emission import in_order
from clformats.shuffles.pairs import paired
from clformats.shuffles.program import ZERO, ShuffleProgram, parsed
from clformats.shuffles.synthesis import Lanes, synthesise


def check(program: ShuffleProgram, loads: list[Lanes], stores: list[Lanes]) -> None:
    """What is stored is what is wanted, where what is not known is a wrong number."""
    given = [[-7 if e is None else e for e in load] for load in loads]
    for made, store in zip(program.run(given, zero=None), stores, strict=True):
        assert tuple(made[: len(store)]) == store
    assert parsed(str(program)) == program


def peak_of(program: ShuffleProgram) -> int:
    """How many values of a program are needed at once, at the most: those to be stored too."""
    steps = list(program.steps())
    last: dict[int, int] = {}
    for time, step in enumerate(steps):
        last.update(dict.fromkeys(_uses(program, step), time))
    live: set[int] = set()
    most = 0
    for time, step in enumerate(steps):
        uses = _uses(program, step)
        if step[0] == "op":
            # A result may take the place of an operand that is needed no more.
            live -= {v for v in uses if last[v] == time}
        if step[0] != "store":
            live.add(step[1][0])
        most = max(most, len(live))
        live -= {v for v in uses if last[v] == time}
    return most


def _uses(program: ShuffleProgram, step: tuple[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The values that a step needs."""
    what, numbers = step
    if what == "op":
        return program.ops[numbers[0] - program.loads].operands
    if what == "store":
        return tuple(v for k in numbers if (v := program.outputs[k]) != ZERO)
    return ()


def transposition(rows: int, columns: int) -> tuple[list[Lanes], list[Lanes]]:
    loads: list[Lanes] = [tuple(range(r * columns, (r + 1) * columns)) for r in range(rows)]
    return loads, [tuple(range(c, rows * columns, columns)) for c in range(columns)]


@pytest.mark.parametrize("count", [2, 4, 8, 16])
@pytest.mark.parametrize("nbytes", [1, 2, 4])
def test_a_transposition_is_a_butterfly(count: int, nbytes: int) -> None:
    loads, stores = transposition(count, count)
    program = synthesise(loads, stores, nbytes=nbytes)
    check(program, loads, stores)
    assert len(program.ops) == count * (count.bit_length() - 1)
    assert peak_of(program) == count + 1


@pytest.mark.parametrize(("rows", "columns", "shuffles"), [(8, 8, 12), (4, 8, 4), (8, 10, 19)])
def test_a_network_of_parts_has_no_more_shuffles_than_a_route(
    rows: int, columns: int, shuffles: int
) -> None:
    """Vectors of 16: a network turns the lanes of each load first, which a route need not."""
    loads, stores = transposition(rows, columns)
    wide: list[Lanes] = [(*load, *[None] * (16 - columns)) for load in loads]
    run = [e for store in stores for e in store]
    whole: list[Lanes] = [tuple(run[k : k + 16]) for k in range(0, len(run), 16)]
    program = synthesise(wide, whole, nbytes=4)
    check(program, wide, whole)
    assert len(program.ops) == shuffles


@pytest.mark.parametrize(("columns", "shuffles"), [(9, 47), (12, 52), (15, 63), (16, 64)])
@pytest.mark.parametrize("nbytes", [1, 2, 4])
def test_a_part_of_a_transposition_is_what_is_needed_of_it(
    columns: int, shuffles: int, nbytes: int
) -> None:
    """16 rows of 9 elements in vectors of 16: rows of 3x3 weights. Two patterns for each step."""
    loads, stores = transposition(16, columns)
    wide: list[Lanes] = [(*load, *[None] * (16 - columns)) for load in loads]
    program = synthesise(wide, stores, nbytes=nbytes)
    check(program, wide, stores)
    assert len(program.ops) == shuffles
    assert len({op.pattern for op in program.ops}) <= 2 * 4


def test_stores_in_orders_that_no_bits_describe() -> None:
    """As many elements as half of the lanes or more, in orders of their own."""
    r = random.Random(7)  # noqa: S311  # cases, not secrets
    for _ in range(50):
        rows, lanes = r.choice([2, 4, 8]), r.choice([4, 8])
        numbers = [*range(rows * lanes)]
        r.shuffle(numbers)
        wanted = r.randint(rows // 2, rows)
        stores: list[Lanes] = [tuple(numbers[k * lanes : (k + 1) * lanes]) for k in range(wanted)]
        kept = {e for store in stores for e in store}
        loads: list[Lanes] = [
            tuple(e if e in kept else None for e in range(k * lanes, (k + 1) * lanes))
            for k in range(rows)
        ]
        check(synthesise(loads, stores, nbytes=4), loads, stores)


def test_elements_lie_anywhere() -> None:
    draw = random.Random(5)  # noqa: S311
    for _ in range(200):
        lanes = draw.choice([2, 4, 8, 16])
        count = draw.randint(1, 6)
        elements = draw.sample(range(1000), count * lanes)
        loads: list[Lanes] = [
            tuple(draw.choice(elements) if draw.random() < 0.1 else e for e in elements[k::count])
            for k in range(count)
        ]
        have = sorted({e for load in loads for e in load if e is not None})
        stores: list[Lanes] = [
            tuple(None if draw.random() < 0.1 else draw.choice(have) for _ in range(lanes))
            for _ in range(draw.randint(1, 6))
        ]
        program = synthesise(loads, stores, nbytes=draw.choice([1, 2, 4]), together=2)
        check(program, loads, stores)


def test_copies_and_zeros_take_no_shuffle() -> None:
    loads: list[Lanes] = [(0, 1, None, 3), (4, 5, 6, 7)]
    stores: list[Lanes] = [(4, 5, 6, 7), (None,) * 4, (0, 1)]
    program = synthesise(loads, stores, nbytes=4)
    check(program, loads, stores)
    assert program.ops == ()
    assert program.outputs == (1, ZERO, 0)


def test_stores_come_in_order_where_that_needs_no_more_values() -> None:
    """16 rows of 49 elements become one run: most vectors are put together of two loads."""
    loads = [tuple(range(49 * row + k, 49 * row + k + 16)) for row in range(16)
             for k in (0, 16, 32, 33)]  # fmt: skip
    stores = [tuple(range(k, k + 16)) for k in range(0, 16 * 49, 16)]
    program = synthesise(loads, stores, nbytes=2)
    assert stored(program) == [*range(49)]
    assert peak_of(program) <= 4


def test_many_values_are_not_kept_for_the_sake_of_an_order() -> None:
    """A row of 4 vectors has one of each of 4 groups of loads, of which all are needed first."""
    loads = [tuple(100 * k + 4 * j + i for j in range(4) for i in range(4)) for k in range(16)]
    stores = [tuple(100 * k + 4 * j + i for k in range(first, first + 4) for i in range(4))
              for j in range(4) for first in (0, 4, 8, 12)]  # fmt: skip
    program = synthesise(loads, stores, nbytes=4)
    assert stored(program) != [*range(16)]
    assert sorted(stored(program)) == [*range(16)]
    assert peak_of(program) <= 6  # 11 in the order of lines


def test_a_line_of_loads_comes_after_the_one_before_it() -> None:
    """Also where others are shuffled: it does not wait for all of these."""
    program = in_order(parsed("2x4 1: 0&1:0.2 0&1:1.3 > 4 2 5 3"))
    assert stored(program) == [0, 1, 2, 3]
    steps = [*program.steps()]
    assert steps.index(("store", (1,))) < steps.index(("op", (5,)))


def stored(program: ShuffleProgram) -> list[int]:
    """The stores, in the order in which a kernel makes them."""
    return [k for what, numbers in program.steps() if what == "store" for k in numbers]


def test_what_no_load_has_is_refused() -> None:
    with pytest.raises(cf.InvalidArgument, match=r"elements \[9\]"):
        synthesise([(0, 1)], [(0, 9)], nbytes=4)


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_parts_that_are_alike_are_pairs(parts: int, together: int) -> None:
    rows, columns = transposition(16, 16)
    loads = [tuple(e + 256 * p for e in row if e is not None) for p in range(parts) for row in rows]
    tall = [tuple(e + 256 * p for e in c if e is not None) for p in range(parts) for c in columns]
    lines = [tall[16 * p + k] for k in range(16) for p in range(parts)]  # of all parts
    for stores, line in ((tall, together), (lines, parts)):
        program = synthesise(loads, stores, nbytes=1, together=line)
        found = paired(program)
        if parts % 2:
            assert found is None
            continue
        assert found is not None
        assert len(found.program.ops) == len(program.ops) // 2
        halves = [found.program.run([loads[both[k]] for both in found.loads]) for k in (0, 1)]
        for pair, both in enumerate(found.stores):
            assert [tuple(halves[k][pair]) for k in (0, 1)] == [stores[n] for n in both]
        steps = [numbers for what, numbers in found.steps() if what == "store"]
        assert sorted(steps) == [tuple(range(k, k + line)) for k in range(0, len(stores), line)]


def test_parts_that_differ_are_no_pairs() -> None:
    loads, stores = transposition(4, 4)
    turned = [tuple(e + 16 for e in s[::-1] if e is not None) for s in stores]
    more = [tuple(e + 16 for e in row if e is not None) for row in loads]
    assert paired(synthesise([*loads, *more], [*stores, *turned], nbytes=1)) is None
    zeros: list[Lanes] = [(0, None, 2, 3)]
    assert paired(synthesise(loads, zeros, nbytes=1)) is None


@pytest.mark.parametrize("text", ["", "4x2 1: 0&1:a > 2", "0&1:0.2 > 2"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(cf.InvalidArgument, match="expected a program"):
        parsed(text)
