"""Readers of logs: oneDNN's verbose output, OpenVINO's runtime model, TensorRT's layers.

oneDNN, from version 1.3: lines ``dnnl_verbose,exec,...`` or ``onednn_verbose,...,exec,...`` of
``DNNL_VERBOSE=1`` and ``ONEDNN_VERBOSE=1``; other lines are passed over. OpenVINO: the XML of
``serialize(compiled.get_runtime_model(), "runtime.xml")``. TensorRT: the JSON of its engine
inspector with detailed verbosity, layers perhaps with ``averageMs``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from ..errors import InvalidNetwork
from ..interop.notations import verbose
from ..networks.named import named, path_of
from .trace import Operation, Trace, TracedTensor


def read(path: str | Path) -> Trace:
    """The trace of a file, whose content says its kind. Raises `InvalidNetwork`."""
    file = path_of(path)
    try:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InvalidNetwork(f"cannot read {file}: {error.strerror}") from error
    readers = {"<": _openvino, "{": _tensorrt, "[": _tensorrt}
    try:
        trace = readers.get(text.lstrip()[:1], _onednn)(file, text)
    except InvalidNetwork:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidNetwork(f"{file} is damaged: {error}") from error
    if not trace.operations:
        raise InvalidNetwork(
            f"{file}: nothing that was executed is in it; expected oneDNN's verbose log "
            f"(onednn_verbose,...,exec,...), OpenVINO's runtime model (XML) or TensorRT's layers "
            f"(JSON)"
        )
    return trace


# --- oneDNN ---------------------------------------------------------------------------------------

_LINE = re.compile(r"^(?:dnnl|onednn)_verbose,(?:[^,]*,)*?exec,(?P<rest>.*)$")
_DESC = re.compile(r"(?:^| )(?P<name>[a-z]+\d?)(?:_|:)")
_SIZE = re.compile(r"(mb|ic|oc|id|od|ih|oh|iw|ow|m|n|k|g)(\d{1,18})")
_DIMS = re.compile(r"\d{1,18}(?:x\d{1,18})*")


def _onednn(file: Path, text: str) -> Trace:
    trace = Trace("oneDNN verbose log")
    last: dict[tuple[object, ...], str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line.strip())
        if match:
            trace.operations.append(_onednn_line(file, number, match["rest"], last))
    return trace


def _onednn_line(
    file: Path, number: int, rest: str, last: dict[tuple[object, ...], str]
) -> Operation:
    where = f"{file}, line {number}"
    fields = rest.split(",")
    if len(fields) < 7:
        raise InvalidNetwork(f"{where} is cut off: {len(fields)} fields after exec, expected 9")
    try:
        seconds = _time(fields[-1]) / 1e3
    except ValueError:
        raise InvalidNetwork(
            f"{where} is cut off: got {fields[-1]!r} where the milliseconds stand"
        ) from None
    kind, problem = fields[1], fields[-2]
    reads: list[TracedTensor] = []
    writes: list[TracedTensor] = []
    for argument, log in _descriptors(where, fields[4]):
        dims = _dims(kind, argument, len(reads), problem)
        tensor = (named(log.tag or log.kind), dims, log.dtype or "f32")
        if argument in ("data", "wei") or argument.startswith("src"):
            again = f"#{len(reads)}" if any(t.name == f"{argument}@{number}" for t in reads) else ""
            name = last.get(tensor, f"{argument}@{number}{again}")
            reads.append(TracedTensor(name, *tensor, is_weight=argument == "wei"))
        if argument in ("dst", "data"):  # in versions 1 and 2 one descriptor for both sides
            writes.append(TracedTensor(f"dst@{number}", *tensor))
    for t in writes:
        last[t.fmt, t.dims, t.dtype] = t.name
    name, op = f"{kind}@{number}", f"{kind} {problem}"
    return Operation(number, name, op, reads, writes, seconds, is_reorder=kind == "reorder")


def _descriptors(where: str, text: str) -> Iterator[tuple[str, verbose.LogText]]:
    for part in text.split():
        match = _DESC.match(part)
        log = verbose.read(part)
        if match is None or log is None:
            raise InvalidNetwork(f"{where}: cannot read {part!r} as a descriptor of oneDNN's log")
        if log.kind != "undef":
            yield match["name"], log


def _time(text: str) -> float:
    """A number of 0 or more. Raises ValueError."""
    found = float(text)
    if not 0 <= found < inf:
        raise ValueError(text)
    return found


def _dims(kind: str, argument: str, before: int, problem: str) -> tuple[int, ...]:
    """The dims of an argument, as far as the problem's text tells them.

    ``before`` counts the arguments that are read and stand before it.
    """
    parts = problem.split(":")
    if all(map(_DIMS.fullmatch, parts)):
        dims = [tuple(int(n) for n in part.split("x")) for part in parts]
        return dims[0] if len(dims) == 1 else _of_several(kind, argument, before, dims)
    sizes = {name: int(n) for name, n in _SIZE.findall(problem)}
    if "mb" not in sizes or argument in ("wei", "bia"):
        return ()
    side = "o" if argument == "dst" else "i"
    channels = sizes.get(f"{side}c", sizes.get("ic", 0))
    if not channels:
        return ()
    space = [sizes.get(f"{side}{c}", sizes.get(f"i{c}")) for c in "dhw"]
    return sizes["mb"], channels, *(n for n in space if n)


def _of_several(
    kind: str, argument: str, before: int, dims: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The dims of an argument of which the problem has several, by the kind of operation."""
    if argument == "data":  # of both sides
        return dims[0]
    if argument == "wei" or argument.startswith("src"):
        return dims[before] if before < len(dims) else ()
    if argument != "dst":
        return ()
    if kind == "matmul" and len(dims) == 3:
        return dims[2]
    a, b = dims[:2]
    if kind in ("matmul", "binary") and len(dims) == 2 and len(a) == len(b):
        wide = tuple(map(max, a, b))
        return (*wide[:-2], a[-2], b[-1]) if kind == "matmul" else wide
    return {"prelu": a, "reduction": b}.get(kind, ())


