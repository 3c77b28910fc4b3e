"""`clformats pack` and `unpack` of .npy files, and what holds for every kind of file."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clformats as cf
from clformats import cli, files
from clformats.files import common, run
from clformats.files.destination import destination
from tests.files_support import (
    DIMS,
    TO,
    contents,
    cut,
    done,
    refused,
    small_pack,
    spoiled,
    survives,
    values,
)
from tests.support import hurting_dims, random_values, same_bytes

Capture = pytest.CaptureFixture[str]
PLAIN = ("oiyx", "hwio", "ohwi", "iohw")
PACKED = f"f32:{TO}:17x15x3x2"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "w.npy"
    np.save(file, values(DIMS))
    return file


def record_of(file: Path) -> str:
    """What stands behind the array, read as numpy's manual says: by a second `np.load`."""
    with file.open("rb") as stream:
        np.load(stream)
        return str(np.load(stream)[()].decode())


# --- what is written ------------------------------------------------------------------------------


def test_the_file_holds_the_physical_elements_and_then_the_record(
    weights: Path, capsys: Capture
) -> None:
    out = weights.with_name("out.npy")
    lines = done(capsys, "pack", weights, "--from", "oiyx", "--to", TO, "-o", out)
    assert lines[0] == f"packed     array  f32:oiyx:17x15x3x2 -> {PACKED}"
    desc = cf.MemoryDesc.parse(PACKED)
    assert same_bytes(np.load(out), cf.pack(values(DIMS), desc))
    assert same_bytes(np.load(out, mmap_mode="r"), np.load(out))
    assert record_of(out) == f"clformats:{PACKED} from f32:oiyx:17x15x3x2"


@pytest.mark.parametrize("order", PLAIN)
@pytest.mark.parametrize("fortran", [False, True])
def test_axes_are_what_from_says(
    order: str, fortran: bool, tmp_path: Path, capsys: Capture
) -> None:
    logical = values(DIMS)
    axes = files.common.axes_of(cf.Format(order))
    array = logical.transpose(axes)
    source, out, back = (tmp_path / f"{n}.npy" for n in ("in", "out", "back"))
    np.save(source, np.asfortranarray(array) if fortran else np.ascontiguousarray(array))
    done(capsys, "pack", source, "--from", order, "--to", TO, "-o", out)
    assert same_bytes(np.load(out), cf.pack(logical, cf.MemoryDesc.parse(PACKED)))
    done(capsys, "unpack", out, "-o", back)
    assert np.load(back).shape == array.shape
    assert same_bytes(np.load(back), array)


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize(
    "name",
    ["OIhw4i16o4i", "goiyx", "gs_oiyx_gsv16", "g_os_is_yx_osv16_isv4", "b_fs_yx_fsv16", "aBx16b",
     "image_2d_weights_c4_fyx_b", "iy_xs_os_xsv2_osv8__ao32", "os_zyxi_osv16", "oiyx"],
)  # fmt: skip
def test_every_kind_of_format_comes_back(
    name: str, shift: int, tmp_path: Path, capsys: Capture
) -> None:
    fmt = cf.Format(name, ndims=3 if "x16b" in name else None)
    array = values(hurting_dims(fmt, shift))
    source, out, back = (tmp_path / f"{n}.npy" for n in ("in", "out", "back"))
    np.save(source, array)
    done(capsys, "pack", source, "--to", fmt, "-o", out)
    assert same_bytes(np.load(out), cf.pack(array, cf.MemoryDesc(array.shape, "f32", fmt)))
    done(capsys, "unpack", out, "-o", back)
    assert back.read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float16, np.int32, np.int8, np.uint8, ">f4", ">i4", "<f8"]
)
def test_element_types_of_numpy(dtype: Any, tmp_path: Path, capsys: Capture) -> None:
    array = values(DIMS, dtype)
    source, out, back = (tmp_path / f"{n}.npy" for n in ("in", "out", "back"))
    np.save(source, array)
    done(capsys, "pack", source, "--to", TO, "-o", out)
    done(capsys, "unpack", out, "-o", back)
    native = array.astype(array.dtype.newbyteorder("="))
    assert np.load(back).dtype == native.dtype
    assert same_bytes(np.load(back), native)


