"""Lines of generated source that are too long for a reader, folded."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 100
# Where a line may end, and the next one begins with what follows: after commas, before operators.
_BREAKS = re.compile(r"(?<=,) | (?=\+ |&& |\? |: )")


def folded(text: str) -> str:
    """The source with no line over `WIDTH`, as far as there are places to break at."""
    return "\n".join(part for line in text.split("\n") for part in _parts(line))


def _parts(line: str) -> Iterator[str]:
    start = line.lstrip()
    indent = " " * (len(line) - len(start) + 4)
    comment, macro = start.startswith("//"), start.startswith("#")
    breaks = re.compile(" ") if comment else _BREAKS
    first = indent[:-4] + "//     " if comment else indent
    head = re.match(r"#define \w+\([^)]*\)(?= )", line)
    if head and len(line) > WIDTH:
        yield f"{head[0]} \\"
        line = first + line[head.end() + 1 :]
    while len(line) > WIDTH:
        ends = [m.start() for m in breaks.finditer(line, len(first)) if m.start() <= WIDTH - 2]
        if not ends:
            break
        # Outside brackets rather than inside, unless that leaves a short line.
        end = min(ends, key=lambda n: (n < WIDTH // 2, _depth(line[:n]), -n))
        yield line[:end] + " \\" * macro
        line = first + line[end + 1 :]
    yield line


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")
