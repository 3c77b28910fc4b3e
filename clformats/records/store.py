"""The files of records: one for each device, a record in each line.

A failing writer never damages the lines of others. Writers lock the file; readers need no lock. A
line is written in one call and synchronised to disk; if that fails, on a full disk for example, the
file is truncated to its old length. The next writer ends the part of a line that a killed writer
left, so that only that line is lost. A reader reads at most the last `MOST_BYTES`.

The files in the user's own folder are read only if no other user could have written them (see
`trust`). Who names another folder by `FOLDER` trusts what is there, and decides by the folder's
mode who may read and write: new files grant no more, and never let everybody write.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import platformdirs

from .. import trust
from ..errors import Error
from .record import DeviceNames, InvalidRecord, TuningRecord

FOLDER = "CLFORMATS_TUNED"
"""The environment variable that names the folder of the files; ``off`` switches records off."""
OFF = "off"
MOST_BYTES = 4 << 20
LOCK_SECONDS = 20.0


class Rejected(NamedTuple):
    """A line that is no record, by its number from 1, and the reason."""

    line: int
    reason: str
    text: str


def folder() -> Path | None:
    """The folder of the files; None if records are switched off, or there is no home folder."""
    given = os.environ.get(FOLDER)
    if given == OFF:
        return None
    return Path(given) if given else _default_folder()


def wanted_folder() -> Path:
    """The folder, for writers. Raises `Error` if records are off or it is no folder."""
    where = folder()
    if where is None and os.environ.get(FOLDER) != OFF:
        raise Error(f"there is no home folder for the tuner's records: set {FOLDER} to a folder")
    if where is None:
        raise Error(f"the tuner's records are switched off by {FOLDER}={OFF}: unset it")
    if where.exists() and not where.is_dir():
        raise Error(f"{FOLDER} is {where}, which is no folder: name one, or unset it")
    return where


@cache
def _default_folder() -> Path | None:
    """In the user's home; None where there is none, or one that is closed to this user."""
    try:
        found = Path(platformdirs.user_data_dir("clformats", appauthor=False)) / "tuned"
        found.exists()
    except (RuntimeError, OSError):  # the first: without HOME, of a user number without a name
        return None
    return found if found.is_absolute() else None


def check_trusted(path: Path) -> None:
    """Raise PermissionError for a path in the user's own folder that others could have written."""
    own = _default_folder()
    if own in (path, path.parent) and path.exists() and (reason := trust.foreign(path)):
        raise PermissionError(errno.EPERM, reason, str(path))


def make_folder(where: Path) -> int:
    """Make the folder of the files if it is missing; returns the mode of new files in it.

    Raises OSError.
    """
    trust.make_folder(where)
    check_trusted(where)
    return 0o600 | stat.S_IMODE(where.stat().st_mode) & 0o064


def path_of(device: DeviceNames, where: Path) -> Path:
    """The file of a device, whatever its driver."""
    words = re.sub(r"\W+", "-", f"{device.platform} {device.name}", flags=re.ASCII).strip("-")
    mark = sha256("\0".join(device[:2]).encode()).hexdigest()[:8]
    return where / f"{words[:80].lower()}-{mark}.jsonl"


class Line(Protocol):
    """What is kept: a record of a reorder, or of a kernel."""

    @property
    def line(self) -> str:
        """The record as a line of JSON."""
        ...


R = TypeVar("R")


def read(path: Path) -> tuple[list[TuningRecord], list[Rejected]]:
    """The records of reorders in a file, see `read_lines`."""
    return read_lines(path, TuningRecord.parse)


def read_lines(path: Path, parse: Callable[[str], R]) -> tuple[list[R], list[Rejected]]:
    """The records of a file, oldest first, and the rejected lines; both empty without a file.

    ``parse`` reads a line, and raises `InvalidRecord`. Raises `Error` if the file cannot be read.
    """
    try:
        text, first = _tail(path)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise Error(f"cannot read the tuner's records in {path}: {error.strerror}") from error
    records: list[R] = []
    rejected: list[Rejected] = []
    if not first:
        rejected.append(Rejected(0, f"not read: before the last {MOST_BYTES} bytes", ""))
    for number, line in enumerate(text.split("\n"), first):
        if line.strip():
            try:
                records.append(parse(line))
            except InvalidRecord as error:
                rejected.append(Rejected(number, str(error), line))
    return records, rejected


def _tail(path: Path) -> tuple[str, int]:
    """The end of a file, and the number of its first line; 0 where only the end was read."""
    check_trusted(path)
    # To open a pipe is to wait for its other end.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no regular file")
        skipped = max(found.st_size - MOST_BYTES, 0)
        file.seek(skipped)
        text = file.read(MOST_BYTES).decode("utf-8", "replace")
    return (text.partition("\n")[2], 0) if skipped else (text, 1)


def add(path: Path, record: Line) -> None:
    """Add a record to a file; it is on the disk when this returns.

    Raises `Error` if it cannot be written; the file is then unchanged.
    """
    with appending(path) as append:
        append(record)


@contextmanager
def appending(path: Path) -> Iterator[Callable[[Line], None]]:
    """What adds records to a file, see `add`; other writers wait until the block ends."""
    with _locked(path) as file:
        yield partial(_append, file)


def _append(file: int, record: Line) -> None:
    size = os.lseek(file, 0, os.SEEK_END)
    line = f"{record.line}\n".encode()
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line
    try:
        done = os.write(file, line)
        if done < len(line):
            os.write(file, line[done:])  # raises what the reason is
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise


def rewrite(path: Path, change: Callable[[list[TuningRecord]], Iterable[TuningRecord]]) -> None:
    """Replace a file's records by the result of ``change``, while other writers wait.

    Lines that are no records are removed. Raises `Error`; then nothing has changed.
    """
    with _locked(path) as file:
        text = "".join(f"{record.line}\n" for record in change(read(path)[0]))
        trust.write(path, text.encode(), stat.S_IMODE(os.fstat(file).st_mode), sync=True)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, opened for appending, and locked until the block ends."""
    try:
        file = _open_locked(path, make_folder(path.parent))
        try:
            yield file
        finally:
            os.close(file)  # and with it the lock
    except OSError as error:
        raise Error(
            f"cannot write the tuner's records to {path}: {error.strerror or error}; nothing is "
            f"lost there. {FOLDER} names another folder"
        ) from error


def _open_locked(path: Path, mode: int) -> int:
    end = time.monotonic() + LOCK_SECONDS
    while True:
        file = trust.open_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(path)):  # noqa: PTH116  # beside fstat
                return file
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(file)
                text = f"another process has had it locked for {LOCK_SECONDS:g} s"
                raise BlockingIOError(errno.EAGAIN, text, str(path)) from None
        except FileNotFoundError:
            pass  # replaced between the two
        os.close(file)
        time.sleep(0.01)
