"""Rendering templates: strict about undefined names, and errors that show where.

What Mako compiles a template to is kept where Python keeps compiled modules. It takes a process
40 to 80 ms to compile them. Modules that do not load are removed, so that the next process has them
again.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Error

if TYPE_CHECKING:
    from mako.lookup import TemplateLookup

FOLDER = Path(__file__).parent


class RenderError(Error):
    """A template failed; the message shows the line of the template and what was passed to it."""


def filled(template: str, **values: Any) -> str:
    """The text of ``templates/<template>.mako``. Raises `RenderError`."""
    name, modules = f"{template}.mako", _folder_of_modules()
    with suppress(Exception):  # a spoilt module or a full disk; else it fails again
        return _rendered(name, values, modules)
    try:
        text = _rendered(name, values, None)
    except Exception as error:
        from mako import exceptions

        detail = exceptions.text_error_template().render()
        given = "\n".join(f"  {name} = {value!r}" for name, value in values.items())
        raise RenderError(f"template {name} failed: {error}\n{detail}\nwith\n{given}") from error
    for file in modules.glob("*.mako.*.py") if modules else ():
        with suppress(OSError):  # all of them: which is spoilt is not known
            file.unlink()
    return text


def _rendered(name: str, values: dict[str, Any], modules: Path | None) -> str:
    text: str = _templates(modules).get_template(name).render(**values)
    return _tidy(text)


@cache
def _templates(modules: Path | None) -> TemplateLookup:
    """The templates; ``modules`` is where Mako keeps what it compiles them to, if anywhere.

    Mako is loaded here, since most processes find their kernels on disk.
    """
    from mako.lookup import TemplateLookup

    def file_of(filename: str, uri: str) -> str | None:
        if modules is None:
            return None
        # Installers write files with times of the past: the contents tell one version from another.
        contents = hashlib.sha256(Path(filename).read_bytes()).hexdigest()[:16]
        return str(modules / f"{uri}.{contents}.py")

    return TemplateLookup(
        directories=[str(FOLDER)], modulename_callable=file_of, strict_undefined=True
    )


def _folder_of_modules() -> Path | None:
    """Where Python keeps the compiled modules of this folder; None if it keeps none."""
    if sys.dont_write_bytecode or sys.implementation.cache_tag is None:
        return None
    folder = Path(cache_from_source(__file__)).parent
    return folder if os.access(folder, os.W_OK) else None


def _tidy(text: str) -> str:
    """Remove trailing blanks and runs of empty lines, which templates leave."""
    lines: list[str] = []
    for line in text.splitlines():
        stripped = line.rstrip()
        if stripped or (lines and lines[-1]):
            lines.append(stripped)
    return "\n".join(lines).strip() + "\n"
