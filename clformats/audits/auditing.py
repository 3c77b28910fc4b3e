"""`audit`: what the layouts of an engine cost, and what the least possible is by its own log.

The log's operations become a network: each node may run in every combination of formats in which
the log has the same operation, a reorder costs what the log says of the same one, else what a line
through the log's reorders says. What `propagate` then leaves out of the log's reorders is needless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ..networks.choice import Choice
from ..networks.cost import Cost
from ..networks.graph import Network
from ..networks.named import FormatName, named, plain
from ..networks.plan import FormatPlan, propagate
from ..networks.prices import BANDWIDTH, LATENCY
from ..tensors.desc import MemoryDesc
from .logs import read
from .trace import Dims, Operation, Trace, TracedTensor


class Finding(NamedTuple):
    """A reorder of the log: where, what, its seconds, whether it is needless, and why."""

    line: int
    value: str
    src: str
    dst: str
    seconds: float
    needless: bool
    why: str


@dataclass(frozen=True)
class Report:
    """What an audit found. ``least`` is the least possible by the log's own costs, in seconds."""

    kind: str
    unit: str
    seconds: float
    reorder_seconds: float
    least: float
    findings: tuple[Finding, ...]
    changes: tuple[str, ...]
    plan: FormatPlan
    timed: bool

    @property
    def needless(self) -> tuple[Finding, ...]:
        """The reorders that the least possible does without."""
        return tuple(f for f in self.findings if f.needless)

    def __str__(self) -> str:
        share = self.reorder_seconds / self.seconds if self.seconds else 0.0
        gain = 1 - self.least / self.seconds if self.seconds else 0.0
        basis = (
            "by the log's own costs" if self.timed else "by bytes over bandwidth: it has no times"
        )
        lines = [
            f"{self.kind}: {self.seconds * 1e3:.4g} ms, {basis}",
            (
                f"{len(self.findings)} reorders, {self.reorder_seconds * 1e3:.4g} ms "
                f"({100 * share:.1f} %); {len(self.needless)} of them needless"
            ),
            f"the least possible: {self.least * 1e3:.4g} ms ({100 * gain:.1f} % less)",
        ]
        if self.findings:
            lines += ["", f"{self.unit:>7}{'us':>11}  reorder"]
        for f in self.findings:
            verdict = f"needless: {f.why}" if f.needless else "needed"
            lines.append(f"{f.line:>7}{f.seconds * 1e6:>11.4g}  {f.src} -> {f.dst}: {verdict}")
        if self.changes:
            lines += ["", f"first of {len(self.changes)} changes: {self.changes[0]}"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Report({len(self.findings)} reorders, {len(self.needless)} needless)"

    def _repr_svg_(self) -> str:
        return self.plan.svg()


def audit(path: str | Path) -> Report:
    """Audit a log: see `clformats.audits.logs` for what is read.

    Raises `InvalidNetwork` for what is no such log, naming the line.
    """
    trace = read(path)
    story = _Story(trace)
    network = story.network()
    plan = propagate(network, reorder_cost=story.price)
    total = sum(o.seconds for o in trace.operations)
    packed = sum(o.seconds for name in story.packed for o in story.moves.get(name, ()))
    gains = not trace.timed or plan.seconds < total - packed
    findings = tuple(story.judged(plan, gains=gains))
    reorders = sum(f.seconds for f in findings)
    if not trace.timed:
        reorders = sum(story.price(f.value, f.src, f.dst).seconds for f in findings)
        total = reorders
    least = min(plan.seconds, max(total - packed, 0.0))
    changes = tuple(story.changes(plan, findings, gains=gains))
    return Report(
        trace.kind, trace.unit, total, reorders, least, findings, changes, plan, trace.timed
    )


class _Story:
    """The log as values, each with one life in several formats."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.value_of: dict[str, str] = {}
        self.first: dict[str, TracedTensor] = {}
        self.moves: dict[str, list[Operation]] = {}
        self.delivered: dict[str, FormatName] = {}
        self.packed: set[str] = set()
        self.seen: dict[tuple[Dims, tuple[object, object]], Cost] = {}
        self.slowest: dict[Dims, float] = {}
        self._follow()
        self._price()

    def _follow(self) -> None:
        weights: dict[str, bool] = {}
        for op in self.trace.operations:
            for tensor in op.reads:
                name = self._value(tensor)
                if not op.is_reorder:
                    weights[name] = weights.get(name, True) and tensor.is_weight
                    self.delivered.pop(name, None)
            if op.is_reorder and op.reads and op.writes:
                name = self._value(op.reads[0])
                self.value_of[op.writes[0].name] = name
                self.moves.setdefault(name, []).append(op)
                self.delivered[name] = op.writes[0].fmt
                continue
            if not (op.writes or op.is_reorder):
                op.writes.append(TracedTensor(f"end of {op.name}", plain(1), (1,)))
            for tensor in op.writes:
                weights[self._value(tensor)] = False
        self.packed = {name for name, only in weights.items() if only}

    def _value(self, tensor: TracedTensor) -> str:
        if tensor.name not in self.value_of:
            self.value_of[tensor.name] = tensor.name
            self.first[tensor.name] = tensor
        return self.value_of[tensor.name]

    def price(self, name: str, src: str, dst: str) -> Cost:
        """What the log says of this value's reorder, of one of the same shape, or a guess.

        The guess is cautious, so that no reorder is advised that may be slower than those seen:
        bytes over the log's lowest bandwidth, and no less than the slowest of the same shape.
        """
        key = named(src).key, named(dst).key
        own = [op.seconds for op in self.moves.get(name, []) if _sides(op) == key]
        if own and self.trace.timed:
            return Cost(min(own), min(own), max(own), "the log")
        dims = self.first[name].dims
        if (dims, key) in self.seen:
            return self.seen[dims, key]
        nbytes = 2 * MemoryDesc(_sizes(self.first[name]), self.first[name].dtype).nbytes
        guess = max(LATENCY + nbytes / self.bandwidth, self.slowest.get(dims, 0.0))
        return Cost(guess, source="a guess")

    def _price(self) -> None:
        """The times of the log's reorders by dims and formats, and its lowest bandwidth."""
        rates = [BANDWIDTH]
        times: dict[tuple[Dims, tuple[object, object]], list[float]] = {}
        timed = [op for moves in self.moves.values() for op in moves if self.trace.timed]
        for op in timed:
            if op.reads[0].dims:
                times.setdefault((op.reads[0].dims, _sides(op)), []).append(op.seconds)
                nbytes = MemoryDesc(_sizes(op.reads[0]), op.reads[0].dtype).nbytes
                rates.append(2 * nbytes / max(op.seconds, 1e-9))
        self.bandwidth = min(rates)
        for (dims, sides), seconds in times.items():
            self.seen[dims, sides] = _spread(seconds)
            self.slowest[dims] = max(*seconds, self.slowest.get(dims, 0.0))

    # --- the network ------------------------------------------------------------------------------

    def network(self) -> Network:
        net = Network()
        ways = self._ways()
        for op in self.trace.operations:
            if op.is_reorder:
                continue
            for tensor in (*op.reads, *op.writes):
                name = self.value_of[tensor.name]
                if name not in net.values:
                    net.value(name, _sizes(self.first[name]), tensor.dtype,
                              constant=True if name in self.packed else None)  # fmt: skip
            reads = [self.value_of[t.name] for t in op.reads]
            writes = [self.value_of[t.name] for t in op.writes]
            unique = op.name if op.name not in net.nodes else f"{op.name} ({op.line})"
            net.node(unique, reads, writes, op.op, ways[_way(op)])
        if not net.nodes:
            self._only_reorders(net)
        self._fix_borders(net)
        return net

    def _only_reorders(self, net: Network) -> None:
        """A log of reorders only: the values themselves are delivered."""
        for name in self.moves:
            source = net.value(name, _sizes(self.first[name]), self.first[name].dtype)
            fmt = self.delivered[name]
            end = net.value(f"end of {name}", (1,))
            net.node(f"end of {name}", [source], [end], "delivered", [Choice((fmt,), ("a",), 0.0)])
        self.delivered.clear()

    def _ways(self) -> dict[tuple[object, ...], list[Choice]]:
        """For each operation the combinations of formats that the log has of it."""
        times: dict[tuple[object, ...], dict[tuple[tuple[str, ...], ...], list[float]]] = {}
        for op in self.trace.operations:
            if not op.is_reorder:
                formats = tuple(map(_name, op.reads)), tuple(map(_name, op.writes))
                times.setdefault(_way(op), {}).setdefault(formats, []).append(op.seconds)
        return {
            way: [Choice(ins, outs, _spread(s)) for (ins, outs), s in seen.items()]
            for way, seen in times.items()
        }

    def _fix_borders(self, net: Network) -> None:
        for value in net.inputs:
            net.fix(value, _name(self.first[value.name]))
        outputs = {v.name for v in net.outputs}
        for name, fmt in self.delivered.items():
            if name in net.values and net.producer(name) is not None:
                if name not in outputs:
                    net.output(name)
                net.fix(name, _name(TracedTensor("", fmt, net.values[name].dims)))

    # --- the verdict ------------------------------------------------------------------------------

    def judged(self, plan: FormatPlan, *, gains: bool) -> list[Finding]:
        """Each reorder of the log, in its order; where the plan gains nothing, it says nothing."""
        found = []
        kept = {(r.value, r.src.key, r.dst.key) for r in plan.reorders}
        for name, moves in self.moves.items():
            for op in moves:
                src, dst = _name(op.reads[0]), _name(op.writes[0])
                reorder = name, src.key, dst.key
                stands = not gains and src.key != dst.key
                needed = name not in self.packed and (reorder in kept or stands)
                kept.discard(reorder)
                why = "" if needed else self._why(name, op, moves)
                found.append(Finding(op.line, name, src, dst, op.seconds, not needed, why))
        return sorted(found)

    def _why(self, name: str, op: Operation, moves: Sequence[Operation]) -> str:
        src, dst = _sides(op)
        at, unit = moves.index(op), self.trace.unit
        if src == dst:
            return "both sides have the same format"
        if name in self.packed:
            return "weights: reorder them once, before the network runs"
        for other in moves[:at]:
            if _sides(other) == (src, dst):
                return f"the same reorder as {unit} {other.line}"
            if _sides(other)[0] == dst:
                return f"takes back what {unit} {other.line} did"
        for other in moves[at + 1 :]:
            if _sides(other)[1] == src:
                return f"is taken back by {unit} {other.line}"
        return "another way is cheaper by the log's own costs"

    def changes(self, plan: FormatPlan, findings: Sequence[Finding], *, gains: bool) -> list[str]:
        """What the least possible does otherwise than the log, in the log's order."""
        found: list[tuple[int, str]] = [
            (f.line, f"leave out {self.trace.unit} {f.line}, {f.src} -> {f.dst}: {f.why}")
            for f in findings
            if f.needless
        ]
        for op in self.trace.operations if gains else ():
            choice = plan.choices.get(op.name)
            if op.is_reorder or choice is None:
                continue
            own = " ".join(map(_name, op.reads)) + " -> " + " ".join(map(_name, op.writes))
            if own != str(choice):
                found.append((op.line, f"run {op.name} as {choice} instead of {own}"))
        return [text for _, text in sorted(found)]


def _spread(seconds: Sequence[float]) -> Cost:
    return Cost(median(seconds), min(seconds), max(seconds), "the log")


def _sides(op: Operation) -> tuple[object, object]:
    return _name(op.reads[0]).key, _name(op.writes[0]).key


def _way(op: Operation) -> tuple[object, ...]:
    """What makes two operations the same but for formats; logs that tell too little: the name."""
    dims = tuple(t.dims for t in (*op.reads, *op.writes))
    return (op.op, dims) if op.op != op.op.split(" ", maxsplit=1)[0] else (op.name, dims)


def _sizes(tensor: TracedTensor) -> tuple[int, ...]:
    """The dims, or ones for as many as the format has where the log does not tell them."""
    if tensor.dims and all(n > 0 for n in tensor.dims):
        return tensor.dims
    fmt = tensor.fmt.means
    return (1,) * max(len(tensor.dims), 0 if fmt is None else fmt.ndims, 1)


def _name(tensor: TracedTensor) -> FormatName:
    """The format, opaque where its rank is not the tensor's."""
    fits = tensor.fmt.fits(len(_sizes(tensor)))
    return tensor.fmt if fits else named(f"as {tensor.fmt}")
