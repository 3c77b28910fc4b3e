"""Records of the tuner: whatever happens to their file, nothing is lost, nothing becomes slow."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import clformats as cf
from clformats import cli
from clformats import records as tuned
from clformats.cli.doctor import record_findings
from clformats.kernels import Launch, render
from clformats.problems.refine import problem
from clformats.problems.traits import DEFAULT
from clformats.records import store
from clformats.records.record import SCHEMA
from clformats.reorders import planning
from clformats.reorders.planning import planned_by_record
from clformats.schedule import Request
from clformats.schedule.scheduled import as_scheduled
from tests.schedules_support import random_problem, random_schedule
from tests.tuned_support import DEVICE, DST, SRC, D, ahead, record_of

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "tuned"))
    tuned.forget()
    yield tmp_path / "tuned"
    tuned.forget()


@pytest.fixture
def path(where: Path) -> Path:
    return tuned.path_of(DEVICE, where)


def found(src: cf.MemoryDesc = SRC, dst: cf.MemoryDesc = DST) -> cf.Choices | None:
    """What is looked up, anew."""
    tuned.forget()
    records = tuned.lookup(DEVICE)
    answer = records.find(problem(src, dst)) if records else None
    return answer.choices if answer else None


@contextmanager
def silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- records and keys -----------------------------------------------------------------------------


def test_a_record_is_one_readable_line_and_reads_back(path: Path) -> None:
    record = record_of()
    tuned.add(path, record)
    assert tuned.read(path) == ([record], [])
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") == 1
    told = json.loads(text)
    assert (told["clformats"], told["choices"]) == (SCHEMA, {"schedule": ahead(8).schedule})
    assert told["src"] == "f32:bfyx:2x37x11x19"
    assert told["structure"] == "f32 -> f32 (n:s,s) (n:1,s) (n:s,1)"
    assert told["shape"] == "2x128x32 4|4"
    assert told["default_seconds"] == [2e-3, 2.5e-3, 2.1e-3]
    assert record.gain == pytest.approx(2.1 / 1.1)


def test_a_record_serves_its_structure_and_class_alone(path: Path) -> None:
    tuned.add(path, record_of())

    def served(dims: tuple[int, ...], a: str, b: str, dtype: str = "f32") -> bool:
        return found(D(dims, dtype, a), D(dims, dtype, b)) == ahead(8)

    assert served((2, 37, 11, 19), "bfyx", "byxf")
    assert served((2, 41, 13, 17), "bfyx", "byxf")
    assert served((2, 41, 13, 17), "nchw", "nhwc")
    assert not served((2, 64, 11, 19), "bfyx", "byxf")  # twice the channels, and aligned
    assert not served((2, 37, 11, 20), "bfyx", "byxf")  # rows that start at multiples of 16 bytes
    assert not served((3, 37, 11, 19), "bfyx", "byxf")
    assert not served((2, 37, 11, 19), "byxf", "bfyx")
    assert not served((2, 37, 11, 19), "bfyx", "byxf", "s32")
    assert found() == ahead(8)


@pytest.mark.parametrize(
    "said", ["a c/6 d b c%6 dims abcd", "nh|Cw|4c", "c/4 h w n|c%4 dims nchw", "n/2 w h c n%2"]
)
def test_digits_and_bars_stand_in_records(said: str, path: Path) -> None:
    """Spaces, slashes and bars; an image has the records of its buffer."""
    plain, other = SRC, D(SRC.dims, "f32", said)
    for src, dst in ((plain, other), (other, plain)):
        twins = src.buffer_twin, dst.buffer_twin
        record = record_of(*twins, cf.Choices(schedule=str(cf.make_plan(*twins).body)))
        tuned.add(path, record)
        read = json.loads(path.read_text().splitlines()[-1])
        assert [cf.MemoryDesc.parse(read[side]) for side in ("src", "dst")] == [*twins]
        tuned.forget()
        records = tuned.lookup(DEVICE)
        assert records is not None
        made = planned_by_record(Request(src, dst), records)
        assert made is not None
        assert made[0].record == record.praise
        assert str(src) in str(made[0])


def test_baked_sizes_serve_these_sizes_and_go_before_the_class(path: Path) -> None:
    tuned.add(path, record_of(choices=cf.Choices(baked=True)))
    tuned.add(path, record_of())
    assert found() == cf.Choices(baked=True)
    dims = (2, 41, 13, 17)
    assert found(D(dims, "f32", "bfyx"), D(dims, "f32", "byxf")) == ahead(8)


def test_the_newest_record_counts(path: Path) -> None:
    for lead in (4, 16, 8):
        tuned.add(path, record_of(choices=ahead(lead)))
    assert found() == ahead(8)


def test_what_is_computed_on_the_way_has_no_records(path: Path) -> None:
    from clformats.problems.computation import from_attr

    tuned.add(path, record_of())
    tuned.forget()
    records = tuned.lookup(DEVICE)
    assert records is not None
    computation = from_attr(cf.Attr(src_scale=2.0), SRC, DST)
    assert records.find(problem(SRC, DST, computation)) is None


def test_records_can_be_switched_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned.add(path, record_of())
    monkeypatch.setenv(store.FOLDER, "off")
    assert found() is None
    assert tuned.folder() is None


def test_without_the_variable_records_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(store.FOLDER)
    folder = tuned.folder()
    assert folder is not None
    assert folder.parts[-2:] == ("clformats", "tuned")


# --- what does not count --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"device": DEVICE._replace(driver="2.0")}, "of another driver"),
        ({"device": DEVICE._replace(name="gpu")}, "of another device"),
    ],
)
def test_a_stale_record_is_a_miss_that_says_so(
    changes: dict[str, object], word: str, path: Path
) -> None:
    tuned.add(path, record_of(**changes))  # type: ignore[arg-type]
    with pytest.warns(cf.TunedWarning, match=f"1 {word}.*tune show.*revalidate"):
        assert found() is None
    # It is told once, and no more when a newer record has taken its place.
    assert tuned.lookup(DEVICE) is None
    tuned.add(path, record_of())
    assert found() == ahead(8)


def planned(dims: tuple[int, ...] = SRC.dims) -> cf.Choices | None:
    """The choices by which a reorder of a size is planned; None for the rules."""
    records = tuned.lookup(DEVICE)
    sides = D(dims, "f32", "bfyx"), D(dims, "f32", "byxf")
    made = records and planned_by_record(Request(*sides, DEFAULT), records)
    return made[0].choices if made else None


def test_comments_in_a_kernel_are_no_part_of_its_digest() -> None:
    text = "// bfyx -> byxf\nint a = 1; // one\n"
    made = Launch(text, arguments=(1,), wide=False, global_size=1, local_size=1)
    assert len(made.digest) == 12
    for other in (text.replace("bfyx", "nchw"), "/* new */\n" + text.replace("one", "two")):
        assert replace(made, source=other).digest == made.digest
    assert replace(made, source=text.replace("1", "2")).digest != made.digest


def test_a_record_counts_while_its_kernel_is_the_one_that_was_measured(path: Path) -> None:
    tuned.add(path, record_of())
    assert planned() == planned((2, 41, 13, 17)) == ahead(8)
    tuned.forget()
    tuned.add(path, record_of(kernels="0" * 12))  # as older versions wrote it, too
    with pytest.warns(cf.TunedWarning, match="other kernels .f32:bfyx.*tune show.*revalidate"):
        assert planned() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planned() is None
        assert planned((2, 41, 13, 17)) is None


def test_of_another_size_whose_kernel_differs_the_measured_one_decides(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of()
    tuned.add(path, record)
    rendered = []

    def other(plan: cf.Plan) -> Launch | None:
        rendered.append(plan.problem.src.dims)
        made = render(plan)
        measured = plan.problem.src == SRC
        return made if made is None or measured else replace(made, source="int other;")

    monkeypatch.setattr(planning, "render", other)
    assert planned((2, 41, 13, 17)) == ahead(8)
    assert rendered == [(2, 41, 13, 17), SRC.dims]
    assert planned() == ahead(8)
    assert rendered[2:] == [SRC.dims]
    assert planning.staleness(record, DEVICE, DEFAULT) == ""
    old = replace(record, kernels="0" * 12)
    assert planning.staleness(old, DEVICE, DEFAULT) == "of other kernels"
    gone = replace(record, src="f32:no_format:2x37x11x19")
    assert planning.staleness(gone, DEVICE, DEFAULT) == "of other kernels"


def test_a_record_of_a_family_that_is_gone_is_a_miss_that_says_so(path: Path) -> None:
    record = record_of(choices=cf.Choices(family="subgroup"))
    tuned.add(path, record)
    with pytest.warns(cf.TunedWarning, match="other kernels .f32:bfyx.*tune show.*revalidate"):
        assert planned() is None
    assert planning.staleness(record, DEVICE, DEFAULT) == "of other kernels"


OLDER = json.dumps({**json.loads(record_of().line), "clformats": 1, "choices": {"lanes": 8}})


def test_records_without_schedules_are_old_and_told_in_one_word(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned.add(path, record_of(D((2, 37, 7, 131), "f32", "bfyx"), D((2, 37, 7, 131), "f32", "byxf")))
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{OLDER}\n" * 3)
    with pytest.warns(cf.TunedWarning, match="not used: 3 old; the rules decide") as told:
        assert found() is None
    assert len(told) == 1
    assert cli.main(["tune", "show"]) == 0
    said = capsys.readouterr().out
    assert said.count("not used") == 1
    assert "  not used: 3 old\n" in said
    assert [f.text for f in record_findings()] == ["records of the tuner are not used: 3 old"]


@pytest.mark.usefixtures("where")
def test_a_doctor_has_nothing_to_say_of_records_that_are_not_there() -> None:
    assert record_findings() == []


def test_a_doctor_survives_what_is_no_file(path: Path) -> None:
    path.mkdir(parents=True)
    assert f"cannot read the tuner's records in {path}" in record_findings()[0].text


@pytest.mark.parametrize(
    "line",
    [
        "tile b16 c64 of 16 | a* c b | ahead 0 | ordinary",  # 64 steps of a loop of 37
        "tile b16 of 16 | a* b | ahead 0 | ordinary",  # leaves loop c out
        "tile b16 c16 of 16 | a* b* c d | ahead 0 | ordinary",  # there is no fourth loop
    ],
)
def test_a_schedule_that_does_not_cover_its_own_reorder_is_stale(line: str, path: Path) -> None:
    """Though the kernel by the rules, which then runs, has the same hash."""
    tuned.add(path, record_of(choices=cf.Choices(schedule=line)))
    with pytest.warns(cf.TunedWarning, match="other kernels .f32:bfyx"):
        assert planned() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planned() is None
    assert planning.staleness(record_of(choices=cf.Choices(schedule=line)), DEVICE, DEFAULT)


def test_a_schedule_that_does_not_cover_another_shape_leaves_that_to_the_rules(path: Path) -> None:
    """32 to 63 channels are one class: a tile of 36 does not fit into 33."""
    choices = cf.Choices(schedule="tile c36 of 4 | a* b c | ahead 0 | ordinary")
    tuned.add(path, record_of(choices=choices))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planned() == choices
        assert planned((2, 33, 11, 19)) is None
        assert planned() == choices


@pytest.mark.parametrize("seed", range(40))
def test_what_was_tuned_survives_being_stored(seed: int, path: Path) -> None:
    """From choices to a line and back, for random schedules of random problems."""
    r = random.Random(seed)  # noqa: S311  # cases, not secrets
    p = as_scheduled(random_problem(r), DEFAULT.begin_bytes)
    choices = cf.Choices(
        schedule=str(random_schedule(r, p)), baked=r.choice([None, True]),
        family=r.choice([None, "scheduled"]),
    )  # fmt: skip
    record = record_of(p.src, p.dst, choices)
    assert tuned.TuningRecord.parse(record.line) == record
    tuned.add(path, record)
    assert found(p.src, p.dst) == choices
    plan = cf.make_plan(p.src, p.dst, choices=choices)
    assert plan.choices == choices
    assert str(plan.body) == choices.schedule


def spoilt(**changes: object) -> str:
    told = json.loads(record_of().line)
    return json.dumps({**told, **changes})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (record_of().line[:-30], "no JSON"),
        (record_of().line[5:], "no JSON"),
        ("\x00" * 100, "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("ü\x80 garbage", "no JSON"),
        ("[]", "no record"),
        ("{}", "no record"),
        (spoilt(clformats=SCHEMA + 1), "of schema"),
        (spoilt(clformats=[SCHEMA]), "of schema"),
        (spoilt(platform=7), "platform is 7"),
        (spoilt(choices={}), "expected some"),
        (spoilt(choices={"run_bytes": 4096}), "run_bytes"),
        (spoilt(choices={"lanes": 8}), "lanes"),
        (spoilt(choices={"schedule": 8}), "expected a line"),
        (spoilt(choices={"schedule": "tile b16 of 8 | a* c b | ahead 0"}), "four parts"),
        (spoilt(choices={"schedule": "tile of 1 | a | ahead 9999999999 | ordinary"}), "a number"),
        (spoilt(choices={"schedule": "tile of ² | a | ahead 0 | ordinary"}), "a number"),
        (spoilt(default_seconds=[]), "expected seconds"),
        (spoilt(default_seconds=[float("nan")]), "expected seconds"),
        (spoilt(tuned_seconds=["1"]), "expected seconds"),
        (spoilt(tuned_seconds=[1.0]), "not faster"),
    ],
)
def test_a_spoilt_line_spoils_no_other(line: str, reason: str, path: Path) -> None:
    tuned.add(path, record_of(choices=ahead(4)))
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(line + "\n")
    tuned.add(path, record_of(D((2, 3, 7, 131), "f32", "bfyx"), D((2, 3, 7, 131), "f32", "byxf")))
    records, rejected = tuned.read(path)
    assert len(records) == 2
    assert [r.line for r in rejected] == [2]
    assert reason in rejected[0].reason
    with pytest.warns(cf.TunedWarning, match="1 unreadable in line 2"):
        assert found() == ahead(4)


def test_a_line_cut_at_any_place_is_ended_by_the_next_writer(path: Path) -> None:
    line = record_of().line.encode()
    for cut in range(1, len(line), 37):
        path.unlink(missing_ok=True)
        tuned.add(path, record_of(choices=ahead(4)))
        with path.open("ab") as file:
            file.write(line[:cut])
        tuned.add(path, record_of())
        records, rejected = tuned.read(path)
        assert [r.choices for r in records] == [ahead(4), ahead(8)]
        assert [r.line for r in rejected] == [2]


def test_random_bytes_as_a_file_are_a_miss(path: Path) -> None:
    path.parent.mkdir()
    # The first line is not blank, as one in some hundred would be: that is no record, and no fault.
    path.write_bytes(b"\x80" + os.urandom(100_000))
    with pytest.warns(cf.TunedWarning, match="unreadable in line 1"):
        assert found() is None


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nowhere", "link to itself"])
def test_what_is_no_file_is_a_miss(kind: str, path: Path) -> None:
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path if kind == "link to itself" else path.with_name("nowhere"))
    if kind == "link to nowhere":
        assert found() is None
        return
    with pytest.warns(cf.TunedWarning, match="cannot read the tuner's records"):
        assert found() is None
    with pytest.raises(cf.Error, match="cannot write the tuner's records"):
        tuned.add(path, record_of())


def test_a_huge_file_costs_no_more_than_its_end(path: Path) -> None:
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(50 << 30)  # a hole, which takes no place
    tuned.add(path, record_of())
    began = time.process_time()
    with pytest.warns(cf.TunedWarning, match="1 not read: before the last"):
        assert found() == ahead(8)
    assert time.process_time() - began < 5


def test_a_lookup_reads_the_file_once(path: Path) -> None:
    tuned.add(path, record_of())
    assert found() is not None
    path.unlink()
    records = tuned.lookup(DEVICE)
    assert records is not None
    assert records is tuned.lookup(DEVICE)
    assert len(records) == 1


# --- writers that fail ----------------------------------------------------------------------------


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere; run the tests as a user")
def test_a_folder_that_cannot_be_written_is_said(where: Path, path: Path) -> None:
    where.mkdir(mode=0o500)
    with pytest.raises(cf.Error, match=r"Permission denied.*CLFORMATS_TUNED"):
        tuned.add(path, record_of())
    assert found() is None


def test_a_folder_under_a_file_is_said_and_a_miss(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(cf.Error, match="cannot write"):
        tuned.add(tmp_path / "file" / "x.jsonl", record_of())


def test_a_full_disk_leaves_the_file_as_it_was(path: Path) -> None:
    """The limit cuts the write in the middle of a line, as a full disk does."""
    tuned.add(path, record_of(choices=ahead(4)))
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
        with pytest.raises(cf.Error, match="File too large; nothing is lost"):
            tuned.add(path, record_of())
        with pytest.raises(cf.Error, match="File too large; nothing is lost"):
            tuned.rewrite(path, lambda _: [record_of()] * 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert [f.name for f in path.parent.iterdir()] == [path.name]
    tuned.add(path, record_of())
    assert len(tuned.read(path)[0]) == 2


WRITER = """
import sys
from pathlib import Path
from clformats import records as tuned
from tests.schedules_support import random_problem, random_schedule
from tests.tuned_support import ahead, record_of
path = Path(sys.argv[1])
for n in range(int(sys.argv[2])):
    tuned.add(path, record_of(choices=ahead(n + 1)))
    print(n, flush=True)
