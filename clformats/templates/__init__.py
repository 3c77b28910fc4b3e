"""Rendering templates: strict about undefined names, and errors that show where."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from mako import exceptions
from mako.lookup import TemplateLookup
from mako.template import Template

from ..errors import Error


class RenderError(Error):
    """A template failed; the message shows the line of the template and what was passed to it."""


@cache
def _templates() -> TemplateLookup:
    folder = resources.files("clformats").joinpath("templates")
    return TemplateLookup(directories=[str(folder)], strict_undefined=True)


def render(template: str, **values: Any) -> str:
    """The text of ``templates/<template>.mako``. Raises `RenderError`."""
    try:
        compiled: Template = _templates().get_template(f"{template}.mako")
        text: str = compiled.render(**values)
    except Exception as error:
        detail = exceptions.text_error_template().render()
        given = "\n".join(f"  {name} = {value!r}" for name, value in values.items())
        raise RenderError(
            f"template {template}.mako failed: {error}\n{detail}\nwith\n{given}"
        ) from error
    return _tidy(text)


def _tidy(text: str) -> str:
    """No trailing blanks, no runs of empty lines: what templates leave behind."""
    lines: list[str] = []
    for line in text.splitlines():
        stripped = line.rstrip()
        if stripped or (lines and lines[-1]):
            lines.append(stripped)
    return "\n".join(lines).strip() + "\n"
