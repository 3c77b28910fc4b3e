"""From two descriptors to a plan: the family of kernels, and why no faster one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

from ..errors import InvalidDescriptor, Unsupported, expect
from ..problems import twins, words
from ..problems.computation import Computation
from ..problems.problem import Problem
from ..problems.refine import problem
from ..problems.traits import DEFAULT, Traits
from ..tensors.desc import MemoryDesc
from ..tensors.geometry import check_size
from ..tensors.given import as_desc
from . import generic, image, local, scheduled, sums, universal, winograd
from .body import Body
from .choices import RULES, Choices
from .sums import SumsPlan

SAME_BYTES = "the bytes are the same: OpenCL copies them, and no kernel runs"
IN_GROUPS = ("local_size", "baked")
SCHEDULE = ("schedule", "baked")
SCHEDULE_OF_GROUPS = ("schedule", *IN_GROUPS)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a plan, as one value; `plan_for` needs nothing else.

    Two tensors, the device, what is computed on the way, and what is not left to the rules.
    ``transform`` says whether values are moved or transformed, where the dims leave both open: see
    `clformats.values.transforms.between`.
    """

    src: MemoryDesc
    dst: MemoryDesc
    traits: Traits = DEFAULT
    computation: Computation | None = None
    transform: bool | None = None
    choices: Choices = RULES


@dataclass(frozen=True, slots=True)
class Family:
    """A family of kernels: `refusal_on` decides whether it takes a problem.

    ``refusal`` gives the reason why it does not take a problem on any device, ``needs`` what the
    device lacks. ``takes`` names the `Choices` that it supports.
    """

    name: str
    refusal: Callable[[Problem], str]
    plan: Callable[[Problem, Traits, Choices], Body]
    takes: tuple[str, ...] = ()
    needs: Callable[[Problem, Traits], str] | None = None

    def refusal_on(self, p: Problem, traits: Traits) -> str:
        """Why the family does not take the problem on a device; empty if it does."""
        return self.refusal(p) or (self.needs(p, traits) if self.needs else "")


_EVERYWHERE = (
    Family("generic", generic.refusal, generic.plan, IN_GROUPS),
    Family("winograd", winograd.refusal, winograd.plan),
)
FAMILIES = (
    Family("scheduled", scheduled.refusal, scheduled.plan, SCHEDULE),
    *_EVERYWHERE,
)
"""The families on CPUs: what has a loop nest; every other buffer; then that of transforms. Images
are buffers to them."""
GPU_FAMILIES = (
    Family("local", local.refusal, local.plan, SCHEDULE_OF_GROUPS, local.needs),
    Family(
        "rows", local.refusal_of_rows, partial(local.plan, through=False), SCHEDULE_OF_GROUPS,
        partial(local.needs, through=False),
    ),
    *_EVERYWHERE,
    Family("image", image.refusal, image.plan),
)  # fmt: skip
"""The families on GPUs: consecutive work-items move neighbours, see `clformats.schedule.local`."""
LAST_RESORT = Family("universal", scheduled.refusal, universal.plan, (), universal.needs)
"""What the rules never take, on any device: see `clformats.schedule.universal`."""
EVERY_FAMILY = (*FAMILIES, *GPU_FAMILIES, LAST_RESORT)


def families(traits: Traits) -> tuple[Family, ...]:
    """The families to try on a device, in this order."""
    return FAMILIES if traits.is_cpu else GPU_FAMILIES


def _candidates(request: Request) -> Iterable[Family]:
    """The families to try; of a name that of this kind of device, else of another one."""
    tried, name = families(request.traits), request.choices.family
    return [f for f in (*tried, *EVERY_FAMILY) if f.name == name][:1] if name else tried


def _supported(choices: Choices, family: Family, traits: Traits) -> Choices:
    """The choices that a family supports, within the limits of the device."""
    named = ["family"] if family.name == choices.family else []
    supported = choices.only((*family.takes, *named))
    if supported.local_size:
        supported = replace(supported, local_size=min(supported.local_size, traits.group_size))
    return supported


