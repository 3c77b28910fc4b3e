"""The source of a kernel of the user's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..errors import Unsupported
from ..kernels.source import without_comments
from ..opencl import opencl
from ..runtime import Engine
from ..runtime.engine import SOURCE
from .program import Source

if TYPE_CHECKING:
    import pyopencl

_ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"


def source_of(kernel: pyopencl.Kernel, engine: Engine) -> Source:
    """The source and options that a kernel was built of.

    Raises `Unsupported` (code RECORDING) where the source is not known, or includes files.
    """
    known = getattr(kernel, SOURCE, None)
    if known is not None:
        return Source(_whole(known, kernel), "", rounds=True)
    cl = opencl()
    try:
        program: Any = kernel.get_info(cl.kernel_info.PROGRAM)
        text = program.get_info(cl.program_info.SOURCE)
        options = program.get_build_info(engine.device, cl.program_build_info.OPTIONS)
    except cl.LogicError:  # Intel's kernels do not keep a program that is gone
        text = options = ""
    if not text:
        raise Unsupported(
            "RECORDING",
            f"the kernel {kernel.function_name} is of a program without source, or of one that is "
            f"gone: make it by engine.kernel(source, name)",
        )
    # The folders of pyopencl's own headers, which the source does not include.
    kept = re.sub(r"(?<!\S)-I\s*(\"[^\"]*\"|\S+)", "", options).split()
    rounds = _ROUNDED in kept
    return Source(_whole(text, kernel), " ".join(o for o in kept if o != _ROUNDED), rounds)


def _whole(text: str, kernel: pyopencl.Kernel) -> str:
    found = re.search(r"^\s*#\s*include\b.*$", without_comments(text), re.MULTILINE)
    if found:
        raise Unsupported(
            "RECORDING",
            f"the kernel {kernel.function_name} has {found[0].strip()!r}: put the text of that "
            f"file into the source",
        )
    return text
