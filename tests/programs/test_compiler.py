"""What compilers of devices are told: by the table of drivers, or by asking the compiler."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clformats as cf
from clformats.doctor import drivers, probe
from clformats.opencl import opencl, places
from clformats.programs import compiler, outcomes


@pytest.fixture
def stranger(engine: cf.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A device of a platform that is in no row; its driver's answers are kept in ``tmp_path``."""
    monkeypatch.setattr(compiler, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(compiler, "places", lambda: SimpleNamespace(get=lambda _: (5, 7)))
    monkeypatch.setattr(outcomes, "_known", {})
    return lambda: SimpleNamespace(
        platform=SimpleNamespace(vendor="Google", name="clvk", version="1"),
        type=opencl().device_type.GPU, vendor="a maker", name="a GPU", version="OpenCL 3.0",
        driver_version="7",
    )  # fmt: skip


class Asked:
    """A process that answers, and how often it was asked for which device."""

    def __init__(self, answer: bool) -> None:
        self.answer, self.places = answer, list[tuple[int, int]]()

    def __call__(self, *place: int) -> bool:
        self.places.append((place[0], place[1]))
        return self.answer


@pytest.mark.parametrize("works", [False, True])
def test_a_runtime_that_nobody_tried_is_asked_once(
    stranger: Any, monkeypatch: pytest.MonkeyPatch, *, works: bool
) -> None:
    asked = Asked(works)
    monkeypatch.setattr(compiler, "builtins_work", asked)
    told = []
    for _ in range(3):  # as if by three processes
        outcomes._known.clear()
        told.append(compiler.options(_as_device(stranger())))
    assert told == [() if works else (drivers.PORTABLE,)] * 3
    assert asked.places == [(5, 7)]


def _as_device(of: Any) -> Any:
    """The same facts, as another object that can be hashed."""
    return type("Device", (), vars(of))()


def test_an_answer_that_was_damaged_is_asked_for_again(
    stranger: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = Asked(answer=True)
    monkeypatch.setattr(compiler, "builtins_work", asked)
    compiler.options(_as_device(stranger()))
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"\xff\x00")
    outcomes._known.clear()
    assert compiler.options(_as_device(stranger())) == ()
    assert len(asked.places) == 2


def test_nothing_is_asked_where_no_number_finds_the_device(
    stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a device, which another process cannot name: portable kernels run everywhere."""
    monkeypatch.setattr(compiler, "places", dict)
    monkeypatch.setattr(compiler, "builtins_work", None)
    assert compiler.options(_as_device(stranger())) == (drivers.PORTABLE,)


def test_a_process_of_its_own_finds_what_the_table_says() -> None:
    """Of each device here; where the compiler ends that process, the table says portable."""
    for device in cf.devices():
        kind = "CPU" if device.type & opencl().device_type.CPU else "GPU"
        row = drivers.runtime_of(device.platform.name, kind)
        place = places().get(device)
        if row is None or row.name == "Oclgrind" or place is None:
            continue
        assert probe.builtins_work(*place) == (drivers.PORTABLE not in row.options), row.name


def test_a_device_is_found_by_the_numbers_of_its_platform_and_its_own(engine: cf.Engine) -> None:
    place = places().get(engine.device)
    assert place
    assert opencl().get_platforms()[place[0]].get_devices()[place[1]] == engine.device


def test_the_portable_path_gives_the_same_bytes(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With shuffles, edges, stores past the cache: as a driver without the functions runs them."""
    from tests.device_support import check_reorder

    monkeypatch.setattr(compiler, "options", lambda _: (drivers.PORTABLE,))
    stream = cf.Stream(cf.Engine(device=engine.device))
    assert drivers.PORTABLE in stream.engine._options
    for src, dst, types in (
        ("abcd", "aBcd16b", ("f32", "f32")),
        ("acdb", "aBcd8b", ("u8", "f16")),
        ("ABcd16b16a", "abcd", ("s8", "s8")),
    ):
        dims = (17, 33, 3, 5)
        first, second = cf.MemoryDesc(dims, types[0], src), cf.MemoryDesc(dims, types[1], dst)
        check_reorder(first, second, stream, seed=3)


def test_a_compiler_that_ends_its_process_has_no_such_functions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "dies.py"
    program.write_text("import os; os.abort()")
    monkeypatch.setattr(probe, "__file__", str(program))
    assert not probe.builtins_work(0, 0)
