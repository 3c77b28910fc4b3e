"""The table of drivers: which were tried, and what people are told of them."""

from __future__ import annotations

from pathlib import Path

from clformats.doctor import drivers


def test_every_trial_is_of_a_runtime_of_the_table() -> None:
    names = [r.name for r in drivers.RUNTIMES]
    assert len(set(names)) == len(names)
    assert {t.runtime for t in drivers.TRIALS} <= set(names)


def test_the_page_has_the_table_of_the_library() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "drivers.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()]
    for t in drivers.TRIALS:
        assert [t.runtime, t.version, t.system, t.ran, t.fails, t.date] in rows
    for r in drivers.RUNTIMES:
        assert not r.why or [r.name, r.why] in rows
    assert sum(row[-1].startswith("2026-") for row in rows) == len(drivers.TRIALS)


def test_words_tell_whether_a_driver_was_tried() -> None:
    assert "tried on" in drivers.known("Portable Computing Language", "CPU", "3.1+debian")
    assert "no tests of this version" in drivers.known("rusticl", "GPU", "1.0")
    assert "in no row" in drivers.known("clvk", "GPU", "1.0")
