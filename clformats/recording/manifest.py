"""A program as the files of an export, and back: docs/recording.md describes the format.

``manifest.json`` names the other files with their checksums, and ends with its own. What is read
is checked to the last field: a folder that is damaged, or edited by hand, is refused.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidRecording
from .fields import Fields
from .program import (
    CONSTANT,
    ROLES,
    Argument,
    Buffer,
    Command,
    Device,
    Fill,
    Given,
    Kernel,
    Local,
    OfBuffer,
    OfScalar,
    Program,
    Requires,
    Source,
    Variant,
)

FORMAT = "clformats recording"
VERSION = 1
"""The version of the format: raised where an older runner could not read what is written."""
MANIFEST, DATA = "manifest.json", "data.bin"
LINE, PAGE = 64, 4096
"""Constants begin at multiples of a line in ``data.bin``, and of a page where they fill one."""
SCALAR_BYTES = {"f32": 4, "f64": 8, "s32": 4, "u32": 4, "s64": 8, "u64": 8}


# --- writing --------------------------------------------------------------------------------------


class _Data:
    """The bytes of ``data.bin``: equal pieces are there once."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._known: dict[tuple[bytes, int], int] = {}

    def put(self, content: bytes, alignment: int) -> int:
        key = content, alignment
        if key not in self._known:
            self.bytes.extend(bytes(-len(self.bytes) % alignment))
            self._known[key] = len(self.bytes)
            self.bytes.extend(content)
        return self._known[key]


def written(program: Program) -> dict[str, bytes]:
    """The files of a program by their names; the manifest comes last."""
    data = _Data()
    buffers = []
    for b in program.buffers:
        at = b.at
        if b.role == CONSTANT:
            at = data.put(b.content, PAGE if b.nbytes >= PAGE else LINE)
        buffers.append({
            "name": b.name, "role": b.role, "bytes": b.nbytes, "alignment": b.alignment,
            "desc": b.desc, "at": at,
        })  # fmt: skip
    sources: dict[str, str] = {}
    for variant in program.variants:
        for source in variant.sources:
            sources.setdefault(source.text, f"kernels/{len(sources):03}.cl")
    variants = [_variant(v, program, data, sources) for v in program.variants]
    files = {DATA: bytes(data.bytes)}
    files |= {name: text.encode() for text, name in sources.items()}
    manifest = {
        "format": FORMAT, "version": VERSION, "made_by": f"clformats {program.made_by}",
        "name": program.name,
        "files": [
            {"file": name, "bytes": len(content), "crc32": zlib.crc32(content)}
            for name, content in files.items()
        ],
        "scalars": [{"name": s.name, "type": s.dtype} for s in program.scalars],
        "buffers": buffers, "arena_bytes": program.arena_bytes, "variants": variants,
    }  # fmt: skip
    return files | {MANIFEST: sealed(manifest)}


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """JSON whose last member is the checksum of all bytes before it."""
    head = json.dumps(manifest, indent=1).removesuffix("\n}").encode() + b",\n "
    return head + f'"crc32": {zlib.crc32(head)}\n}}\n'.encode()


def _variant(v: Variant, program: Program, data: _Data, files: Mapping[str, str]) -> dict[str, Any]:
    """A variant, its arguments put into the data."""
    sources = v.sources
    kernels: dict[str, int] = {}
    commands: list[dict[str, Any]] = []
    for c in v.commands:
        if isinstance(c, Fill):
            commands.append(
                {"fill": c.buffer, "value": c.value, "first": c.first, "bytes": c.nbytes}
            )
            continue
        kernel = json.dumps({
            "program": sources.index(c.source), "name": c.name,
            "arguments": [_kind(a) for a in c.arguments],
        })  # fmt: skip
        commands.append({
            "kernel": kernels.setdefault(kernel, len(kernels)),
            "arguments": [_argument(a, data) for a in c.arguments],
            "global": list(c.work), "local": list(c.local), "exact": c.exact,
        })  # fmt: skip
    names = [files[s.text] for s in sources]
    r = v.requires(program.buffers, program.arena_bytes)
    return {
        "name": v.name, "like": v.like,
        "tuned_for": [v.tuned_for.device, v.tuned_for.platform, v.tuned_for.driver]
        if v.tuned_for else [],
        "exact": v.exact,
        "requires": {
            "little_endian": True, "extensions": list(r.extensions), "opencl_c": r.opencl_c,
            "work_group": r.work_group, "largest_buffer": r.largest_buffer,
            "parameter_bytes": r.parameter_bytes, "rounded_division": r.rounded_division,
        },
        "programs": [
            {"file": name, "options": s.options, "rounds": s.rounds}
            for name, s in zip(names, sources, strict=True)
        ],
        "kernels": [json.loads(text) for text in kernels], "commands": commands,
    }  # fmt: skip


def _kind(a: Argument) -> str | int:
    """What a kernel takes in a place: a buffer, local memory, or so many bytes."""
    if isinstance(a, bytes):
        return len(a)
    return a.nbytes if isinstance(a, OfScalar) else "local" if isinstance(a, Local) else "buffer"


