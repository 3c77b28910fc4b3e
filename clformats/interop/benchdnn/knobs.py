"""The options of benchdnn that this command knows, as tables: name, reader, default, help.

`DRIVER` are those of a problem: each holds a list of values, a problem is made for every
combination, and ``--reset`` brings their defaults back. `COMMON` are the state of the whole run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .attributes import PostOps, Scales, ZeroPoints
from .template import DEFAULT, check_template
from .values import BadValue, Flags, Strides, counted, dtype, one_of, real, shown, tag, truth, words


@dataclass(frozen=True, slots=True)
class Knob:
    """``--name=VALUE``. ``read`` makes a value of text; without text it is ``default``.

    ``place`` says where in a repro line it stands: "before" the driver's name, "after" it,
    "always" even with its default, or "never".
    """

    name: str
    read: Callable[[str], Any]
    default: Any
    help: str
    place: str = "after"

    @property
    def field(self) -> str:
        """The name of the attribute that holds its value."""
        return self.name.replace("-", "_")

    def text(self, value: object) -> str:
        """``--name=VALUE``, to be read back."""
        if isinstance(value, bool):
            return f"--{self.name}={str(value).lower()}"
        return f"--{self.name}={shown(value) if isinstance(value, float) else value}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which implementations may run: those with one of the names in theirs, or all but those."""

    names: tuple[str, ...] = ()
    wanted: bool = False

    def accepts(self, implementation: str) -> bool:
        """Whether an implementation of this name may run."""
        if not self.names:
            return True
        return any(name in implementation for name in self.names) == self.wanted

    def __str__(self) -> str:
        return f"--{'impl' if self.wanted else 'skip-impl'}={','.join(self.names)}"


ALL = Filter()
"""Every implementation may run."""


def wanted(text: str) -> Filter:
    """The value of ``--impl``."""
    return Filter(tuple(filter(None, words(text))), wanted=True)


def unwanted(text: str) -> Filter:
    """The value of ``--skip-impl``."""
    return Filter(tuple(filter(None, words(text))))


# --- readers --------------------------------------------------------------------------------------


