"""What came of a problem: benchdnn's status words, and what else its reports tell."""

from __future__ import annotations

from dataclasses import dataclass, field

LISTED = "LISTED"
SKIPPED = "SKIPPED"
INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
UNIMPLEMENTED = "UNIMPLEMENTED"
INITIALIZED = "INITIALIZED"
EXECUTED = "EXECUTED"
PASSED = "PASSED"
MISTRUSTED = "MISTRUSTED"
FAILED = "FAILED"

NO_MEMORY = "Not enough RAM"
SKIPPED_IMPL = "Skip-impl option hit"
SKIPPED_START = "Skip-start option hit"


@dataclass(slots=True)
class Outcome:
    """The status of a problem.

    ``reason`` is short: why it was skipped, or the code of a refusal; ``message`` says it at
    length. ``errors`` of ``total`` elements are wrong, and ``points`` tells the first of them.
    ``times`` are milliseconds of a run, the least, the mean and the most; ``create_ms`` what making
    the reorder took. ``spent`` are seconds by activity. Sizes are bytes.
    """

    status: str = FAILED
    reason: str = ""
    message: str = ""
    errors: int = 0
    total: int = 0
    points: list[str] = field(default_factory=list)
    implementation: str = ""
    times: tuple[float, float, float] = (0.0, 0.0, 0.0)
    create_ms: float = 0.0
    ibytes: int = 0
    obytes: int = 0
    spent: dict[str, float] = field(default_factory=dict)
