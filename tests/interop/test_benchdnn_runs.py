"""`clformats bench --reorder` on a device: every status, and that a wrong result is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats.interop.benchdnn import check, moves, run
from clformats.interop.benchdnn.outcome import CaseOutcome
from clformats.interop.benchdnn.parse import expanded, tasks
from clformats.reorders import trial
from clformats.reorders.trial import BEHIND, FRONT, Case, moved
from clformats.runtime import unified
from clformats.timing import timed
from tests.device_support import expected, holding

SMALL = "2x17x3x5"


@dataclass(frozen=True)
class Ran:
    """What a run printed: all of it, the statuses with their reasons, and the counts."""

    code: int
    text: str

    @property
    def states(self) -> list[str]:
        lines = self.text.split("====")[0]  # the summary tells failures again
        return re.findall(r"^\d+:(\w+(?: \(.*\))?) __REPRO:", lines, re.MULTILINE)

    @property
    def counts(self) -> dict[str, int]:
        """Those that are not 0."""
        line = next(s for s in self.text.splitlines() if s.startswith("tests:"))
        pairs = (part.split(":") for part in line.split())
        return {name: int(n) for name, n in pairs if n != "0"}


Bench = Callable[..., Ran]


@pytest.fixture
def bench(engine: cf.Engine, capsys: pytest.CaptureFixture[str]) -> Bench:
    def run_words(*words: str) -> Ran:
        code = cli.main(["bench", "--reorder", f"--device={engine.device.name}", *words])
        return Ran(code, capsys.readouterr().out)

    return run_words


# --- statuses -------------------------------------------------------------------------------------


def test_a_batch_file_in_every_status(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "batch").write_text(f"""
        --sdt=f32,u8 --ddt=f16 --stag=abx,b_fs_yx_fsv16 --dtag=axb,aBx16b {SMALL}  # 8 that pass
        --reset --ddt=f4_e3m0 {SMALL}                    # oneDNN's alone
        --reset --ddt=s8 --oflag=s8s8_comp:1+zp_comp:2 {SMALL}
        --reset --stag=abcd 2x3                          # a wrong rank
        --reset --skip-impl=ocl {SMALL}
        --reset --impl=generic --dtag=xba {SMALL}
        --mode=I {SMALL} --mode=R {SMALL} --mode=L {SMALL}
    """)
    ran = bench(f"--batch={tmp_path / 'batch'}")
    assert ran.code == 1
    rank = "got 2 dims (2, 3), but abcd has 4: expected (a, b, c, d) in this order"
    assert ran.states == [
        *["PASSED"] * 8,
        "UNIMPLEMENTED (NO_DTYPE)",
        "UNIMPLEMENTED (COMPENSATION)",
        f"INVALID_ARGUMENTS ({rank})",
        "SKIPPED (Skip-impl option hit)",
        "PASSED",
        "INITIALIZED",
        "EXECUTED",
        "LISTED",
    ]
    assert ran.counts == {
        "tests": 16,
        "passed": 11,
        "skipped": 1,
        "unimplemented": 2,
        "invalid_arguments": 1,
        "failed": 3,
        "listed": 1,
    }
    assert "unimplemented by code (docs/refusals.md): NO_DTYPE:1 COMPENSATION:1" in ran.text
    assert "= Failed cases, 3 of 3" in ran.text


def test_a_runtime_mask_beyond_the_rank(bench: Bench) -> None:
    """Bits of no dimension count for nothing, as in benchdnn."""
    assert bench("--runtime-dim-mask=4", "2x3").states == ["PASSED"]


def test_all_that_passes_is_exit_code_0(bench: Bench) -> None:
    ran = bench("--runtime-dim-mask=0,63", "--dtag=aBx16b,xba", SMALL, "1x17x5x3", "0x3", "7")
    assert (ran.code, set(ran.states)) == (0, {"PASSED"})
    assert "Failed cases" not in ran.text


def test_strides_take_the_place_of_tags(bench: Bench) -> None:
    ran = bench("--strides=:,1x2:,7x2:,:1x5,7x2:1x5", "2x3")
    assert (ran.code, ran.states) == (0, ["PASSED"] * 5)
    ran = bench("--strides=1x1:", "2x3")
    assert ran.states[0].startswith("INVALID_ARGUMENTS (")


def test_a_result_of_zeros_is_mistrusted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(_: Any, dims: tuple[int, ...], dtype: Any) -> Any:
        flat = np.zeros(int(np.prod(dims)), dtype.numpy)
        flat[:2] = 1
        return flat.reshape(dims)

    monkeypatch.setattr(trial, "values", zeros)
    ran = bench("--dtag=ba", "3x4", "1x9", "1x11")
    assert (ran.code, ran.states) == (0, ["MISTRUSTED", "PASSED", "MISTRUSTED"])
    assert ran.counts["mistrusted"] == 2


def test_problems_beyond_memory_are_skipped(bench: Bench) -> None:
    ran = bench("65536x65536x1024")
    assert (ran.code, ran.states) == (0, ["SKIPPED (Not enough RAM)"])


def test_reasons_are_told_with_v1(bench: Bench) -> None:
    ran = bench("-v5", "--ddt=s8", "--oflag=,s8s8_comp:1+zp_comp:2", "--dtag=ba", "3x5")
    assert ran.states == ["PASSED", "UNIMPLEMENTED (COMPENSATION)"]
    assert "all have one mask, got --oflag=s8s8_comp:1+zp_comp:2" in ran.text
    assert re.search("^run: --reorder '?--device=", ran.text, re.MULTILINE)
    assert re.search(r"^implementation: ocl:\w+$", ran.text, re.MULTILINE)


def test_the_summary_counts_implementations(bench: Bench) -> None:
    ran = bench("--summary=impl+impl-csv+no-failures", "--impl=generic", "--ddt=f32,f4_e3m0", "3x5")
    assert re.search(r"^\| ocl:generic : 1 \(100%\) +\|$", ran.text, re.MULTILINE)
    assert "benchdnn_summary,impl_names,ocl:generic:1" in ran.text
    assert "Failed cases" not in ran.text


def test_an_engine_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--reorder", "--engine=cpu:99", "2x3"]) == 1
    assert "--engine=cpu:99: there are" in capsys.readouterr().err


# --- times ----------------------------------------------------------------------------------------


def test_times_are_measured(bench: Bench) -> None:
    template = "%idx%;%impl%;%prb%;%-time%;%0time%;%+time%;%ibytes%;%obytes%"
    ran = bench(
        "--mode=P", "--max-ms-per-prb=10", f"--perf-template={template}", "--dtag=ba", "64x48"
    )
    line = next(s for s in ran.text.splitlines() if s.startswith("0;"))
    _, impl, prb, least, mean, most, *sizes = line.split(";")
    assert impl.startswith("ocl:")
    assert prb.startswith("--mode=P --max-ms-per-prb=10 --reorder")
    assert 0 < float(least) <= float(mean) <= float(most)
    assert sizes == ["12288", "12288"]
    assert f"Output template: {template}" in ran.text
    assert (ran.states, ran.counts) == ([], {"tests": 1, "passed": 1})
    assert re.search(r"^total perf: min\(ms\):\S+ avg\(ms\):\S+$", ran.text, re.MULTILINE)


def test_a_number_of_runs_can_be_asked_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[cf.Event] = []

    def seconds(event: cf.Event) -> float:
        calls.append(event)
        return 1e-3

    monkeypatch.setattr(cf.Event, "seconds", seconds)
    ran = bench("--mode=CP", "--fix-times-per-prb=7", "--perf-template=%0time%", "3x5")
    assert len(calls) == 7
    assert "\n1\n" in ran.text
    assert ran.states == ["PASSED"]


# --- wrong results --------------------------------------------------------------------------------


def test_a_mutated_kernel_fails(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel returns before it does anything."""
    original = cf.Engine.kernel

    def mutated(engine: cf.Engine, source: str, name: str, *more: Any) -> Any:
        head, _, body = source.partition(f"void {name}(")
        arguments, _, rest = body.partition("{")
        return original(engine, f"{head}void {name}({arguments}{{ return; {rest}", name, *more)

    monkeypatch.setattr(cf.Engine, "kernel", mutated)
    ran = bench("--dtag=aBx16b", SMALL)
    assert ran.code == 1
    (state,) = ran.states
    assert re.fullmatch(r"FAILED \(errors:\d+ total:510\)", state)
    assert ran.counts == {"tests": 1, "failed": 1}
    assert re.search(r"^\[ +0\]\[DST\]\[0:0:0:0\] exp:.* got:.* diff:", ran.text, re.MULTILINE)
    assert "[PADDING]" in ran.text


