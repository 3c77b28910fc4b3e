"""`cf.transfer`: every way between host and devices gives the bytes of one reorder, no others."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import clformats as cf
from clformats.runtime import unified
from clformats.runtime.staging import Staging
from clformats.transfers.ends import Wrapped
from clformats.transfers.hop import Hop
from clformats.transfers.route import _Route
from tests.device_support import (
    CANARY,
    check_bytes,
    expected,
    guarded,
    holding,
    memory_of,
    moved,
)
from tests.support import dirty_pack, random_values, same_bytes

pytestmark = pytest.mark.sampled(12)

D = cf.MemoryDesc
ROOT = Path(__file__).resolve().parents[2]
FRONT = 5

PAIRS = [
    # Any two; blocks and element types on either side; strides with gaps; padding; fused; regions.
    (D((3, 35, 5, 9), "f32", "bfyx"), D((3, 35, 5, 9), "f16", "b_fs_yx_fsv16")),
    (D((1, 67, 5, 3), "s8", "b_fs_yx_fsv32"), D((1, 67, 5, 3), "f32", "byxf")),
    (D((5, 7, 3), "f32", strides=(40, 1, 11)), D((5, 7, 3), "s32", strides=(1, 25, 6))),
    (
        D((2, 17, 5, 4), "bf16", "bfyx", padding=((0, 0), (1, 2), (1, 1), (2, 0))),
        D((2, 17, 5, 4), "f32", "b_fs_yx_fsv16", padding=((0, 0), (0, 0), (1, 1), (1, 2))),
    ),
    (D((37, 19, 3, 2), "f32", "oiyx"), D((37, 19, 3, 2), "f32", "os_i_yxs_osv4_yxsv4")),
    (
        D((6, 40, 5), "u8", "aBc16b").submemory((4, 24, 3), (1, 16, 2)),
        D((6, 64, 5), "f32", "aBc32b").submemory((4, 24, 3), (2, 32, 1)),
    ),
    (
        D((9, 32), "f32", "aB16b"),
        D((9, 80), "f16", "aB16b").submemory((9, 32), (0, 16)),
    ),
    (D((7, 4, 5), "f32", strides=(20, 0, 1)), D((7, 4, 5), "f64", "acb")),
    (D((1, 1), "f32", "ab"), D((1, 1), "f16", "aB16b")),
]
WAYS = ["host-host", "host-device", "device-host", "device-device", "device-other"]


@pytest.fixture(scope="module")
def other() -> cf.Engine:
    """The same device in a context of its own, which shares no memory with the first."""
    import pyopencl as cl

    device = cf.Engine(os.environ.get("CLFORMATS_TEST_DEVICE", "pocl")).device
    return cf.Engine(context=cl.Context([device]))


@pytest.fixture(params=["shared", "copied"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of device, whatever this one is."""
    name: str = request.param
    if name == "copied":
        monkeypatch.setattr(unified, "shares_host_memory", lambda device: False)
    return name


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device with memory of its own."""
    monkeypatch.setattr(unified, "shares_host_memory", lambda device: False)


class Side:
    """One end of a transfer, full of 0xA5 or of elements amid garbage, with a canary behind."""

    def __init__(self, desc: cf.MemoryDesc, engine: cf.Engine | None, flat: Any = None) -> None:
        self.memory: cf.Memory | cf.HostMemory
        if engine is None:
            item = desc.dtype.nbytes
            self.bytes = np.full(cf.host.packing.flat_size(desc) * item + CANARY, 0xA5, np.uint8)
            self.memory = cf.HostMemory(desc, self.bytes.view(desc.dtype.raw))
            if flat is not None:
                self.memory.array[:] = flat
        else:
            self.memory = guarded(desc, engine) if flat is None else memory_of(flat, desc, engine)

    def check(self, want: Any, why: str) -> None:
        if isinstance(self.memory, cf.Memory):
            check_bytes(self.memory, want, why)
        else:
            wrong = np.flatnonzero(self.bytes != want)
            assert not wrong.size, f"{wrong.size} bytes differ, the first at {wrong[:8]}; {why}"


def check_transfer(
    src: cf.MemoryDesc, dst: cf.MemoryDesc, engines: Any, engine: cf.Engine, **options: Any
) -> None:
    src, dst = moved(src, FRONT), moved(dst, FRONT)
    rng = np.random.default_rng(6)
    array = random_values(rng, src.dims, src.dtype.name)
    if 0 in src.strides:
        array[:] = array[:, :1]
    flat = dirty_pack(rng, array, src)
    source, target = Side(src, engines[0], flat), Side(dst, engines[1])
    if engines == (None, None):
        options["engine"] = engine
    cf.transfer(source.memory, target.memory, **options)
    target.check(expected(array, src, dst), f"{src} -> {dst} with {options}")
    if isinstance(source.memory, cf.HostMemory):
        assert same_bytes(source.memory.array, flat)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_every_way_gives_the_same_bytes(
    pair: Any, way: str, kind: str, engine: cf.Engine, other: cf.Engine
) -> None:
    src, dst = pair
    where = {"host": None, "device": engine, "other": other}
    first, second = way.split("-")
    engines = where[first], where[second]
    check_transfer(src, dst, engines, engine)
    whole = src.nbytes + dst.nbytes
    cut = False
    for share in (3, 20):
        try:
            check_transfer(src, dst, engines, engine, piece_nbytes=max(1, whole // share))
            cut = True
        except cf.Unsupported as refusal:
            assert refusal.code == "PIECE_SIZE"  # noqa: PT017
    assert cut or src.nelems == 1


def test_numpy_arrays_as_they_lie(kind: str, engine: cf.Engine) -> None:
    values = np.random.default_rng(1).standard_normal((3, 17, 5, 4)).astype(np.float32)
    device = cf.Memory(D(values.shape, "f16", "b_fs_yx_fsv16"), engine)
    for array in (values, np.asfortranarray(values), values.transpose(2, 0, 3, 1)):
        memory = cf.Memory(D(array.shape, "f16", "abcd" if array.shape[0] != 3 else "aBcd16b"),
                           engine)  # fmt: skip
        cf.transfer(array, memory)
        assert (cf.to_numpy(memory) == array.astype(np.float16)).all()
    cf.transfer(values, device)
    for back in (np.empty_like(values), np.empty(values.shape, np.float32, order="F")):
        cf.transfer(device, back)
        assert (back == values.astype(np.float16)).all()


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 17, 64, 1000])
def test_arrays_at_any_address(offset: int, kind: str, engine: cf.Engine) -> None:
    """The buffer over an array begins before it; what lies there, and behind, is left alone."""
    src, dst = D((5, 19, 3), "u8", "abc"), D((5, 19, 3), "s8", "aBc16b")
    array = np.random.default_rng(2).integers(0, 127, src.dims, np.uint8)
    size = cf.host.packing.flat_size(dst)
    room = np.full(size + 2000, 0x5A, np.int8)
    odd = np.zeros(5000, np.uint8)[offset : offset + array.size]
    odd[:] = array.ravel()
    target = room[offset : offset + size]
    cf.transfer(cf.HostMemory(src, odd), cf.HostMemory(dst, target), engine=engine)
    assert same_bytes(target, cf.pack(array, dst))
    assert (room[:offset] == 0x5A).all()
    assert (room[offset + size :] == 0x5A).all()


def test_a_buffer_begins_where_the_device_wants(engine: cf.Engine) -> None:
    """Kernels store whole vectors past the caches, and count on the alignment of buffers."""
    import pyopencl as cl

    if not engine.device.type & cl.device_type.CPU or not engine.device.host_unified_memory:
        pytest.skip("needs a CPU device, pocl for instance")
    align = engine.device.mem_base_addr_align // 8
    room = np.zeros(1000, np.float32)
    for at in range(40):
        front = unified.bytes_in_front(engine, room[at:])
        assert front is not None
        assert front < align
        assert (room[at:].ctypes.data - front) % align == 0


def test_elements_across_their_own_width(engine: cf.Engine) -> None:
    """An array that no vector load may touch goes through memory of its own."""
    raw = np.zeros(4 * 60 + 1, np.uint8)[1:]
    odd = raw.view(np.float32)
    odd[:] = np.arange(60)
    assert unified.bytes_in_front(engine, odd) is None
    out = np.zeros((4, 3, 5), np.float32)
    cf.transfer(cf.HostMemory(D((4, 3, 5), "f32"), odd), out, engine=engine)
    assert (out.ravel() == np.arange(60)).all()


def test_shared_memory_is_not_copied(engine: cf.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device that shares memory nothing is allocated on either side."""
    if not unified.shares_host_memory(engine.device):
        pytest.skip("needs a device that shares memory with the host, pocl for instance")
    counted = count_buffers(monkeypatch)
    array = np.ones((3, 17, 5), np.float32)
    desc = D(array.shape, "f16", "aBc16b")
    cf.transfer(array, cf.HostMemory(desc), engine=engine, piece_nbytes=1000)
    assert not counted.sizes