@pytest.mark.parametrize("name", ["bf16", "f8_e4m3", "f8_e5m2", "s4", "u4"])
def test_element_types_that_numpy_saves_as_raw_bytes(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    dtype = cf.tensors.dtypes.as_dtype(name)
    raw = values(DIMS, dtype.raw)
    array = (raw % 8 if dtype.is_packed else raw).view(dtype.numpy)
    source, out, back = (tmp_path / f"{n}.npy" for n in ("in", "out", "back"))
    np.save(source, array)
    assert "--as " in refused(capsys, "pack", source, "--to", TO, "-o", out)
    done(capsys, "pack", source, "--to", TO, "--as", name, "-o", out)
    assert same_bytes(np.load(out), cf.pack(array, cf.MemoryDesc(DIMS, name, TO)))
    done(capsys, "unpack", out, "-o", back)
    with back.open("rb") as stream:
        np.lib.format.read_magic(stream)
        np.lib.format.read_array_header_1_0(stream)
        assert stream.read() == array.tobytes()


def test_as_must_fit_the_elements(weights: Path, capsys: Capture) -> None:
    out = weights.with_name("out.npy")
    assert "leave --as bf16 out" in refused(
        capsys, "pack", weights, "--to", TO, "--as", "bf16", "-o", out
    )
    raw = weights.with_name("raw.npy")
    np.save(raw, values(DIMS, np.uint16).view(ml_dtypes.bfloat16))
    assert "--as bf16" in refused(
        capsys, "pack", raw, "--to", TO, "--as", "f8_e4m3", "-o", out
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f16", "bf16", "s8", "u8", "s4", "f64", "f8_e5m2"])
def test_pack_converts_and_unpack_goes_back_to_the_old_type(
    dtype: str, weights: Path, capsys: Capture
) -> None:
    array = random_values(np.random.default_rng(5), DIMS, "f32")
    array[0, 0, :, 0] = np.nan, np.inf, -0.0
    np.save(weights, array)
    out, back, kept = (weights.with_name(f"{n}.npy") for n in ("out", "back", "kept"))
    desc = cf.MemoryDesc(DIMS, dtype, TO)
    flat = cf.pack(array, desc)
    done(capsys, "pack", weights, "--to", TO, "--dtype", dtype, "-o", out)
    assert same_bytes(np.load(out), flat)
    done(capsys, "unpack", out, "-o", back)
    f32 = cf.tensors.dtypes.as_dtype("f32")
    np.testing.assert_array_equal(
        np.load(back), cf.tensors.dtypes.convert(cf.unpack(flat, desc), desc.dtype, f32)
    )
    done(capsys, "unpack", out, "--dtype", "f16", "-o", kept)
    assert np.load(kept).dtype == np.float16


def test_a_tensor_without_elements(tmp_path: Path, capsys: Capture) -> None:
    source, out, back = (tmp_path / f"{n}.npy" for n in ("in", "out", "back"))
    np.save(source, np.zeros((17, 0, 3, 2), np.float32))
    done(capsys, "pack", source, "--to", TO, "-o", out)
    assert np.load(out).shape == (0,)
    done(capsys, "unpack", out, "-o", back)
    assert back.read_bytes() == source.read_bytes()


def test_desc_reads_elements_that_pack_has_not_written(weights: Path, capsys: Capture) -> None:
    flat, back = weights.with_name("flat.npy"), weights.with_name("back.npy")
    np.save(flat, cf.pack(values(DIMS), cf.MemoryDesc.parse(PACKED)))
    assert "not packed" in refused(capsys, "unpack", flat, "-o", back)
    done(capsys, "unpack", flat, "--desc", PACKED, "-o", back)
    assert back.read_bytes() == weights.read_bytes()
    bf16 = weights.with_name("bf16.npy")
    array = values(DIMS, np.uint16).view(ml_dtypes.bfloat16)
    np.save(bf16, cf.pack(array, cf.MemoryDesc(DIMS, "bf16", TO)))
    done(capsys, "unpack", bf16, "--desc", f"bf16:{TO}:17x15x3x2", "--force", "-o", back)
    assert same_bytes(np.load(back), array)


# --- the target -----------------------------------------------------------------------------------


def test_an_existing_file_is_replaced_by_force_only(weights: Path, capsys: Capture) -> None:
    out = weights.with_name("out.npy")
    out.write_bytes(b"precious")
    before = contents(weights.parent)
    assert "give --force" in refused(capsys, "pack", weights, "--to", TO, "-o", out)
    assert contents(weights.parent) == before
    done(capsys, "pack", weights, "--to", TO, "--force", "-o", out)
    assert sorted(contents(weights.parent)) == ["out.npy", "w.npy"]
    assert np.load(out).ndim == 1


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_kept(
    links: bool, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = weights.with_name("out.npy")

    class Slow(files.Watch):
        def planned(self, nbytes: int) -> None:  # noqa: ARG002  # the protocol's
            out.write_bytes(b"precious")

    def none(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", none)
    with pytest.raises(cf.Error, match=r"out\.npy has appeared meanwhile: give --force"):
        files.pack_file(weights, out, TO, options=files.Options(watch=Slow()))
    assert out.read_bytes() == b"precious"
    assert sorted(contents(weights.parent)) == ["out.npy", "w.npy"]
    out.unlink()
    files.pack_file(weights, out, TO)
    assert sorted(contents(weights.parent)) == ["out.npy", "w.npy"]


def test_companions_go_with_a_file_that_must_not_come(tmp_path: Path) -> None:
    out = tmp_path / "a.onnx"

    def write() -> None:
        with destination(out, [], companions=[".data"], force=False) as written:
            written.write_bytes(b"main")
            written.with_name("a.onnx.data").write_bytes(b"data")
            out.write_bytes(b"precious")

    with pytest.raises(cf.Error, match="has appeared meanwhile"):
        write()
    assert contents(tmp_path) == {"a.onnx": b"precious"}


def test_what_force_replaces_keeps_mode_and_owner(weights: Path, capsys: Capture) -> None:
    out = weights.with_name("out.npy")
    out.write_bytes(b"secret")
    out.chmod(0o600)
    owner = (4711, 4712) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(out, *owner)
    done(capsys, "pack", weights, "--to", TO, "--force", "-o", out)
    found = out.stat()
    assert np.load(out).ndim == 1
    assert (found.st_mode & 0o777, found.st_uid, found.st_gid) == (0o600, *owner)


@pytest.mark.parametrize("way", ["itself", "symbolic", "hard", "dotted"])
def test_the_input_is_never_overwritten(way: str, weights: Path, capsys: Capture) -> None:
    out = weights.with_name("other.npy")
    if way == "symbolic":
        out.symlink_to(weights)
    elif way == "hard":
        os.link(weights, out)
    else:
        out = weights if way == "itself" else weights.parent / ".." / weights.parent.name / "w.npy"
    before = contents(weights.parent)
    told = refused(capsys, "pack", weights, "--to", TO, "--force", "-o", out)
    assert "is the input itself" in told
    assert contents(weights.parent) == before


def test_a_link_stays_a_link(weights: Path, capsys: Capture) -> None:
    link, target = weights.with_name("link.npy"), weights.with_name("target.npy")
    link.symlink_to(target)
    done(capsys, "pack", weights, "--to", TO, "-o", link)
    assert link.is_symlink()
    assert np.load(target).ndim == 1


def test_what_reads_back_wrong_never_reaches_its_place(
    weights: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(common.Watch):
        def moved(self, tensor: files.Tensor, before: cf.MemoryDesc, after: cf.MemoryDesc) -> None:
            self.told = tensor.name, str(before), str(after)

    class OneBitOff:
        def pack(self, array: Any, desc: cf.MemoryDesc) -> Any:
            flat = cf.pack(array, desc)
            flat.view(np.uint8)[5] ^= 1
            return flat

        unpack = staticmethod(cf.unpack)

    out, watch = weights.with_name("out.npy"), Wrong()
    out.write_bytes(b"precious")
    before = contents(weights.parent)
    with pytest.raises(files.Mismatch, match="tensor array read back"):
        files.pack_file(
            weights, out, TO, options=files.Options(force=True, mover=OneBitOff(), watch=watch)
        )
    assert watch.told == ("array", "f32:oiyx:17x15x3x2", PACKED)
    assert contents(weights.parent) == before
    monkeypatch.setattr(run, "_equal", lambda *_: False)
    assert cli.main(["pack", str(weights), "--to", TO, "-o", str(out), "--force"]) == 1
    assert "is not what was written" in capsys.readouterr().err
    assert contents(weights.parent) == before


def test_an_interruption_leaves_nothing_behind(weights: Path) -> None:
    class Interrupted(common.Watch):
        def checked(self, tensor: files.Tensor) -> None:
            raise KeyboardInterrupt(tensor.name)

    before = contents(weights.parent)
    with pytest.raises(KeyboardInterrupt):
        files.pack_file(
            weights, weights.with_name("o.npy"), TO, options=files.Options(watch=Interrupted())
        )
    assert contents(weights.parent) == before


def test_names_of_files_may_hold_anything(tmp_path: Path, capsys: Capture) -> None:
    source, out = tmp_path / "a 'b\"; rm\n$x.npy", tmp_path / "ö;\n'.npy"
    np.save(source, values(DIMS))
    lines = done(capsys, "pack", source, "--to", TO, "-o", out)
    assert len(lines) == 2
    assert np.load(out).ndim == 1
    refused(capsys, "pack", source, "--to", TO, "-o", out)
    refused(capsys, "pack", tmp_path / "no\n'\".npy", "--to", TO, "-o", tmp_path / "x.npy")


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pack", "w.npy", "--to", "os_is_yx_osv"], "unknown"),
        (["pack", "w.npy", "--to", "a\nb';\""], "unknown"),
        (["pack", "w.npy", "--to", "any"], "it has no layout"),
        (["pack", "w.npy", "--to", "winograd_2x3_s1_weights"], "transformed, not moved"),
        (["pack", "w.npy", "--to", "goiyx"], "rank 4, goiyx has 5 (g, o, i, y, x)"),
        (["pack", "w.npy", "--to", TO, "--from", "goiyx"], "expected two formats of one rank"),
        (["pack", "w.npy", "--to", TO, "--from", TO], "is no order of axes"),
        (["pack", "w.npy", "--to", TO, "--dtype", "f33"], "unknown element type 'f33'"),
        (["pack", "w.npy", "--to", TO, "--as", "f33"], "unknown element type 'f33'"),
        (["pack", "w.npy", "--to", TO, "--match", "w"], "has a tensor without one"),
        (["pack", "none.npy", "--to", TO], "cannot read none.npy: No such file"),
        (["pack", "w.bin", "--to", TO], "expected a name that ends in .npy"),
        (["pack", ".", "--to", TO], "cannot tell what kind of file"),
        (["pack", "folder.npy", "--to", TO], "Is a directory"),
        (["pack", "u16.npy", "--to", TO], "are not taken from .npy files"),
        (["pack", "bool.npy", "--to", TO], "are not taken from .npy files"),
        (["pack", "pickled.npy", "--to", TO], "pickled Python objects"),
        (["pack", "two.npy", "--to", TO], "has data after its array"),
        (["pack", "p.npy", "--to", TO], f"packed already, as {PACKED}"),
        (["unpack", "w.npy"], "not packed"),
        (["unpack", "p.npy", "--dtype", "u1"], "cannot have elements of type u1"),
        (["unpack", "p.npy", "--desc", PACKED], "leave out --desc"),
        (["unpack", "w.npy", "--desc", PACKED], "the tensor is f32 17x15x3x2"),
        (["unpack", "flat.npy", "--desc", "f32:nchw:*x15x3x2"], "known at execution only"),
        (["unpack", "flat.npy", "--desc", "f32:any:2x3"], "has no layout"),
        (["unpack", "flat.npy", "--desc", "nonsense"], "cannot read the descriptor"),
        (["unpack", "flat.npy", "--desc", "f32:oiyx:17x15x3x2"], "needs f32 1530"),
        (["unpack", "quantised.npy"], "expected elements of one type, got q4_0:gguf:1x32"),
        (["pack", "wide.npy", "--to", "ba", "--as", "f4_e2m1"], "has an element 0x1f, f4_e2m1 has"),
    ],
)
def test_refusals_leave_everything_as_it_was(
    arguments: list[str],
    told: str,
    weights: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = weights.parent
    monkeypatch.chdir(folder)
    files.pack_file("w.npy", "p.npy", TO, order="oiyx")
    np.save("flat.npy", np.load("p.npy"))
    np.save("u16.npy", np.zeros(DIMS, np.uint16))
    np.save("bool.npy", np.zeros(DIMS, np.bool_))
    np.save("wide.npy", np.array([[0x1F, 0x0F]], np.uint8).view("V1"))
    with Path("quantised.npy").open("wb") as file:
        np.save(file, np.zeros(18, np.uint8))
        np.save(file, np.array(b"clformats:q4_0:gguf:1x32 from q4_0:flat:1x32"))
    np.save("pickled.npy", np.full(DIMS, None), allow_pickle=True)
    Path("two.npy").write_bytes(2 * weights.read_bytes())
    Path("w.bin").write_bytes(weights.read_bytes())
    Path("folder.npy").mkdir()
    Path("out.npy").write_bytes(b"precious")
    before = contents(folder)
    assert told in refused(capsys, *arguments, "--force", "-o", "out.npy")
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("no/folder/out.npy", "No such file or directory"),
        ("out.safetensors", "kinds of files are not converted"),
        ("folder.npy", "no regular file"),
        ("/dev/null", "kinds of files are not converted"),
        (f"{'x' * 300}.npy", "File name too long"),
    ],
)
def test_targets_that_cannot_be(
    out: str, told: str, weights: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(weights.parent)
    Path("folder.npy").mkdir()
    before = contents(weights.parent)
    assert told in refused(capsys, "pack", weights, "--to", TO, "--force", "-o", out)
    assert contents(weights.parent) == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        PACKED,
        f"{PACKED} from f32:oiyx:17x15x3x3",
        f"{PACKED} from {PACKED}",
        f"{PACKED} from f32:any:17x15x3x2",
        f"{PACKED} from f32:oiyx:17x15x3x2 from f32:oiyx:17x15x3x2",
        "f32:any:17x15x3x2 from f32:oiyx:17x15x3x2",
        "f32:oiyx:*x15x3x2 from f32:oiyx:*x15x3x2",
        "f32:ab:100000000x100000000:strides=0x0 from f32:ab:100000000x100000000",
        "f32:ab:2x3:offset=1 from f32:ab:2x3",
        "f32:ab:2x3 from f32:ab:2x3:pad=1+0x0+0",
    ],
)
def test_records_that_pack_does_not_write_are_refused(
    text: str, tmp_path: Path, capsys: Capture
) -> None:
    with pytest.raises(cf.Error):
        files.Record.parse(text)
    source = tmp_path / "p.npy"
    with source.open("wb") as stream:
        np.save(stream, np.zeros(16 * 32 * 6, np.float32))
        np.save(stream, np.array(b"clformats:" + text.encode()))
    refused(capsys, "unpack", source, "-o", tmp_path / "out.npy")
    assert [f.name for f in tmp_path.iterdir()] == ["p.npy"]


def test_records_print_and_parse() -> None:
    for name in ("OIhw4i16o4i", "os_iyx_osv32", "aBcd16b", "image_2d_weights_c4_fyx_b"):
        for dtype in cf.DTYPES:
            packed = cf.MemoryDesc(DIMS, dtype, name)
            record = files.Record(packed, cf.MemoryDesc(DIMS, "f32", "hwio"))
            assert files.Record.parse(str(record)) == record


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A file and what pack makes of it."""
    source, packed = tmp_path / "w.npy", tmp_path / "p.npy"
    np.save(source, values((3, 2, 1, 2)))
    small_pack(source, packed)
    return source, packed


def test_cut_files_are_refused_at_every_length(small: tuple[Path, Path]) -> None:
    source, packed = small
    assert not any(survives(small_pack, source, data) for data in cut(source.read_bytes()))
    assert not any(survives(files.unpack_file, packed, d) for d in cut(packed.read_bytes()))


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required")  # as by Python 2
def test_spoiled_files_are_read_or_refused(small: tuple[Path, Path]) -> None:
    source, packed = small
    whole = source.read_bytes(), packed.read_bytes()
    assert {survives(small_pack, source, d) for d in spoiled(whole[0], 200)} == {True, False}
    assert {survives(files.unpack_file, packed, d) for d in spoiled(whole[1], 200)} == {True, False}


@pytest.mark.parametrize(
    "data", [b"PK\3\4" * 99, b"\x89PNG\r\n\x1a\n" * 9, b"{}", b"\x93NUMPY\3\0" + bytes(99)]
)
def test_foreign_files_are_refused(data: bytes, tmp_path: Path) -> None:
    assert not survives(small_pack, tmp_path / "x.npy", data)


@pytest.mark.parametrize(("name", "file"), [("safetensors", "a.safetensors"), ("onnx", "a.onnx")])
def test_a_missing_library_is_named_with_its_command(
    name: str, file: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, name, None)
    (tmp_path / file).write_bytes(b"")
    told = refused(capsys, "pack", tmp_path / file, "--to", TO, "-o", tmp_path / f"b-{file}")
    assert f"pip install {name}" in told


def test_words_of_several_codes_are_no_elements_of_four_bits(tmp_path: Path) -> None:
    """As a checkpoint of GPTQ has them; numbers that fit are converted as ever."""
    words = np.random.default_rng(0).integers(-(2**31), 2**31, (64, 32), np.int64).astype(np.int32)
    np.save(tmp_path / "qweight.npy", words)
    four = files.Options(dtype="u4", force=True)
    with pytest.raises(cf.Error, match="u4g128"):
        files.pack_file(tmp_path / "qweight.npy", tmp_path / "p.npy", "ba", options=four)
    np.save(tmp_path / "small.npy", words % 16)
    files.pack_file(tmp_path / "small.npy", tmp_path / "p.npy", "ba", options=four)


def test_a_long_record_is_told_in_a_short_line(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "w.npy"
    with file.open("wb") as stream:
        np.save(stream, np.zeros(16, np.float32))
        np.save(stream, np.array(b"clformats:" + b"9" * 1_000_000))
    assert len(refused(capsys, "unpack", file, "-o", tmp_path / "o.npy")) < 1000
