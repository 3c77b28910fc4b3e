"""From words to problems: benchdnn's command line and batch files as a machine of states.

Words are taken one by one. An option changes the state, and a problem is made for every
combination of its values where a descriptor such as ``2x64x3x3`` stands; what follows it counts for
later ones only. A batch file is words separated by space, ``#`` starts a comment, and a backslash
at the end joins the next word on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from .knobs import ALL, COMMON, DRIVER, SINGLE, Filter, Knob
from .problem import BenchProblem
from .values import BadValue, dtype, named_dims

DEEPEST = 30
"""The deepest nesting of batch files."""


KNOBS = {knob.name: knob for knob in (*DRIVER, *SINGLE, *COMMON)}


class UnknownOption(BadValue):
    """An unknown option or driver."""


@dataclass(frozen=True, slots=True)
class Common:
    """The state of the whole run: a value for every knob of `COMMON`."""

    mode: str
    mode_modifier: str
    max_ms_per_prb: float
    fix_times_per_prb: int
    canonical: bool
    engine: str
    device: str
    fast_ref: bool
    fast_ref_gpu: bool
    mem_check: bool
    allow_enum_tags_only: bool
    cpu_isa_hints: str
    attr_same_pd_check: str
    check_ref_impl: str
    memory_kind: str
    stream_kind: str
    execution_mode: str
    cold_cache: str
    num_streams: str
    global_impl: Filter
    global_skip_impl: Filter
    repeats_per_prb: int
    start: int
    sample: int
    summary: frozenset[str]
    verbose: int
    perf_template: str

    @property
    def checks(self) -> bool:
        """Whether results are compared with the truth."""
        return "C" in self.mode

    @property
    def measures(self) -> bool:
        """Whether runs are timed."""
        return self.mode in ("P", "CP", "F")

    @property
    def limit_ms(self) -> float:
        """The milliseconds for measuring a problem."""
        return 10.0 if self.mode == "F" else self.max_ms_per_prb


def usual() -> Common:
    """The state with the defaults of all knobs."""
    return Common(**{knob.field: knob.default for knob in COMMON})


@dataclass(frozen=True, slots=True)
class Task:
    """A problem, and the state in which it stood."""

    problem: BenchProblem
    common: Common

    def __str__(self) -> str:
        """The repro line: all words that make only this task."""
        shown = [
            (knob, getattr(self.common, knob.field))
            for knob in COMMON
            if knob.place != "never"
        ]  # fmt: skip
        canonical = self.common.canonical
        texts = {
            place: [
                k.text(v) for k, v in shown if k.place == place and (canonical or v != k.default)
            ]
            for place in ("before", "after")
        }
        words = self.problem.words(canonical=canonical)
        line = [*texts["before"], "--reorder", *texts["after"], *words]
        # Digits have characters of the shell's; words of benchdnn's stay as it prints them.
        return " ".join(shlex.quote(w) if set(w) & set(" |()") else w for w in line)


# --- batch files ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """A word, and the file that it stands in; empty for the command line."""

    text: str
    file: str = ""


def expanded(words: Sequence[str]) -> list[Word]:
    """The words with those of batch files in place of ``--batch=FILE``. Raises `BadValue`."""
    return list(_expanded([Word(w) for w in words], [], 0))


def _expanded(words: Sequence[Word], folders: list[Path], depth: int) -> Iterator[Word]:
    for word in words:
        if not word.text.startswith("--batch="):
            yield word
            continue
        if depth == DEEPEST:
            raise BadValue(f"{word.text}: {DEEPEST} batch files are inside each other")
        file = _found(word.text.removeprefix("--batch="), folders)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise BadValue(f"{word.text}: cannot read {file}: {error}") from error
        folders.append(file.parent)
        yield from _expanded([Word(w, str(file)) for w in batch_words(text)], folders, depth + 1)


def _found(name: str, folders: Sequence[Path]) -> Path:
    """The file as it is named, else beside one that was read before."""
    places = [Path(name), *(folder / name for folder in folders)]
    for place in places:
        if place.is_file():
            return place
    raise BadValue(f"--batch={name}: there is no such file, searched {', '.join(map(str, places))}")


def batch_words(text: str) -> list[str]:
    """The words of a batch file."""
    result: list[str] = []
    joins = False
    for line in text.splitlines():
        for word in line.split():
            if word.startswith("#"):
                break
            stem = word.removesuffix("\\")
            if joins and result:
                result[-1] += stem
            elif stem:
                result.append(stem)
            joins = stem != word
    return result


# --- the machine ----------------------------------------------------------------------------------


@dataclass
class _State:
    """The values of all knobs; `lists` those of `DRIVER`, by field."""

    common: Common = field(default_factory=usual)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    impl: Filter = ALL
    match: str = ""
    driver: bool = False
    ends_with_option: bool = False

    def reset(self) -> None:
        """Bring the defaults of the driver's knobs back."""
        self.lists, self.pairs, self.impl, self.match = {}, [], ALL, ""

    def problems(self, dims: tuple[int, ...], name: str) -> Iterator[BenchProblem]:
        """A problem for every combination."""
        lists = [self.lists.get(k.field, [k.default]) for k in DRIVER]
        types = self.pairs or list(product(*lists[:2]))
        impl = next(
            (f for f in (self.common.global_impl, self.common.global_skip_impl) if f.names),
            self.impl,
        )
        names = [k.field for k in DRIVER]
        for pair, *rest in product(types, *lists[2:]):
            values = dict(zip(names, (*pair, *rest), strict=True))
            yield BenchProblem(dims, name, **values, impl=impl)


