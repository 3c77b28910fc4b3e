"""What the tests of files share: running the commands, spoiling files, looking at folders."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats import cli, files

TO = "os_is_yx_isv16_osv16"
DIMS = (17, 15, 3, 2)
"""o, i, y, x: one more and one less than a block of `TO`."""


def values(dims: tuple[int, ...], dtype: Any = np.float32, seed: int = 7) -> Any:
    """Any bits, NaN and infinity among them."""
    size = int(np.prod(dims)) * np.dtype(dtype).itemsize
    return np.frombuffer(np.random.default_rng(seed).bytes(size), dtype).reshape(dims)


def finish_gguf(writer: Any) -> None:
    """Write what a ``gguf.GGUFWriter`` was given, and close its file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def done(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """The lines that a command prints when all is well."""
    status = cli.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    assert (status, captured.err) == (0, "")
    lines = captured.out.splitlines()
    assert any(line.endswith("read back, all equal") for line in lines)
    return lines


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line with which a command refuses."""
    status = cli.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    assert (status, captured.out) == (1, "")
    assert captured.err.startswith("clformats: ")
    assert captured.err.count("\n") == 1
    return captured.err


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too, with its bytes."""
    return {
        str(file.relative_to(folder)): file.read_bytes() if file.is_file() else b"a folder"
        for file in folder.rglob("*")
    }


def cut(data: bytes) -> Iterator[bytes]:
    """The file cut off after every byte but the last."""
    return (data[:k] for k in range(len(data)))


def spoiled(data: bytes, count: int, seed: int = 3) -> Iterator[bytes]:
    """The file with one or a few bytes changed, ``count`` times."""
    chance = random.Random(seed)  # noqa: S311  # the same damage in every run
    for _ in range(count):
        copy = bytearray(data)
        for _ in range(chance.choice([1, 1, 3])):
            k = chance.randrange(len(copy))
            digit = chance.choice(b'0123456789-,":')
            copy[k] = chance.choice(
                [chance.randrange(256), copy[k] ^ 1 << chance.randrange(8), digit]
            )
        yield bytes(copy)


def survives(job: Callable[[Path, Path], object], file: Path, data: bytes) -> bool:
    """Whether a job takes a file of these bytes; if not it raises `Error` and writes nothing."""
    out = file.parent / "out" / f"out{file.suffix}"
    out.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    try:
        job(file, out)
    except cf.Error:
        assert not list(out.parent.iterdir())
        return False
    out.unlink()
    assert file.read_bytes() == data
    assert not [f for f in out.parent.iterdir() if f.name != f"{out.name}.data"]
    return True


def small_pack(source: Path, target: Path) -> files.Summary:
    """Pack in small blocks: files that are spoiled in every place are small."""
    return files.pack_file(source, target, "OIhw4i4o")
