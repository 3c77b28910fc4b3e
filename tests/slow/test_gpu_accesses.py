"""Coalescing and bank conflicts of the real kernels for GPUs, counted without one.

The table of every case of the benchmark is recorded: a change of these kernels shows in it.
``UPDATE_GPU=1 pytest -m slow tests/slow/test_gpu_accesses.py`` writes it anew.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from bench.cases import CASES, ODDS, Case
from tests.accesses_support import (
    ACCESS,
    DESTINATION,
    LOCAL,
    SOURCE,
    Accesses,
    Cost,
    accesses,
    cost,
    group_share,
)
from tests.gpu_compilers_support import H100, lacking

needs_tools = pytest.mark.skipif(
    bool(lacking("clang", "libclc", "cc")), reason=lacking("clang", "libclc", "cc")
)
TABLE = Path(__file__).parents[1] / "data" / "gpu" / "accesses.tsv"
HEAD = ("case", "family", "load bytes", "load share", "load lines", "load group", "store bytes",
        "store share", "store lines", "store group", "local store", "local load")  # fmt: skip
ODD = 0.7
"""The least share of the sectors that a group touches, where sizes are odd; its neighbours use the
rest."""
EVEN = 0.85
"""Sectors that are used where sizes are even. A row of a tile may begin inside one."""
IN_PARTS = {
    *("im3_byxf_fsv16_u8_f16", "cv_bfyx_bfyx_f32_f16", "q_gptq_awq_u4"),
    *("q_ab_ab_f16_u4", "q_ab_ab_f32_u4", "q_ab_BA16b16a_u4_f16"),
    *(f"q_groups_{dst}_{t}_f16" for dst in ("ba", "BA16b16a") for t in ("u4", "s4")),
}
"""Three bytes of each pixel, one by one, and 32 or 64 bytes of each work-item as two or four
vectors: what one request leaves of a sector, the next one of the same work-item uses. Words of 8
bytes from which nibbles are taken are two of 4 here, and one in the makers' machine code."""


@dataclass(frozen=True)
class Measured:
    """What a case costs: its line in the table, and its costs by (memory, whether it is stored)."""

    row: tuple[str, ...]
    costs: dict[tuple[int, bool], Cost]
    groups: tuple[float, ...]


def measured(case: Case, folder: Path) -> Measured:
    """The line has the widest access, the share of sectors used, the lines of a request, and the
    share of groups; then the turns of the banks over the fewest."""
    plan = cf.make_plan(*case.descriptors(), H100)
    if plan.family == "generic":
        pytest.skip("element by element: what work-items in step touch is not promised")
    found = accesses(plan, folder)
    assert not len(found[(found["memory"] == SOURCE) & (found["stores"] == 1)])
    ways = [(SOURCE, False), (DESTINATION, True), (LOCAL, True), (LOCAL, False)]
    costs = {way: cost(found, way[0], stores=way[1]) for way in ways}
    cells, groups = [case.name, plan.family], []
    for way in ways[:2]:
        one, share = costs[way], group_share(found, way[0], stores=way[1])
        lines = one.lines / one.requests
        cells += [str(one.width), f"{one.efficiency:.2f}", f"{lines:.1f}", f"{share:.2f}"]
        groups.append(share)
    cells += [f"{costs[way].conflict:.2f}" for way in ways[2:]]
    return Measured(tuple(cells), costs, tuple(groups))


def recorded() -> dict[str, tuple[str, ...]]:
    lines = TABLE.read_text().splitlines()[1:] if TABLE.exists() else []
    return {line.split("\t")[0]: tuple(line.split("\t")) for line in lines}


