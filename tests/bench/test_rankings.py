"""The record of experiments: every row is whole, and what it names exists."""

from __future__ import annotations

from pathlib import Path

import pytest

import clformats as cf
from bench.ordering import measured, order
from bench.rankings import COLUMNS, DECISIONS, FILE, Ranking, rankings
from clformats import RUNTIME_DIM as UNKNOWN
from clformats.schedule.nest import why_illegal

ROWS = rankings()


def test_every_line_of_the_file_is_a_ranking() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    assert len(ROWS) == len(lines) - 1 > 200
    assert {line.count("\t") for line in lines} == {len(COLUMNS) - 1}
    assert len(set(lines)) == len(lines)


def _sized(desc: cf.MemoryDesc) -> cf.MemoryDesc:
    """The descriptor with a number in place of each size that was not recorded."""
    dims = [17 if n == UNKNOWN else n for n in desc.dims]
    return cf.MemoryDesc(dims, desc.dtype, desc.format)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.src} to {row.dst}")
def test_a_row_is_a_reorder_that_can_be_planned(row: Ranking) -> None:
    assert row.src.dims == row.dst.dims
    assert cf.make_plan(_sized(row.src), _sized(row.dst)).problem.nbytes
    assert 0 < row.ratio[0] <= row.ratio[1] < 30
    assert row.a != row.b


def test_every_decision_occurs() -> None:
    named = {(k, v) for row in ROWS for schedule in (row.a, row.b) for k, v in schedule.items()}
    assert named == {(k, v) for k, values in DECISIONS.items() for v in values}


def test_shares_give_the_range_of_the_ratio() -> None:
    [row] = [r for r in ROWS if str(r.src) == "u8:byxf:*x48x75x75"]
    assert (row.share_a, row.share_b) == ((1.0, 1.0), (0.85, 0.85))
    assert row.ratio == (1.0 / 0.85, 1.0 / 0.85)
    [wide] = [r for r in ROWS if str(r.src) == "f16:bfyx:*x256x28x28"]
    assert wide.ratio == (0.75 / 0.55, 0.9 / 0.4)


GOOD = (
    "f32:bfyx:*x3x4x5 -> f32:byxf:*x3x4x5",
    "stitch=on",
    "stitch=off",
    "0.9",
    "0.4..0.5",
    "",
    "a",
    "",
)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("problem", "f32:bfyx:*x3x4x5"),
        ("problem", "f32:bfyx:*x3x4x5 -> f32:nothing:*x3x4x5"),
        ("a", "stitch=perhaps"),
        ("a", "unknown=on"),
        ("share_a", "0"),
        ("share_b", "0.5..0.4"),
        ("share_b", ""),
        ("ratio", "1.1"),
        ("machine", ""),
    ],
)
def test_what_is_not_whole_is_refused(column: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "rankings.tsv"
    for line in (
        GOOD,
        tuple(text if c == column else v for c, v in zip(COLUMNS, GOOD, strict=True)),
    ):
        file.write_text("\n".join(map("\t".join, (COLUMNS, line))) + "\n")
        if line == GOOD:
            assert len(rankings(file)) == 1
    with pytest.raises(ValueError, match=r"got|expected|cannot|nothing"):
        rankings(file)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rankings.tsv"
    file.write_text("\t".join(COLUMNS[:-1]) + "\n")
    with pytest.raises(ValueError, match="columns"):
        rankings(file)


@pytest.mark.parametrize(
    ("processor", "machines", "vectors", "every"),
    [("Zen 3", 2, {32}, 1), ("Zen 4", 3, {32, 64}, 3), ("Zen 5", 7, {32, 64}, 3)],
)
def test_the_cost_model_orders_measured_schedules(
    processor: str, machines: int, vectors: set[int], every: int
) -> None:
    rows = [row for row in measured() if processor in row.machine][::every]
    assert len({row.machine for row in rows}) == machines
    assert {row.traits.vector_bytes for row in rows} == vectors
    assert all(not why_illegal(row.problem, s) for row in rows for s in row.seconds)
    found = order(rows)
    assert found.pairs > 1500
    assert found.right > 0.75
    assert found.regret < 1.18