def one_byte_off(offset: int) -> Callable[..., cf.Event]:
    """A reorder that does its work, and then spoils this byte of the destination's buffer."""
    original = cf.Reorder.__call__

    def call(self: cf.Reorder, *args: Any, **given: Any) -> cf.Event:
        import pyopencl as cl

        original(self, *args, **given).wait()
        stream, _, dst = args
        flat = np.zeros(dst.buffer.size, np.uint8)
        cl.enqueue_copy(stream.queue, flat, dst.buffer)
        flat[offset] ^= 1
        return cf.Event(cl.enqueue_copy(stream.queue, dst.buffer, flat))

    return call


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        (FRONT * 4 - 1, "CANARY"),
        (FRONT * 4, "DST"),
        (FRONT * 4 + 4 * (16 + 1), "PADDING"),
        (-1, "CANARY"),
        (-BEHIND, "CANARY"),
        (-BEHIND - 1, "PADDING"),
    ],
)
def test_one_wrong_byte_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, offset: int, kind: str
) -> None:
    """Of 1 x 17 x 1 x 1 in blocks of 16, padding begins behind the first element of block 2."""
    monkeypatch.setattr(cf.Reorder, "__call__", one_byte_off(offset))
    ran = bench("--dtag=aBx16b", "1x17x1x1")
    assert (ran.code, ran.states) == (1, ["FAILED (errors:1 total:17)"])
    assert re.findall(r"^\[ *\d+\]\[(\w+)\]", ran.text, re.MULTILINE) == [kind]


