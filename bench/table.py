"""The table on the terminal: cases, groups, what a first use costs, two runs compared."""

from __future__ import annotations

from collections.abc import Iterator

from clformats.timing import Times

from .cases import LEAST_SHARE
from .report import (
    AGAIN,
    BAKED,
    EMPTY,
    OURS,
    PEERS,
    TUNED,
    Record,
    Report,
    Summary,
    geomean,
    summaries,
)

LEGEND = """\
GB/s: bytes read + written, padding included, by the median; then its quartiles.
copy: our share of the faster of two plain copies of as many bytes, on the same buffers.
oneDNN, torch, numpy: how many times as fast as they we are. A/A: the same kernel entered twice;
differences smaller than this mean nothing."""

FOOTNOTES = {
    "*": "oneDNN has only its reference code (simple:any) for this: not in the means",
    "b": "oneDNN was given bf16, of the same size, for f16: it has no generated code for f16",
}

BUSY = 0.7
"""Programs at work before a run begins, above which it says so."""

_PLACE = "{:<24}{:>7}{:>8} {:<13}{:>5} {:>8}{:>7}{:>7}{:>6}  {}"
_GROUP = "{:<24}{:>7}{:>21} {:>6} {:>8}{:>7}{:>7}"


def heading() -> str:
    """The titles of the columns."""
    titles = ("case", "MB", "GB/s", "quartiles", "copy", *PEERS, "A/A", "family")
    return _PLACE.format(*titles)


def row(record: Record) -> str:
    """One case."""
    if record.error:
        return f"{record.name:<24} FAILED: {record.error}"
    ratios = [number(record.ratio(peer)) for peer in PEERS]
    ratios[0] += mark(record) or " "
    return _PLACE.format(
        record.name,
        f"{record.mb:.2f}" if record.mb < 10 else f"{record.mb:.1f}",
        number(record.speed()),
        spread(record),
        number(record.share),
        *ratios,
        noise(record),
        record.family,
    )


def number(value: float | None) -> str:
    """Three digits, or a dash for what is not there."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def mark(record: Record) -> str:
    """The footnote of the ratio to oneDNN."""
    if "simple" in record.onednn:
        return "*"
    return "b" if "as bf16" in record.onednn else ""


def spread(record: Record) -> str:
    """The quartiles of our speed, the lower first."""
    times = record.times[OURS]
    low, high = (record.moved / t / 1e9 for t in (times.q3, times.q1))
    return f"[{number(low)}-{number(high)}]"


def noise(record: Record) -> str:
    """How far the two medians of the same kernel differ."""
    ratio = record.ratio(AGAIN)
    return "-" if ratio is None else f"{abs(ratio - 1):.0%}"


def footer(report: Report) -> Iterator[str]:
    """All that follows the cases: footnotes, reasons of absence, groups, first use."""
    yield ""
    yield LEGEND
    marks = {mark(r) for r in report.records}
    yield from (f"{sign}: {text}" for sign, text in FOOTNOTES.items() if sign in marks)
    yield from absences(report.records)
    yield from ("", *groups(summaries(report.records)))
    yield from ("", *slowest(report.records))
    yield from ("", *choices(report.records, is_tuned="tune" in report.settings))
    if report.first_use:
        yield from ("", *costs(report.first_use))


def absences(records: list[Record]) -> Iterator[str]:
    """Why peers are missing: one line for each reason, with the cases where it is not all."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for peer, reason in record.notes.items():
            reasons.setdefault((peer, reason), []).append(record.name)
    for (peer, reason), names in reasons.items():
        where = "" if len(names) == len(records) else f" in {', '.join(names)}"
        yield f"no {peer}{where}: {reason}"


def groups(lines: list[Summary]) -> Iterator[str]:
    """The geometric means of the groups beside the project's goals."""
    yield _GROUP.format("geometric means", "cases", "goal", "copy", *PEERS)
    for line in lines:
        ratios = [number(line.ratios[peer]) for peer in PEERS]
        ratios[0] += " "
        text = _GROUP.format(line.group.name, line.count, goal(line), number(line.share), *ratios)
        yield text + _more(line)


def slowest(records: list[Record]) -> Iterator[str]:
    """The cases that no mean may hide: below `LEAST_SHARE` of the copy, or slower than oneDNN."""
    fair = {r.name: r.ratio("oneDNN") for r in records if r.is_fair}
    shares = {r.name: r.share for r in records}
    pairs = {r.name: f"{r.src} -> {r.dst}" for r in records}
    for goal, values, least in (
        (f"below {LEAST_SHARE} of the copy", shares, LEAST_SHARE),
        ("slower than oneDNN", fair, 1.0),
    ):
        known = {name: value for name, value in values.items() if value}
        if not known:
            continue
        below = sorted((value, name) for name, value in known.items() if value < least)
        yield f"{goal}: {len(below)} of {len(known)}"
        yield from (f"  {number(value):>5}  {name:<24}{pairs[name]}" for value, name in below)


