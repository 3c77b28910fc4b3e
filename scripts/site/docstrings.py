"""Docstrings as Markdown: examples and tables as code, and links to what backquotes name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe

import clformats

DOCS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"(?<!`)`(?:clformats\.)?([A-Za-z_][\w.]*)`(?!`)")
PAGE = re.compile(r"\bdocs/(\w+)\.md")


class Markdown(griffe.Extension):
    """Rewrites every docstring on its way to the API pages."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one."""
        if obj.docstring:
            paragraphs = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if text.startswith("==="):  # a table in reStructuredText
        return f"```text\n{text}\n```"
    if text.startswith("    "):
        return text
    return PAGE.sub(_page, NAME.sub(_link, re.sub("::$", ":", text)))


def _link(found: re.Match[str]) -> str:
    """A link, where the name is of the public surface."""
    root, _, member = found[1].partition(".")
    if root not in clformats.__all__ or not _is_shown(getattr(clformats, root), member):
        return found[0]
    return f"[`{found[1]}`][clformats.{found[1]}]"


def _is_shown(owner: object, member: str) -> bool:
    return not member or bool(getattr(getattr(owner, member, None), "__doc__", None))


def _page(found: re.Match[str]) -> str:
    return f"[{heading(found[1])}][{slug(heading(found[1]))}]"


@cache
def heading(page: str) -> str:
    """The first heading of a page of docs/."""
    first = (DOCS / f"{page}.md").read_text(encoding="utf-8").splitlines()[0]
    return first.removeprefix("# ").replace("`", "")


def slug(title: str) -> str:
    """The anchor that Python-Markdown gives a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