def tasks(words: Sequence[Word]) -> Iterator[Task]:
    """The tasks that these words make, one after the other.

    Raises `UnknownOption` and `BadValue`, which name the word and the file that it stands in.
    """
    state = _State()
    for word in words:
        try:
            yield from _taken(state, word.text)
        except BadValue as error:
            place = f"{word.file}: " if word.file else ""
            raise type(error)(f"{place}{word.text}: {error}") from error


def _taken(state: _State, word: str) -> Iterator[Task]:
    """One word."""
    if word.startswith("-"):
        _option(state, word)
        return
    if not state.driver:
        raise UnknownOption("a problem without a driver: put --reorder before it")
    dims, name = named_dims(word)
    _check_strides(state, dims)
    for problem in state.problems(dims, name):
        task = Task(problem, state.common)
        if not state.match or re.search(state.match, str(task)):
            yield from [task] * max(1, state.common.repeats_per_prb)


def _option(state: _State, word: str) -> None:
    """An option changes the state."""
    if short := re.fullmatch(r"-v(\d+)", word):
        word = f"--verbose={short[1]}"
    if not word.startswith("--"):
        raise UnknownOption("options start with two dashes")
    name, equals, text = word.removeprefix("--").partition("=")
    if not equals and name in ("reorder", "reset"):
        state.driver = True
        if name == "reset":
            state.reset()
    elif not equals:
        raise UnknownOption(
            "neither an option nor a driver that is here: options are --NAME=VALUE, the driver is "
            "--reorder; `clformats bench --help` lists all"
        )
    elif name == "dt":
        state.pairs = [_pair(part) for part in text.split(",")] if text else []
    elif name in KNOBS:
        _set(state, KNOBS[name], text)
    else:
        raise UnknownOption("there is no such option; `clformats bench --help` lists all")


def _set(state: _State, knob: Knob, text: str) -> None:
    """A knob gets a value; without text its default."""
    if knob in DRIVER:
        values = [knob.read(part) for part in text.split(",")] if text else [knob.default]
        state.lists[knob.field] = values
        if knob.name in ("sdt", "ddt"):
            state.pairs = []
        return
    value = knob.read(text) if text else knob.default
    if knob in SINGLE:
        setattr(state, knob.name.removeprefix("skip-"), value)
    else:
        state.common = replace(state.common, **{knob.field: value})


def _pair(text: str) -> tuple[str, str]:
    """The value of ``--dt``: a pair, or one type for both sides."""
    src, colon, dst = text.partition(":")
    return dtype(src), dtype(dst if colon else src)


def _check_strides(state: _State, dims: tuple[int, ...]) -> None:
    """Strides stand in place of a tag, one for each dimension."""
    for strides in state.lists.get("strides", []):
        for side, knob in (("src", "stag"), ("dst", "dtag")):
            given = getattr(strides, side)
            if given and len(given) != len(dims):
                raise BadValue(
                    f"--strides={strides} has {len(given)} for {side}, expected {len(dims)}"
                )
            if given and state.lists.get(knob, ["abx"]) != ["abx"]:
                raise BadValue(
                    f"--{knob} and --strides={strides} both say how {side} lies: leave one out"
                )
