"""The outcome of a problem: benchdnn's status words, and the other entries of its reports."""

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
class CaseOutcome:
    """The status of a problem.

    ``reason`` is short: why it was skipped, or the code of a refusal; ``message`` is a sentence.
    ``errors`` of ``total`` elements are wrong, and ``points`` lists the first of them. ``times``
    are the least, mean and largest milliseconds of a run; ``create_ms`` are those of making the
    reorder. ``spent`` are seconds by activity. Sizes are bytes.
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