def test_a_device_that_fails_is_a_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise cf.DeviceError("the device is gone", name="DEVICE_NOT_AVAILABLE")

    monkeypatch.setattr(run, "reorder_of", broken)
    ran = bench("2x3")
    assert (ran.code, ran.states) == (1, ["FAILED (DEVICE_NOT_AVAILABLE)"])
    assert "the device is gone" in ran.text


# --- the truth ------------------------------------------------------------------------------------

PAIRS = [
    ("f32:b_fs_yx_fsv16:2x17x3x5", "f16:aBcd8b:2x17x3x5"),
    ("s8:nhwc:3x5x7x2", "f32:ABcd16a16b:3x5x7x2"),
    ("f32:os_iyx_osv16:17x3x2x5", "bf16:oiyx:17x3x2x5"),
]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_is_expected_is_what_the_tests_of_reorders_expect(source: str, target: str) -> None:
    """Two derivations of the bytes after a reorder: elements, zero padding, 0xA5 beside."""
    src, dst = (moved(cf.MemoryDesc.parse(text)) for text in (source, target))
    case = Case(src, dst, cf.Attr(), 1)
    want = expected(case.array, src, dst)
    got = case.expected({})
    assert np.array_equal(got, want[: got.size])
    assert (want[got.size :] == trial.POISON).all()


