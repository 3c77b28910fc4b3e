"""Rendering templates: strict about undefined names, and errors that show where."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from mako import exceptions
from mako.lookup import TemplateLookup
from mako.template import Template

from ..errors import Error
from ..planner.problem import Number


class RenderError(Error):
    """A template failed; the message shows the line of the template and what was passed to it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel ready to be built and run.

    Its parameters are the source, the destination, ``arguments``, which are integers, and what its
    computation reads: the operands that are no part of the destination, then the scalars.
    """

    source: str
    arguments: tuple[int, ...]
    wide: bool
    global_size: int
    local_size: int

    @property
    def groups(self) -> int:
        """How many work-groups there are."""
        return self.global_size // self.local_size

    KERNEL = "reorder"


@dataclass
class Arguments:
    """Names numbers in the source: constants by their value, others as kernel arguments.

    ``baked``: those too are constants, declared in the kernel.
    """

    baked: bool | None = None
    values: dict[str, int] = field(default_factory=dict)

    def text(self, name: str, number: Number | int) -> str:
        """The text for a number: its value if it is part of the structure, else ``name``."""
        if isinstance(number, int):
            number = Number(number)
        if number.fixed:
            return str(number.value)
        self.values[name] = number.value
        return name

    @property
    def declarations(self) -> list[str]:
        """The scalar parameters, as OpenCL C."""
        return [] if self.baked else [f"const idx {name}" for name in self.values]

    @property
    def constants(self) -> list[str]:
        """What a baked kernel declares instead."""
        return [f"const idx {name} = {value};" for name, value in self.values.items() if self.baked]

    @property
    def given(self) -> tuple[int, ...]:
        """The values of the parameters, in their order."""
        return () if self.baked else tuple(self.values.values())


def moved(base: str, by: str | int) -> str:
    """``base + by`` without a needless zero."""
    return base if str(by) == "0" else f"{base} + {by}"


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
