"""What others could have written is not read, and what is written only its user can read."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clformats as cf
from clformats import records as tuned
from clformats import trust
from clformats.doctor import caches, icd
from clformats.programs import cache as programs
from clformats.programs.processor import processor
from clformats.records import store
from clformats.records.processors import ProcessorRecord, find_processor, processors_file
from tests.tiers import tiered
from tests.tuned_support import DEVICE, record_of

ROOT = Path(__file__).resolve().parents[2]
OTHER = 12345
RECORD = record_of()
IS_ROOT = os.geteuid() == 0

give_away = pytest.mark.skipif(not IS_ROOT, reason="gives files to another user: run it as root")
Poison = Callable[[Path], None]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def anybody(path: Path) -> None:
    path.chmod(0o777 if path.is_dir() else 0o666)


def another(path: Path) -> None:
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


ways = pytest.mark.parametrize("poison", [anybody, pytest.param(another, marks=give_away)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a" / "b" / "file"
    trust.make_own_folder(path.parent)
    trust.write(path, b"data")
    return path


# --- paths ----------------------------------------------------------------------------------------


def test_what_is_written_is_the_users_alone(file: Path) -> None:
    assert trust.read(file) == b"data"
    assert (mode_of(file), mode_of(file.parent), mode_of(file.parents[1])) == (0o600, 0o700, 0o700)
    assert trust.is_trusted(file)
    assert trust.foreign(file.parent / "not" / "there") == ""
    assert not trust.is_trusted(file.with_name("other"))


@ways
@pytest.mark.parametrize("which", [0, 1, 2], ids=["file", "folder", "above"])
def test_what_others_could_have_written_is_not_read(file: Path, which: int, poison: Poison) -> None:
    poisoned = (file, *file.parents)[which]
    poison(poisoned)
    assert str(poisoned) in trust.foreign(file)
    assert not trust.is_trusted(file)
    with pytest.raises(PermissionError):
        trust.read(file)
    if which:
        with pytest.raises(PermissionError, match=str(poisoned)):
            trust.make_own_folder(file.parent)


def test_a_shared_folder_may_stand_on_the_way_but_not_at_the_end(file: Path) -> None:
    file.parents[1].chmod(0o1777)
    assert trust.read(file) == b"data"
    file.parent.chmod(0o1777)
    with pytest.raises(PermissionError):
        trust.read(file)


def test_a_group_of_the_users_own_is_the_user(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.chmod(0o770)
    monkeypatch.setattr(trust, "_is_own_group", lambda number: False)
    assert trust.foreign(file)
    monkeypatch.setattr(trust, "_is_own_group", lambda number: True)
    assert not trust.foreign(file)


def test_a_link_is_followed_to_a_folder_but_not_to_a_file(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    assert trust.read(link / file.name) == b"data"
    (file.parent / "other").symlink_to(file)
    with pytest.raises(OSError, match="symbolic links"):
        trust.read(file.parent / "other")
    assert not trust.is_trusted(file.parent / "other")
    anybody(file.parents[1])
    assert str(file.parents[1]) in trust.foreign(link / file.name)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="symbolic links"):
        trust.foreign(tmp_path / "loop")


@give_away
def test_a_link_that_somebody_else_made_is_not_followed(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    another(link)
    assert str(link) in trust.foreign(link / file.name)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(OSError, match="no regular file"):
        trust.read(tmp_path / "pipe")


# --- programs and drivers -------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("which", [0, 1], ids=["file", "folder"])
def test_a_program_that_others_could_have_written_is_a_miss(
    tmp_path: Path, which: int, poison: Poison
) -> None:
    file = tmp_path / "programs" / "key"
    programs._write(file, b"binary")
    assert programs.read_entry(file) == b"binary"
    assert mode_of(file) == 0o600
    poison((file, file.parent)[which])
    assert programs.read_entry(file) is None


@ways
def test_a_folder_of_drivers_that_others_could_have_made_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, poison: Poison
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entries = {"clformats-intel.icd": tmp_path / "libintelocl.so"}
    planted = tmp_path / "clformats" / icd.folder_name(entries)
    planted.mkdir(parents=True)
    (planted / "evil.icd").write_text("/evil.so\n", encoding="utf-8")
    poison(planted)
    found = icd._place(entries)
    assert [f.name for f in icd.icd_files(found)] == ["clformats-intel.icd"]
    assert not found.is_relative_to(tmp_path / "clformats")
    environ = {"OCL_ICD_VENDORS": str(planted)}  # as a child inherits it
    icd._drop_stale_folder(environ)
    assert not environ


# --- the cache folder -----------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(caches.VARIABLE, str(tmp_path))
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    return tmp_path


@ways
@pytest.mark.parametrize("name", ["clformats", "pocl", "pytools"])
def test_a_cache_of_others_is_replaced_for_this_process(
    home: Path, name: str, poison: Poison
) -> None:
    assert caches.provide_cache_folder() == ""
    assert os.environ[caches.VARIABLE] == str(home)
    (home / name).mkdir()
    poison(home / name)
    told = caches.provide_cache_folder()
    assert str(home / name) in told
    assert "\n" not in told
    assert not Path(os.environ[caches.VARIABLE]).is_relative_to(home)
    assert not list((home / name).iterdir())


def test_a_full_disk_is_told_and_a_temporary_folder_serves(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert "No space left on device" in caches.provide_cache_folder()
    assert os.environ[caches.VARIABLE] != str(home)


def test_a_disk_that_is_nearly_full_is_left_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL ends a process that finds it full, in the middle of a build."""
    full = SimpleNamespace(f_blocks=1 << 20, f_bavail=1 << 10, f_frsize=1 << 12)
    real = os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda folder: full if folder == home else real(folder))
    assert "less than 16 MiB are free" in caches.provide_cache_folder()
    assert os.environ[caches.VARIABLE] != str(home)
    monkeypatch.setenv(caches.VARIABLE, str(home))
    monkeypatch.setattr(os, "statvfs", lambda _: full)  # nor has the disk of temporary files room
    assert "and no temporary one either" in caches.provide_cache_folder()
    assert os.environ[caches.VARIABLE] == str(home)
    full.f_blocks = 0  # a file system that does not tell
    assert caches.provide_cache_folder() == ""