"""
ROOT = Path(__file__).resolve().parents[2]


def writer(path: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(count)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_writers_at_once_lose_nothing(path: Path) -> None:
    writers = [writer(path, 60) for _ in range(3)]
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    records, rejected = tuned.read(path)
    assert not rejected
    assert Counter(r.choices for r in records) == {ahead(n): 3 for n in range(1, 61)}


def test_a_killed_writer_loses_nothing_that_was_stored(path: Path) -> None:
    for turn in range(3):
        before = len(tuned.read(path)[0])
        process = writer(path, 100_000)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(5 + turn)]
        process.kill()
        said += process.communicate()[0].splitlines()
        records, rejected = tuned.read(path)
        assert len(records) - before >= len(said) - 1
        assert len(rejected) <= turn + 1
    tuned.add(path, record_of())  # the lock of a killed process is free
    with silence():
        assert found() == ahead(8)


def test_a_writer_while_the_file_is_rewritten_loses_nothing(path: Path) -> None:
    process, rewritten = writer(path, 80), 0
    while process.poll() is None:
        if path.exists():
            tuned.rewrite(path, lambda records: records)
            rewritten += 1
    process.communicate()
    assert rewritten
    records, rejected = tuned.read(path)
    assert not rejected
    assert [r.choices for r in records] == [ahead(n) for n in range(1, 81)]
