"""How quantised checkpoints keep their matrices, as data, and which of it a configuration says.

A linear layer is several tensors: ``X.qweight``, ``X.qzeros`` and ``X.scales`` of GPTQ and AWQ,
``X.weight_packed`` and ``X.weight_scale`` of compressed-tensors, ``X_blocks`` and ``X_scales`` of
gpt-oss. The configuration beside the file (``config.json``, ``quantize_config.json``,
``hf_quant_config.json``) says how words are made: here it is a layout of a quantised type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidDescriptor
from .common import reading, shown

CONFIGS = ("config.json", "quantize_config.json", "quant_config.json", "hf_quant_config.json")


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a method keeps a matrix: a layout, and for each field the end of a tensor's name.

    ``shapes`` are those in a file: letters for extents (n, k, e, g), which may be divided, as k/16,
    and one number that follows. ``kind`` is the type, with {B} and {G} for bits and group.
    """

    layout: str
    ends: Mapping[str, str]
    shapes: Mapping[str, tuple[str | int, ...]]
    kind: str

    @property
    def first(self) -> str:
        """The end of the name of the codes."""
        return self.ends["q"]


_WORDS = {"q": ".qweight", "z": ".qzeros", "s": ".scales"}
_COMPRESSED = {"q": ".weight_packed", "s": ".weight_scale"}
_BY_GROUP = {"z": ("g", -1), "s": ("g", -1)}
_BY_ROW = {"q": ("n", -1), "z": ("n", -1), "s": ("n", -1)}
_NF4 = {"q": ".weight", "s": ".weight.absmax"}
SCHEMES = {
    "gptq": Scheme("gptq", _WORDS, {"q": (-1, "n"), **_BY_GROUP}, "u{B}g{G}"),
    "gptq_v2": Scheme("gptq_v2", _WORDS, {"q": (-1, "n"), **_BY_GROUP}, "u{B}g{G}"),
    "marlin": Scheme("marlin", {"q": ".B", "s": ".s"}, {"q": ("k/16", -1), "s": ("g", "n")},
                     "s{B}g{G}"),
    "awq gemm": Scheme("awq_gemm", _WORDS, {"q": ("k", -1), **_BY_GROUP}, "u{B}g{G}"),
    "awq gemv": Scheme("awq_gemv", _WORDS, _BY_ROW, "u{B}g{G}"),
    "awq gemv_fast": Scheme(
        "awq_gemv_fast", {"q": ".qweight", "sz": ".qzeros", "s": ".scales"},
        {"q": (-1, "k"), "sz": (-1, "n"), "s": (-1, "n")}, "u{B}sg{G}",
    ),
    "pack-quantized": Scheme("compressed", _COMPRESSED, _BY_ROW, "s{B}g{G}"),
    "pack-quantized with zero points": Scheme(
        "compressed", {**_COMPRESSED, "z": ".weight_zero_point"},
        {**_BY_ROW, "z": (-1, "g")}, "u{B}g{G}",
    ),
    "mxfp4": Scheme("gpt_oss", {"q": "_blocks", "e": "_scales"},
                    {"q": ("e", "n", "g", -1), "e": ("e", "n", -1)}, "mx_f4_e2m1"),
    "nvfp4-pack-quantized": Scheme(
        "compressed",
        {"q": ".weight_packed", "d": ".weight_scale", "t": ".weight_global_scale"},
        {"q": ("n", -1), "d": ("n", -1), "t": (-1,)}, "nvfp4_divided",
    ),
    "NVFP4": Scheme("modelopt", {"q": ".weight", "d": ".weight_scale", "t": ".weight_scale_2"},
                    {"q": ("n", -1), "d": ("n", -1), "t": ()}, "nvfp4_times"),
    "nf4": Scheme("bitsandbytes", _NF4, {"q": (-1, 1), "s": (-1,)}, "bnb_nf4"),
    "fp4": Scheme("bitsandbytes", _NF4, {"q": (-1, 1), "s": (-1,)}, "bnb_fp4"),
}  # fmt: skip


def config_of(path: Path) -> dict[str, Any]:
    """What a configuration beside a file says of quantising; empty where there is none."""
    for name in CONFIGS:
        beside = path.parent / name
        if not beside.exists():
            continue
        with reading(beside, "configuration"):
            found = json.loads(beside.read_text(encoding="utf-8"))
            whole = found if "bits" in found or "w_bit" in found else None
            own = found.get("quantization_config", found.get("quantization", whole))
        if isinstance(own, dict):
            return own
    return {}


def schemes_of(config: Mapping[str, Any]) -> Iterator[tuple[Scheme, int, int]]:
    """The schemes that a configuration speaks of, with bits and group; -1 is a whole row.

    Raises `InvalidDescriptor`, which names the method, for one that is not known here.
    """
    method = str(config.get("quant_method") or _method(config)).lower()
    bits = int(config.get("bits") or config.get("w_bit") or 4)
    size = int(config.get("group_size") or config.get("q_group_size") or -1)
    if method == "compressed-tensors":
        for group in config.get("config_groups", {}).values():
            yield _compressed(config, group)
        return
    version, size = {
        "gptq": (str(config.get("checkpoint_format") or "gptq"), size),
        "marlin": ("marlin", size),
        "awq": (f"awq {config.get('version') or 'gemm'}".lower(), size),
        "mxfp4": ("mxfp4", 32),
        "modelopt": (str(config.get("quant_algo", "NVFP4")), 16),
        "bitsandbytes": (str(config.get("bnb_4bit_quant_type") or "8 bits"), 64),
    }.get(method, ("", size))
    if method == "gptq" and config.get("is_marlin_format"):
        version = "marlin"
    if method:
        told = f"{method} {version.removeprefix(method)}"
        yield _known(version, " ".join(told.split())), bits, size


def _method(config: Mapping[str, Any]) -> str:
    """The method of a configuration that does not name it: GPTQ's, AWQ's and ModelOpt's own."""
    keys = {"quant_algo": "modelopt", "w_bit": "awq", "desc_act": "gptq"}
    return next((method for key, method in keys.items() if key in config), "")


def _compressed(config: Mapping[str, Any], group: Mapping[str, Any]) -> tuple[Scheme, int, int]:
    weights = group.get("weights") or {}
    named = str(group.get("format") or config.get("format"))
    if named == "pack-quantized" and not weights.get("symmetric", True):
        named += " with zero points"
    found = _known(named, f"compressed-tensors {named}")
    return found, int(weights.get("num_bits") or 4), int(weights.get("group_size") or -1)


def _known(name: str, told: str) -> Scheme:
    if name not in SCHEMES:
        raise InvalidDescriptor(f"its configuration says {shown(told)}, which is not known here: "
                                f"expected one of {', '.join(SCHEMES)}")  # fmt: skip
    return SCHEMES[name]