NIBBLES = [
    (D((3, 7, 6), "s4", "abc"), D((3, 7, 6), "f32", "acb")),
    (D((3, 35, 4), "s8", "abc"), D((3, 35, 4), "u4", "aBc16b")),
    (D((3, 10), "f32", "ab"), D((3, 10), "s4", strides=(16, 1))),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pair", NIBBLES, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_elements_that_share_bytes_go_as_a_whole(
    pair: Any, way: str, kind: str, engine: cf.Engine, other: cf.Engine
) -> None:
    src, dst = pair
    where = {"host": None, "device": engine, "other": other}
    engines = [where[name] for name in way.split("-")]
    more: dict[str, Any] = {"engine": engine} if engines == [None, None] else {}
    array = np.random.default_rng(3).integers(0, 7, src.dims).astype(src.dtype.numpy)
    source, target = Side(src, engines[0], cf.pack(array, src)), Side(dst, engines[1])
    whole = cf.Memory(dst, engine)
    with whole.map("w") as flat:
        flat[:] = 0xA5 if flat.dtype == np.uint8 else 0
    cf.Reorder(src, dst, engine)(
        cf.Stream(engine), memory_of(cf.pack(array, src), src, engine), whole
    ).wait()
    cf.transfer(source.memory, target.memory, **more)
    with whole.map("r") as want:
        if isinstance(target.memory, cf.Memory):
            with target.memory.map("r") as got:
                assert same_bytes(got, want)
        else:
            assert same_bytes(target.memory.array, want)
            assert (target.bytes[-CANARY:] == 0xA5).all()
    with pytest.raises(cf.Unsupported, match="share bytes"):
        cf.transfer(source.memory, target.memory, piece_nbytes=20, **more)


