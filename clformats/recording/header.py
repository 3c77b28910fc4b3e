"""The header of an export: names, sizes and formats, for programs in C."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..tensors.desc import MemoryDesc
from ..tensors.described import is_described
from .program import Buffer, Program

QUANTISED = ("experts", "rows", "columns")
"""The dimensions of a quantised tensor, of which it has the last two or all."""


def header(program: Program) -> str:
    """The header of a program. Raises `InvalidArgument` where two of its names are equal."""
    prefix = program.name.upper()
    lines, known = [], {f"{prefix}_H"}
    for b in program.named:
        lines += ["", *_of_buffer(b, f"{prefix}_{b.name.upper()}")]
    for s in program.scalars:
        lines += ["", f"/* Scalar: {s.dtype}. */", f'#define {prefix}_{s.name.upper()} "{s.name}"']
    for line in lines:
        if line.startswith("#define"):
            name = line.split()[1]
            if name in known:
                raise InvalidArgument(f"{name} would be defined twice: take other names")
            known.add(name)
    setters = [("buffer", b.name) for b in program.named]
    setters += [("scalar", s.name) for s in program.scalars]
    names = "".join(f'    clf_program_set_{kind}(program, "{n}", ...);\n' for kind, n in setters)
    return (
        f"/* {program.name}, recorded by clformats {program.made_by}:\n\n"
        f'    clf_program_create(&program, "folder of this file", queue, NULL);\n'
        f"{names}"
        f"    clf_program_run(program, 0, NULL, NULL);\n*/\n"
        f"#ifndef {prefix}_H\n#define {prefix}_H\n" + "\n".join(lines) + "\n\n#endif\n"
    )


def _of_buffer(b: Buffer, name: str) -> list[str]:
    desc = MemoryDesc.parse(b.desc)
    dims = ", ".join(map(str, desc.dims))
    letters = QUANTISED[-desc.ndims :] if is_described(desc) else desc.format.dims
    return [
        f"/* {b.role.capitalize()}: {desc.ndims} dimensions, {', '.join(letters)}. */",
        f'#define {name} "{b.name}"',
        f'#define {name}_DESC "{b.desc}"',
        f"#define {name}_DIMS {{{dims}}}",
        f"#define {name}_BYTES {b.nbytes}",
        f"#define {name}_ALIGNMENT {b.alignment}",
    ]
