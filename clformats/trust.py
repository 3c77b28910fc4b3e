"""Whether another user could have written a file, and files that no other user can read or change.

Programs, profiles, records and lists of drivers decide what runs in the user's process. So they are
read only where no one but the user and root can change what their path names: every folder and
every link on the way, and the file itself, belongs to one of the two, and none is writable for
others. A folder in which everybody may write but remove only what is theirs (mode 1777, as
``/tmp``) may stand on the way, not at the end. A group of the user's own, which has the user's name
and no other members, is the user.

Files are made with mode 0600, in folders with mode 0700, under names that cannot be foretold, and
moved to their places. Where users have no numbers (Windows) every path is trusted. Needs neither
OpenCL nor numpy.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path

_MOST_LINKS = 40


def foreign(path: Path) -> str:
    """Why another user could change what ``path`` names, for people; "" if none could.

    What is not there yet belongs to no one. Raises OSError where a folder cannot be examined.
    """
    if not hasattr(os, "geteuid"):
        return ""
    path = path.absolute()
    owners, last = (os.geteuid(), 0), str(path)
    try:
        for step, found in _steps(path, _MOST_LINKS):
            if found.st_uid not in owners:
                return f"{step} belongs to user {found.st_uid}"
            is_shared = bool(found.st_mode & stat.S_ISVTX) and step != last
            if not is_shared and _others_write(found):
                return f"{step} can be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    except FileNotFoundError:
        pass
    return ""


def is_trusted(path: Path) -> bool:
    """Whether ``path`` is there, is no link, and no other user could have changed it."""
    try:
        return not stat.S_ISLNK(os.lstat(path).st_mode) and not foreign(path)
    except OSError:
        return False


def read(path: Path) -> bytes:
    """The bytes of a regular file that no other user could have written.

    Raises OSError: PermissionError where one could, FileNotFoundError where there is none.
    """
    if reason := foreign(path.parent):
        raise PermissionError(errno.EPERM, reason, str(path))
    number = open_file(path, os.O_RDONLY)
    try:
        found = os.fstat(number)
        if _is_foreign(found):
            raise PermissionError(errno.EPERM, f"user {found.st_uid} could have written it", path)
        parts = iter(partial(os.read, number, found.st_size + 1), b"")
        return b"".join(parts)
    finally:
        os.close(number)


def open_file(path: Path, flags: int, mode: int = 0o600) -> int:
    """The number of an open regular file; neither a link nor a pipe is followed or waited for.

    Raises OSError.
    """
    # To open a pipe is to wait for its other end.
    number = os.open(path, flags | _NO_LINK | _NO_WAIT | _NO_HEIRS, mode)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return number


def write(path: Path, data: bytes, mode: int = 0o600, *, sync: bool = False) -> None:
    """Put a file at its place, complete. Raises OSError; then nothing has changed.

    With ``sync`` it is on the disk when this returns.
    """
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(number)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, with mode 0700. Raises OSError."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)


def make_own_folder(path: Path) -> None:
    """The same. Raises PermissionError where another user could change what is in it."""
    make_folder(path)
    if reason := foreign(path):
        raise PermissionError(errno.EPERM, reason, str(path))


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_NO_HEIRS = getattr(os, "O_CLOEXEC", 0)


def _steps(path: Path, links: int) -> Iterator[tuple[str, os.stat_result]]:
    """Every folder and link on the way to an absolute path, and itself. Raises OSError.

    As texts: each program and each plan that is read takes this way.
    """
    if links < 0:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    for step in accumulate(path.parts, os.path.join):
        found = os.lstat(step)
        yield step, found
        if stat.S_ISLNK(found.st_mode):
            link = Path(step)
            yield from _steps(link.parent / link.readlink(), links - 1)


def _is_foreign(found: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    return found.st_uid not in (os.geteuid(), 0) or _others_write(found)


def _others_write(found: os.stat_result) -> bool:
    """Whether others than the owner may write; the mode of a link says nothing."""
    if stat.S_ISLNK(found.st_mode):
        return False
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_own_group(found.st_gid)


def _is_own_group(number: int) -> bool:
    """Whether the group is only the user's: of the user's name, without other members."""
    import grp
    import pwd

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
        group = grp.getgrgid(number)
    except (KeyError, OSError):
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}