def _argument(a: Argument, data: _Data) -> dict[str, Any]:
    if isinstance(a, bytes):
        return {"data": [data.put(a, 8), len(a)]}
    if isinstance(a, OfBuffer):
        return {"buffer": a.number}
    return {"scalar": a.number} if isinstance(a, OfScalar) else {"local": a.nbytes}


# --- reading --------------------------------------------------------------------------------------

Reader = Callable[[str], bytes]
"""Gives a file of an export by its name; raises `InvalidRecording`."""


def read(reader: Reader) -> Program:
    """The program of an export. Raises `InvalidRecording` where anything is not as it should be."""
    raw = reader(MANIFEST)
    m = _checked(raw)
    files = {DATA: b""}
    for f in m.list("files"):
        name = f.text("file")
        content = reader(name)
        if len(content) != f.number("bytes") or zlib.crc32(content) != f.number("crc32"):
            raise InvalidRecording(f"{name} is not the file that was exported: export again")
        files[name] = content
    scalars = tuple(Given(s.text("name"), s.word("type", SCALAR_BYTES)) for s in m.list("scalars"))
    arena = m.number("arena_bytes")
    buffers = tuple(_buffer(b, files[DATA], arena) for b in m.list("buffers"))
    variants = tuple(
        _read_variant(v, files, buffers, [SCALAR_BYTES[s.dtype] for s in scalars])
        for v in m.list("variants")
    )
    if not variants:
        raise InvalidRecording("the manifest has no variants")
    made_by = m.text("made_by").removeprefix("clformats ")
    return Program(m.text("name"), buffers, scalars, arena, variants, made_by)


def _checked(raw: bytes) -> Fields:
    """The manifest, if it is one of ours and of a version that is known."""
    at = raw.rfind(b'"crc32"')
    try:
        found = json.loads(raw)
    except ValueError:  # RecursionError is none: json's reader is in C, and refuses
        found = None
    except RecursionError:
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InvalidRecording(f"{MANIFEST} is damaged, or none of a recording's: export again")
    m = Fields(found, MANIFEST)
    if m.number("version") > VERSION:
        raise InvalidRecording(
            f"{MANIFEST} is of version {m.number('version')}, this clformats reads up to "
            f"{VERSION}: take a newer clformats"
        )
    if m.number("crc32") != zlib.crc32(raw[:at]):
        raise InvalidRecording(f"{MANIFEST} was changed since it was exported: export again")
    return m


def _buffer(b: Fields, data: bytes, arena: int) -> Buffer:
    role, nbytes, at = b.word("role", ROLES), b.number("bytes"), b.number("at")
    if role == CONSTANT:
        content = b.part(data, at, nbytes)
        at = 0
    else:
        content = b""
    if role == "temporary":
        b.within(at, nbytes, arena)
    alignment = b.number("alignment", 1, 4096)
    return Buffer(b.text("name"), role, nbytes, alignment, b.text("desc"), content, at)


def _read_variant(
    v: Fields, files: Mapping[str, bytes], buffers: Sequence[Buffer], scalars: Sequence[int]
) -> Variant:
    sources = []
    for p in v.list("programs"):
        name = p.word("file", files)
        text = files[name].decode("utf-8", "replace")
        sources.append(Source(text, p.text("options"), p.flag("rounds")))
    kernels = [
        (k.of("program", sources), k.text("name"), k.items("arguments")) for k in v.list("kernels")
    ]
    commands = tuple(
        _command(c, kernels, buffers, scalars, files[DATA]) for c in v.list("commands")
    )
    names = v.items("tuned_for")
    if len(names) not in (0, 3) or not all(isinstance(n, str) for n in names):
        v.refuse("tuned_for")
    device = Device(*names) if names else None
    return Variant(v.text("name"), commands, device, v.word("like", ("", "cpu", "gpu")))


def _command(
    c: Fields,
    kernels: Sequence[tuple[Source, str, Sequence[Any]]],
    buffers: Sequence[Buffer],
    scalars: Sequence[int],
    data: bytes,
) -> Command:
    if "fill" in c:
        target: Buffer = c.of("fill", buffers)
        first, nbytes = c.number("first"), c.number("bytes")
        c.within(first, nbytes, target.nbytes)
        return Fill(c.number("fill"), c.number("value", 0, 255), first, nbytes)
    source, name, kinds = c.of("kernel", kernels)
    arguments = tuple(_read_argument(a, buffers, scalars, data) for a in c.list("arguments"))
    if [_kind(a) for a in arguments] != list(kinds):
        c.refuse("arguments")
    work, local = c.sizes("global"), c.sizes("local")
    if not work or len(local) not in (0, len(work)):
        c.refuse("global")
    return Kernel(source, name, arguments, work, local, c.text("exact"))


def _read_argument(
    a: Fields, buffers: Sequence[Buffer], scalars: Sequence[int], data: bytes
) -> Argument:
    if "buffer" in a:
        a.of("buffer", buffers)
        return OfBuffer(a.number("buffer"))
    if "scalar" in a:
        return OfScalar(a.number("scalar"), a.of("scalar", scalars))
    if "local" in a:
        return Local(a.number("local", 1))
    at = a.sizes("data", 2)
    return a.part(data, at[0], at[1])


def requirements(program: Program, variant: Variant) -> Requires:
    """What a device must have for a variant."""
    return variant.requires(program.buffers, program.arena_bytes)