WHOLE = [
    (D((37, 20, 3, 2), "f32"), D((37, 20, 3, 2), "s8", "OIhw4i16o4i", extra=cf.Extra(1, True))),
    (
        D((37, 20, 3, 2), "f32"),
        D((37, 20, 3, 2), "s8", "oihw", extra=cf.Extra(1, asymmetric=True, scale_adjust=0.5)),
    ),
    (D((32, 16, 3, 3), "f32"), cf.winograd(D((32, 16, 3, 3), "f32"), "wino_wei_aaOio")),
    (D((32, 16, 3, 3), "f32"), cf.winograd(D((32, 16, 3, 3), "f32"), "wino_wei_aaOIoi", "s8")),
    (
        D((2, 5, 6, 8), "f32", padding=((0, 0), (0, 0), (1, 1), (1, 0))),
        cf.winograd(
            D((2, 5, 6, 8), "f32", padding=((0, 0), (0, 0), (1, 1), (1, 0))),
            "winograd_2x3_s1_data",
            "f16",
        ),
    ),
    (
        D((17, 19, 3), "f32"),
        D((17, 19, 3), "s8", "acb", extra=cf.Extra(1, s8s8=True, asymmetric=True)),
    ),
    (
        D((3, 18, 5, 2), "s8", strides=(200, 1, 40, 19)),
        D((3, 18, 5, 2), "s8", "aBcd16b", extra=cf.Extra(3, s8s8=True)),
    ),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pair", WHOLE, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_sums_and_transforms_go_as_a_whole(
    pair: Any, way: str, kind: str, engine: cf.Engine, other: cf.Engine
) -> None:
    """A sum is over all pieces, and a window in more than one: the tensor is not cut."""
    where = {"host": None, "device": engine, "other": other}
    first, second = way.split("-")
    src, dst = pair
    engines = where[first], where[second]
    check_transfer(src, dst, engines, engine)
    with pytest.raises(cf.Unsupported, match="PIECE_SIZE"):
        check_transfer(src, dst, engines, engine, piece_nbytes=src.nbytes)


