"""Quantised tensors of model files in another layout, or as an equal type; and back.

What is written is a ``.safetensors`` file, which can be mapped. A matrix in a layout that
checkpoints have becomes their tensors (``X.qweight`` ...); any other is one array of bytes, a
buffer for a device. The file's metadata has the descriptors: ``q4_0:flat:64x256 from
q4_0:gguf:64x256``. Of a ``.gguf`` everything in front of the tensors is kept, so that `unpack_file`
gives its bytes again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error, Unsupported, pattern
from ..quantised import QuantisedDesc
from ..quantised.exact import change_of
from ..quantised.host import is_same, move_into
from ..quantised.types import layout_names, type_named
from ..tensors.desc import MemoryDesc
from ..tensors.described import is_described
from .checkpoints import parts_of, read_tensors, stored_as
from .common import KEY, Options, Tensor, reading, shown
from .destination import destination
from .gguf import HEADER, Gguf, read_gguf
from .run import Mismatch, Summary
from .safetensors import Entry, SafetensorsFile, code_of, fill, prepare
from .stored import StoredTensor

Fill = Callable[[NDArray[np.uint8]], None]


@dataclass(frozen=True, slots=True)
class _Job:
    """A tensor of the source, and the descriptor that it gets; its own where it stays."""

    tensor: StoredTensor
    after: Any
    reason: str = ""

    @property
    def as_tensor(self) -> Tensor:
        return Tensor(
            self.tensor.name, self.tensor.kind, None, self.tensor.dims, self.tensor.nbytes
        )

    @property
    def record(self) -> str:
        return f"{self.after} from {self.tensor.desc}"


def is_layout(to: object) -> bool:
    """Whether a name is that of quantised tensors: ``transposed``, or ``u4g32:gptq``."""
    return str(to).rpartition(":")[2] in layout_names()


def is_packed(path: str | Path) -> bool:
    """Whether a file is one of `pack_quantised`."""
    if Path(path).suffix != ".safetensors":
        return False
    file = SafetensorsFile(Path(path))
    return HEADER in file.tensors or any(is_described(r) for r in file.records.values())


def pack_quantised(
    source: str | Path,
    target: str | Path,
    to: str,
    options: Options | None = None,
    *,
    client: Any = None,
) -> Summary:
    """Write ``target``, a .safetensors file: the quantised tensors of ``source`` in a layout.

    ``source`` is a .gguf file, or .safetensors of a quantised checkpoint. ``to`` is a layout, or
    type and layout such as ``u4g32:gptq``: then tensors whose values that type has exactly become
    it. All others are copied, each with its descriptor. Both files are mapped, and moved a few rows
    after the other. With ``client``, a ``distributed.Client``, its workers do so, each a tensor:
    they must see both files under the same paths. Raises `Error` where no tensor is moved.
    """
    options = options or Options()
    path, place = Path(source).resolve(), Path(target)
    _check_suffix(place, ".safetensors", "what can be mapped")
    file, tensors = _opened(path)
    jobs = [_job(t, to, options.match) for t in tensors.values()]
    if all(j.reason for j in jobs):
        first = sorted(jobs, key=lambda j: j.reason == "not matched")[:3]
        told = "; ".join(f"{shown(j.tensor.name)}: {j.reason}" for j in first)
        raise Error(f"nothing to do in {shown(str(path))}: {told or 'it has no tensors'}")
    entries, owners, metadata = _contents(path, file, jobs, options)

    def write(written: Path) -> None:
        starts = prepare(written, entries, metadata)
        for name, start in starts.items():
            if client is None or name not in owners:
                fill(written, start, entries[name])
        if client is not None:
            calls = [(str(path), str(written), owners[n].tensor.name, n, to, start)
                     for n, start in starts.items() if n in owners]  # fmt: skip
            _share(client, calls, owners, options)
        _check(SafetensorsFile(written), jobs, file, options)

    return _written(place, path, jobs, options, write)


def unpack_quantised(
    source: str | Path, target: str | Path, options: Options | None = None
) -> Summary:
    """Write ``target``: what `pack_quantised` made ``source`` of; a .gguf to the byte.

    Raises `Error` for another ending than the first file had.
    """
    options = options or Options()
    path, place = Path(source), Path(target)
    file = SafetensorsFile(path)
    is_gguf = HEADER in file.tensors
    _check_suffix(place, ".gguf" if is_gguf else ".safetensors", f"what {path.name} was made of")
    tensors = read_tensors(file)
    tensors.pop(HEADER, None)
    jobs = [_restoring(t, file.records.get(t.name, "")) for t in tensors.values()]

    def write(written: Path) -> None:
        if is_gguf:
            with reading(path, file.what):
                size = int(file.metadata.get(f"{KEY}.size", 0))
            views = Gguf.written(written, file.read(HEADER), size)
            for job in jobs:
                _fill(job, options)(views[job.tensor.name])
            back = read_gguf(written)
            _compare(jobs, lambda job: back[job.tensor.name].raw, options)
            return
        entries: dict[str, Entry] = {}
        for job in jobs:
            entries |= _entries(job, options, file)
        kept = {k: v for k, v in file.metadata.items() if not k.startswith(KEY)}
        for name, start in prepare(written, entries, kept).items():
            fill(written, start, entries[name])
        _check(SafetensorsFile(written), jobs, file, options)

    return _written(place, path, jobs, options, write)


def _contents(
    path: Path, file: SafetensorsFile | None, jobs: list[_Job], options: Options
) -> tuple[dict[str, Entry], dict[str, _Job], dict[str, str]]:
    """The tensors that are written, those that are moved with their jobs, and the metadata."""
    metadata: dict[str, str] = {**file.metadata} if file else {}
    entries: dict[str, Entry] = {}
    owners: dict[str, _Job] = {}
    for job in jobs:
        metadata |= _described(job, file)
        own = _entries(job, options, file)
        entries |= own
        owners |= {} if job.reason else dict.fromkeys(own, job)
    if file is None:
        header = Gguf(path).header()
        entries[HEADER] = Entry("U8", (header.size,), header.size, _copy(header))
        metadata[f"{KEY}.size"] = str(path.stat().st_size)
    return entries, owners, metadata


def _opened(path: Path) -> tuple[SafetensorsFile | None, dict[str, StoredTensor]]:
    """The file, where it is no .gguf, and its tensors."""
    if path.suffix == ".gguf":
        return None, read_gguf(path)
    if path.suffix != ".safetensors":
        raise Error(f"got {shown(str(path))}: quantised tensors are in .gguf and .safetensors")
    file = SafetensorsFile(path)
    return file, read_tensors(file)


def _check_suffix(place: Path, suffix: str, what: str) -> None:
    if place.suffix != suffix:
        raise Error(f"got {shown(str(place))} for {shown(what)}: expected a name that ends in "
                    f"{suffix}")  # fmt: skip


def _written(
    place: Path, source: Path, jobs: list[_Job], options: Options, write: Callable[[Path], None]
) -> Summary:
    """Let a file be written and moved to its place, and sum up."""
    with destination(place, (source,), companions=(), force=options.force) as written:
        options.watch.planned(sum(j.tensor.nbytes for j in jobs if not j.reason))
        write(written)
    for job in jobs:
        if job.reason:
            options.watch.untouched(job.as_tensor, job.reason)
    return Summary({j.tensor.name: j.after for j in jobs if not j.reason},
                   {j.tensor.name: j.reason for j in jobs if j.reason})  # fmt: skip


def _share(client: Any, calls: list[Any], owners: dict[str, _Job], options: Options) -> None:
    """Let the workers of a client fill the tensors of a file."""
    dask = import_module("distributed")
    left = Counter(job.tensor.name for job in owners.values())
    futures = {client.submit(filled_by_worker, *call, pure=False): call[3] for call in calls}
    try:
        for future in dask.as_completed([*futures]):
            future.result()
            job = owners[futures[future]]
            left[job.tensor.name] -= 1
            if not left[job.tensor.name]:
                options.watch.moved(job.as_tensor, job.tensor.desc, job.after)  # type: ignore[arg-type]
    finally:
        client.cancel([*futures])


def filled_by_worker(  # what travels to a worker, as plain values
    source: str, written: str, tensor: str, entry: str, to: str, start: int
) -> None:
    """Fill one tensor of a file that is being written, on a machine that sees both files."""
    path, place = Path(source), Path(written)
    for needed in (path, place):
        if not needed.exists():
            raise Error(f"this worker does not see {needed}: share the folder under this path")
    file, tensors = _opened(path)
    job = _job(tensors[tensor], to, None)
    entries = _entries(job, Options(), file)
    fill(place, start, entries[entry])
    with place.open("rb+") as stream:
        os.fsync(stream.fileno())  # other machines see it


# --- what is to be done ---------------------------------------------------------------------------


def _job(tensor: StoredTensor, to: str, match: str | None) -> _Job:
    """What becomes of a tensor."""
    own = tensor.desc
    if not pattern(match).search(tensor.name):
        return _Job(tensor, own, "not matched")
    if not isinstance(own, QuantisedDesc):
        return _Job(tensor, own, tensor.note or "no quantised tensor")
    name, _, layout = to.rpartition(":")
    kind = type_named(name) if name else own.dtype
    if layout not in kind.layouts:
        return _Job(tensor, own, f"{kind} has no layout {layout}")
    bits = [t.fields["q"].dtype.bits for t in (own.dtype, kind) if "q" in t.fields]
    if len(bits) == 2 and bits[1] < bits[0]:  # a few codes may fit; a whole file's do not
        return _Job(tensor, own, f"codes of {bits[0]} bits are not those of {kind}")
    try:
        change_of(own.dtype, kind)
        after = QuantisedDesc(own.dims, kind, layout)
        parts_of(tensor.name, after)
    except Error as error:
        return _Job(tensor, own, str(error))
    return _Job(tensor, after, "as it was" if after == own else "")


def _restoring(tensor: StoredTensor, record: str) -> _Job:
    before = record.partition(" from ")[2]
    after = MemoryDesc.parse(before) if is_described(record) else tensor.desc
    return _Job(tensor, after, "" if after != tensor.desc else "as it was")


# --- writing --------------------------------------------------------------------------------------


def _described(job: _Job, file: SafetensorsFile | None) -> dict[str, str]:
    quantised = isinstance(job.after, QuantisedDesc) and not (file and job.reason)
    return {f"{KEY}:{job.tensor.name}": job.record} if quantised else {}


def _entries(job: _Job, options: Options, file: SafetensorsFile | None) -> dict[str, Entry]:
    """The tensors of the file that hold one: its parts, or all of its bytes."""
    name, desc = job.tensor.name, job.after
    if file and job.reason:
        old = {n: file.tensors[n] for n in job.tensor.arrays}
        return {n: Entry(t.type_name, t.shape, t.nbytes, _copy(file.raw(n)))
                for n, t in old.items()}  # fmt: skip
    found = parts_of(name, desc) if isinstance(desc, QuantisedDesc) else None
    if found is not None:
        parts = enumerate(zip(desc.buffers, found, strict=True))
        return {n: Entry(code, shape, b.nbytes, _fill(job, options, k))
                for k, (b, (n, code, shape)) in parts}  # fmt: skip
    code = code_of(desc.dtype) if isinstance(desc, MemoryDesc) else None
    nbytes = job.tensor.nbytes if desc is None else desc.nbytes
    shape = desc.dims if code else (nbytes,)
    return {name: Entry(code or "U8", shape, nbytes, _fill(job, options))}


def _fill(job: _Job, options: Options, buffer: int | None = None) -> Fill:
    """What writes a tensor, or one buffer of it."""

    def write(out: NDArray[np.uint8]) -> None:
        before: Any = job.tensor.desc
        if isinstance(job.after, QuantisedDesc):
            try:
                move_into(out, job.tensor.buffers, before, job.after, buffer)
            except Unsupported as error:
                raise Error(
                    f"{shown(job.tensor.name)}: {error}; leave it out by --match"
                ) from error
        else:
            out[:] = job.tensor.raw.view(np.uint8)
        if not job.reason and not buffer:
            options.watch.moved(job.as_tensor, before, job.after)

    return write


def _copy(data: NDArray[np.uint8]) -> Fill:
    def write(out: NDArray[np.uint8]) -> None:
        out[:] = data

    return write


def _check(
    result: SafetensorsFile, jobs: list[_Job], file: SafetensorsFile | None, options: Options
) -> None:
    """Read the file that was written and compare. Raises `Mismatch`."""

    def found(job: _Job) -> Any:
        if file and job.reason:
            return np.concatenate([result.raw(n) for n in job.tensor.arrays])
        if isinstance(job.after, QuantisedDesc):
            return stored_as(result, job.tensor.name, job.after).buffers
        return result.raw(job.tensor.name)

    _compare(jobs, found, options)


def _compare(jobs: list[_Job], found: Callable[[_Job], Any], options: Options) -> None:
    for job in jobs:
        before: Any = job.tensor.desc
        if isinstance(job.after, QuantisedDesc) and not (job.reason and len(job.tensor.arrays) > 1):
            right = is_same(job.tensor.buffers, before, found(job), job.after)
        else:
            own = [np.ascontiguousarray(a).reshape(-1).view(np.uint8)
                   for a in job.tensor.arrays.values()]  # fmt: skip
            right = np.array_equal(np.concatenate(own), found(job).view(np.uint8))
        if not right:
            raise Mismatch(f"tensor {shown(job.tensor.name)} read back is not what was written")
        if not job.reason:
            options.watch.checked(job.as_tensor)