def shaped(pattern: str, example: str) -> Callable[[str], str]:
    """A reader of text of this form, kept as it is."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text, re.IGNORECASE):
            raise BadValue(f"expected a value such as {example}, got {text!r}")
        return text.lower()

    return read


def only(choice: str) -> Callable[[str], str]:
    """A reader of the one choice that there is here."""

    def read(text: str) -> str:
        if text.lower() not in (choice, {"false": "0"}.get(choice, choice)):
            raise BadValue(f"only {choice} is possible here, got {text!r}")
        return choice

    return read


def mode(text: str) -> str:
    """A mode in capital letters."""
    name = "CP" if sorted(text.upper()) == ["C", "P"] else text.upper()
    if name not in MODES:
        raise BadValue(f"expected a mode of {', '.join(MODES)}, got {text!r}")
    return name


def milliseconds(text: str) -> float:
    """A time limit, moved into the range that benchdnn has."""
    return max(10.0, min(real(text), 60e3))


def pattern(text: str) -> str:
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise BadValue(f"{text!r} is no regular expression: {error}") from error
    return text


def summary(text: str) -> frozenset[str]:
    """``impl+no-failures``: what the summary shows."""
    result = set(SUMMARY)
    for setting in text.split("+"):
        name = setting.removeprefix("no-")
        if name not in ("failures", "impl", "impl-csv"):
            raise BadValue(f"expected failures, impl or impl-csv in a summary, got {setting!r}")
        (result.discard if setting.startswith("no-") else result.add)(name)
    return frozenset(result)


CPU2GPU, GPU2CPU = "cpu2gpu", "gpu2cpu"
MODES = ("L", "I", "R", "C", "P", "F", "CP")
SUMMARY = frozenset({"failures"})
_CTX = shaped(r"(auto|\d+)(:(auto|\d+)){0,2}", "8:auto:1")

# --- the tables -----------------------------------------------------------------------------------

DRIVER = (
    Knob("sdt", dtype, "f32", "element type of the source", "always"),
    Knob("ddt", dtype, "f32", "element type of the destination", "always"),
    Knob("stag", tag, "abx", "format of the source: a tag, a meta tag or clDNN's name", "always"),
    Knob("dtag", tag, "abx", "format of the destination", "always"),
    Knob("strides", Strides.parse, Strides(), "SRC:DST, strides such as 8x1 in place of a tag"),
    Knob("oflag", Flags.parse, Flags(), "s8s8_comp:MASK+zp_comp:MASK, compensation appended"),
    Knob(
        "cross-engine",
        one_of("none", CPU2GPU, GPU2CPU),
        "none",
        "none, or one side on the host: the source (cpu2gpu) or the destination (gpu2cpu)",
    ),
    Knob("attr-scales", Scales.parse, Scales(), "SIDE:POLICY[:SCALE[:DTYPE]][+...]"),
    Knob("attr-zero-points", ZeroPoints.parse, ZeroPoints(), "SIDE:POLICY[:VALUE[:DTYPE]][+...]"),
    Knob("attr-post-ops", PostOps.parse, PostOps(), "sum[:SCALE]"),
    Knob("attr-scratchpad", one_of("library", "user"), "library", "no effect"),
    Knob(
        "attr-fpmath",
        shaped("(strict|bf16|f16|tf32|any)(:(true|false|1|0))?", "strict"),
        "strict",
        "no effect: values are computed in f32, or f64",
    ),
    Knob(
        "attr-acc-mode",
        one_of("strict", "relaxed", "any", "f32", "s32", "f16"),
        "strict",
        "no effect: a reorder accumulates nothing",
    ),
    Knob("attr-deterministic", truth, default=False, help="no effect: all reorders are"),
    Knob("attr-dropout", shaped(r"[\d.]+(:.*)?", "0.5:17"), "", "is refused"),
    Knob(
        "attr-rounding-mode",
        shaped(r"(dst:(environment|stochastic)(:\d+)?\+?)+", "dst:environment"),
        "",
        "dst:environment; stochastic rounding is refused",
    ),
    Knob("ctx-init", _CTX, "auto:auto:auto", "no effect"),
    Knob("ctx-exe", _CTX, "auto:auto:auto", "no effect"),
    Knob("runtime-dim-mask", counted, 0, "bit d: size d is known at execution only"),
)
SINGLE = (
    Knob("match", pattern, "", "run only problems whose repro line this finds", "never"),
    Knob("impl", wanted, ALL, "only implementations whose names contain one of these"),
    Knob("skip-impl", unwanted, ALL, "no implementation whose name contains one of these"),
)
COMMON = (
    Knob("mode", mode, "C", "L list, I prepare, R run, C check, P measure, F for 10 ms, CP both",
         "before"),
    Knob("mode-modifier", shaped("[pm]*", "P"), "", "no effect", "before"),
    Knob("max-ms-per-prb", milliseconds, 3e3, "milliseconds to measure a problem", "before"),
    Knob("fix-times-per-prb", counted, 0, "measure this many runs, without a time limit",
         "before"),
    Knob("canonical", truth, default=False, help="print every option in repro lines"),
    Knob("engine", shaped(r"(cpu|gpu)(:\d+)?", "gpu:1"), "", "cpu or gpu, and its number"),
    Knob("device", str, "", "part of a device's or platform's name (not in benchdnn)"),
    Knob("fast-ref", truth, default=True, help="no effect", place="never"),
    Knob("fast-ref-gpu", truth, default=True, help="no effect", place="never"),
    Knob("mem-check", truth, default=True, help="skip problems that do not fit into memory"),
    Knob("allow-enum-tags-only", truth, default=True, help="no effect"),
    Knob("cpu-isa-hints", one_of("none", "no_hints", "prefer_ymm"), "none",
         "no effect"),
    Knob("attr-same-pd-check", only("false"), "false", "only false", "never"),
    Knob("check-ref-impl", only("false"), "false", "only false", "never"),
    Knob("memory-kind", one_of("usm", "buffer", "usm_device", "usm_shared"), "usm",
         "no effect: memory is a buffer"),
    Knob("stream-kind", one_of("def", "in_order", "out_of_order"), "def",
         "no effect: the stream is in order"),
    Knob("execution-mode", only("direct"), "direct", "only direct", "never"),
    Knob("cold-cache", only("none"), "none", "only none", "never"),
    Knob("num-streams", only("1"), "1", "only 1", "never"),
    Knob("global-impl", wanted, ALL, "as --impl, and overrides it", "never"),
    Knob("global-skip-impl", unwanted, ALL, "as --skip-impl, and overrides it", "never"),
    Knob("repeats-per-prb", counted, 1, "run each problem this many times", "never"),
    Knob("start", counted, 0, "skip all problems before this number", "never"),
    Knob("sample", counted, 0, "run this many problems, drawn at random from all (not in benchdnn)",
         "never"),
    Knob("summary", summary, SUMMARY, "[no-]failures, [no-]impl, [no-]impl-csv, with + between",
         "never"),
    Knob("verbose", counted, 0, "or -vN: 1 names problems and reasons, 5 implementations", "never"),
    Knob("perf-template", check_template, DEFAULT, "def, csv, or text with %options%", "never"),
)  # fmt: skip
"""Not in any table: ``--reorder``, ``--batch``, ``--reset`` and ``--dt``, which take no values of
their own."""
