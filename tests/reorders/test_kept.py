"""Plans and kernels kept on disk: they are what would be made, and a miss in every doubt."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import render
from clformats.problems.computation import from_attr, over_tensors
from clformats.problems.traits import Traits
from clformats.programs import cache
from clformats.programs.background import background
from clformats.recoding.decoding import decoding
from clformats.recoding.moving import moving
from clformats.reorders import kept, planning, works
from clformats.schedule import Request, plan_for
from clformats.tensors.rows import DType
from clformats.values.formula import parse
from tests.workload import reorders

CPU, GPU = Traits(), Traits(is_cpu=False)


def request(src: str, dst: str, traits: Traits = CPU, attr: cf.Attr | None = None) -> Request:
    a, b = cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst)
    return Request(a, b, traits, from_attr(attr or cf.Attr(), a, b))


ATTR = cf.Attr(src_scale=0.1, dst_zero_point=3, beta=0.5, expression="max(x, 0.25f)")
SUMS = cf.MemoryDesc((33, 17, 3, 3), "s8", "hwio", extra=cf.Extra(1, s8s8=True, asymmetric=True))
REQUESTS = [
    *(Request(src, dst, traits) for _, src, dst in reorders()[::97] for traits in (CPU, GPU)),
    request("f32:bfyx:2x17x5x4", "s8:b_fs_yx_fsv16:2x17x5x4", attr=ATTR),
    request("f32:oihw:33x17x3x3", str(SUMS)),
    request("s4:ab:30x21", "u8:ba:30x21"),
    request("f32:bfyx:2x17x5x4", "f32:bf8_xy16:2x17x5x4"),
    request("f16:image_2d_rgba:2x3x5x4", "f16:bfyx:2x3x5x4", GPU),
    request("f32:oiyx:17x5x3x3", "f32:winograd_2x3_s1_weights:17x5x3x4"),
    request("f32:ab:0x5", "f32:ba:0x5"),
    replace(request("f32:ab:30x21", "f32:ba:30x21"), choices=cf.Choices(baked=True)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept, "SETTLED_NS", -(10**18))  # however shortly ago files were edited
    monkeypatch.setattr(kept, "_written", [])
    kept.state.cache_clear()
    found = cache.cache_folder()
    assert found
    yield found
    kept.state.cache_clear()


def entries(folder: Path) -> list[Path]:
    return [*folder.glob(f"*{cache.PLAN}")]


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda r: f"{r.src} {r.dst} {r.traits.is_cpu}")
def test_what_is_found_is_what_would_be_made(
    asked: Request, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(asked)
    made = plan, render(plan)
    assert planning._by_rules(asked) == made
    monkeypatch.setattr(planning, "plan_for", None)  # must not be asked
    again = replace(asked, src=cf.MemoryDesc.parse(str(asked.src)))
    found = planning._by_rules(again)
    assert found == made
    assert str(found[0]) == str(plan)
    assert found[0].request is again
    assert len(entries(folder)) == 1


def test_what_a_problem_remembers_is_not_kept() -> None:
    """It is half of what there was to read, and nothing that a kernel's call needs."""
    asked = REQUESTS[0]
    plan, _ = planning._by_rules(asked)
    assert plan.problem.known
    found, _ = kept.find(asked)
    assert found == plan
    assert not found.problem.known


@dataclass(frozen=True)
class _Told:
    text: str


class _Heard(_Told):
    def __init__(self) -> None:
        super().__init__("heard")


@dataclass(frozen=True)
class _Counted(_Told):
    def __reduce__(self) -> tuple[object, ...]:
        return _Counted, (self.text + "!",)


def test_classes_that_say_how_they_are_made_are_kept_so() -> None:
    asked = REQUESTS[0]
    kept.keep(asked, (_Told("a"), _Heard(), _Counted("b")))
    assert kept.find(asked) == (_Told("a"), _Heard(), _Counted("b!"))


def never(*_: object) -> Any:
    pytest.fail("it was made before")


