"""Running index source: every element and every place of many tensors, in one program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import clformats as cf
from clformats.index.names import identifier
from tests.support import dtype_for, hurting_dims

INDEX: Final = 0
SAFE: Final = 1
COORDS: Final = 2
PADDING: Final = ((1, 2), (3, 1), (2, 0), (0, 1), (1, 1), (1, 0), (0, 1), (1, 1))
EXTRA: Final = 30
THREADS: Final = 4096  # always the same: pocl compiles for some sizes anew
NONE: Final = -1
"""What COORDS answers where no element lies."""


@dataclass(frozen=True)
class Case:
    """The source of a tensor under a prefix of its own, and what it takes at execution.

    ``locals`` are the names that the source takes from its kernel, each with its value;
    ``shape_info`` the numbers of the buffer of that name.
    """

    desc: cf.MemoryDesc
    prefix: str
    source: str
    locals: tuple[tuple[str, int], ...] = ()
    shape_info: tuple[int, ...] = ()


def static(desc: cf.MemoryDesc, k: int, **options: Any) -> Case:
    """The source of a descriptor."""
    return Case(desc, f"T{k}", cf.index_source(desc, f"T{k}", **options))


def by_macros(desc: cf.MemoryDesc, k: int, **options: Any) -> Case:
    """The source of the format alone, with the sizes that a user defines before."""
    source = cf.index_source(desc.format, f"T{k}", padded=_padded(desc), **options)
    defines = [f"#define {name} {n}" for name, n in given(desc, f"T{k}")]
    return Case(desc, f"T{k}", "\n".join([*defines, source]))


def by_arguments(desc: cf.MemoryDesc, k: int, **options: Any) -> Case:
    """The same with sizes from arguments of the kernel."""
    source = cf.index_source(
        desc.format, f"T{k}", sizes="arguments", padded=_padded(desc), **options
    )
    return Case(desc, f"T{k}", source, locals=tuple(given(desc, f"T{k}")))


def by_shape_info(desc: cf.MemoryDesc, k: int, **options: Any) -> Case:
    """The same with sizes from `shape_info`, where another tensor stands before."""
    source = cf.index_source(
        desc.format, f"T{k}", sizes="shape_info", padded=_padded(desc), shape_info_at=3, **options
    )
    return Case(desc, f"T{k}", source, shape_info=(99, 98, 97, *shape_info(desc)))


FORMS = {f.__name__: f for f in (static, by_macros, by_arguments, by_shape_info)}


def _padded(desc: cf.MemoryDesc) -> str:
    letters = zip(desc.format.letters, desc.padding, strict=True)
    return "".join(c for c, pads in letters if any(pads))


def given(desc: cf.MemoryDesc, prefix: str) -> list[tuple[str, int]]:
    """The sizes and paddings of a descriptor by the names that they have in source."""
    letters = desc.format.letters.upper()
    sizes = [(f"{prefix}_SIZE_{c}", n) for c, n in zip(letters, desc.dims, strict=True)]
    pads = [
        (f"{prefix}_PAD_{side}_{c}", n)
        for c, both in zip(letters, desc.padding, strict=True)
        for side, n in zip(("BEFORE", "AFTER"), both, strict=True)
        if any(both)
    ]
    return sizes + pads


def shape_info(desc: cf.MemoryDesc) -> tuple[int, ...]:
    """The numbers of a tensor as clDNN has them: b, f, v, u, w, z, y, x, then the paddings."""
    ones = (1,) * max(0, 8 - desc.ndims)
    pads = [n for both in desc.padding if any(both) for n in both]
    return (*desc.dims[:2], *ones, *desc.dims[2:], *pads)


def program(cases: Sequence[Case], body: str = "") -> str:
    """OpenCL C with a kernel that answers `what` for elements or places 0 to count of a case.

    Coordinates are made of numbers, and numbers of coordinates, outside of the cases, so that these
    are nothing but calls of what is tested. ``body`` replaces the calls.
    """
    wide = any("ulong" in case.source for case in cases)
    kind = "ulong" if wide else "uint"
    most = max(case.desc.ndims for case in cases)
    return "\n".join([
        *(case.source for case in cases),
        "__kernel void run(int what, int which, uint count, int ndims, __global const uint *dims,",
        f"                  __global const int *shape_info, __global const {kind} *numbers,",
        "                  __global long *out)",
        "{",
        "    const uint threads = get_global_size(0);",
        "    for (uint element = get_global_id(0); element < count; element += threads) {",
        f"        {kind} c[{most}], rest = element;",
        "        for (int d = ndims - 1; d >= 0; --d) {",
        # Further than the tensor reaches, by another multiple along each dimension.
        f"            c[d] = rest % dims[d] + (what == {SAFE} ? (2 + d) * dims[d] : 0);",
        "            rest /= dims[d];",
        "        }",
        "        bool found = false;",
        "        switch (which) {",
        *(line for k, case in enumerate(cases) for line in _branch(k, case, kind, body)),
        "        }",
        f"        if (what == {COORDS}) {{",
        "            long number = 0;",
        "            for (int d = 0; d < ndims; ++d) number = number * dims[d] + c[d];",
        f"            out[element] = found ? number : {NONE};",
        "        }",
        "    }",
        "}",
    ])  # fmt: skip


def _branch(k: int, case: Case, kind: str, body: str) -> list[str]:
    """The branch of the kernel for one tensor."""
    p, every = case.prefix, range(case.desc.ndims)
    coordinates = ", ".join(f"c[{d}]" for d in every)
    names = [f"const {kind} {name} = numbers[{j}];" for j, (name, _) in enumerate(case.locals)]
    calls = [
        f"if (what == {INDEX}) out[element] = {p}_INDEX({coordinates});",
        f"else if (what == {SAFE}) out[element] = {p}_INDEX_SAFE({coordinates});",
        f"else found = {p}_COORDS(element, {', '.join(f'c + {d}' for d in every)});",
    ]
    return [f"case {k}: {{", *names, *([body] if body else calls), "break; }"]


def by_header(desc: cf.MemoryDesc, k: int) -> Case:
    """The functions of `cf.format_header`, under the names that a source has."""
    letters, name, p = desc.format.letters, identifier(desc.format.name), f"T{k}"
    text = cf.format_header([desc.format]).replace(f"cf_{name}", f"cf_{p}")
    text = text.replace("CLFORMATS_FORMATS_H", f"FORMATS_{p}")
    extents = [n + a + b for n, (a, b) in zip(desc.dims, desc.padding, strict=True)]
    sizes, arguments = ", ".join(map(str, extents)), ", ".join(letters)
    lower = desc.padded_offsets
    indices = ", ".join(f"({c}) + {a}" for c, a in zip(letters, lower, strict=True))
    wrapped = ", ".join(f"({c}) % {n}" for c, n in zip(letters, desc.dims, strict=True))
    moved = " && ".join(
        f"(*({c}) -= {a}, *({c}) < {n})" for c, a, n in zip(letters, lower, desc.dims, strict=True)
    )
    found = f"cf_{p}_coords({sizes}, offset, {arguments})"
    return Case(desc, p, "\n".join([
        text,
        f"#define {p}_INDEX({arguments}) cf_{p}({sizes}, {indices})",
        f"#define {p}_INDEX_SAFE({arguments}) {p}_INDEX({wrapped})",
        f"#define {p}_COORDS(offset, {arguments}) ({found} && {moved})",
    ]))  # fmt: skip


def one_for_each_structure(formats: Iterable[cf.Format]) -> list[cf.Format]:
    """The letters are no part of what is computed, so one format of each structure will do."""
    return list({fmt.structure: fmt for fmt in formats}.values())


def hurting(fmt: cf.Format) -> cf.MemoryDesc:
    """A descriptor of `hurting_dims`."""
    return cf.MemoryDesc(hurting_dims(fmt), dtype_for(fmt), fmt)


def padded_data() -> list[cf.MemoryDesc]:
    """A descriptor with padding along each dimension for each data format that can have it."""
    found = []
    for fmt in one_for_each_structure(cf.formats("data")):
        with suppress(cf.InvalidDescriptor):  # those with fused dimensions
            dims = hurting_dims(fmt)
            found.append(cf.MemoryDesc(dims, "f32", fmt, padding=PADDING[: fmt.ndims]))
    assert len(found) >= 50
    return found


class Runner:
    """The program of some cases on a device."""

    def __init__(
        self,
        engine: cf.Engine,
        cases: Sequence[Case],
        options: Sequence[str] = (),
        *,
        body: str = "",
        threads: int = THREADS,
    ) -> None:
        import pyopencl as cl

        text = program(cases, body)
        self.engine, self.cases, self.threads = engine, cases, threads
        self.kind: Any = np.uint64 if "ulong *numbers" in text else np.uint32
        built = cl.Program(engine.context, text).build([*options], devices=[engine.device])
        self.kernel = cl.Kernel(built, "run")
        most = 0 if body else max(_places(case.desc) for case in cases)
        self.out = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, 8 * max(most, 64))

    def run(self, what: int, k: int, count: int, extra: Sequence[int] = ()) -> Any:
        """What case k answers for the numbers from 0 to count; from 30 on `numbers` has more."""
        import pyopencl as cl

        case, context = self.cases[k], self.engine.context
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        dims = np.array(case.desc.dims, np.uint32)
        info = np.array(case.shape_info or [0], np.int32)
        values = [n for _, n in case.locals]
        values += [0] * (EXTRA - len(values))
        numbers = np.array([*values, *extra], self.kind)
        arguments = [cl.Buffer(context, flags, hostbuf=a) for a in (dims, info, numbers)]
        out = np.empty(count, np.int64)
        self.kernel(self.engine.queue, (self.threads,), (64,), np.int32(what), np.int32(k),
            np.uint32(count), np.int32(case.desc.ndims), *arguments, self.out)  # fmt: skip
        cl.enqueue_copy(self.engine.queue, out, self.out)
        return out

    def check(self) -> None:
        """Every element and every place of every case, against `offsets`."""
        for k, case in enumerate(self.cases):
            offsets = case.desc.offsets().ravel()
            for what in (INDEX, SAFE):
                got = self.run(what, k, offsets.size)
                assert (got == offsets).all(), f"{case.desc}: {what}\n{case.source}"
            count = _places(case.desc)
            want = np.full(count, NONE, np.int64)
            # Where several lie at one place, the first of them.
            want[offsets[::-1]] = np.arange(offsets.size)[::-1]
            got = self.run(COORDS, k, count)
            assert (got == want).all(), f"{case.desc}: COORDS\n{case.source}"


def _places(desc: cf.MemoryDesc) -> int:
    """Places in memory, and some behind."""
    return int(desc.span_nbytes * 8 // desc.dtype.bits + 37)
