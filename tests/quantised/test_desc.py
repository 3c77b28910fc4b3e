"""Descriptors of quantised tensors stand where others stand: what they answer, and what not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.quantised.test_table import ALL, described

PLAIN = cf.MemoryDesc((8, 64), "f32")


@pytest.mark.parametrize("name", [n for n in dir(PLAIN) if not n.startswith("_")])
def test_a_method_of_descriptors_works_or_is_refused(name: str) -> None:
    """Where it is refused the message tells where else to look, and `hasattr` is false."""
    desc = described((8, 64), "q4_0")
    if not hasattr(desc, name):
        with pytest.raises(cf.Unsupported, match=r"by cf.unpack or cf.Reorder.*\[QUANTISED\]"):
            getattr(desc, name)


def test_what_no_descriptor_has_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = described((8, 64), "q4_0").colour


@pytest.mark.parametrize(("name", "layout"), ALL)
def test_a_bit_leads_back_to_its_element(name: str, layout: str) -> None:
    """Law 1: `coords` of `offset`, of every plane; of a group the first element."""
    desc = described((64, 512), name, layout)
    rng = np.random.default_rng(3)
    for field in desc.fields.values():
        for plane in field.planes:
            index = [int(rng.integers(n)) for n in desc.dims]
            bit = desc.offset(*index, plane=plane.name) + int(rng.integers(plane.bits))
            groups = [g or n for g, n in zip(field.group, desc.dims, strict=True)]
            first = tuple(i // g * g for i, g in zip(index, groups, strict=True))
            assert desc.coords(bit, plane.name) == first


def test_padding_and_other_planes_bits_have_no_element() -> None:
    desc = described((2, 3, 8, 64), "q4_0")
    assert desc.coords(0) is None
    assert desc.coords(0, "d") == (0, 0, 0, 0)
    assert desc.coords(desc.offset(1, 2, 3, 40)) == (1, 2, 3, 40)
    assert described((3, 70), "mlc_q4f16", "q=n k/8 k%8; s=n g").coords(4 * 71) is None
    with pytest.raises(IndexError, match="outside"):
        desc.coords(8 * desc.nbytes)
    assert np.array_equal(
        desc.offsets("d")[1, 2, :, 40], desc.offset(1, 2, np.arange(8), 40, plane="d")
    )


@pytest.mark.parametrize("name", ["s4", "u4", "s2", "u2"])
def test_codes_are_taken_as_integers_of_ml_dtypes(name: str) -> None:
    kind = cf.QuantisedType("own", {"q": (name, (1, 1)), "d": ("f16", (1, 16))}, "d * q")
    desc: Any = cf.MemoryDesc((2, 16), kind)
    own = cf.tensors.dtypes.as_dtype(name).numpy
    few = np.arange(-2 if name[0] == "s" else 0, 2)
    fields: dict[str, Any] = {"q": np.resize(few, (2, 16)), "d": np.ones((2, 1), np.float16)}
    narrow = {**fields, "q": fields["q"].astype(own)}
    assert (cf.pack(narrow, desc) == cf.pack(fields, desc)).all()


def test_descriptors_that_add_other_numbers_are_not_equal() -> None:
    """GPTQ's two versions differ in the zero point alone."""
    one, two = (described((64, 256), "u4g128", n) for n in ("gptq", "gptq_v2"))
    assert one != two
    assert one.with_layout("gptq_v2") == two


EMPTY = [("q4_0", "gguf"), ("q4_K", "gguf"), ("u4g128", "gptq"), ("u3g32", "gptq"),
         ("bnb_nf4", "bitsandbytes"), ("nvfp4_times", "swizzled")]  # fmt: skip


@pytest.mark.parametrize("dims", [(0, 256), (8, 0), (0, 8, 256), (0,)])
@pytest.mark.parametrize(("name", "layout"), EMPTY)
def test_tensors_without_elements_have_no_bytes(
    name: str, layout: str, dims: tuple[int, ...]
) -> None:
    desc = described(dims, name, layout)
    assert desc.nbytes == 0
    assert cf.MemoryDesc.parse(str(desc)) == desc
    raw = np.zeros(0, np.uint8)
    fields = {n: cf.unpack(raw, desc, field=n) for n in desc.fields}
    assert cf.pack(fields, desc).shape == (0,)
    assert cf.unpack(raw, desc).shape == desc.offsets().shape == dims


def test_tensors_without_elements_are_reordered(stream: cf.Stream) -> None:
    src, dst = described((0, 256), "q4_K"), cf.MemoryDesc((0, 256), "f32")
    memories = [cf.Memory(d, stream.engine) for d in (src, dst)]
    cf.Reorder(src, dst, stream.engine)(stream, *memories).wait()
    assert memories[0].numpy().shape == (0, 256)


def test_reorders_of_quantised_tensors_have_no_search_space(stream: cf.Stream) -> None:
    reorder = cf.Reorder(described((8, 64), "q4_0"), PLAIN, stream.engine)
    for call in (reorder.as_kernel_tuner, lambda: reorder.choices_of({})):
        with pytest.raises(cf.Unsupported, match="TUNING"):
            call()


def test_arrays_are_quantised_by_the_name_of_a_type(engine: cf.Engine) -> None:
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    memory = cf.from_numpy(x, engine, dtype="q4_0", format="flat")
    assert str(memory.desc) == "q4_0:flat:8x64"
    assert np.array_equal(memory.numpy(), cf.unpack(cf.pack(x, memory.desc), memory.desc))


@pytest.mark.parametrize("name", ["q4_k", "Q4_K", "Q4_k"])
def test_capitals_are_told(name: str) -> None:
    for call in (lambda: cf.MemoryDesc((8, 256), name), lambda: cf.layouts(name)):
        with pytest.raises(cf.InvalidDescriptor, match="did you mean 'q4_K'"):
            call()
