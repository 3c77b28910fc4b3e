"""The message of a failed build: the compiler's log, and the lines of source that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

AROUND, MOST = 3, 40
"""Lines shown before and after one that the log names; lines of source at most."""


def told(source: str, error: str) -> str:
    """The log in an error of pyopencl's, and the lines around those that it names.

    Where it names none, the source from its first line.
    """
    log = re.sub(r"\A(clBuildProgram failed: \w+( - )?)+\s*", "", error).strip()
    named = {int(n) for n in re.findall(r":(\d+):\d+:", log)}
    lines = list(numbered(source))
    wanted = [k for k, (number, _) in enumerate(lines) if number in named]
    shown = sorted({
        k for at in wanted for k in range(at - AROUND, at + AROUND + 1) if 0 <= k < len(lines)
    }) or list(range(len(lines)))  # fmt: skip
    text, before = [], -1
    for k in shown[:MOST]:
        if k != before + 1:
            text.append(" ... |")
        number, line = lines[k]
        text.append(f"{number:4} | {line}".rstrip())
        before = k
    if before + 1 < len(lines):
        text.append(" ... |")
    return f"{log}\n\n" + "\n".join(text)


def numbered(source: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers as compilers count them: anew after ``#line``."""
    number = 1
    for line in source.splitlines():
        yield number, line
        said = re.match(r"\s*#\s*line\s+(\d+)", line)
        number = int(said[1]) if said else number + 1