def test_gaps_between_strides_are_not_owned() -> None:
    dst = cf.MemoryDesc((2, 3), "f32", strides=(7, 2))
    case = Case(cf.MemoryDesc((2, 3), "f32"), dst, cf.Attr(), 1)
    want = expected(case.array, case.src, dst)
    got = case.expected({})
    assert np.array_equal(got, want[: got.size])
    assert (got == trial.POISON).sum() >= 4 * (dst.span_nbytes // 4 - 6)


def test_elements_that_share_bytes_keep_their_neighbours() -> None:
    dst = cf.MemoryDesc((3, 4), "s4", "ba")
    assert (trial.element_bits(dst) == 0xFF).all()
    rows = cf.MemoryDesc((3, 1), "u4", strides=(2, 1))
    assert trial.element_bits(rows).tolist()[:3] == [0x0F] * 3


def test_the_sources_padding_is_garbage() -> None:
    src = cf.MemoryDesc((1, 17, 1, 1), "f32", "nChw16c")
    case = Case(src, src, cf.Attr(), 1)
    assert (cf.unpack(case.source.view(np.float32), src) == case.array).all()
    padding = case.source.view(np.uint32)[17:]
    assert len(set(padding.tolist())) > 10


def test_nan_is_as_good_as_another() -> None:
    desc = cf.MemoryDesc((2,), "f32")
    quiet = np.array([0x7FC00000, 0x3F800000], np.uint32).view(np.uint8)
    other = np.array([0xFFC00001, 0x3F800000], np.uint32).view(np.uint8)
    outcome = CaseOutcome()
    check.compare(quiet, other, desc, outcome)
    assert outcome.status == "PASSED"
    outcome = replace(outcome)
    check.compare(
        quiet, np.array([0xFFC00001, 0x3F800001], np.uint32).view(np.uint8), desc, outcome
    )
    assert (outcome.status, outcome.errors) == ("FAILED", 1)


# --- sums behind int8 weights ---------------------------------------------------------------------

OFLAGS = "--oflag=s8s8_comp:1,zp_comp:1,zp_comp:1+s8s8_comp:1"


def test_sums_follow_the_weights(bench: Bench) -> None:
    """Blocks that are not full, weights that end at any byte, scales, groups; sizes given later."""
    ran = bench(
        *("--sdt=f32", "--ddt=s8", OFLAGS, "--stag=axb", "--dtag=ABx4b16a4b", "17x19x3"),
        *("--reset", "--sdt=s8", "--ddt=s8", OFLAGS, "--runtime-dim-mask=15", "3x5x7x1"),
        *("--reset", "--sdt=bf16", "--ddt=s8", "--oflag=s8s8_comp:3+zp_comp:3"),
        *("--dtag=xcab,aBCx2c8b4c", "--attr-scales=dst:per_dim_01", "3x9x10x2"),
        *("--reset", "--sdt=f32", "--ddt=s8", "--oflag=s8s8_comp:1", "--strides=:35x1x5"),
        *("--attr-zero-points=dst:common:2", "--attr-post-ops=sum:0.5", "3x5x7"),
    )
    assert (ran.code, ran.states) == (0, ["PASSED"] * (3 + 3 + 2 + 1))


@pytest.mark.slow
def test_sums_follow_the_weights_in_every_way(bench: Bench) -> None:
    ran = bench(
        *("--sdt=f32,s8", "--ddt=s8", OFLAGS, "--runtime-dim-mask=0,15", "--stag=axb"),
        *("--dtag=abx,ABx4b16a4b", "--attr-scales=,src:per_dim_0", "17x19x3", "3x5x7x1"),
        *("--reset", "--sdt=f32", "--ddt=s8", "--oflag=s8s8_comp:1", "--strides=:,:35x1x5"),
        *("--attr-zero-points=,dst:common:2", "--attr-post-ops=,sum:0.5", "3x5x7"),
    )
    assert (ran.code, ran.states) == (0, ["PASSED"] * (96 + 8))


def test_sums_that_there_cannot_be(bench: Bench) -> None:
    ran = bench("--oflag=s8s8_comp:1", "3x5", "--ddt=s8", "--oflag=s8s8_comp:0,zp_comp:3", "3x5")
    assert [state.split(":")[0] for state in ran.states] == [
        "INVALID_ARGUMENTS (sums follow weights of s8, got f32 [EXTRA])",
        *["INVALID_ARGUMENTS (the mask of sums behind weights of dims (3, 5) is 0"],
        *["INVALID_ARGUMENTS (the mask of sums behind weights of dims (3, 5) is 3"],
    ]


def weights() -> cf.MemoryDesc:
    """13 x 3 of s8 fill 39 bytes; one of alignment, then twice 13 sums."""
    extra = cf.Extra(1, s8s8=True, asymmetric=True)
    return moved(cf.MemoryDesc((13, 3), "s8", "ba", extra=extra))


def test_bytes_between_weights_and_sums_are_not_owned() -> None:
    dst = weights()
    owned, elements = trial.owned_bits(dst), trial.element_bits(dst)
    assert (dst.sums_at, owned.size) == (FRONT + 40, FRONT + 40 + 2 * 13 * 4)
    assert np.flatnonzero(owned == 0).tolist() == [*range(FRONT), FRONT + 39]
    assert np.flatnonzero(elements).tolist() == [*range(FRONT, FRONT + 39)]
    assert set(owned.tolist()) == set(elements.tolist()) == {0, 0xFF}
    blocked = cf.MemoryDesc((18, 5), "s8", "AB16a4b", extra=cf.Extra(1, s8s8=True))
    assert (trial.owned_bits(blocked) == 0xFF).all()
    assert trial.element_bits(blocked).sum() == 18 * 5 * 0xFF


def test_what_is_expected_of_sums_is_what_the_tests_of_reorders_expect() -> None:
    case = Case(cf.MemoryDesc((13, 3), "s8"), weights(), cf.Attr(), 1)
    assert np.array_equal(case.expected({}), holding(case.array, case.dst)[:-BEHIND])


@pytest.mark.parametrize(
    ("offset", "line"),
    [
        (FRONT + 38, r"\[  38\]\[DST\]\[12:2\] exp:.*"),
        (FRONT + 39, r"\[ 103\]\[CANARY\] byte exp:0xa5 got:0xa4"),
        (FRONT + 40, r"\[   0\]\[COMP\] exp: +-?\d+ got: +-?\d+"),
        (-BEHIND - 1, r"\[  25\]\[COMP\] exp: +-?\d+ got: +-?\d+"),
        (-BEHIND, r"\[ 208\]\[CANARY\] byte exp:0xa5 got:0xa4"),
    ],
)
def test_one_wrong_byte_in_or_beside_sums_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, offset: int, line: str
) -> None:
    monkeypatch.setattr(cf.Reorder, "__call__", one_byte_off(offset))
    words = ("--sdt=s8", "--ddt=s8", "--dtag=ba", "--oflag=s8s8_comp:1+zp_comp:1", "13x3")
    ran = bench(*words)
    assert (ran.code, ran.states) == (1, ["FAILED (errors:1 total:39)"])
    assert re.search(f"^{line}", ran.text, re.MULTILINE)