@pytest.mark.parametrize("address", range(5))
def test_sums_at_any_address(address: int, kind: str, engine: cf.Engine) -> None:
    """They begin at a multiple of four bytes of the array, wherever that begins."""
    desc = D((5, 7), "s8", "ab", extra=cf.Extra(1, s8s8=True))
    array = random_values(np.random.default_rng(1), desc.dims, "s8")
    room = np.full(256, 0xA5, np.uint8)
    size = cf.host.packing.flat_size(desc)
    cf.transfer(array, cf.HostMemory(desc, room[address : address + size]), engine=engine)
    want = np.full(256, 0xA5, np.uint8)
    want[address : address + size] = holding(array, desc)[:size]
    assert same_bytes(room, want)


def test_a_source_with_sums_is_cut(kind: str, engine: cf.Engine) -> None:
    src = D((37, 20, 3, 2), "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True))
    check_transfer(src, D(src.dims, "f32"), (None, None), engine, piece_nbytes=9000)


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_scaled_once(way: str, kind: str, engine: cf.Engine, other: cf.Engine) -> None:
    where = {"host": None, "device": engine, "other": other}
    engines = [where[name] for name in way.split("-")]
    dst = D((5, 3), "s8", "ba", extra=cf.Extra(1, s8s8=True, scale_adjust=0.5))
    array = np.arange(-16, 14, 2, dtype=np.float32).reshape(5, 3)
    source = Side(D((5, 3), "f32"), engines[0], array.ravel())
    target = Side(dst, engines[1])
    more: dict[str, Any] = {"engine": engine} if engines == [None, None] else {}
    cf.transfer(source.memory, target.memory, **more)
    target.check(holding((array / 2).astype(np.int8), dst), way)


# --- attributes -----------------------------------------------------------------------------------


def attributes(dims: tuple[int, ...]) -> dict[str, cf.Attr]:
    """Values over the dimensions that are cut, over others, over some of both, and over none."""
    rng = np.random.default_rng(12)
    b, f, y, _ = dims

    def values(*sizes: int) -> Any:
        return rng.integers(1, 9, sizes) / 4

    return {
        "one": cf.Attr(src_scale=0.5, dst_zero_point=3),
        "cut": cf.Attr(src_scale=(values(b), 1), dst_scale=(values(b * f), 3)),
        "beside": cf.Attr(src_zero_point=(values(y), 4)),
        "apart": cf.Attr(dst_zero_point=(values(b * y), 5), src_scale=(values(f), 2)),
        "sum": cf.Attr(beta=(values(b), 1), expression="max(x, 0.f) + 1.0f"),
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["one", "cut", "beside", "apart", "sum"])
def test_attributes_go_with_their_pieces(
    name: str, way: str, kind: str, engine: cf.Engine, other: cf.Engine
) -> None:
    dims = (3, 35, 5, 2)
    src, dst = D(dims, "s8", "byxf"), D(dims, "f16", "b_fs_yx_fsv16")
    attr = attributes(dims)[name]
    rng = np.random.default_rng(7)
    array, old = (rng.integers(-40, 40, dims, np.int8) for _ in range(2))
    where = {"host": None, "device": engine, "other": other}
    engines = [where[end] for end in way.split("-")]
    more: dict[str, Any] = {"engine": engine} if engines == [None, None] else {}
    whole = src.nbytes + dst.nbytes
    want = cf.pack(attr.apply(array, src.dtype, dst.dtype, old.astype(np.float16)), dst)
    for piece in (None, whole // 3, whole // 9):
        source = Side(src, engines[0], cf.pack(array, src))
        target = Side(dst, engines[1], cf.pack(old.astype(np.float16), dst))
        cf.transfer(source.memory, target.memory, attr=attr, piece_nbytes=piece, **more)
        if isinstance(target.memory, cf.Memory):
            with target.memory.map("r") as got:
                assert same_bytes(got, want), piece
        else:
            assert same_bytes(target.memory.array, want), piece
            assert (target.bytes[-CANARY:] == 0xA5).all()


def test_wrong_attributes_are_refused_before_anything_is_done(engine: cf.Engine) -> None:
    array, memory = np.ones((4, 6), np.float32), cf.Memory(D((4, 6), "f32"), engine)
    for attr, said in (
        (cf.Attr(src_scale=([1, 2, 3], 1)), "got 3 values of src_scale"),
        (cf.Attr(src_scale=(np.ones(4), 4)), "beyond the 2"),
        (cf.Attr(beta=cf.at_execution()), "give its values in the attributes"),
    ):
        refused(cf.InvalidAttr, said, partial(cf.transfer, array, memory, attr=attr))
    assert not cf.to_numpy(memory).any()


# --- pieces: memory, programs, order, progress ----------------------------------------------------


class Counted:
    """The device memory that was allocated (not what lies on the host), and what is left of it."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.now = self.peak = self.alive = 0


def count_buffers(monkeypatch: pytest.MonkeyPatch) -> Counted:
    import pyopencl as cl

    counted, flags = Counted(), cl.mem_flags
    real, released = cl.Buffer, cl.Buffer.release
    sizes: dict[int, int] = {}

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

    class Buffer(metaclass=Meta):
        def __new__(cls, context: Any, kind: int, size: int = 0, **more: Any) -> Any:
            made = real(context, kind, size, **more)
            on_host = kind & (flags.ALLOC_HOST_PTR | flags.USE_HOST_PTR)
            sizes[made.int_ptr] = 0 if on_host else size
            counted.alive += 1
            if not on_host:
                counted.sizes.append(size)
                counted.now += size
                counted.peak = max(counted.peak, counted.now)
            return made

    def release(self: Any) -> None:
        counted.alive -= 1
        counted.now -= sizes[self.int_ptr]
        released(self)

    monkeypatch.setattr(cl, "Buffer", Buffer)
    monkeypatch.setattr(real, "release", release)
    return counted


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("piece", [200_000, 50_000, 10_000])
def test_device_memory_is_bounded_by_the_piece(
    piece: int, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = count_buffers(monkeypatch)
    array = np.random.default_rng(3).standard_normal((13, 35, 9, 11)).astype(np.float32)
    target = cf.HostMemory(D(array.shape, "f16", "b_fs_yx_fsv16"))
    cf.transfer(array, target, engine=engine, piece_nbytes=piece)
    assert same_bytes(target.array, cf.pack(array, target.desc))
    assert counted.peak <= 2 * piece
    assert counted.peak >= piece // 2
    assert counted.alive == 0


def _note(into: list[int], done: int, _total: int) -> None:
    into.append(done)


@pytest.mark.usefixtures("copied")
def test_pieces_share_one_program(other: cf.Engine) -> None:
    array = np.random.default_rng(4).standard_normal((12, 32, 6, 7)).astype(np.float32)
    desc = D(array.shape, "f16", "b_fs_yx_fsv16")
    whole = array.nbytes + desc.nbytes
    before = other.programs_built
    for share in (4, 3, 2):  # 3, 4 and 6 images each
        done: list[int] = []
        report = partial(_note, done)
        target = cf.HostMemory(desc)
        cf.transfer(array, target, engine=other, piece_nbytes=whole // share, progress=report)
        assert len(done) == share + 1
    assert other.programs_built - before == 1


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("hops", [1, 2])
def test_two_pieces_are_under_way(
    hops: int, engine: cf.Engine, other: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next piece is enqueued, on the other stream, before the host waits for the last."""
    log: list[tuple[str, int]] = []
    streams: list[Any] = []
    start, finish = Hop.start, Hop.finish

    def started(self: Hop, k: int) -> None:
        log.append(("start", k))
        streams.append(self._streams[k % 2].queue)
        start(self, k)

    def finished(self: Hop, k: int) -> None:
        log.append(("finish", k))
        finish(self, k)

    monkeypatch.setattr(Hop, "start", started)
    monkeypatch.setattr(Hop, "finish", finished)
    array = np.zeros((6, 8, 5), np.float32)
    desc = D(array.shape, "f32", "acb")
    source = cf.from_numpy(array, engine)
    target = cf.Memory(desc, engine if hops == 1 else other)
    cf.transfer(array if hops == 1 else source, target, piece_nbytes=array.nbytes * 2 // 6)
    for k in range(4):
        assert log.index(("start", k + 1)) < log.index(("finish", k))
        assert log.index(("finish", k)) < log.index(("start", k + 2))
    assert len(log) == 12 * hops
    if hops == 1:
        assert all(a != b for a, b in pairwise(streams))
        assert len({queue.int_ptr for queue in streams}) == 2


@pytest.mark.parametrize("piece", [None, 700])
def test_progress(piece: int | None, kind: str, engine: cf.Engine) -> None:
    array = np.ones((5, 3, 7), np.float32)
    target = cf.HostMemory(D(array.shape, "f32", "acb"))
    reports: list[tuple[int, int]] = []
    cf.transfer(array, target, engine=engine, piece_nbytes=piece,
                progress=lambda done, total: reports.append((done, total)))  # fmt: skip
    assert {total for _, total in reports} == {array.nbytes * 2}
    done = [done for done, _ in reports]
    assert (done[0], done[-1]) == (0, array.nbytes * 2)
    assert done == sorted(set(done))
    assert len(done) == (2 if piece is None else 3)


def log_calls(monkeypatch: pytest.MonkeyPatch, *names: tuple[Any, str]) -> list[str]:
    """The calls of these functions, in order."""
    log: list[str] = []

    def logged(owner: Any, name: str) -> Any:
        real = getattr(owner, name)

        def call(*given: Any, **more: Any) -> Any:
            log.append(f"{owner.__name__}.{name}")
            return real(*given, **more)

        return call

    for owner, name in names:
        monkeypatch.setattr(owner, name, logged(owner, name))
    return log


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("largest", "memory"), [(3000, 10**6), (10**6, 12_000)])
def test_pieces_fit_the_memory_of_the_device(
    largest: int, memory: int, engine: cf.Engine, copied: None
) -> None:
    """Two on either side: each has a quarter at most, and no buffer is larger than is allowed."""
    src, dst = D((16, 40, 5), "f32"), D((16, 40, 5), "f32", "acb")
    route = _Route(cf.HostMemory(src), cf.HostMemory(dst), engine, cf.Attr())
    device = SimpleNamespace(max_mem_alloc_size=largest, global_mem_size=memory)
    route.engines = [cast("cf.Engine", SimpleNamespace(device=device))]
    assert 1500 < max(piece.nbytes for piece in route._pieces(None, asked=False)) <= 3000


class _StopError(Exception):
    """Somebody pressed a key."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_exception_half_way(
    after: int, way: str, kind: str, engine: cf.Engine, other: cf.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The source is as it was, everything is released, and both sides can be used again."""
    src, dst = D((7, 3, 5), "f32"), D((7, 3, 5), "f32", "acb")
    where = {"host": None, "device": engine, "other": other}
    engines = [where[name] for name in way.split("-")]
    flat = cf.pack(np.random.default_rng(5).standard_normal(src.dims).astype(np.float32), src)
    source, target = Side(src, engines[0], flat), Side(dst, engines[1])
    counted = count_buffers(monkeypatch)
    calls = iter(range(100))

    def stop(_done: int, _total: int) -> None:
        if next(calls) == after:
            raise _StopError

    more: dict[str, Any] = {"engine": engine} if engines == [None, None] else {}
    piece = (src.nbytes + dst.nbytes) // 7
    log = log_calls(monkeypatch, (Hop, "settle"), (Staging, "close"), (Wrapped, "close"))
    with pytest.raises(_StopError):
        cf.transfer(source.memory, target.memory, piece_nbytes=piece, progress=stop, **more)
    assert log[0] == "Hop.settle", "first wait for what is running, then take its memory away"
    assert "Hop.settle" not in log[log.count("Hop.settle") :]
    gc.collect()
    assert counted.alive == 0
    if isinstance(source.memory, cf.Memory):
        with source.memory.map("r") as seen:
            assert same_bytes(seen, flat)
    else:
        assert same_bytes(source.memory.array, flat)
    cf.transfer(source.memory, target.memory, piece_nbytes=piece, **more)
    target.check(expected(cf.unpack(flat, src), src, dst), way)


# --- refusals -------------------------------------------------------------------------------------


def refused(error: type[Exception], text: str, call: Callable[[], object]) -> None:
    with pytest.raises(error, match=text):
        call()


def test_what_does_not_fit_is_refused(engine: cf.Engine, other: cf.Engine) -> None:
    array = np.ones((4, 6), np.float32)
    memory = cf.Memory(D((4, 6), "f32"), engine)
    bad = cf.InvalidDescriptor
    refused(
        bad, "keeps the logical dims", lambda: cf.transfer(array, cf.HostMemory(D((6, 4), "f32")))
    )
    refused(
        cf.InvalidArgument,
        "piece_nbytes: got 0",
        lambda: cf.transfer(array, memory, piece_nbytes=0),
    )
    refused(bad, "share memory", lambda: cf.transfer(array, array.T.reshape(4, 6, order="F")))
    refused(bad, "not dense", lambda: cf.transfer(array[:, ::2], memory))
    refused(bad, "single value", lambda: cf.transfer(np.ones(()), memory))
    refused(cf.DeviceError, "leave the engine out",
            lambda: cf.transfer(array, memory, engine=engine))  # fmt: skip
    refused(cf.InvalidArgument, "src: got", lambda: cf.transfer([1, 2], memory))
    frozen = np.ones((4, 6), np.float32)
    frozen.flags.writeable = False
    refused(bad, "read-only", lambda: cf.transfer(memory, frozen))
    cf.transfer(frozen, memory)
    with memory.map("r"):
        for target in (np.zeros_like(array), cf.Memory(memory.desc, other)):
            refused(cf.MappedError, "is mapped", partial(cf.transfer, memory, target))
    gone = cf.Memory(memory.desc, engine, buffer=None)
    refused(cf.DeviceError, "set_buffer", lambda: cf.transfer(array, gone))
    fused = D((8, 8, 2, 3), "f32", "os_i_yxs_osv4_yxsv4")
    with pytest.raises(cf.Unsupported) as caught:
        cf.transfer(np.zeros(fused.dims, np.float32), cf.HostMemory(fused), piece_nbytes=10)
    assert caught.value.code == "PIECE_SIZE"


def test_no_elements(kind: str, engine: cf.Engine) -> None:
    empty = np.zeros((3, 0, 5), np.float32)
    memory = cf.Memory(D(empty.shape, "f16", "aBc16b"), engine)
    cf.transfer(empty, memory)
    cf.transfer(memory, empty)
    cf.transfer(empty, np.zeros((3, 0, 5), np.int8), piece_nbytes=1)


def test_files_are_read_and_written_in_place(kind: str, engine: cf.Engine, tmp_path: Path) -> None:
    values = np.random.default_rng(8).standard_normal((5, 17, 3)).astype(np.float32)
    np.save(tmp_path / "in.npy", values)
    desc = D(values.shape, "f16", "aBc16b")
    source = np.load(tmp_path / "in.npy", mmap_mode="r")
    shape = (cf.host.packing.flat_size(desc),)
    target = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float16, shape)
    before = (tmp_path / "in.npy").read_bytes()
    cf.transfer(source, cf.HostMemory(desc, target), engine=engine, piece_nbytes=500)
    target.flush()
    assert same_bytes(np.load(tmp_path / "out.npy"), cf.pack(values, desc))
    assert (tmp_path / "in.npy").read_bytes() == before


def test_images_are_ends_too(kind: str, engine: cf.Engine, other: cf.Engine) -> None:
    if not engine.traits.has_images:
        pytest.skip("needs a device with images")
    values = np.random.default_rng(9).standard_normal((5, 7, 2, 3)).astype(np.float32)
    image = D(values.shape, "f32", "image_2d_weights_c4_fyx_b")
    here, there = cf.Memory(image, engine), cf.Memory(image, other)
    cf.transfer(values, here)
    cf.transfer(here, there)
    plain = cf.Memory(D(values.shape, "f32"), engine)
    cf.transfer(there, plain)
    back = np.zeros_like(values)
    cf.transfer(here, back)
    assert (back == values).all()
    assert (cf.to_numpy(plain) == values).all()
    with pytest.raises(cf.Unsupported, match="lives on a device"):
        cf.HostMemory(image)


# --- two real devices -----------------------------------------------------------------------------

TWO_DEVICES = """
import numpy as np, clformats as cf
pocl = [d for d in cf.devices() if "pocl" in d.version.lower() or "Portable" in d.platform.name]
assert len(pocl) == 2, pocl
a, b = (cf.Engine(device=d) for d in pocl)
assert a.context != b.context
values = np.random.default_rng(0).standard_normal((5, 35, 4, 3)).astype(np.float32)
for fmt in ("byxf", "b_fs_yx_fsv16"):
    for piece in (None, 3000):
        src = cf.from_numpy(values, a, format=fmt)
        dst = cf.Memory(cf.MemoryDesc(values.shape, "f16", "b_fs_yx_fsv32"), b)
        cf.transfer(src, dst, piece_nbytes=piece)
        with dst.map("r") as got:
            assert got.tobytes() == cf.pack(values, dst.desc).tobytes()
        back = cf.Memory(cf.MemoryDesc(values.shape, "f16", fmt), a)
        cf.transfer(dst, back, piece_nbytes=piece)
        assert (cf.to_numpy(back) == values.astype(np.float16)).all()
print("both ways")
"""


def test_two_devices_of_pocl(engine: cf.Engine) -> None:
    if "Portable" not in engine.device.platform.name:
        pytest.skip(
            "needs pocl, which can show one CPU as two devices: apt install pocl-opencl-icd"
        )
    # pocl 5 and later say cpu where earlier ones said pthread.
    done = None
    for name in ("pthread", "cpu"):
        env = {**os.environ, "POCL_DEVICES": f"{name} {name}", "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", TWO_DEVICES], env=env, check=False,
                              capture_output=True, text=True, timeout=200)  # fmt: skip
        if done.returncode == 0:
            break
    assert done is not None
    assert done.stdout.strip().endswith("both ways"), done.stderr


@pytest.fixture
def platforms() -> list[cf.Engine]:
    """One engine for each platform."""
    first = {d.platform.name: d for d in cf.devices()}
    if len(first) < 2:
        pytest.skip(
            "needs two OpenCL platforms: pocl, and Intel's CPU runtime by pip install "
            "'clformats[cpu]'"
        )
    return [cf.Engine(device=d) for d in first.values()]


def test_two_platforms(platforms: list[cf.Engine], kind: str) -> None:
    src, dst = PAIRS[0]
    for a in platforms:
        for b in platforms:
            for piece in (None, 4000):
                check_transfer(src, dst, (a, b), a, piece_nbytes=piece)
