"""The gallery: every registered format with its names, its digits and its drawing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import clformats as cf
from clformats.interop.notations import NOTATIONS, render

PAGES = {
    "data": "Data",
    "weights-2-3": "Weights of 2 and 3 dimensions",
    "weights-4": "Weights of 4 dimensions",
    "weights-5": "Weights of 5 dimensions",
    "weights-6": "Weights of 6 dimensions",
    "rnn": "Recurrent layers",
    "other": "Other tags of oneDNN",
}
ROLES = ("data", "weights", "rnn")


@dataclass(frozen=True)
class Entry:
    """One structure: the registered formats that are equal, the best known name first."""

    number: int
    formats: tuple[cf.Format, ...]

    @property
    def format(self) -> cf.Format:
        """The one after which the entry is named."""
        return self.formats[0]

    @property
    def page(self) -> str:
        """Where it stands, one of `PAGES`."""
        roles = {f.role for f in self.formats}
        role = next((r for r in ROLES if r in roles), "other")
        if role != "weights":
            return role
        return "weights-2-3" if self.format.ndims < 4 else f"weights-{self.format.ndims}"

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The names in each notation."""
        found: dict[str, list[str]] = {"listed as": [f.name for f in self.formats]}
        for notation in NOTATIONS:
            try:
                name = render(self.format, notation)
            except cf.Unsupported:
                continue
            if name not in found["listed as"]:
                found[notation] = [name]
        return found

    @cached_property
    def drawing(self) -> str | None:
        """The SVG of a small tensor, with padding in it; None where there is no drawing."""
        blocks = [1] * self.format.ndims
        for digit in self.format.digits:
            for dim in digit.dims:
                blocks[dim] *= digit.size or 1
        dims = [b + 2 if b > 1 else 2 + k % 2 for k, b in enumerate(blocks)]
        dtype = "s4" if self.format.name.endswith(":i4") else "f32"
        try:
            return str(cf.draw(cf.MemoryDesc(dims, dtype, self.format), boxes=2)._repr_svg_())
        except cf.Error:
            return None

    def markdown(self) -> str:
        """The section of the page."""
        name = self.format.name
        kinds = [
            f"{kind}: {', '.join(f'`{n}`' for n in names)}" for kind, names in self.names.items()
        ]
        lines = [f"## `{name}` {{#{name}}}", " · ".join(kinds)]
        if self.format.layout:
            digits = (_digit(d, self.format.letters) for d in self.format.digits)
            lines.append(f"digits: `{', '.join(digits)}`")
        if self.drawing:
            lines.append(f'![{name}](svg/{self.number}.svg){{.drawing loading="lazy"}}')
        return "\n\n".join(lines)


def entries() -> list[Entry]:
    """All of them, in the order of the registry."""
    groups: defaultdict[cf.Format, list[cf.Format]] = defaultdict(list)
    for format in cf.formats():
        groups[format].append(format)
    return [
        Entry(k, tuple(sorted(g, key=_by_renown))) for k, g in enumerate(groups.values(), start=1)
    ]


def _by_renown(format: cf.Format) -> tuple[bool, bool, str]:
    """ClDNN's name first, then oneDNN's by letters of the field, then a tag such as ``aBcd16b``."""
    return format.name != format.cldnn, format.role == "generic", format.name


def _digit(digit: cf.Digit, letters: str) -> str:
    """``f/16`` for an open digit, ``f%16`` for the innermost one, ``~`` for a flipped index."""
    index = "~" * digit.flip + "".join(letters[k] for k in digit.dims)
    return (
        index
        + (f"/{digit.step}" if digit.step > 1 else "")
        + (f"%{digit.size}" if digit.size else "")
    )


def files() -> Iterator[tuple[str, str]]:
    """Path and content of every page, drawing and script of the gallery."""
    every = entries()
    for page, title in PAGES.items():
        sections = [e.markdown() for e in every if e.page == page]
        yield f"gallery/{page}.md", "\n\n".join([*_head(title, len(sections)), *sections])
    for entry in every:
        if entry.drawing:
            yield f"gallery/svg/{entry.number}.svg", entry.drawing
    rows = [
        [e.format.name, e.page, e.number if e.drawing else 0, [*chain(*e.names.values())]]
        for e in every
    ]
    yield "assets/formats.js", f"const FORMATS = {json.dumps(rows, separators=(',', ':'))};\n"


def _head(title: str, count: int) -> list[str]:
    return [
        "---\nhide: [navigation, toc]\nsearch: {boost: 3}\n---",
        f"# {title}",
        f"{count} formats. [How to read a drawing, and what a name means](index.md).",
        LOOKUP,
    ]


LOOKUP = """<div id="lookup"></div>
<script src="../assets/formats.js"></script>
<script src="../assets/lookup.js"></script>"""