def rows(name: str, layout: str | None = None) -> cf.QuantisedDesc:
    desc: object = cf.MemoryDesc((64, 512), name, layout)
    assert isinstance(desc, cf.QuantisedDesc)
    return desc


@pytest.mark.parametrize("name", ["q4_0", "q4_K"])
def test_decodes_are_kept_too(name: str, folder: Path) -> None:
    src, dst = rows(name), cf.MemoryDesc((64, 512), "f16", "ba")
    made = works._kept(decoding, src, dst, CPU)
    assert made == decoding(src, dst, CPU)
    assert works._kept(never, rows(name), dst, CPU) == made
    (file,) = entries(folder)
    asked = rows(name, "plain"), dst, CPU
    other = kept._file(asked)
    assert other
    other.write_bytes(file.read_bytes())  # made for something else
    assert kept.find(asked) is None


def test_moves_of_planes_are_kept_too(folder: Path) -> None:
    asked = rows("q4_0"), rows("q4_0", "transposed")
    made = works._kept(moving, *asked)
    assert made == moving(*asked)
    assert works._kept(never, *asked) == made
    assert len(entries(folder)) == 1


def test_decodes_of_the_users_types_are_not_kept(folder: Path) -> None:
    cf.QuantisedType("mine_kept", {"q": ("u4", (1, 1)), "d": ("f16", (1, 32))}, "d * (q - 8)")
    src = rows("mine_kept")
    assert works._kept(decoding, src, cf.MemoryDesc((64, 512), "f16", "ab"), CPU).source
    assert not entries(folder)


def test_what_cannot_be_pickled_is_not_kept(folder: Path) -> None:
    kept.keep(REQUESTS[0], lambda: None)
    assert not entries(folder)


def test_each_request_has_an_entry_of_its_own() -> None:
    """Descriptors that are equal print their formats by other names, and so do plans."""
    one = request("f32:bfyx:2x17x5x4", "f32:byxf:2x17x5x4")
    others = [
        request("f32:abcd:2x17x5x4", "f32:byxf:2x17x5x4"),
        request("f32:bfyx:2x17x5x4", "f16:byxf:2x17x5x4"),
        request("f32:bfyx:2x17x5x4", "f32:byxf:2x17x5x4", attr=ATTR),
        replace(one, transform=False), replace(one, choices=cf.Choices(family="generic")),
        *(replace(one, traits=t) for t in (GPU, Traits(begin_bytes=4), Traits(streamed_bytes=5))),
    ]  # fmt: skip
    assert others[0] == one
    every = [*REQUESTS, one, *others]
    assert len({kept._file(asked) for asked in every}) == len(every)


def test_what_was_made_for_something_else_is_a_miss() -> None:
    """A copy of another entry, whole and readable."""
    one, other = REQUESTS[:2]
    made = planning._by_rules(one)
    files = [kept._file(asked) for asked in (one, other)]
    assert files[0]
    assert files[1]
    files[1].write_bytes(files[0].read_bytes())
    files[1].chmod(0o600)
    assert kept.find(one) == made
    assert kept.find(other) is None


def test_types_of_one_name_have_entries_of_their_own() -> None:
    values = [tuple(k * float(c) for c in range(16)) for k in (1, 2)]
    types = [DType("mine", 4, "float", np.dtype(np.float32), values=v) for v in values]
    one, other = (
        replace(REQUESTS[0], src=cf.MemoryDesc((8, 8), t, "ab"), dst=cf.MemoryDesc((8, 8), "f32"))
        for t in types
    )
    assert repr(one) == repr(other)
    assert kept._file(one) != kept._file(other)


def test_other_tensors_may_be_of_the_users_types() -> None:
    """A name of theirs says nothing in another process."""
    t = DType("mine", 4, "float", np.dtype(np.float32), values=tuple(map(float, range(16))))
    dst, formula = cf.MemoryDesc((8, 8), "f32", "ba"), parse("x + y", ("x", "y"))
    own = [(name, cf.MemoryDesc((8, 8), t, fmt)) for name, fmt in (("x", "ab"), ("y", "ba"))]
    moved, computation = over_tensors(formula, own, dst)
    asked = Request(moved, dst, CPU, computation)
    made = planning._by_rules(asked)
    assert kept.find(asked) == made


