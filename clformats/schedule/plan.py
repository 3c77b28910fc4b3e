"""From two descriptors to a plan: the family of kernels, and why no faster one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import escape

from ..errors import Unsupported, expect
from ..tensors.desc import MemoryDesc
from ..tensors.geometry import check_size
from ..tensors.given import as_desc
from . import copy, generic, image, local, nibbles, scheduled, sums, winograd
from .choices import RULES, Choices
from .computation import Computation
from .copy import CopyPlan
from .generic import GenericPlan
from .image import ImagePlan
from .local import LocalPlan
from .nibbles import NibblesPlan
from .problem import Problem
from .refine import problem
from .request import Request
from .scheduled import ScheduledPlan
from .sums import SumsPlan
from .traits import DEFAULT, Traits
from .winograd import WinogradPlan

Body = CopyPlan | LocalPlan | GenericPlan | ImagePlan | NibblesPlan | WinogradPlan | ScheduledPlan


COPY = ("run_bytes", "baked")
GROUPS = ("local_size", "baked")
SCHEDULE = ("schedule", "baked")
BOX = ("box", *GROUPS)


@dataclass(frozen=True, slots=True)
class Family:
    """A family of kernels: `refusal_on` decides whether it takes a problem.

    ``refusal`` gives the reason why it does not take a problem on any device, ``needs`` what the
    device lacks. ``takes`` names the `Choices` that it supports.
    """

    name: str
    refusal: Callable[[Problem], str]
    plan: Callable[[Request], Body]
    takes: tuple[str, ...] = ()
    needs: Callable[[Problem, Traits], str] | None = None

    def refusal_on(self, p: Problem, traits: Traits) -> str:
        """Why the family does not take the problem on a device; empty if it does."""
        return self.refusal(p) or (self.needs(p, traits) if self.needs else "")


_EVERYWHERE = (
    Family("generic", generic.refusal, generic.plan, GROUPS),
    Family("nibbles", nibbles.refusal, nibbles.plan),
    Family("image", image.refusal, image.plan),
    Family("winograd", winograd.refusal, winograd.plan),
)
FAMILIES = (
    Family("copy", copy.refusal, copy.plan, COPY),
    Family("scheduled", scheduled.refusal, scheduled.plan, SCHEDULE),
    *_EVERYWHERE,
)
"""The families on CPUs: contiguous runs; what has a loop nest; every other buffer; then those for
4-bit elements and images; then that of transforms."""
GPU_FAMILIES = (
    Family("copy", copy.refusal, local.copy_plan, GROUPS),
    Family("local", local.refusal, local.plan, BOX, local.needs),
    Family("rows", local.rows_refusal, local.rows_plan, GROUPS),
    *_EVERYWHERE,
)
"""The families on GPUs: consecutive work-items move neighbours, see `clformats.schedule.local`."""


def families(traits: Traits) -> tuple[Family, ...]:
    """The families to try on a device, in this order."""
    return FAMILIES if traits.is_cpu else GPU_FAMILIES


def _named(name: str, traits: Traits) -> list[Family]:
    """The family of this name: of this kind of device, else of another one."""
    every = (*families(traits), *FAMILIES, *GPU_FAMILIES)
    return [f for f in every if f.name == name][:1]


def _heeded(choices: Choices, family: Family, traits: Traits) -> Choices:
    """The choices that a family supports, within the limits of the device."""
    named = ["family"] if family.name == choices.family else []
    heeded = choices.only((*family.takes, *named))
    if heeded.local_size:
        heeded = replace(heeded, local_size=min(heeded.local_size, traits.group_size))
    return heeded


def _first(
    candidates: Iterable[Family], request: Request
) -> tuple[Plan | None, tuple[tuple[str, str], ...]]:
    """The plan of the first family that takes the problem, and why those before it do not."""
    p, traits = request.problem, request.traits
    rejected: list[tuple[str, str]] = []
    for family in candidates:
        reason = family.refusal_on(p, traits)
        if not reason:
            heeded = _heeded(request.choices, family, traits)
            plan = Plan(p, family.name, family.plan(request), tuple(rejected), heeded)
            return plan, plan.rejected
        rejected.append((family.name, reason))
    return None, tuple(rejected)


@dataclass(frozen=True)
class Plan:
    """A plan, as text by ``str``: the problem, the family of kernels, and why no faster one.

    Elements that go as words have two lines of loops: ``words`` are those of the schedule.
    ``rejected`` has the families tried before and their reasons. ``choices`` are the decisions not
    left to the rules; ``record`` says where they come from. ``sums`` is the plan of the second
    kernel, for the sums that follow int8 weights.
    """

    problem: Problem
    family: str
    body: Body | None
    rejected: tuple[tuple[str, str], ...]
    choices: Choices = RULES
    record: str = ""
    sums: SumsPlan | None = None

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin for the kernel.

        1 stands for wherever an element may lie, which is so where a body does not tell.
        """
        if isinstance(self.body, CopyPlan | LocalPlan | ScheduledPlan):
            return self.body.alignment
        return 1, 1

    def beginning_at(self, nbytes: int, traits: Traits) -> Plan:
        """The same for memory that begins at multiples of so many bytes, a power of two, alone.

        A family that needs more makes way for another one.
        """
        traits = replace(traits, begin_bytes=nbytes)
        candidates = (*_named(self.family, traits), *families(traits))
        plan, rejected = _first(candidates, Request(self.problem, traits, self.choices))
        if plan is None:
            raise Unsupported("FAMILY", f"no family takes {self.problem} at {nbytes} bytes")
        return replace(plan, rejected=self.rejected + rejected, record=self.record, sums=self.sums)

    def on(self, traits: Traits, choices: Choices = RULES) -> Plan:
        """The plan for the same problem on another device."""
        if self.body is None:
            return self
        plan, _ = _first(families(traits), Request(self.problem, traits, choices))
        if plan is None:
            raise Unsupported("FAMILY", f"no family takes {self.problem} on {traits}")
        return replace(plan, sums=sums.plan(self.problem.dst, traits))

    def by_family(self, name: str, traits: Traits) -> Plan | None:
        """The same by another family; None where that does not take the problem."""
        plan, _ = _first(_named(name, traits), Request(self.problem, traits, RULES))
        return plan and replace(plan, rejected=self.rejected, sums=self.sums)

    def __str__(self) -> str:
        body = self.body if isinstance(self.body, ScheduledPlan) else None
        lines = [
            f"reorder {self.problem.src} -> {self.problem.dst}",
            f"  loops   {self.problem}",
            *([f"  words   {body.problem}"] if body and body.problem.word else []),
            *([f"  compute {self.problem.computation}"] if self.problem.computation else []),
            f"  family  {self.family}: {self.body or 'nothing to do'}",
        ]
        if self.sums:
            lines.append(f"  sums    {self.sums}")
        if self.choices != RULES:
            lines.append(f"  chosen  {self.choices}{f', {self.record}' * bool(self.record)}")
        if body and body.instead:
            lines.append(f"  not chosen    {body.instead}")
        lines += [f"  not {name:<10}{reason}" for name, reason in self.rejected]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Plan({self.problem.src} -> {self.problem.dst}, {self.family})"

    def _repr_html_(self) -> str:
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
    values are moved or transformed, where the dims leave both open: see
    `clformats.values.transforms.between`. Raises `InvalidDescriptor` if the two do not fit.
    """
    src, dst = as_desc(src, "src"), as_desc(dst, "dst")
    expect(traits, Traits, "traits")
    expect(family, str | None, "family")
    expect(computation, Computation | None, "computation")
    expect(transform, bool | None, "transform")
    expect(choices, Choices, "choices")
    family = family or choices.family
    for desc in (src, dst):
        check_size(desc.geometry, desc.dtype.bits)
    p = problem(src, dst, computation, transform=transform)
    if dst.nelems == 0:
        return Plan(p, "none", None, ())
    candidates = families(traits) if family is None else _named(family, traits)
    plan, rejected = _first(candidates, Request(p, traits, choices))
    if plan is not None:
        return replace(plan, sums=sums.plan(dst, traits))
    names = ", ".join(dict.fromkeys(f.name for f in (*FAMILIES, *GPU_FAMILIES)))
    why = "; ".join(f"{name}: {reason}" for name, reason in rejected) or f"expected one of {names}"
    raise Unsupported("FAMILY", f"family {family!r} does not take {src} -> {dst}: {why}")
