"""The page of the command line: what `clformats COMMAND --help` prints."""

from __future__ import annotations

import argparse
import os

from clformats.cli import parser

INTRO = """# The command line

`clformats COMMAND --help` prints what stands here. Exit status 0: done. 1: refused or wrong, with
one line that says why. 2: a command line that cannot be read."""


def page() -> str:
    """A section for each command."""
    os.environ["COLUMNS"] = "100"
    actions = parser()._actions  # noqa: SLF001  # argparse has no other way
    commands = next(a for a in actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    short = {a.dest: a.help for a in commands._choices_actions}  # noqa: SLF001
    sections = [
        f"## {name}\n\n{_sentence(short.get(name) or '')}\n\n```text\n{command.format_help()}```"
        for name, command in commands.choices.items()
    ]
    return "\n\n".join([INTRO, *sections])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