# --- from the host to the device, and back --------------------------------------------------------


@pytest.fixture(params=["shared", "copied"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of device, whatever this one is."""
    if request.param == "copied":
        monkeypatch.setattr(unified, "shares_host_memory", lambda device: False)


WAYS = "--cross-engine=cpu2gpu,gpu2cpu"


@pytest.mark.usefixtures("kind")
def test_from_one_engine_to_the_other(bench: Bench) -> None:
    ran = bench(
        *("--sdt=f32", "--ddt=s8", WAYS, "--stag=axb", "--dtag=aBx16b"),
        *("--attr-scales=src:per_dim_1+dst:per_dim_1", "--attr-post-ops=sum:0.5", SMALL, "0x3x5"),
        *("--reset", WAYS, "--runtime-dim-mask=3", "--strides=1x2:7x2", "2x3"),
        *("--reset", "--sdt=s4", "--ddt=u4", WAYS, "--dtag=xba", "--runtime-dim-mask=0", "4x6"),
        *("--reset", "--sdt=f32", "--ddt=s8", WAYS, "--oflag=zp_comp:1+s8s8_comp:1"),
        *("--dtag=ABx4b16a4b", "13x3x5"),
    )
    assert (ran.code, ran.states) == (0, ["PASSED"] * (4 + 2 + 2 + 2))


@pytest.mark.slow
@pytest.mark.usefixtures("kind")
def test_from_one_engine_to_the_other_in_every_way(bench: Bench) -> None:
    ran = bench(
        *("--sdt=f32", "--ddt=s8", WAYS, "--stag=axb", "--dtag=abx,aBx16b"),
        *("--attr-scales=,src:per_dim_1+dst:per_dim_1", "--attr-post-ops=,sum:0.5", SMALL, "0x3x5"),
        *("--reset", "--sdt=f32", "--ddt=s8", WAYS, OFLAGS, "--dtag=abx,ABx4b16a4b", "13x3x5"),
    )
    assert (ran.code, ran.states) == (0, ["PASSED"] * (32 + 12))


def test_a_transfer_has_a_name_of_its_own(bench: Bench) -> None:
    words = ("--summary=impl-csv", "--dtag=ba", "5x3")
    ran = bench(WAYS, "--skip-impl=tile,generic", *words)
    assert ran.states == ["PASSED"] * 2
    assert "benchdnn_summary,impl_names,ocl:cross_engine:2" in ran.text
    assert bench(WAYS, "--impl=tile", *words).states == ["SKIPPED (Skip-impl option hit)"] * 2


def test_what_a_transfer_refuses(bench: Bench) -> None:
    image = ("--mode=I", "--stag=abcd", "--dtag=image_2d_weights_c4_fyx_b", "3x5x2x1")
    ran = bench(WAYS, *image)
    assert ran.states == ["INITIALIZED", "UNIMPLEMENTED (IMAGE)"]
    ran = bench(WAYS, "--attr-scales=dst:common:0", "3x5")
    assert all(state.startswith("INVALID_ARGUMENTS (a dst_scale is 0") for state in ran.states)


def test_transfers_are_timed_by_the_hosts_clock(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10**9, 5))
    monkeypatch.setattr(moves, "timed", partial(timed, clock=lambda: next(clock)))
    template = "--perf-template=%engine%,%impl%,%-time%,%+time%"
    ran = bench("--mode=CP", "--fix-times-per-prb=3", template, "--cross-engine=gpu2cpu", "3x5")
    assert "\ngpu2cpu,ocl:cross_engine,5000,5000\n" in ran.text
    assert ran.states == ["PASSED"]


@pytest.mark.parametrize("way", ["cpu2gpu", "gpu2cpu"])
@pytest.mark.parametrize("offset", [FRONT * 4 - 1, FRONT * 4, -1, -BEHIND])
def test_a_wrong_byte_of_a_transfer_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, way: str, offset: int
) -> None:
    """On the host too there are canaries before and behind."""
    tensor: Any = {"cpu2gpu": trial.DeviceTensor, "gpu2cpu": trial.HostTensor}[way]
    read = tensor.read

    def one_off(self: Any) -> Any:
        result = read(self)
        result[offset] ^= 1
        return result

    monkeypatch.setattr(tensor, "read", one_off)
    ran = bench(f"--cross-engine={way}", "--dtag=aBx16b", "1x17x1x1")
    assert (ran.code, ran.states) == (1, ["FAILED (errors:1 total:17)"])


# --- attributes -----------------------------------------------------------------------------------


def test_attributes_are_given_at_execution(bench: Bench) -> None:
    ran = bench(
        "--sdt=f32",
        "--ddt=s8",
        "--dtag=aBx16b",
        "--attr-scales=src:per_dim_1+dst:common:0.5,src:per_tensor:bf16",
        "--attr-zero-points=,src:per_dim_0+dst:common:2",
        "--runtime-dim-mask=15",
        SMALL,
        "--reset",
        "--sdt=u8",
        "--stag=axb",
        "--attr-scales=dst:per_dim_01+src:per_dim_2",
        "--attr-post-ops=sum:0.5,sum",
        SMALL,
    )
    assert (ran.code, ran.states) == (0, ["PASSED"] * 6)


def test_attributes_that_no_reorder_has_are_named(bench: Bench) -> None:
    refused = [
        "--attr-post-ops=relu:0.5",
        "--attr-post-ops=sum:1:2",
        "--attr-post-ops=sum+sum",
        "--attr-scales=dst:mx:f32:1x3",
        "--attr-dropout=0.5",
        "--attr-rounding-mode=dst:stochastic:1",
    ]
    words = [word for option in refused for word in ("--reset", option, "2x3")]
    ran = bench(*words)
    assert ran.states == ["UNIMPLEMENTED (ATTRIBUTE)"] * len(refused)


def test_a_mask_beyond_the_rank_is_invalid(bench: Bench) -> None:
    ran = bench("--attr-scales=src:per_dim_1,src:per_dim_3,dst:common:0", "7")
    assert ran.code == 1
    assert all(state.startswith("INVALID_ARGUMENTS (") for state in ran.states)
    assert "names a dimension beyond the 1 of the tensor" in ran.states[0]


def test_groups_share_values(bench: Bench) -> None:
    scales = "--attr-scales=src:per_tensor:f16:2x5"
    ran = bench("--sdt=s8", scales, "--attr-zero-points=,src:per_ocic:s8:2x1", "--dtag=ba", "6x15")
    assert (ran.code, ran.states) == (0, ["PASSED"] * 2)
    (task,) = tasks(expanded(["--reorder", scales, "3x6x15"]))
    _, given = task.problem.attr()
    assert given["src_scale"].shape == (3, 3, 3)
    assert task.problem.attr()[0].terms["src_scale"].group == (1, 2, 5)
    assert len(np.unique(given["src_scale"])) > 2
    ran = bench(scales, "6x16")
    assert ran.states == ["INVALID_ARGUMENTS (groups of 2x5 do not divide the last sizes of 6x16)"]


def test_a_filter_sees_what_attributes_make_of_the_plan(bench: Bench) -> None:
    words = ["--summary=impl-csv", "--attr-scales=,src:common:2", "--skip-impl=copy", "7x5"]
    ran = bench(*words)
    assert ran.states == ["PASSED"] * 2
    assert "ocl:copy" not in ran.text.split("benchdnn_summary")[1]
