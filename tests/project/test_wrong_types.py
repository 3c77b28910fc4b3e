"""Every public function that needs no device, called with every kind of wrong argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.interop import notations
from clformats.quantised import types
from clformats.tensors import dtypes
from tests.wrong_types import answers

D = cf.MemoryDesc
DESC = D((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")
PLAIN = D((2, 3), "f32")
ZEROS = np.zeros(DESC.dims, np.float32)
FILTER, WINO = D((5, 4, 3, 3), "f32", "oihw"), D((5, 4, 4, 4), "f32", "wino_wei_aaOio")
QUANTISED: Any = D((2, 32), "q4_0", "gguf")
LAYOUT = cf.Format("bfyx").structure


def _formats(**arguments: Any) -> list[cf.Format]:
    return list(cf.formats(**arguments))


def _index(i: Any) -> object:
    try:
        return DESC.offset(i, 0, 0, 0)
    except IndexError as error:  # what Python asks for, where a number is outside
        raise cf.Error(str(error)) from error


def _at(i: Any) -> object:
    try:
        return DESC.coords(i)
    except IndexError as error:
        raise cf.Error(str(error)) from error


def _bit(**given: Any) -> object:
    try:
        return QUANTISED.coords(**given)
    except IndexError as error:
        raise cf.Error(str(error)) from error


def _grouped(**given: Any) -> cf.Attr:
    return cf.Attr(src_scale=cf.Grouped(**given))


def _extra(**given: Any) -> cf.MemoryDesc:
    return D((5, 4, 3, 3), "s8", "oihw", extra=cf.Extra(**given))


def _quantised(**given: Any) -> cf.QuantisedType:
    """A type that other tests do not find."""
    try:
        return cf.QuantisedType(**given)
    finally:
        types._own.clear()


# What is called, with arguments that are right.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "draw": (cf.draw, {"what": DESC, "boxes": 2}),
    "explain": (cf.explain, {"what": "bfyx", "shape": (1, 2, 3, 4), "dtype": "f32"}),
    "convert": (cf.convert, {"name": "bfyx", "to": "tvm", "source": "cldnn", "ndims": None}),
    "Format": (cf.Format, {"name": "bfyx", "ndims": None}),
    "Format.from_layout": (cf.Format.from_layout, {"layout": LAYOUT}),
    "Format.as_weights": (cf.Format("bfyx").as_weights, {"grouped": False}),
    "formats": (_formats, {"role": None, "ndims": 3}),
    "Layout": (cf.Layout, {"ndims": 1, "digits": (cf.Digit(0, None),), "align": (), "tail": None}),
    "MemoryDesc": (D, {"dims": (2, 3), "dtype": "f32", "format": "ab", "padding": None}),
    "MemoryDesc with strides": (D, {"dims": (2, 3), "dtype": "f32", "strides": (3, 1)}),
    "MemoryDesc.parse": (D.parse, {"text": str(DESC)}),
    "MemoryDesc.of": (D.of, {"geometry": DESC.geometry, "dtype": "f32"}),
    "MemoryDesc.offset": (_index, {"i": 1}),
    "MemoryDesc.coords": (_at, {"i": 1}),
    "MemoryDesc.place_at": (DESC.place_at, {"offset": 1}),
    "MemoryDesc.submemory": (PLAIN.submemory, {"dims": (1, 1), "offsets": (0, 0)}),
    "MemoryDesc.reshape": (PLAIN.reshape, {"dims": (6,)}),
    "MemoryDesc.permute_axes": (PLAIN.permute_axes, {"permutation": (1, 0)}),
    "MemoryDesc.broadcast_to": (D((2, 1), "f32").broadcast_to, {"dims": (2, 3)}),
    "MemoryDesc.legal_crops": (DESC.legal_crops, {"dim": 1}),
    "HostMemory": (cf.HostMemory, {"desc": DESC, "array": None}),
    "HostMemory.of": (cf.HostMemory.of, {"array": ZEROS}),
    "pack": (cf.pack, {"array": ZEROS, "desc": DESC}),
    "unpack": (cf.unpack, {"flat": cf.pack(ZEROS, DESC), "desc": DESC}),
    "QuantisedType": (_quantised, {"name": "tested", "fields": {"q": ("u4", (1, 1))},
                                         "formula": "q - 8", "layouts": None}),
    "QuantisedDesc": (cf.QuantisedDesc, {"dims": (2, 32), "dtype": QUANTISED.dtype,
                                         "layout": "gguf"}),
    "QuantisedDesc.coords": (_bit, {"offset": 3, "plane": "d"}),
    "layouts": (cf.layouts, {"name": "q4_0"}),
    "unpack of a field": (cf.unpack, {"flat": np.zeros(36, np.uint8), "desc": QUANTISED,
                                      "field": "q"}),
    "identify": (cf.identify, {"dims": (2, 17), "strides": (32, 16), "blocks": [(16, 1)]}),
    "same_bytes": (cf.same_bytes, {"a": DESC, "b": DESC}),
    "index_source": (cf.index_source, {"target": "bfyx", "prefix": "SRC", "wide": None,
                                       "sizes": "shape_info", "padded": "y", "vector": None,
                                       "shape_info_at": 8}),
    "jit_constants": (cf.jit_constants, {"tensors": {"INPUT0": DESC}, "formats": ["bfyx"],
                                         "padded": {"INPUT0": "b"}}),
    "format_header": (cf.format_header, {"names": ["bfyx"]}),
    "make_plan": (cf.make_plan, {"src": DESC, "dst": DESC, "traits": cf.problems.traits.DEFAULT,
                                 "family": None, "computation": None, "transform": None,
                                 "choices": cf.Choices()}),
    "KernelRecords": (cf.KernelRecords, {"kernel": "conv"}),
    "Choices": (cf.Choices, {"family": None, "local_size": 8, "baked": False,
                             "schedule": "tile of 1 | a | ahead 0 | ordinary"}),
    "winograd": (cf.winograd, {"desc": FILTER, "format": "wino_wei_aaOio", "dtype": "f32",
                               "padded": (16, 16)}),
    "transform": (cf.transform, {"array": np.zeros(FILTER.dims, np.float32), "src": FILTER,
                                 "dst": WINO, "transform": None}),
    "WinogradDesc": (cf.WinogradDesc.of, {"desc": WINO}),
    "RnnPackedDesc": (cf.RnnPackedDesc, {"desc": D((1, 1, 5, 3, 7), "s8", "ldigo_p"),
                                         "parts": (2, 1), "n": 8, "ldb": 64}),
    "notations.parse": (notations.parse, {"text": "bfyx", "notation": None}),
    "notations.render": (notations.render, {"format": "bfyx", "notation": "tvm"}),
    "notations.parse_desc": (notations.parse_desc, {"text": "f32[2,3]{1,0}", "notation": None}),
    "notations.render_desc": (notations.render_desc, {"desc": PLAIN, "notation": "xla"}),
    "notations.guess": (notations.guess, {"text": "bfyx"}),
    "Extra": (_extra, {"mask": 1, "s8s8": True, "asymmetric": True, "scale_adjust": 1.0}),
    "Attr": (cf.Attr, {**dict.fromkeys(cf.Attr.NAMES, 2.0), "expression": "x"}),
    "Attr.apply": (cf.Attr(beta=2.0).apply, {"array": ZEROS, "src": "f32", "dst": "f32",
                                             "old": ZEROS}),
    "at_execution": (cf.at_execution, {"mask": 0}),
    "at_execution.group": (cf.at_execution, {"group": (1, 32)}),
    "Grouped": (_grouped, {"values": [2.0], "group": (1, 32)}),
    "dtypes.convert": (dtypes.convert, {"array": ZEROS, "src": "f32", "dst": "s8"}),
    "dtypes.as_dtype": (dtypes.as_dtype, {"value": "f32"}),
}  # fmt: skip

# What a parameter takes of the junk, because it is none there.
TAKES = {
    "Format.ndims": {"None"},
    "Extra.scale_adjust": {"float"},
    "at_execution.group.group": {"None", "list"},
    "Grouped.values": {"int", "float", "list", "array"},
    "Grouped.group": {"list"},
    "explain.shape": {"None"},
    "explain.dtype": {"None"},
    "convert.to": {"None"},
    "convert.source": {"None"},
    "convert.ndims": {"None"},
    "formats.role": {"None"},
    "formats.ndims": {"None", "int"},
    "Layout.tail": {"None"},
    "MemoryDesc.format": {"None"},
    "MemoryDesc.padding": {"None"},
    "MemoryDesc with strides.strides": {"None"},
    "MemoryDesc.place_at.offset": {"int"},
    "HostMemory.array": {"None"},
    "HostMemory.of.array": {"array"},
    "QuantisedType.name": {"str"},
    "QuantisedType.layouts": {"None"},
    "QuantisedDesc.layout": {"None"},
    "QuantisedDesc.coords.plane": {"None"},
    "unpack of a field.field": {"None"},
    "index_source.prefix": {"str"},
    "index_source.wide": {"None"},
    "index_source.sizes": {"None"},
    "index_source.vector": {"None"},
    "format_header.names": {"None", "dict"},  # "a" is a format
    "jit_constants.padded": {"None"},
    "make_plan.family": {"None"},
    "make_plan.computation": {"None"},
    "make_plan.transform": {"None"},
    "KernelRecords.kernel": {"str"},
    "Choices.family": {"None", "str"},
    "Choices.local_size": {"None"},
    "Choices.baked": {"None"},
    "Choices.schedule": {"None"},
    "winograd.dtype": {"None"},
    "winograd.padded": {"None"},
    "transform.transform": {"None"},
    "notations.parse.notation": {"None"},
    "notations.parse_desc.notation": {"None"},
    "notations.guess.text": {"str"},
    **{f"Attr.{name}": {"None", "int", "float", "list"} for name in cf.Attr.NAMES},
    "Attr.expression": {"None"},
    "dtypes.convert.array": {"int", "float", "nan", "list", "array"},
}
# Records, which are looked at where they are used; what needs a device: the module beside this one.
ELSEWHERE = {"DType", "Digit", "Plan", "Event", "Engine", "IndexKernels", "Map", "Memory",
             "Recording", "Reorder", "Replay", "Stream", "TunedWarning", "devices", "from_array",
             "from_dlpack", "from_host", "from_numpy", "load", "reorder", "to_array", "to_numpy",
             "transfer", "tune", "calibrate", "warm_up",
             # in tests/quantised: what it calls may raise what it likes
             "infer", "read_gguf", "read_safetensors",
             # in tests/networks:
             "Choice", "Cost", "Costs", "FormatPlan", "Kernels", "Network", "Node", "Value",
             "audit", "propagate"}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_wrong_types_are_refused_on_purpose(call: str) -> None:
    function, right = CALLS[call]
    for parameter in right:
        taken = answers(function, right, parameter)
        assert taken == TAKES.get(f"{call}.{parameter}", set()), parameter


def test_every_public_function_is_in_the_table() -> None:
    public = {
        name
        for name in cf.__all__
        if callable(value := getattr(cf, name))
        and not (inspect.isclass(value) and issubclass(value, Exception))
    }
    assert public - ELSEWHERE <= {name.split(".")[0] for name in CALLS}
    methods = {
        f"MemoryDesc.{name}"
        for name, value in inspect.getmembers(D, callable)
        if not name.startswith("_") and len(inspect.signature(value).parameters) > 1
    }
    assert len(methods) > 7
    assert methods - {f"MemoryDesc.{name}" for name in ("of", "parse")} <= CALLS.keys()


def test_messages_tell_what_was_got_and_what_was_expected() -> None:
    with pytest.raises(cf.InvalidArgument, match=r"a: got None of type NoneType, expected Mem"):
        cf.same_bytes(None, DESC)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidArgument, match=r"ndims: got '4' of type str, expected an int"):
        cf.Format("abx", ndims="4")  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidArgument, match=r"role: got 'foo', expected data, weights, rnn"):
        cf.formats("foo")
    with pytest.raises(cf.InvalidArgument, match=r"no array .*\[\[1\], \[2, 3\]\].*inhomogeneous"):
        cf.pack([[1], [2, 3]], PLAIN)
    with pytest.raises(cf.InvalidDescriptor, match=r"blocks must be pairs .* got \[4\]"):
        cf.identify((2, 17), (32, 16), [4])  # type: ignore[list-item]
    with pytest.raises(cf.InvalidArgument, match=r"prefix: got None .* expected str"):
        cf.index_source(DESC, None)  # type: ignore[arg-type]
    assert issubclass(cf.InvalidArgument, TypeError)
    assert issubclass(cf.InvalidArgument, ValueError)
    with pytest.raises(cf.InvalidFormat, match="a name of 1000000 characters") as caught:
        cf.pack(ZEROS, "x" * 10**6)
    assert len(str(caught.value)) < 100
