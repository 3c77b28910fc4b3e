"""The template of a line of times: which ``%options%`` there are, and what each says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .values import BadValue

DEFAULT = "perf,%engine%,%impl%,%name%,%prb%,%Gops%,%+ctime%,%-time%,%-Gflops%,%0time%,%0Gflops%"
CSV = (
    "perf,%engine%,%impl%,%name%,%sdt%,%ddt%,%stag%,%dtag%,%flags%,%attr%,%DESC%,%Gops%,%+ctime%,"
    "%-time%,%-Gflops%,%0time%,%0Gflops%"
)
TEXTS = ("attr", "ctx-exe", "ctx-init", "ddt", "desc", "DESC", "driver", "dtag", "engine", "flags",
         "idx", "impl", "name", "prb", "sdt", "stag")  # fmt: skip
"""Options that are text; the others are numbers, and take a unit and a choice in front."""
AMOUNTS = ("flops", "ibytes", "iobytes", "obytes", "ops")
TIMES = ("bw", "cpdtime", "cptime", "ctime", "time")
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}

_OPTION = re.compile(r"%([-0+]?)([KMG]?)([A-Za-z-]+)%")


def check_template(text: str) -> str:
    """The template that a value of ``--perf-template`` means. Raises `BadValue`."""
    template = {"def": DEFAULT, "csv": CSV}.get(text, text)
    for match in _OPTION.finditer(template):
        known = match[3] in (*AMOUNTS, *TIMES) or (
            match[0] == f"%{match[3]}%" and match[3] in TEXTS
        )
        if not known:
            expected = ", ".join(sorted((*TEXTS, *AMOUNTS, *TIMES)))
            raise BadValue(f"{match[0]} is no option of a template here: expected {expected}")
    if "%" in _OPTION.sub("", template):
        raise BadValue(f"a lone % in {text!r}: options stand between two, such as %-time%")
    return template


def filled(
    template: str,
    texts: Mapping[str, str],
    amounts: Mapping[str, float],
    times: Mapping[str, tuple[float, float, float]],
) -> str:
    """The template with its options replaced.

    ``amounts`` and ``times`` are in units of their own; of ``times`` least, mean and most. Without
    a choice in front the least is meant, of creation times the most. ``bw`` is per second.
    """

    def value(match: re.Match[str]) -> str:
        choice, unit, name = match.groups()
        if name in texts:
            return texts[name]
        if name == "bw":
            return f"{_rate(amounts['iobytes'], times['time'], choice) / UNITS[unit]:g}"
        if name == "flops":
            return "0"  # a reorder counts no operations
        if name in amounts:
            return f"{amounts[name] / UNITS[unit]:g}"
        usual = "+" if name.startswith("c") else "-"
        return f"{times[name]['-0+'.index(choice or usual)] / UNITS[unit]:g}"

    return _OPTION.sub(value, template)


def _rate(amount: float, times: tuple[float, float, float], choice: str) -> float:
    """Amount per second; times are milliseconds."""
    spent = times["-0+".index(choice or "-")]
    return amount / spent * 1e3 if spent else 0.0