# --- OpenVINO -------------------------------------------------------------------------------------

_PRECISIONS = {"f32": "f32", "fp32": "f32", "f16": "f16", "fp16": "f16", "bf16": "bf16",
               "i8": "s8", "u8": "u8", "i32": "s32", "i64": "f64"}  # fmt: skip


def _openvino(file: Path, text: str) -> Trace:
    try:
        root = ET.fromstring(text)  # noqa: S314  # no entities are expanded that grow
    except ET.ParseError as error:
        raise InvalidNetwork(f"{file} is cut off or no XML: {error}") from error
    layers = {str(x.get("id")): x for x in root.iter("layer")}
    facts = {number: _facts(layer) for number, layer in layers.items()}
    if not any("execTimeMcs" in f for f in facts.values()):
        raise InvalidNetwork(f"{file} is no runtime model: no layer has an execTimeMcs")
    sources = {
        (str(e.get("to-layer")), str(e.get("to-port"))): str(e.get("from-layer"))
        for e in root.iter("edge")
    }
    trace = Trace("OpenVINO runtime model", unit="layer")
    order = sorted(layers, key=lambda n: _whole(facts[n].get("execOrder", n)))
    trace.operations += [_layer(number, facts, sources, layers) for number in order]
    return trace


def _facts(layer: ET.Element) -> dict[str, str]:
    data = layer.find("data")
    found = {} if data is None else dict(data.attrib)
    for attribute in layer.iter("attribute"):
        found[str(attribute.get("name"))] = str(attribute.get("value"))
    return found


def _whole(text: str | None) -> int:
    return int(text) if text and text.lstrip("-").isdecimal() else 0


def _layer(
    number: str,
    facts: Mapping[str, Mapping[str, str]],
    sources: Mapping[tuple[str, str], str],
    layers: Mapping[str, ET.Element],
) -> Operation:
    layer, own = layers[number], facts[number]
    kind = own.get("layerType", str(layer.get("type")))
    reads = []
    for port in layer.findall("input/port"):
        source = sources.get((number, str(port.get("id"))))
        if source is not None:
            reads.append(_output(source, layers[source], facts[source]))
    text = own.get("execTimeMcs", "0")
    micros = float(text) if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) else 0.0
    writes = [_output(number, layer, own)] if layer.find("output/port") is not None else []
    is_reorder = kind == "Reorder" and len(reads) == 1
    if kind in ("Input", "Parameter", "Const", "Constant"):
        reads = []
    return Operation(_whole(number), str(layer.get("name")), kind, reads, writes, micros / 1e6,
                     is_reorder)  # fmt: skip


def _output(number: str, layer: ET.Element, facts: Mapping[str, str]) -> TracedTensor:
    port = layer.find("output/port")
    dims = () if port is None else tuple(_whole(d.text) for d in port.findall("dim"))
    fmt = named(facts.get("outputLayouts", "unknown").split(",")[0])
    precision = facts.get("outputPrecisions", "f32").split(",")[0].lower()
    return TracedTensor(f"layer {number}", fmt, dims, _PRECISIONS.get(precision, "f32"))


# --- TensorRT -------------------------------------------------------------------------------------


def _tensorrt(file: Path, text: str) -> Trace:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InvalidNetwork(f"{file} is cut off or no JSON: {error}") from error
    layers = content.get("Layers", []) if isinstance(content, dict) else content
    trace = Trace("TensorRT layers", unit="entry", timed=False)
    for number, layer in enumerate(layers):
        if not isinstance(layer, dict) or "Outputs" not in layer:
            raise InvalidNetwork(
                f"{file}, entry {number}: no layer with Inputs and Outputs; the engine inspector "
                f"tells them with profiling_verbosity=DETAILED"
            )
        trace.timed |= "averageMs" in layer
        kind = str(layer.get("LayerType", ""))
        trace.operations.append(
            Operation(
                number,
                str(layer.get("Name", f"entry {number}")),
                kind,
                [_binding(t) for t in layer.get("Inputs", [])],
                [_binding(t) for t in layer["Outputs"]],
                _time(layer.get("averageMs", 0.0)) / 1e3,
                kind.lower() in ("reformat", "noop") and len(layer.get("Inputs", [])) == 1,
            )
        )
    return trace


def _binding(tensor: Mapping[str, Any]) -> TracedTensor:
    text = str(tensor.get("Format/Datatype", tensor.get("Format", "unknown")))
    dtype = next((d for k, d in _TRT_TYPES if k in text.lower()), "f32")
    dims: Sequence[int] = tensor.get("Dimensions") or ()
    return TracedTensor(str(tensor.get("Name")), named(text), tuple(int(n) for n in dims), dtype)


_TRT_TYPES = (("fp32", "f32"), ("fp16", "f16"), ("half", "f16"), ("bf16", "bf16"), ("int8", "s8"),
              ("int32", "s32"))  # fmt: skip
