"""Every choice of every search space moves the right bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clformats as cf
from clformats import records as tuned
from tests.choices_support import HURTING, sampled
from tests.device_support import check_reorder
from tests.tuned_support import ahead, record_of


def test_a_sample_of_choices_moves_the_right_bytes(stream: cf.Stream) -> None:
    tried = list(sampled(stream, 3, 1))
    assert len(tried) == 3 * len(HURTING)


def test_a_sample_of_choices_for_gpus_moves_the_right_bytes(as_gpu: cf.Stream) -> None:
    assert len(list(sampled(as_gpu, 2, 1))) == 2 * len(HURTING)


@pytest.mark.usefixtures("plans_for_cpus")
def test_baked_sizes_are_no_arguments(stream: cf.Stream) -> None:
    src, dst = HURTING[0]
    reorder = cf.Reorder(src, dst, stream.engine, tuned=cf.Choices(baked=True))
    assert "const Nest nest = {" in reorder.source
    assert "Nest nest," not in reorder.source
    assert "baked" in str(reorder.plan)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CLFORMATS_TUNED", str(tmp_path))
    tuned.forget()
    yield tmp_path
    tuned.forget()


def recorded(engine: cf.Engine, folder: Path, choices: cf.Choices, **changes: Any) -> None:
    """Store a record for the first pair, and forget what is known."""
    device = tuned.DeviceNames(*engine.names)
    record = record_of(*HURTING[0], choices, device, engine.traits, **changes)
    tuned.add(tuned.path_of(device, folder), record)
    tuned.forget()


@pytest.mark.usefixtures("plans_for_cpus")
def test_a_record_is_used_unless_the_user_has_other_wishes(stream: cf.Stream, folder: Path) -> None:
    src, dst = HURTING[0]
    recorded(stream.engine, folder, ahead(4))
    plan = check_reorder(src, dst, stream).plan
    assert plan.choices == ahead(4)
    assert f"  chosen  {ahead(4)}, 1.91 times as fast as the rules on 20" in str(plan)
    wishes: list[dict[str, Any]] = [
        {"tuned": False},
        {"tuned": ahead(8)},
        {"family": "generic"},
        {"attr": cf.Attr(src_scale=2.0)},
    ]
    for wish in wishes:
        other = cf.Reorder(src, dst, stream.engine, **wish).plan
        assert not other.record
        asked = cf.Choices(family="generic"), ahead(8)
        assert other.choices in (cf.Choices(), *asked)


@pytest.mark.usefixtures("plans_for_cpus")
def test_a_new_record_counts_for_the_next_reorder_of_the_process(
    stream: cf.Stream, folder: Path
) -> None:
    src, dst = HURTING[0]
    for lead in (4, 8):
        recorded(stream.engine, folder, ahead(lead))
        assert cf.Reorder(src, dst, stream.engine).plan.choices == ahead(lead)


def test_a_record_that_no_longer_fits_is_a_miss(stream: cf.Stream, folder: Path) -> None:
    src, dst = HURTING[0]
    recorded(stream.engine, folder, cf.Choices(family="subgroup"))
    with pytest.warns(cf.TunedWarning, match="of other kernels"):
        assert cf.Reorder(src, dst, stream.engine).plan.choices == cf.Choices()
    next(folder.iterdir()).unlink()
    recorded(stream.engine, folder, ahead(4), kernels="an older one")
    with pytest.warns(cf.TunedWarning, match="of other kernels"):
        assert cf.Reorder(src, dst, stream.engine).plan.choices == cf.Choices()


def test_a_group_is_no_larger_than_the_device_allows(stream: cf.Stream) -> None:
    dims = (32, 64, 32, 16)
    src, dst = cf.MemoryDesc(dims, "f32", "bfyx"), cf.MemoryDesc(dims, "f32", "byxf")
    choices = cf.Choices(local_size=1 << 16)
    made = check_reorder(src, dst, stream, family="generic", choices=choices)
    assert made.plan.choices.local_size == stream.engine.traits.group_size