def choices(records: list[Record], *, is_tuned: bool = False) -> Iterator[str]:
    """What the rules leave to constants and to the tuner, in the mean of the cases that have it.

    ``is_tuned``: all were tuned. Those without a record then count as 1: nothing that was tried was
    surely faster than the rules.
    """
    yield "speed by the rules, beside the same reorder"
    for name, slot in (("with its sizes as constants", BAKED), ("as the tuner recorded it", TUNED)):
        ratios = [ratio for record in records if (ratio := record.ratio(slot))]
        if is_tuned and slot == TUNED:
            ratios += [1.0 for record in records if record.times and slot not in record.times]
        mean, low = number(geomean([*ratios])), number(min(ratios, default=None))
        of = f"{len(ratios)} of {len(records)} cases"
        yield f"  {name:<30}{mean:>6}  goal 0.95, {of}, lowest {low}"


def goal(line: Summary) -> str:
    """The goal of a group, in words."""
    group = line.group
    if group.share:
        return f"copy {group.share}"
    if group.launch:
        return f"empty kernel x{group.launch}"
    return f"oneDNN {group.onednn}" if group.onednn else ""


def _more(line: Summary) -> str:
    """What only some groups have: the lowest ratio to oneDNN, the cost beside an empty kernel."""
    if line.group.launch and line.ratios[EMPTY]:
        return f"  an empty kernel x{number(1 / (line.ratios[EMPTY] or 1))}"
    return f"  lowest {number(line.lowest)}" if line.group.onednn else ""


def costs(first_use: dict[str, float]) -> Iterator[str]:
    """What a first use and a call cost."""
    yield "first use of a structure, and a call"
    for name, value in first_use.items():
        yield f"  {name:<38}{number(value) if name.startswith('ratio') else duration(value):>10}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def machine(report: Report) -> Iterator[str]:
    """When and where."""
    yield f"{'date':<12}{report.date}"
    yield from (f"{name:<12}{value}" for name, value in report.machine.items())
    load = float(report.machine.get("load", "0").split(",")[0])
    if load > BUSY:
        yield f"THE MACHINE WAS BUSY (load {load}) before the run began: its numbers say little"


def comparison(new: Report, old: Report) -> Iterator[str]:
    """Case by case how the speed changed since an old run."""
    yield f"compared with {old.date} on {old.machine.get('device', '?')}"
    if old.machine.get("device") != new.machine.get("device"):
        yield f"ANOTHER DEVICE than now ({new.machine.get('device', '?')})"
    yield f"{'case':<24}{'old GB/s':>10}{'new GB/s':>10}{'ratio':>8}{'copy, old':>11}{'new':>7}"
    before = {r.name: r for r in old.records if r.times}
    for record in new.records:
        if record.name in before and record.times:
            yield _compared(record, before[record.name])
    yield "faster, SLOWER: speed and share of the copy differ beyond the quartiles of both runs;"
    yield "machine: the speed does, the share does not."


def _compared(new: Record, old: Record) -> str:
    now, then = new.times[OURS], old.times[OURS]
    speeds = "".join(f"{number(r.speed()):>10}" for r in (old, new))
    shares = f"{number(old.share):>11}{number(new.share):>7}"
    ratio = f"{then.median / now.median:>8.2f}"
    return f"{new.name:<24}{speeds}{ratio}{shares}  {verdict(new, old)}".rstrip()


def verdict(new: Record, old: Record) -> str:
    """Whether two runs differ beyond both spreads, and whether that is our doing."""
    now, then = new.times[OURS], old.times[OURS]
    change = beyond(now, then, 1, 1)
    own = beyond(now, then, 1 / (new.ceiling or 1), 1 / (old.ceiling or 1))
    if not change:
        return ""
    return ("faster" if change > 0 else "SLOWER") if own == change else "machine"


def beyond(now: Times, then: Times, unit: float, old_unit: float) -> int:
    """1 where it now takes less time than then beyond both spreads, -1 where more, else 0.

    Times are counted in units, such as those of a copy in the same run.
    """
    if now.q3 / unit < then.q1 / old_unit:
        return 1
    return -1 if now.q1 / unit > then.q3 / old_unit else 0
