"""From two descriptors to a plan: which family of kernels, and why not a better one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import Unsupported, expect
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_desc
from . import copy, gather, generic, image, local, nibbles, subgroup, summed, tiling, winograd
from .choices import RULES, Choices
from .computation import Computation
from .copy import CopyPlan
from .gather import GatherPlan
from .generic import GenericPlan
from .image import ImagePlan
from .local import LocalPlan
from .nibbles import NibblesPlan
from .problem import Problem
from .refine import problem
from .subgroup import SubgroupPlan
from .summed import SummedPlan
from .tile import TilePlan
from .traits import DEFAULT, LINE_BYTES, Traits
from .winograd import WinogradPlan

Body = (
    CopyPlan
    | GatherPlan
    | TilePlan
    | LocalPlan
    | SubgroupPlan
    | GenericPlan
    | ImagePlan
    | NibblesPlan
    | WinogradPlan
    | SummedPlan
)


TILE = ("lanes", "registers", "chunk", "swapped", "ahead", "nontemporal", "local_size", "baked")
GATHER = ("chunk", "nontemporal", "baked")
COPY = ("run_bytes", "nontemporal", "baked")
GROUPS = ("local_size", "baked")


@dataclass(frozen=True, slots=True)
class Family:
    """A family of kernels: `refusal_on` is the one predicate that decides.

    ``refusal`` says why it does not take a problem on any device, ``needs`` what a device lacks.
    ``takes`` are the `Choices` that its plans or kernels heed.
    """

    name: str
    refusal: Callable[[Problem], str]
    plan: Callable[..., Body]
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
    Family("summed", summed.refusal, summed.plan),
)
FAMILIES = (
    Family("copy", copy.refusal, copy.plan, COPY),
    Family("gather", gather.refusal, gather.plan, GATHER, gather.needs),
    Family("tile", tiling.tile_refusal, tiling.tile_plan, TILE),
    Family("rows", tiling.rows_refusal, tiling.tile_plan, TILE),
    *_EVERYWHERE,
)
"""Those of CPUs. From the fastest to the one that takes every buffer; then those for half bytes and
for images; and those that compute: transformed values, and sums behind the elements."""
GPU_FAMILIES = (
    Family("copy", copy.refusal, local.copy_plan, GROUPS),
    Family("local", local.refusal, local.plan, GROUPS),
    Family("rows", local.rows_refusal, local.rows_plan, GROUPS),
    *_EVERYWHERE,
)
"""Those of GPUs, where consecutive work-items move neighbours: `clformats.schedule.local`."""
SUBGROUP_FAMILIES = (
    GPU_FAMILIES[0],
    Family("subgroup", subgroup.refusal, subgroup.plan, needs=subgroup.needs),
    *GPU_FAMILIES[1:],
)
"""Those of GPUs that read and write blocks: `clformats.schedule.subgroup`."""


def families(traits: Traits) -> tuple[Family, ...]:
    """The families that are tried on a device, in this order."""
    if traits.is_cpu:
        return FAMILIES
    return SUBGROUP_FAMILIES if traits.subgroup_bytes else GPU_FAMILIES


def _named(name: str, traits: Traits) -> list[Family]:
    """The family of a name: the device's own, else the one that other devices have."""
    every = (*families(traits), *FAMILIES, *SUBGROUP_FAMILIES)
    return [f for f in every if f.name == name][:1]


def _heeded(choices: Choices, family: Family, traits: Traits) -> Choices:
    """What the plans and kernels of a family heed, within what the device has."""
    named = ["family"] if family.name == choices.family else []
    heeded = choices.only((*family.takes, *named))
    if heeded.local_size:
        heeded = replace(heeded, local_size=min(heeded.local_size, traits.group_size))
    return heeded


def _body(family: Family, p: Problem, traits: Traits, choices: Choices) -> Body:
    """What a family makes of a problem that it takes."""
    given = {"choices": choices} if family.takes else {}
    return family.plan(p, traits, nontemporal=traits.streams(p.nbytes), **given)


@dataclass(frozen=True)
class Plan:
    """What will run: the problem, the family chosen, its body, and why each better one was not.

    ``choices`` are what was not left to the rules; ``record`` says where they come from.
    """

    problem: Problem
    family: str
    body: Body | None
    rejected: tuple[tuple[str, str], ...]
    choices: Choices = RULES
    record: str = ""

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin for the kernel.

        1 stands for wherever an element may lie. What a body does not tell itself is so, but that
        stores past the cache are of whole lines, and lines that are carried on are of whole
        elements.
        """
        if isinstance(self.body, CopyPlan | LocalPlan):
            return self.body.alignment
        if isinstance(self.body, GatherPlan):
            return 1, self.problem.dst.dtype.nbytes
        if isinstance(self.body, TilePlan) and (self.body.nontemporal or self.body.weave):
            word = self.body.problem.word
            least = word.nbytes if word else 1
            return least, LINE_BYTES if self.body.nontemporal else least
        if isinstance(self.body, TilePlan) and self.body.walk.lines:
            return 1, self.problem.dst.dtype.nbytes
        return 1, 1

    def beginning_at(self, nbytes: int, traits: Traits) -> Plan:
        """The same for memory that begins at multiples of so many bytes, a power of two, alone."""
        traits = replace(traits, begin_bytes=nbytes)
        family = _named(self.family, traits)[0]
        return replace(self, body=_body(family, self.problem, traits, self.choices))

    def __str__(self) -> str:
        lines = [
            f"reorder {self.problem.src} -> {self.problem.dst}",
            f"  loops   {self.problem}",
            *([f"  compute {self.problem.computation}"] if self.problem.computation else []),
            f"  family  {self.family}: {self.body or 'nothing to do'}",
        ]
        if self.choices != RULES:
            lines.append(f"  chosen  {self.choices}{f', {self.record}' * bool(self.record)}")
        lines += [f"  not {name:<8}{reason}" for name, reason in self.rejected]
        return "\n".join(lines)


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
    """The plan for moving ``src`` to ``dst``, computing on the way, in the first family that can.

    ``family`` asks for one family by name, also for one of another kind of device; raises
    `Unsupported` (code FAMILY) if it refuses. ``choices`` override the rules, see `Choices`; a
    family asked for goes before theirs.
    ``transform`` says whether values are moved or transformed, where the dims do not tell: see
    `clformats.values.transforms.between`.
    Raises `InvalidDescriptor` where the two do not fit together.
    """
    src, dst = as_desc(src, "src"), as_desc(dst, "dst")
    expect(traits, Traits, "traits")
    expect(family, str | None, "family")
    expect(computation, Computation | None, "computation")
    expect(transform, bool | None, "transform")
    expect(choices, Choices, "choices")
    family = family or choices.family
    p = problem(src, dst, computation, transform=transform)
    if dst.nelems == 0:
        return Plan(p, "none", None, ())
    rejected: list[tuple[str, str]] = []
    for candidate in families(traits) if family is None else _named(family, traits):
        reason = candidate.refusal_on(p, traits)
        if not reason:
            body = _body(candidate, p, traits, choices)
            heeded = _heeded(choices, candidate, traits)
            return Plan(p, candidate.name, body, tuple(rejected), heeded)
        rejected.append((candidate.name, reason))
    names = ", ".join(dict.fromkeys(f.name for f in (*FAMILIES, *SUBGROUP_FAMILIES)))
    why = "; ".join(f"{name}: {reason}" for name, reason in rejected) or f"expected one of {names}"
    raise Unsupported("FAMILY", f"family {family!r} does not take {src} -> {dst}: {why}")