def test_what_was_planned_is_planned_again_when_more_is_known(folder: Path) -> None:
    asked, other = REQUESTS[0], replace(REQUESTS[2], traits=Traits(compute_units=3))
    for one in (asked, other):
        planning._by_rules(one)
    now = Traits(streamed_bytes=4 << 20)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(background, "ends", True)
        planning.plan_again(CPU, now)  # a process that ends has no time for it
    assert len(entries(folder)) == 2
    planning.plan_again(CPU, now)
    assert kept.find(replace(asked, traits=now))
    assert len(entries(folder)) == 3


def test_what_cannot_be_read_is_a_miss(folder: Path) -> None:
    asked = REQUESTS[0]
    made = planning._by_rules(asked)
    (file,) = entries(folder)
    right = file.read_bytes()
    changed = bytearray(right)
    changed[len(right) // 2] ^= 1
    file.write_bytes(bytes(changed))
    assert kept.find(asked) is None
    for held in (b"no pickle", pickle.dumps(made)[:-9], pickle.dumps((1, 2, 3)),
                 b"cno_such_module\nname\n."):  # fmt: skip
        cache.write_entry(file, held)
        assert kept.find(asked) is None
    assert planning._by_rules(asked) == made
    assert file.read_bytes() == right
    file.chmod(0o666)  # others could have written it
    assert kept.find(asked) is None


def test_nothing_is_kept_where_programs_are_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYOPENCL_NO_CACHE", "1")
    planning._by_rules(REQUESTS[0])
    assert not entries(folder)
    monkeypatch.delenv("PYOPENCL_NO_CACHE")
    folder.parent.mkdir(parents=True)
    folder.write_text("a file where the folder should be")
    planning._by_rules(REQUESTS[0])


def test_any_change_of_the_library_is_another_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state() -> str:
        kept.state.cache_clear()
        return kept.state()

    library = tmp_path / "library"
    module, template = library / "room" / "one.py", library / "room" / "templates" / "two.mako"
    template.parent.mkdir(parents=True)
    module.write_text("first")
    template.write_text("first")
    monkeypatch.setattr(kept, "_LIBRARY", library)
    states = [state()]
    assert state() == states[0]
    for file in (module, template):
        times = file.stat()
        file.write_text("other")  # of the same size, and with the same time
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        states.append(state())
    module.rename(library / "room" / "other.py")
    states.append(state())
    (library / "three.txt").write_text("new")
    states.append(state())
    assert len({*states}) == len(states)
    (library / "__pycache__").mkdir()
    (library / "__pycache__" / "one.pyc").write_text("compiled")
    assert state() == states[-1]
    lock = module.parent / ".#two.mako"
    lock.symlink_to("user@host.1")  # as editors do: what comes after it counts all the same
    assert state() == ""
    lock.unlink()
    assert state() == states[-1]
    monkeypatch.setattr(kept, "SETTLED_NS", 0)
    assert state() == ""  # what was changed after this process loaded the library
    monkeypatch.setattr(kept, "_LIBRARY", library / "one.zip")
    assert state() == ""


def test_the_oldest_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in REQUESTS[:5]:
        planning._by_rules(asked)
    for k, asked in enumerate(REQUESTS[:5]):
        file = kept._file(asked)
        assert file
        os.utime(file, ns=(k, k))
    monkeypatch.setattr(kept, "MOST_KEPT", 4)
    monkeypatch.setattr(kept, "MOST_WRITTEN", 2)
    monkeypatch.setattr(kept, "_written", [])  # as in the next process
    for asked in REQUESTS[5:9]:
        planning._by_rules(asked)
    left = [kept._file(asked) for asked in REQUESTS[3:7]]
    assert sorted(entries(folder)) == sorted(file for file in left if file)