@pytest.mark.device
def test_a_disk_that_fills_later_costs_pyopencls_cache_only(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl as cl

    kernel = cl.Kernel

    def of_a_full_disk(*arguments: Any) -> cl.Kernel:
        if not vars(cl)["_PYOPENCL_NO_CACHE"]:
            raise sqlite3.OperationalError("database or disk is full")
        return kernel(*arguments)

    monkeypatch.setattr(cl, "_PYOPENCL_NO_CACHE", False)
    monkeypatch.setattr(cl, "Kernel", of_a_full_disk)
    with pytest.warns(cf.CacheWarning, match="disk is full"):
        made = engine.kernel("kernel void later(global int *a) { *a = 1; }", "later")
    assert made.function_name == "later"


def test_an_empty_name_of_pocls_folder_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCL_CACHE_DIR", "")
    assert caches.provide_cache_folder() == ""
    assert "POCL_CACHE_DIR" not in os.environ


def test_the_warning_has_a_category_and_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(cf.CacheWarning) as told:
        cf.errors.warn("told", cf.CacheWarning)
    assert told[0].filename == __file__
    assert issubclass(cf.CacheWarning, RuntimeWarning)


QUICK_START = """
import numpy as np, clformats as cf
m = cf.from_numpy(np.ones((2, 17, 5, 4), "f4"))
assert cf.to_numpy(cf.reorder(m, "nChw16c")).sum() == 680
"""


@give_away
@pytest.mark.device
@pytest.mark.parametrize(
    "place", tiered(["nowhere", "/root", "of another", "shared"], ["nowhere", "shared"])
)
def test_a_user_without_a_name_and_a_home_has_one_clear_line(tmp_path: Path, place: str) -> None:
    environ = {k: v for k, v in os.environ.items() if k not in {"HOME", "XDG_CACHE_HOME"}}
    environ.pop("CLFORMATS_TUNED", None)
    closed = tmp_path / "clformats-vendors-0123456789abcdef"  # as inherited from another user
    closed.mkdir()
    environ["OCL_ICD_VENDORS"] = str(closed)
    folder = Path("/tmp") / f"clformats-test-{os.getpid()}"  # noqa: S108  # pytest's is root's alone
    folder.mkdir(mode=0o1777)
    folder.chmod(0o1777)
    if place == "/root":
        environ["HOME"] = "/root"
    elif place == "of another":
        environ["XDG_CACHE_HOME"] = str(folder)
        trust.make_own_folder(folder / "clformats")
    elif place == "shared":
        environ["HOME"] = str(folder)
    setpriv = shutil.which("setpriv") or pytest.skip("needs setpriv (apt install util-linux)")
    user = [setpriv, f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{QUICK_START}"
    line = [*user, sys.executable, "-c", code]
    try:
        done = subprocess.run(
            line, env=environ, cwd="/", capture_output=True, text=True, check=False
        )
    finally:
        shutil.rmtree(folder)
    if "setpriv: failed" in done.stderr or "No module named" in done.stderr:
        pytest.skip("this Python is closed to other users")
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert len(told) == (place != "shared"), done.stderr
    assert all("CacheWarning" in text for text in told)


# --- records and profiles -------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in the user's home."""
    monkeypatch.delenv(store.FOLDER, raising=False)
    monkeypatch.setattr(store, "_default_folder", lambda: tmp_path / "home" / "tuned")
    return tmp_path / "home" / "tuned"


@ways
@pytest.mark.parametrize("which", [0, 1], ids=["file", "folder"])
def test_records_and_profiles_that_others_could_have_written_are_not_read(
    own: Path, which: int, poison: Poison
) -> None:
    path = tuned.path_of(DEVICE, own)
    tuned.add(path, RECORD)
    tuned.add(
        processors_file(DEVICE, own), ProcessorRecord(DEVICE, processor(), 1 << 24, 40, "now")
    )
    profile = processors_file(DEVICE, own)
    assert tuned.read(path) == ([RECORD], [])
    assert find_processor(DEVICE, own) is not None
    assert [mode_of(p) for p in (path, profile, own)] == [0o600, 0o600, 0o700]
    for poisoned in (path, profile) if which == 0 else (own,):
        poison(poisoned)
    assert find_processor(DEVICE, own) is None
    with pytest.raises(cf.Error, match=r"belongs to user|written by others"):
        tuned.read(path)
    tuned.forget()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert not tuned.lookup(DEVICE)
    assert len(told) == 1
    with pytest.raises(cf.Error, match=r"belongs to user|written by others"):
        store.rewrite(path, list)


def test_who_names_a_folder_trusts_it_and_its_mode_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "team"
    where.mkdir()
    where.chmod(0o2775)
    monkeypatch.setenv(store.FOLDER, str(where))
    path = tuned.path_of(DEVICE, where)
    umask = os.umask(0o002)
    try:
        tuned.add(path, RECORD)
        tuned.add(processors_file(DEVICE, where), ProcessorRecord(DEVICE, "x", 1 << 24, 40, "now"))
        store.rewrite(path, list)
    finally:
        os.umask(umask)
    assert tuned.read(path) == ([RECORD], [])
    assert mode_of(path) == mode_of(processors_file(DEVICE, where)) == 0o664


def test_planted_links_are_not_written_through(tmp_path: Path) -> None:
    path, victim = tmp_path / "x.jsonl", tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    tuned.add(path, RECORD)
    (tmp_path / f".x.jsonl.{os.getpid()}").symlink_to(victim)
    store.rewrite(path, list)
    assert tuned.read(path) == ([RECORD], [])
    path.unlink()
    path.symlink_to(victim)
    with pytest.raises(cf.Error, match="symbolic links"):
        tuned.add(path, RECORD)
    assert victim.read_text(encoding="utf-8") == "precious"


def test_a_lock_of_others_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(store, "LOCK_SECONDS", 0.05)
    path = tmp_path / "x.jsonl"
    tuned.add(path, RECORD)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        with pytest.raises(cf.Error, match=r"another process has had it locked for 0\.05 s"):
            tuned.add(path, RECORD)
