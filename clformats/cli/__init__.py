"""The command line: `clformats COMMAND`, one module for each command."""

from __future__ import annotations

import argparse
import codecs
import difflib
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module

from ..errors import Error
from ..formats.digits import RUNTIME
from ..version import __version__

COMMANDS = (
    *(
        "list",
        "explain",
        "offset",
        "draw",
        "convert",
        "infer",
        "inspect",
        "reorder",
        "pack",
        "unpack",
        "export",
        "run",
    ),
    *("kernel", "header", "doctor", "demo", "bench", "tune", "calibrate"),
    *("plan", "audit", "completion"),
)
_ASCII = str.maketrans(
    {**dict.fromkeys("┌┬┐└┴┘", "+"), "─": "-", "│": "|", "░": ".", "…": "~", "\u00d7": "x",
     "→": ">", "\u2013": "-", "✔": "ok"}
)  # fmt: skip
"""What stands for the signs of drawings on a terminal that has none of them."""


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    result = argparse.ArgumentParser(
        prog="clformats",
        description="Memory formats of tensors on OpenCL devices: explain them, reorder tensors.",
        epilog="example: clformats explain b_fs_yx_fsv16 --shape 2,17,5,4\n"
        "help:    clformats help explain\n"
        "files:   -o FILE; an existing one is replaced with --force only; - is the terminal\n"
        "status:  0 done; 1 not done, or something is wrong, with the reason in one line;\n"
        "         2 an option or a word that the command does not know; 130 interrupted",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--version", action="version", version=f"clformats {__version__}")
    subparsers = result.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        # `list` would hide the built-in, so the module carries an underscore.
        module = import_module(f".{name}_" if name == "list" else f".{name}", __name__)
        module.add_parser(subparsers)
        subparsers.choices[name].set_defaults(command=subparsers.choices[name])
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it did its job, 1 with one line on standard error if it could not.

    A command line that is no sentence at all, with an unknown option say, ends in argparse's usage
    text and exit status 2.
    """
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    _check_command(words)
    arguments, unknown = parser().parse_known_args(list(_negative_values_joined(words)))
    if unknown:  # told by the command, with its own usage text
        arguments.command.error(f"unrecognized arguments: {' '.join(unknown)}")
    codecs.register_error("clformats", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="clformats")
    try:
        return _flushed(int(arguments.run(arguments)))
    except Error as error:
        # Messages about descriptors print sizes as Python has them.
        text = str(error).replace(str(RUNTIME), "*")
        print(f"clformats: {text}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("clformats: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone, `head` for instance; nothing is wrong
        return 0
    except MemoryError as error:
        why = str(error) or "there is none left"
        print(f"clformats: not enough memory: {why}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"clformats: cannot write the output: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left unwritten goes there
        return 1


def _check_command(words: Sequence[str]) -> None:
    """End in exit status 2 where no command is named, or one that there is not."""
    if not words:
        parser().error("expected a command: `clformats help` lists them")
    if words[0].startswith("-") or words[0] in COMMANDS:
        return
    near = difflib.get_close_matches(words[0], COMMANDS, n=1, cutoff=0.7)
    advice = f"did you mean {near[0]}?" if near else "`clformats help` lists them"
    parser().error(f"unknown command {words[0]!r}: {advice}")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """What is printed instead of signs that the terminal has not; "?" for other people's."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII)
    return text.encode("ascii", "replace").decode("ascii"), error.end


def _flushed(code: int) -> int:
    """The code, once all is written: a full disk found at the interpreter's end is a traceback."""
    if sys.stdout is not None:  # it is None where it was closed before the program began
        sys.stdout.flush()
    return code


def _negative_values_joined(words: Sequence[str]) -> Iterator[str]:
    """``--shape -1,2`` as ``--shape=-1,2``: argparse would take the value for an option."""
    option = ""
    for word in words:
        if option and re.match(r"-\d", word):
            yield f"{option}={word}"
            option = ""
            continue
        if option:
            yield option
        option = word if re.fullmatch(r"--[a-z]+", word) else ""
        if not option:
            yield word
    if option:
        yield option
