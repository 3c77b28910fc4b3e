"""Plans and their kernels, kept on disk: a second process neither plans nor renders what it finds.

Both follow from the request and from the library's own files, whatever the device is. An entry is
named by a hash of the two: of all that the request and its element types are, and of the names,
sizes and times of the files, so that with any change of a module or a template all entries are
misses. Where a file has changed since the process loaded the library, what runs is not what lies
there: then nothing is read or kept.

Entries lie beside the built programs, see `clformats.programs.cache`, and are trusted as these
are: each is a pickle, which says what runs as much as a program does. It holds its name, so that
what lies under another one is a miss, as is what cannot be read. The oldest go where there are too
many.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..problems.traits import Traits
from ..programs.cache import PLAN, cache_folder, read_entry, write_entry
from ..schedule import Request
from ..tensors.desc import MemoryDesc
from ..version import LOADED_NS

if TYPE_CHECKING:
    from ..quantised import QuantisedDesc

T = TypeVar("T")
Asked: TypeAlias = "Request | tuple[QuantisedDesc | MemoryDesc | Traits, ...]"
"""What is asked of a plan, or of a kernel of quantised tensors."""
MOST_KEPT = 2048
"""Entries of the folder, of about 17 KB each; a process that finds more removes the older half."""
MOST_WRITTEN = 512
"""Entries that a process writes: each shape of a program without fixed sizes would be one."""
SETTLED_NS = 10 * 10**9
"""Files that changed so shortly before the library was loaded may have changed while it was."""
_LIBRARY = Path(__file__).parents[1]
_OTHERS = tuple(f.name for f in fields(Request) if f.name not in ("src", "dst"))
"""What a request has beside its two descriptors."""
_written: list[Asked] = []


def made(asked: Asked, make: Callable[[], T]) -> T:
    """What ``make`` makes for ``asked``, or an earlier process has made; raises as it does."""
    found: T | None = find(asked)
    if found is None:
        keep(asked, found := make())
    return found


def find(asked: Asked) -> Any:
    """What an earlier process made; None for a miss of any kind."""
    file = _file(asked)
    data = read_entry(file) if file else None
    if not file or not data:
        return None
    reader = pickle.Unpickler(BytesIO(data))  # noqa: S301  # the user's own, as programs are
    reader.persistent_load = _parts(asked).__getitem__  # type: ignore[method-assign]
    try:
        name, found = reader.load()
    except Exception:  # noqa: BLE001  # whatever is wrong with it, it is made anew
        return None
    return found if name == file.name else None


def keep(asked: Asked, found: object) -> None:
    """Add an entry, if it can be; that a folder cannot be written is told where programs are."""
    file = _file(asked) if len(_written) < MOST_WRITTEN else None
    if file is None:
        return
    data, parts = BytesIO(), {id(part): k for k, part in enumerate(_parts(asked))}
    writer = _PlanWriter(data, protocol=5)
    writer.persistent_id = lambda part: parts.get(id(part))  # type: ignore[method-assign]
    with suppress(Exception):  # whatever is wrong, the caller has what was made
        if not _written:
            _remove_oldest(file.parent)
        _written.append(asked)
        writer.dump((file.name, found))
        write_entry(file, data.getvalue())


def written(traits: Traits) -> list[Request]:
    """The requests for a device that this process has added entries of."""
    return [one for one in _written if isinstance(one, Request) and one.traits == traits]


class _PlanWriter(pickle.Pickler):
    """Keeps dataclasses as calls of their classes, which takes half as long to read.

    What a problem remembers is not kept.
    """

    def reducer_override(self, given: Any) -> Any:
        """The call that makes ``given`` anew, where it takes all fields that are compared."""
        cls: Any = type(given)
        plain = "__dataclass_fields__" in vars(cls) and cls.__reduce__ is object.__reduce__
        if not plain or hasattr(cls, "__post_init__"):
            return NotImplemented
        known = [f for f in fields(cls) if f.init or f.compare]
        if any(f.kw_only or not f.init for f in known):
            return NotImplemented
        return cls, tuple(getattr(given, f.name) for f in known)


def _parts(asked: Asked) -> tuple[object, ...]:
    """What need not be kept, since who asks has it: a request prints all that it is."""
    return (asked, asked.choices, *_descs(asked)) if isinstance(asked, Request) else ()


def _file(asked: Asked) -> Path | None:
    """The entry of what is asked; None where nothing is kept."""
    folder, library = cache_folder(), state()
    if folder is None or not library:
        return None
    others = [getattr(asked, name) for name in _OTHERS] if isinstance(asked, Request) else asked
    text = f"{library} {[*map(_facts, _descs(asked))]} {others!r}"
    return folder / (hashlib.sha256(text.encode()).hexdigest() + PLAN)


def _facts(d: MemoryDesc) -> tuple[object, ...]:
    """All that a descriptor and its type are: users make types of their own, by any name.

    A text would say less of the type, and takes longer.
    """
    t, placed = d.dtype, [(p.size, p.stride) for p in d.placed]
    kind = t.name, t.bits, t.kind, t.numpy.str, t.floating, t.values, sorted(t.names.items())
    extra = d.geometry.extra
    return (*kind, d.format.name, d.dims, d.padded_dims, d.padding, placed, d.offset0, extra)


def _descs(asked: Asked) -> list[MemoryDesc]:
    """The tensors of numbers."""
    if not isinstance(asked, Request):
        return [d for d in asked if isinstance(d, MemoryDesc)]
    operands = asked.computation.operands if asked.computation else ()
    return [asked.src, asked.dst, *(o.desc for o in operands)]


@cache
def state() -> str:
    """What tells the library's files from those of other versions; empty if it is not known."""
    facts, newest = [sys.implementation.cache_tag], 0
    try:
        for path, found in _files(str(_LIBRARY)):
            facts.append(f"{path} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}")
            newest = max(newest, found.st_mtime_ns, found.st_ctime_ns)
    except OSError:  # an archive is no folder, an editor's lock is a link to nowhere
        return ""
    known = 0 < newest < LOADED_NS - SETTLED_NS
    return hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest() if known else ""


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The library's files, but those that Python makes of them. Raises OSError."""
    with os.scandir(folder) as found:
        for entry in sorted(found, key=lambda e: e.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                yield entry.path, entry.stat()


def _remove_oldest(folder: Path) -> None:
    """Where there are too many entries, remove the older half of what may stay."""
    files = [*folder.glob(f"*{PLAN}")]
    if len(files) <= MOST_KEPT:
        return
    times = {file: file.stat().st_mtime_ns for file in files}
    for file in sorted(files, key=times.__getitem__)[: -MOST_KEPT // 2]:
        file.unlink(missing_ok=True)
