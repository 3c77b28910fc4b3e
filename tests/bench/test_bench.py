"""`python -m bench`: a quick run of one tiny case, and all that is made of its results."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import clformats as cf
from bench import gpu, quantised, rotation
from bench.__main__ import main
from bench.arena import Arena, NotComparableError, WrongResultError
from bench.cases import CASES, GROUPS, LAUNCH, MB, SMALL, Case
from bench.contest import contest
from bench.drawn import TYPES, drawn
from bench.peers import ggml, numpy_, onednn
from bench.peers.views import views
from bench.picture import picture
from bench.report import (
    AGAIN,
    BAKED,
    COMMAND,
    COPY,
    EMPTY,
    OURS,
    TUNED,
    Record,
    Report,
    summaries,
)
from bench.table import choices, comparison, groups, mark, row, slowest
from clformats.timing import QUICK, Times

NAME = "tiny_bfyx_fsv16_f32"


@dataclass(frozen=True)
class Run:
    """What one run left behind."""

    code: int
    text: str
    json: Path
    svg: Path


@pytest.fixture(scope="module")
def run(engine: cf.Engine, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("bench")
    data, drawn, printed = folder / "run.json", folder / "run.svg", io.StringIO()
    what = ["--quick", "--why", "--device", engine.device.name, "--cases", f"^{NAME}$"]
    with redirect_stdout(printed):
        code = main([*what, "--json", str(data), "--svg", str(drawn)])
    return Run(code, printed.getvalue(), data, drawn)


def made_up(**medians: float) -> Record:
    """A record with these medians in seconds, and quartiles 10 % around them."""
    times = {name.replace("_", " "): Times(t, 0.9 * t, 1.1 * t, 9) for name, t in medians.items()}
    record = Record("a", "f32 data", "src", "dst", 20_000_000, 10_000_000)
    return replace(record, times=times, onednn="jit:uni")


def report(*records: Record) -> Report:
    return Report("2020-02-29T00:00:00+00:00", {"device": "D & <E>"}, {}, list(records))


# --- a run ----------------------------------------------------------------------------------------


def test_a_quick_run_prints_case_plan_groups_and_costs(run: Run) -> None:
    assert run.code == 0, run.text
    lines = run.text.splitlines()
    assert [line for line in lines if line.startswith(NAME)]
    for text in ("family", "loops", "geometric means", "under 1 MB", "second Reorder", "device"):
        assert text in run.text, text


def test_quantised_tensors_are_raced(engine: cf.Engine, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--device", engine.device.name, "--quick", "--cases"]
    assert main(["quantised", *where, "^q4_0:gguf -> (f32|q4_0:flat)"]) == 0
    printed = capsys.readouterr().out
    assert "decodes" in printed
    assert "moves" in printed


def test_runs_of_quantised_tensors_are_summarised_by_their_medians(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def row(size: str, moved: int, ours: list[float]) -> quantised.Row:
        times = {"ours": ours, "copy": [1.0, 1.0, 1.0], "ggml C": [4.0, 4.0, 4.0]}
        return quantised.Row("q4_0:gguf -> f16:ab", size, moved, "decodes", times)

    small, *large = (
        row("512x512", 1 << 20, [8.0, 8.0, 8.0]),
        row("4096x4096", 1 << 25, [1.0, 2.0, 9.0]),
        row("4224x4608", 1 << 26, [0.5, 0.5, 0.5]),
    )
    file = tmp_path / "quantised.json"
    quantised.save(file, dict.fromkeys(("device", "processor", "load"), "?"), [small, *large])
    assert quantised.load(file)[1] == [small, *large]
    assert main(["quantised", "--load", str(file)]) == 0
    *rows, _, _, mean = capsys.readouterr().out.splitlines()
    assert [line.split()[6] for line in rows[-3:]] == ["0.12", "0.50", "2.00"]
    assert mean.split()[3:] == ["1.00", "0.50", "ggml", "C", "4.0"]


CONVERSIONS = [c for c in quantised.CASES if ":gguf" in f"{c}" and ":ab" in f"{c}"]


@pytest.mark.parametrize("case", CONVERSIONS, ids=str)
def test_ggml_writes_the_same_bytes(case: quantised.Case) -> None:
    src, dst = (quantised.described(side, (3, 512)) for side in (case.src, case.dst))
    raw = quantised.filled(src)
    convert = ggml.calls(src, dst, raw).get("ggml C")
    if convert is None:
        pytest.skip("ggml has nothing for it, or is not installed")
    values = cf.unpack(raw, src)
    if isinstance(dst, cf.MemoryDesc):
        values = values.astype(dst.dtype.numpy)
    assert convert().tobytes() == cf.pack(values, dst).tobytes()


def test_host_calls_are_raced_with_numpy(
    engine: cf.Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--device", engine.device.name, "--quick", "--cases"]
    assert main(["host", *where, "^2 MB f32( to u8)? (bfyx|.*_fsv16 of 50|OIhw)"]) == 0
    printed = capsys.readouterr().out
    assert {line.split()[-5] for line in printed.splitlines() if "MB f32" in line} == {
        "pack", "from_numpy", "unpack", "to_numpy", "asarray", "Memory.numpy", "from_array",
    }  # fmt: skip
    assert "of numpy's time" in printed
    assert main(["host", *where, "nothing is called so"]) == 1


def test_everyone_who_can_takes_part(run: Run, engine: cf.Engine) -> None:
    (record,) = Report.read(run.json).records
    assert {OURS, AGAIN, COPY, COMMAND, EMPTY} <= set(record.times)
    missing = set(record.notes)
    assert missing <= {"oneDNN", "torch", "numpy", "CuPy"}
    assert not [reason for reason in record.notes.values() if "differ" in reason]
    if engine.traits.is_cpu:
        assert "numpy" in record.times
        assert ("oneDNN" in record.times) == (onednn.available() is None)


def test_json_survives_reading_and_writing(run: Run, tmp_path: Path) -> None:
    found = Report.read(run.json)
    found.write(tmp_path / "again.json")
    assert Report.read(tmp_path / "again.json") == found
    assert json.loads(run.json.read_text())["records"][0]["name"] == NAME


def test_a_stored_run_prints_compares_and_draws(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / "again.svg"
    stored = str(run.json)
    assert main(["--load", stored, "--compare", stored, "--svg", str(drawn)]) == 0
    assert "compared with" in capsys.readouterr().out
    assert drawn.read_text() == run.svg.read_text()


def test_the_picture_is_well_formed(run: Run) -> None:
    root = ET.fromstring(run.svg.read_text())  # noqa: S314  # our own file
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert root.tag.endswith("svg")
    assert NAME in texts


# --- the cases ------------------------------------------------------------------------------------


def test_cases_are_many_with_names_of_their_own_and_descriptors() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40
    for case in CASES:
        src, dst = case.descriptors()
        mb = (src.nbytes + dst.nbytes) / 1e6
        assert any(group.takes(case.name, case.group, mb) for group in GROUPS), case.name


@pytest.mark.parametrize(
    "case",
    [
        Case("tail", "", (2, 19, 3, 5), "f32:b_fs_yx_fsv16", "f32:byxf"),
        Case("nested", "", (17, 35, 3, 1), "s8:oiyx", "s8:os_is_yx_osa4_isa8_osv8_isv4"),
        Case("under", "", (1, 3, 4, 5), "u8:byxf", "f16:b_fs_yx_fsv4"),
        Case("rounding", "", (2, 19, 3, 5), "f32:bfyx", "s8:b_fs_yx_fsv16"),
        Case("grouped", "", (17, 1, 2, 3, 3), "f16:goiyx", "f16:gs_oiyx_gsv16"),
    ],
    ids=lambda case: str(case.name),
)
def test_ours_and_the_peers_do_odd_cases_right(case: Case, engine: cf.Engine) -> None:
    record = contest(case, engine, replace(QUICK, rounds=1))
    assert not record.error
    assert not [reason for reason in record.notes.values() if "differ" in reason]
    assert record.share
    assert NAME not in row(record)


def test_views_hold_every_element_once() -> None:
    src = cf.MemoryDesc((3, 19, 2), "f32", "abc")
    dst = cf.MemoryDesc((3, 19, 2), "f32", "aBc16b")
    pairs = views(src, dst)
    assert [one.shape for one, _ in pairs] == [(3, 1, 16, 2), (3, 3, 2)]
    assert all(one.shape == other.shape for one, other in pairs)


def test_blocks_that_do_not_nest_are_not_for_numpy(engine: cf.Engine) -> None:
    case = Case("", "", (1, 48, 2), "f32:aBc16b", "f32:aBc24b")
    with pytest.raises(NotComparableError, match="nest"):
        numpy_.move(Arena(case, engine))


def test_a_wrong_result_is_noticed(engine: cf.Engine) -> None:
    arena = Arena(CASES[-1], engine)
    with pytest.raises(WrongResultError, match="bytes differ"):
        arena.check_device(lambda: None)


# --- what is made of times ------------------------------------------------------------------------


def test_share_and_ratios_follow_from_the_medians() -> None:
    record = made_up(
        clformats=2e-3, clformats_again=2.2e-3, copy_kernel=1e-3, copy=3e-3, oneDNN=6e-3
    )
    assert record.speed() == pytest.approx(10)
    assert record.share == pytest.approx(0.5)
    assert record.ratio("oneDNN") == pytest.approx(3)
    assert record.ratio("numpy") is None
    assert "10%" in row(record)
    assert "a" in picture(report(record))


def test_the_rules_stand_beside_constants_and_records() -> None:
    plain = made_up(clformats=0.01)
    beside = {BAKED: Times(0.008, 0.007, 0.009, 9), TUNED: Times(0.0125, 0.012, 0.013, 9)}
    lines = list(choices([plain, replace(plain, times=plain.times | beside)]))
    assert lines[1].endswith("0.80  goal 0.95, 1 of 2 cases, lowest 0.80")
    assert lines[2].endswith("1.25  goal 0.95, 1 of 2 cases, lowest 1.25")
    *_, tuned = choices([plain, replace(plain, times=plain.times | beside)], is_tuned=True)
    assert tuned.endswith("1.12  goal 0.95, 2 of 2 cases, lowest 1.00")


def test_the_reference_code_of_onednn_is_marked_and_not_in_the_means() -> None:
    fair = made_up(clformats=2e-3, copy=2e-3, oneDNN=6e-3)
    slow = replace(fair, onednn="simple:any", times=made_up(clformats=1e-3, oneDNN=1).times)
    means = {s.group.name: s for s in summaries([fair, slow])}
    assert mark(slow) == "*"
    assert means["f32 data"].count == 2
    assert means["f32 data"].ratios["oneDNN"] == pytest.approx(3)
    assert means["all of 18 MB and more"].lowest == pytest.approx(3)
    assert "f32 data" in "\n".join(groups(summaries([fair, slow])))


@pytest.mark.parametrize(
    ("ours", "copy", "verdict"),
    [(1e-3, 2e-3, "faster"), (4e-3, 2e-3, "SLOWER"), (1e-3, 1e-3, "machine"), (2.1e-3, 2e-3, "")],
)
def test_a_comparison_marks_what_is_beyond_both_spreads(
    ours: float, copy: float, verdict: str
) -> None:
    old = report(made_up(clformats=2e-3, copy=2e-3))
    new = report(made_up(clformats=ours, copy=copy))
    (line,) = [text for text in comparison(new, old) if text.startswith("a ")]
    words = {"faster", "SLOWER", "machine"} & set(line.split())
    assert words == ({verdict} if verdict else set())


@pytest.mark.parametrize("median", ["fast", 0.0, -1.0, None])
def test_times_that_are_none_are_no_results(median: object, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    report(made_up(clformats=2e-3)).write(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"median": 0.002', f'"median": {json.dumps(median)}'), "utf-8")
    with pytest.raises(ValueError, match="holds no results"):
        Report.read(path)


def test_another_device_is_said_in_a_comparison() -> None:
    old = report(made_up(clformats=2e-3, copy=2e-3))
    new = replace(old, machine={"device": "other"})
    assert "ANOTHER DEVICE" in "\n".join(comparison(new, old))


def test_a_failed_case_is_shown_and_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = replace(made_up(), error="3 bytes differ")
    report(failed).write(tmp_path / "failed.json")
    assert main(["--load", str(tmp_path / "failed.json")]) == 1
    assert "FAILED: 3 bytes differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cases", "no such case"], "no case matches"),
        (["--load", __file__], "test_bench.py holds no results"),
        (["--compare", "absent.json"], "absent.json"),
        (["--json", "absent/run.json"], "folder of absent/run.json"),
        (["--device", "no such device"], "no such device"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("bench: ")
    assert words in message


def test_drawn_cases_are_the_same_of_a_seed_and_of_networks_names() -> None:
    cases = drawn(200)
    assert cases[:7] == drawn(7)
    assert drawn(7, seed=1) != cases[:7]
    assert len({case.name for case in cases}) == 200
    moved = [sum(desc.nbytes for desc in case.descriptors()) / MB for case in cases]
    assert min(moved) > 5
    assert {case.src.split(":")[0] for case in cases} == set(TYPES)
    large = [sum(d.nbytes for d in gpu.scaled(case).descriptors()) for case in cases]
    assert min(large) > 0.8 * gpu.LEAST  # padding of small batches does not grow with them
    on_gpus = list(gpu.chosen(gpu.parser().parse_args(["--random", "5"])))
    assert [case.name for case in on_gpus] == [case.name for case in cases[:5]]


def test_the_slowest_cases_are_named() -> None:
    slow, fast = (
        replace(made_up(**{"clformats": t, "copy kernel": 1.0, "oneDNN": 2.0}), name=name)
        for name, t in (("slow", 2.5), ("fast", 1.1))
    )
    assert list(slowest([slow, fast])) == [
        "below 0.6 of the copy: 1 of 2",
        f"   0.40  {'slow':<24}src -> dst",
        "slower than oneDNN: 1 of 2",
        f"   0.80  {'slow':<24}src -> dst",
    ]


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--rounds", "x"], ["--cases", "("]])
def test_bad_options_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


# --- on a GPU -------------------------------------------------------------------------------------


def test_all_that_a_gpu_is_asked(
    engine: cf.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """On whatever device there is, as if it were one: times by events, each result checked."""
    as_gpu = replace(engine.traits, is_cpu=False)
    monkeypatch.setattr(cf.Engine, "traits", as_gpu)
    monkeypatch.setattr(gpu, "RUNS", (16, 128))
    monkeypatch.setattr(gpu, "RUNS_MB", 1)
    monkeypatch.setattr("clformats.problems.thresholds.TILES_TRIED", 1)
    monkeypatch.setattr(gpu, "SETTINGS", QUICK)
    monkeypatch.setattr(rotation, "TURN_BYTES", 100_000)
    files = [tmp_path / name for name in ("a.json", "a.svg", "a.zip")]
    options = [f"--{kind}={file}" for kind, file in zip(("json", "svg", "isa"), files, strict=True)]
    wanted = ["gpu", "--device", engine.device.name, "--cases", "^tiny_bfyx_byxf", "--sweep"]
    assert main([*wanted, *options]) == 0
    printed = capsys.readouterr().out
    assert "copy, runs of 128 bytes written apart" in printed
    (record,) = Report.read(files[0]).records
    assert {OURS, AGAIN, BAKED, COPY, COMMAND, EMPTY} <= set(record.times)
    assert any(name.startswith("choice schedule ") for name in record.times)
    assert set(record.notes) <= {"torch", "CuPy"}
    assert set(zipfile.ZipFile(files[2]).namelist()) == {f"{record.name}.cl", f"{record.name}.bin"}


def test_cases_for_gpus_are_larger_than_caches() -> None:
    cases = list(gpu.chosen(gpu.parser().parse_args([])))
    assert len(cases) == len(CASES) + len(gpu.MORE)
    for case in cases:
        moved = sum(desc.nbytes for desc in case.descriptors())
        small = case.group in (SMALL, LAUNCH) or case.name.startswith(("w1_", "dw_"))
        assert small or moved >= gpu.LEAST


def test_a_cpu_is_told_to_take_the_other_command(capsys: pytest.CaptureFixture[str]) -> None:
    if not cf.Engine().traits.is_cpu:
        pytest.skip("the first device is no CPU")
    assert main(["gpu"]) == 2
    assert "python -m bench" in capsys.readouterr().err