@dataclass(frozen=True)
class Plan:
    """A plan, as text by ``str``: the problem, the family of kernels, and why no faster one.

    Elements that go as words have two lines of loops: ``words`` are those of the schedule. So have
    blocks that do not divide each other on GPUs: ``sides`` are loops, some of one side only.
    ``rejected`` has the families tried before and their reasons. ``choices`` are the decisions not
    left to the rules; ``record`` says where they come from. ``sums`` is the plan of the second
    kernel, for the sums that follow int8 weights. ``request`` is what was asked for;
    the problem may have buffers in place of its images, see `clformats.problems.twins`.
    """

    request: Request
    problem: Problem
    family: str
    body: Body | None
    rejected: tuple[tuple[str, str], ...]
    choices: Choices = RULES
    record: str = ""
    sums: SumsPlan | None = None

    @property
    def twinned(self) -> tuple[MemoryDesc | None, MemoryDesc | None]:
        """The images of both sides that the problem has a buffer for; None of other sides."""
        src, dst, p = self.request.src, self.request.dst, self.problem
        return (
            src if src.format.image != p.src.format.image else None,
            dst if dst.format.image != p.dst.format.image else None,
        )

    @property
    def has_twin(self) -> bool:
        """Whether a side is an image that the problem has a buffer for."""
        return any(self.twinned)

    @property
    def is_copied(self) -> bool:
        """Whether an image and the other side have the same bytes: OpenCL's copy is enough."""
        p = self.problem
        if not twins.copies(self.twinned) or not words.is_run(p):
            return False
        nbytes = p.dst.dtype.nbytes * prod(n.size.value for n in p.nodes)
        return p.src.nbytes == p.dst.nbytes == nbytes and p.src0 == p.dst0 == 0

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin for the kernel."""
        return self.body.alignment if self.body else (1, 1)

    def again(self, **changes: Any) -> Plan:
        """The plan for the same problem by another request. Raises `Unsupported` if none takes it.

        >>> plan = make_plan("f32:ab:30x20", "f32:ba:30x20")
        >>> plan.again(traits=Traits(is_cpu=False)).family
        'local'
        """
        return _planned(replace(self.request, **changes), self.problem)

    def beginning_at(self, nbytes: int) -> Plan:
        """The same for memory that begins at multiples of so many bytes, a power of two, only."""
        plan = self.again(traits=replace(self.request.traits, begin_bytes=nbytes))
        rejected = (*dict.fromkeys(self.rejected + plan.rejected),)
        return replace(plan, rejected=rejected, record=self.record)

    def by_buffers(self) -> Plan:
        """The same where every image is reached as its buffer twin.

        Raises `Unsupported` (code IMAGE) for a transform.
        """
        p = twins.by_buffers(self.problem)
        if p.has_image:
            raise Unsupported(
                "IMAGE",
                f"{self.request.src} -> {self.request.dst} transforms values, and writes pixels of "
                f"an image of its own only: give it one that lies over no buffer",
            )
        return _planned(replace(self.request, choices=RULES), p)

    def __str__(self) -> str:
        body = self.body
        lines = [
            f"reorder {self.request.src} -> {self.request.dst}",
            f"  loops   {self.problem}",
            *([f"  {self._loops_are}   {body.problem}"] if body and self._loops_are else []),
            *([f"  compute {self.problem.computation}"] if self.problem.computation else []),
            f"  family  {self.family}: {body or 'nothing to do'}",
        ]
        if self.has_twin:
            how = twins.told(self.twinned, (self.problem.src, self.problem.dst))
            lines += [f"  image   {h}" for h in ([SAME_BYTES] if self.is_copied else how)]
        if self.sums:
            lines.append(f"  sums    {self.sums}")
        if self.choices != RULES:
            lines.append(f"  chosen  {self.choices}{f', {self.record}' * bool(self.record)}")
        if body and body.instead:
            lines.append(f"  not chosen    {body.instead}")
        lines += [f"  not {name:<10}{reason}" for name, reason in self.rejected]
        return "\n".join(lines)

    @property
    def _loops_are(self) -> str:
        """What the schedule's loops are where they are not those of the problem."""
        p = self.body.problem if self.body else self.problem
        return "words" if any(p.words) else "sides" if self.problem.tables and not p.tables else ""

    def __repr__(self) -> str:
        return f"Plan({self.request.src} -> {self.request.dst}, {self.family})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def make_plan(
    src: MemoryDesc | str,
    dst: MemoryDesc | str,
    traits: Traits = DEFAULT,
    family: str | None = None,
    computation: Computation | None = None,
    *,
    transform: bool | None = None,
    choices: Choices = RULES,
) -> Plan:
    """The plan for reordering ``src`` to ``dst`` in the first family that can. Needs no device.

    ``traits`` describes the device, by default a CPU. ``family`` asks for one family by name, also
    one of another kind of device; raises `Unsupported` (code FAMILY) if it refuses. ``choices``
    override the rules, see `Choices`; ``family`` overrides theirs. ``transform`` says whether
    values are moved or transformed, where the dims leave both open: `values.transforms.between`.
    Raises `InvalidDescriptor` if the two do not fit, and for sizes that are `RUNTIME_DIM`.
    """
    src, dst = as_desc(src, "src"), as_desc(dst, "dst")
    expect(traits, Traits, "traits")
    expect(family, str | None, "family")
    expect(computation, Computation | None, "computation")
    expect(transform, bool | None, "transform")
    expect(choices, Choices, "choices")
    if family:
        choices = replace(choices, family=family)
    return plan_for(Request(src, dst, traits, computation, transform, choices))


def plan_for(request: Request) -> Plan:
    """The plan of the first family that takes what is asked for; raises as `make_plan`."""
    src, dst = request.src, request.dst
    for name, desc in (("src", src), ("dst", dst)):
        if desc.has_runtime:
            raise InvalidDescriptor(
                f"{name} is {desc}, of sizes or strides known at execution only: make a plan for "
                f"each shape, or a Reorder, which has one kernel for all of them"
            )
        check_size(desc.geometry, desc.dtype.bits)
    p = problem(src, dst, request.computation, transform=request.transform)
    if request.choices.family != "image":
        p = twins.by_buffers(p, request.traits)
    return _planned(request, p) if dst.nelems else Plan(request, p, "none", None, ())


def _planned(request: Request, p: Problem) -> Plan:
    """The plan for a problem that has elements."""
    traits, rejected = request.traits, list[tuple[str, str]]()
    for family in _candidates(request):
        if reason := family.refusal_on(p, traits):
            rejected.append((family.name, reason))
            continue
        chosen = _supported(request.choices, family, traits)
        body, following = family.plan(p, traits, chosen), sums.plan(request.dst, traits)
        return Plan(request, p, family.name, body, tuple(rejected), chosen, sums=following)
    names = ", ".join(dict.fromkeys(f.name for f in EVERY_FAMILY))
    why = "; ".join(f"{name}: {reason}" for name, reason in rejected) or f"expected one of {names}"
    asked = f"family {request.choices.family!r} does not take"
    raise Unsupported("FAMILY", f"{asked} {request.src} -> {request.dst}: {why}")
