"""Tensors of other libraries, by DLPack: fakes of torch's, since torch is not needed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clformats as cf
from clformats.tensors.dlpack import _opened, array_of, capsule_of

TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8_e4m3": ml_dtypes.float8_e4m3fn,
    "f8_e5m2": ml_dtypes.float8_e5m2,
    "s32": np.int32,
    "s8": np.int8,
    "u8": np.uint8,
}
SHAPE = (2, 3, 5, 7)


class Tensor:
    """Speaks DLPack and nothing else."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **wishes: Any) -> Any:
        return capsule_of(self.array, **wishes)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Torch(Tensor):
    """Its array cannot be had by ``np.asarray``, as torch's of bf16 cannot; it may be written."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")

    @property
    def dtype(self) -> str:
        return f"torch.{self.array.dtype.name}"


Torch.__module__ = "torch"


def values(dtype: str) -> Any:
    return np.arange(210).reshape(SHAPE).astype(TYPES[dtype])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", [Tensor, Torch])
def test_every_type_arrives(dtype: str, kind: type[Tensor]) -> None:
    if kind is Torch and dtype.startswith("f8"):
        pytest.skip("torch exports the bytes of f8, see below")
    array = values(dtype)
    got = array_of(kind(array))
    assert got.dtype == array.dtype
    assert got.tobytes() == array.tobytes()
    desc = cf.MemoryDesc(SHAPE, dtype, "nChw16c")
    assert cf.pack(kind(array), desc).tobytes() == cf.pack(array, desc).tobytes()
    assert cf.pack(kind(array), "nhwc").tobytes() == cf.pack(array, "nhwc").tobytes()


def test_torch_gives_the_bytes_of_f8(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    class Float8(Torch):
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("float8 types are not supported by dlpack")

        def view(self, dtype: Any) -> Torch:
            return Torch(self.array.view(dtype))

    Float8.__module__ = "torch"
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(uint8=np.uint8))
    for dtype in ("f8_e4m3", "f8_e5m2"):
        got = array_of(Float8(values(dtype)))
        assert got.dtype == TYPES[dtype]
        assert got.tobytes() == values(dtype).tobytes()


def test_strides_and_offsets_are_kept() -> None:
    array = np.arange(1000, dtype=np.float32)[7:7 + 840].reshape(4, 3, 5, 14)  # fmt: skip
    for seen in (array[::2, :, 1:, ::2], array.transpose(0, 2, 3, 1), array[:0]):
        assert np.array_equal(array_of(Tensor(seen)), seen)
    assert array_of(Tensor(array)).ctypes.data == array.ctypes.data


def test_the_array_keeps_the_tensor() -> None:
    class Counted(np.ndarray[Any, Any]):
        pass

    array = np.arange(6.0).view(Counted)
    gone = weakref.ref(array)
    got = array_of(Tensor(array))
    del array
    gc.collect()
    assert gone() is not None
    assert got[5] == 5
    del got
    gc.collect()
    assert gone() is None


def test_only_torch_may_be_written_without_a_word() -> None:
    class Old(Tensor):
        def __dlpack__(self) -> Any:  # type: ignore[override]
            return capsule_of(self.array)

    class OldTorch(Old):
        pass

    OldTorch.__module__ = "torch"
    OldTorch.dtype = "torch.float32"  # type: ignore[attr-defined]
    assert not array_of(Old(values("f32"))).flags.writeable
    assert array_of(OldTorch(values("f32"))).flags.writeable


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(cf.InvalidDescriptor, match=r"on a device \(type 2 .*tensor.cpu\(\)"):
        array_of(Tensor(values("f32"), device=2))
    with pytest.raises(cf.InvalidDescriptor, match="type 5 with 64 bits"):
        array_of(Tensor(np.zeros(3, np.complex64)))
    with pytest.raises(cf.InvalidDescriptor, match="got int, expected a tensor in host memory"):
        array_of(5)
    negated = Torch(values("f32"))
    negated.is_neg = lambda: True  # type: ignore[attr-defined]
    with pytest.raises(cf.InvalidDescriptor, match=r"give tensor\.resolve_neg\(\)"):
        array_of(negated)


@pytest.mark.device
@pytest.mark.parametrize("dtype", ["bf16", "f8_e4m3", "f32"])
def test_on_devices(dtype: str, engine: cf.Engine) -> None:
    array = values(dtype)
    tensor, result = Tensor(array), Torch(np.zeros_like(array))
    memory = cf.from_dlpack(tensor, engine, format="nChw16c")
    for made in (memory, cf.from_numpy(tensor, engine, format="nChw16c")):
        assert made.numpy().tobytes() == array.tobytes()
        assert array_of(made).tobytes() == array.tobytes()
    if not dtype.startswith("f8"):
        cf.transfer(memory, result)
        assert result.array.tobytes() == array.tobytes()
    cf.transfer(tensor, memory)
    assert memory.numpy().tobytes() == array.tobytes()
    with pytest.raises(cf.InvalidDescriptor, match="come to the host by a copy"):
        cf.from_host(memory, engine)


@pytest.mark.device
def test_host_memory_in_place(engine: cf.Engine) -> None:
    if not engine.traits.is_cpu:
        pytest.skip("only devices that share the host's memory")
    tensor = Torch(values("bf16"))
    with cf.from_host(tensor, engine) as memory:
        assert memory.desc.dtype.name == "bf16"
        assert memory.numpy().tobytes() == tensor.array.tobytes()
        with memory.map("rw") as flat:
            flat[0] = 9
        assert tensor.array[0, 0, 0, 0] == 9


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_library_that_is_not_ours(dtype: str) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="pip install jax")
    tensor = jnp.arange(24).reshape(2, 3, 4).astype(dtype)
    got = array_of(tensor)
    assert got.dtype == np.asarray(tensor).dtype
    assert got.tobytes() == np.asarray(tensor).tobytes()
    assert not got.flags.writeable  # jax's tensors never change


class Liar:
    """Hands out what is no capsule of DLPack, or one whose numbers are wrong."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: object) -> object:
        return self._capsule


def lying(field: str, value: int) -> object:
    capsule = capsule_of(np.ones((2, 3), np.float32))
    setattr(_opened(capsule)[0], field, value)
    return capsule


def other_capsule() -> object:
    import datetime as dt

    return dt.datetime_CAPI  # a capsule of Python's own


@pytest.mark.parametrize(
    "make",
    [lambda: None, lambda: 3, other_capsule, lambda: lying("ndim", -1), lambda: lying("ndim", 99)],
)
def test_bad_capsules_are_refused(make: Any) -> None:
    with pytest.raises(cf.InvalidDescriptor, match="expected a tensor in host memory"):
        array_of(Liar(make()))
