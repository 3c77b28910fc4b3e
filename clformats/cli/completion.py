"""`clformats completion`: a script that completes commands, options and formats in a shell."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from ..errors import Error
from ..formats.registry import all_names

SHELLS = ("bash", "zsh")
FILES = ("FILE", "IN", "OUT", "IN.npy", "LOG", "MODEL")
FORMATS = ("NAME", "FORMAT")
_FUNCTION = "_clformats_format"
_PREAMBLES = {
    "bash": f'{_FUNCTION}() {{{{ compgen -W "{{names}}" -- "$1"; }}}}',
    "zsh": f"{_FUNCTION}() {{{{ local -a names=({{names}}); compadd -a names; }}}}",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `completion` to the command line."""
    parser = subparsers.add_parser(
        "completion",
        help="a script that completes commands, options and formats in a shell",
        description="Print a script for bash or zsh that completes commands, options, files and "
        "the names of formats. It is made by shtab (pip install shtab).",
        epilog="example:  clformats completion bash > "
        "~/.local/share/bash-completion/completions/clformats",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash or zsh")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(script(args.shell))
    return 0


def script(shell: str) -> str:
    """The script for a shell. Raises `Error` where shtab is missing."""
    try:
        shtab = import_module("shtab")
    except ImportError as error:
        raise Error(f"completion needs shtab ({error}): pip install shtab") from error
    from . import parser

    whole = parser()
    _mark(whole, shtab.FILE)
    # A colon ends a word in bash.
    names = " ".join(sorted(name for name in all_names() if ":" not in name))
    preamble = {name: text.format(names=names) for name, text in _PREAMBLES.items()}
    return str(shtab.complete(whole, shell=shell, preamble=preamble))


def _mark(parser: argparse.ArgumentParser, file: Any) -> None:
    """Say which arguments are files, and which are formats."""
    for action in parser._actions:  # noqa: SLF001  # argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # the same
            for inner in action.choices.values():
                _mark(inner, file)
        elif action.choices is None and action.metavar in FILES:
            action.complete = file  # type: ignore[attr-defined]  # read by shtab
        elif action.choices is None and action.metavar in FORMATS:
            action.complete = dict.fromkeys(SHELLS, _FUNCTION)  # type: ignore[attr-defined]