@needs_tools
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_requests_use_what_they_touch(case: Case, tmp_path: Path) -> None:
    one = measured(case, tmp_path)
    found, costs = one.row, one.costs
    if os.environ.get("UPDATE_GPU"):
        rows = {**recorded(), case.name: found}
        text = ["\t".join(line) for line in (HEAD, *(rows[k] for k in sorted(rows)))]
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text("\n".join(text) + "\n")
    assert recorded().get(case.name) == found, dict(zip(HEAD, found, strict=True))
    load, store = costs[SOURCE, False], costs[DESTINATION, True]
    if case.group != ODDS and not case.name.startswith("d5_odd"):
        assert store.efficiency >= EVEN
        assert case.name in IN_PARTS or load.efficiency >= EVEN
    assert min(one.groups) >= (ODD if "odd" in case.name else EVEN)
    # Vectors are stored whole, but those of blocks of 63 by single elements.
    assert costs[LOCAL, True].conflict <= (2.2 if case.name.startswith("uneven_63") else 2)


@needs_tools
def test_every_element_is_accessed_once(tmp_path: Path) -> None:
    """So what is counted is all that there is, and the program ran the real kernel."""
    pair = cf.MemoryDesc.parse("f16:bfyx:2x64x16x24"), cf.MemoryDesc.parse("f16:byxf:2x64x16x24")
    plan = cf.make_plan(*pair, H100)
    found = accesses(plan, tmp_path, groups=1 << 20)
    for memory, stores, desc in ((SOURCE, 0, pair[0]), (DESTINATION, 1, pair[1])):
        mine = found[(found["memory"] == memory) & (found["stores"] == stores)]
        touched = np.zeros(desc.nbytes, int)
        for one in mine:
            touched[int(one["at"]) : int(one["at"] + one["bytes"])] += 1
        assert (touched == 1).all()


def made_up(*places: tuple[int, int], nbytes: int = 4, memory: int = SOURCE) -> Accesses:
    """One load for each (work-item, place)."""
    found = np.zeros(len(places), ACCESS)
    found["item"], found["at"] = zip(*places, strict=True)
    found["bytes"], found["memory"] = nbytes, memory
    return found


def test_requests_are_of_work_items_in_step() -> None:
    side_by_side = made_up(*((k, 4 * k) for k in range(64)))
    whole = cost(side_by_side, SOURCE, stores=False)
    assert whole == Cost(4, 2, 256, 8, 2, 0, 0)
    assert whole.efficiency == 1
    assert cost(side_by_side, SOURCE, stores=False, step=64).requests == 1
    apart = cost(made_up(*((k, 128 * k) for k in range(32))), SOURCE, stores=False)
    assert apart == Cost(4, 1, 128, 32, 32, 0, 0)
    assert apart.efficiency == 1 / 8
    assert cost(side_by_side, DESTINATION, stores=True) == Cost()
    # The second time that an instruction runs is another request.
    twice = made_up(*((k % 32, 4 * k) for k in range(64)))
    assert cost(twice, SOURCE, stores=False).requests == 2


def test_an_access_across_two_sectors_touches_both() -> None:
    one = cost(made_up((0, 24), nbytes=16), SOURCE, stores=False)
    assert one == Cost(16, 1, 16, 2, 1, 0, 0)


@pytest.mark.parametrize(
    ("pitch", "nbytes", "turns", "fewest"),
    [
        (4, 4, 1, 1),
        (8, 4, 2, 1),
        (128, 4, 32, 1),
        (132, 4, 1, 1),
        (0, 4, 1, 1),  # one word for all
        (16, 16, 4, 4),
        (32, 16, 8, 4),
        (8, 8, 2, 2),
        (32, 32, 16, 8),  # as two accesses of 16
        (1, 1, 1, 1),  # four work-items share a word
    ],
)
def test_turns_of_the_banks(pitch: int, nbytes: int, turns: int, fewest: int) -> None:
    places = [(k, pitch * k) for k in range(32)]
    found = cost(made_up(*places, nbytes=nbytes, memory=LOCAL), LOCAL, stores=False)
    assert (found.turns, found.fewest) == (turns, fewest)
