"""Options that several parts of the benchmark have, and the types of their values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from .cases import CASES, Case
from .drawn import SEED, drawn


def which_cases(parser: argparse.ArgumentParser) -> None:
    """The options that say what runs, and where."""
    add = parser.add_argument
    add("--device", metavar="NAME", help="a text in the device's or platform's name")
    add("--cases", metavar="REGEX", type=expression, help="only cases whose name has this in it")
    add("--random", metavar="N", type=positive, help="N cases drawn from what networks use instead")
    add("--seed", metavar="N", type=positive, default=SEED, help=f"which ones ({SEED})")


def pool(options: argparse.Namespace) -> Sequence[Case]:
    """The cases to choose from: the fixed ones, or so many drawn ones."""
    return drawn(options.random, options.seed) if options.random else CASES


def expression(words: str) -> re.Pattern[str]:
    """A regular expression of the command line."""
    try:
        return re.compile(words)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{words!r} is no regular expression: {error}") from error


def positive(words: str) -> int:
    """A number of 1 or more of the command line."""
    if not words.isdecimal() or int(words) < 1:
        raise argparse.ArgumentTypeError(f"got {words!r}, expected a number of 1 or more")
    return int(words)
