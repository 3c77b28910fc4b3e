"""What is remembered of builds beside the cache of programs: which were safe, which were not.

A file for each source, options, device and driver, named by the same hash as the program, with
the suffix ``.json``. Those of programs that ended or hung a compiler have all that a report needs.
Programs whose binary is cached need no file.

Reading needs no OpenCL: the doctor does.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import trust
from ..errors import DeviceError
from ..version import __version__

BUILT, DIED, HUNG, FAILED, UNKNOWN = "built", "died", "hung", "failed", "unknown"
OUTCOMES = (BUILT, DIED, HUNG, FAILED, UNKNOWN)
SUFFIX = ".json"
BUILD, LAUNCH, BINARY = "build", "launch", "binary"
STAGES = {
    BUILD: "while it was built",
    LAUNCH: "while it ran for the first time",
    BINARY: "while its binary was asked for",
}
"""What a worker does with a program, as it names it, and in words."""


@dataclass(frozen=True)
class BuildOutcome:
    """How a build in a process of its own ended.

    ``outcome`` is "built", "died", "hung", "failed" (an error of OpenCL) or "unknown" (not tried).
    ``how`` is what ended the process, ``said`` the last lines of what the compiler printed.
    ``source`` is empty where the build did no harm. ``key`` is the hash that names the program,
    ``when`` the time, as ISO 8601; ``binary``, if it was asked for, is not remembered.
    """

    outcome: str
    how: str = ""
    stage: str = ""
    said: str = ""
    device: str = ""
    driver: str = ""
    source: str = ""
    options: tuple[str, ...] = ()
    key: str = ""
    when: str = ""
    binary: bytes = b""

    @property
    def kills(self) -> bool:
        """Whether the program must not be built in a process that is needed."""
        return self.outcome in (DIED, HUNG)

    def __str__(self) -> str:
        """One line: which kernel did what to which driver.

        >>> died = BuildOutcome(
        ...     DIED, "signal SIGABRT", BUILD, device="CPU", driver="X 1", key="0123"
        ... )
        >>> print(died)
        kernel 0123 ended the compiler of CPU (X 1): signal SIGABRT while it was built
        """
        does = "ended" if self.outcome == DIED else "hung"
        whose = f"{self.device} ({self.driver})"
        line = f"kernel {self.key[:12]} {does} the compiler of {whose}: {self.how}"
        line = f"{line} {STAGES.get(self.stage, self.stage)}"
        return f"{line}; it is asked for none any more" if self.stage == BINARY else line


class CompilerDied(DeviceError):
    """A program that ends the process which builds it: it is built nowhere else."""

    def __init__(self, outcome: BuildOutcome) -> None:
        super().__init__(
            f"{outcome}. This process goes on, and the kernel is not built again; "
            f"`clformats doctor --killed` prints a report for the driver's authors",
            name="COMPILER_DIED",
            log=outcome.said,
        )
        self.outcome = outcome


_known: dict[str, BuildOutcome] = {}
"""Those of this process, for users without a cache folder too."""


def recall(key: str, folder: Path | None) -> BuildOutcome | None:
    """What is known of a program; None where it was never tried on this machine."""
    found = _known.get(key)
    if found is None and folder is not None:
        found = _read(folder / (key + SUFFIX))
        if found is not None:
            _known[key] = found
    return found


def remember(outcome: BuildOutcome, folder: Path | None) -> None:
    """Keep an outcome, for this process and for later ones where there is a folder."""
    _known[outcome.key] = outcome
    if folder is None:
        return
    values = {k: v for k, v in asdict(outcome).items() if v and k not in ("binary", "key")}
    with suppress(OSError):  # who cannot write programs was told so
        trust.make_own_folder(folder)
        trust.write(folder / (outcome.key + SUFFIX), json.dumps(values).encode())


def killers(folder: Path | None) -> Iterator[BuildOutcome]:
    """The remembered programs that ended or hung a compiler, the newest first."""
    if folder is None:
        return
    found = [_read(file) for file in folder.glob(f"*{SUFFIX}")]
    yield from sorted((o for o in found if o and o.kills), key=lambda o: o.when, reverse=True)


def report(outcome: BuildOutcome) -> str:
    """All that the authors of a driver need, as Markdown."""
    import sys

    return "\n".join([
        f"**{outcome}**", "",
        f"- device: {outcome.device}", f"- driver: {outcome.driver}",
        f"- build options: {' '.join(outcome.options) or 'none'}", f"- seen: {outcome.when}",
        f"- clformats {__version__}, Python {platform.python_version()} on {sys.platform}",
        "", "What it printed last:", "", "```", outcome.said or "nothing", "```",
        "", "The OpenCL C:", "", "```c", outcome.source.rstrip(), "```",
    ])  # fmt: skip


def _read(file: Path) -> BuildOutcome | None:
    """A remembered outcome; None where there is none, or none that can be read."""
    try:
        values = json.loads(trust.read(file))
        options = tuple(values.pop("options", ()))
        if any(not isinstance(text, str) for text in (*values.values(), *options)):
            return None
        if values["outcome"] not in OUTCOMES or "binary" in values:
            return None
        return BuildOutcome(**values, options=options, key=file.name.removesuffix(SUFFIX))
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return None
