"""PyTorch's element types, known by their names: torch itself is not needed."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.tensors.dtypes import as_dtype


class FakeType:
    """Prints as a torch.dtype does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


FakeType.__module__ = "torch"

TYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e5m2": "f8_e5m2",
    "int32": "s32",
    "int8": "s8",
    "uint8": "u8",
}


@pytest.mark.parametrize(("torch", "name"), TYPES.items())
def test_a_type_of_torch_is_an_element_type(torch: str, name: str) -> None:
    assert as_dtype(FakeType(torch)).name == name
    assert str(cf.MemoryDesc((2, 3), FakeType(torch), "ab")) == f"{name}:ab:2x3"


def test_others_are_refused() -> None:
    with pytest.raises(cf.InvalidDescriptor, match=r"unknown element type torch\.complex64"):
        as_dtype(FakeType("complex64"))


def test_names_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch")
    for theirs, name in TYPES.items():
        assert as_dtype(getattr(torch, theirs)).name == name
