"""What a call of a reorder is checked for: memory objects, streams, values, and the device."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DeviceError, InvalidAttr, InvalidDescriptor, Unsupported
from ..runtime import Engine, Memory, Stream
from ..runtime.scalar import Scalar
from ..schedule import Plan
from ..schedule.anysize import fits
from ..schedule.compare import overlap
from ..tensors.desc import MemoryDesc

Use = tuple[str, Memory, MemoryDesc]
"""A memory object of a command: its name in messages, itself, and the descriptor it must have."""


def check_fp64(plan: Plan, engine: Engine) -> None:
    """Raise `Unsupported` where a plan converts f64 on a device that cannot."""
    p = plan.problem
    names = {t.name for t in (*p.dtypes, *(d.dtype for d in p.operand_descs))}
    computes = len(names) > 1 or p.computation is not None
    if "f64" in names and computes and not engine.traits.has_fp64:
        raise Unsupported("FP64", f"{engine.device.name} has no double precision to convert f64")


def check_use(use: Use, context: object, *, writes: bool) -> None:
    """Raise where a memory object cannot take its part: another tensor, mapped, elsewhere."""
    name, memory, _ = use
    check_desc(use)
    if memory.usage.mapping is not None:
        memory.check_unmapped("reorder it")
    if memory.tracked_buffer is None:
        if memory.nbytes:
            raise DeviceError(f"the {name} {memory!r} has no buffer: give it one by set_buffer()")
    elif memory.context != context:
        raise DeviceError(
            f"{memory!r} belongs to another OpenCL context than the reorder: make both from one "
            f"engine"
        )
    if writes:
        memory.check_writable()


def check_desc(use: Use) -> None:
    """Raise `InvalidDescriptor` where a memory object is not of the descriptor it must have."""
    name, memory, desc = use
    if memory.desc is not desc and not fits(memory.desc, desc):
        raise InvalidDescriptor(f"the {name} is {memory.desc}, the reorder was made for {desc}")


def check_stream(stream: Stream, context: object) -> None:
    """Raise `DeviceError` where a stream belongs to another context."""
    if stream.context != context:
        raise DeviceError(
            "the stream belongs to another OpenCL context than the reorder: make both from one "
            "engine"
        )


def check_apart(uses: Sequence[Use]) -> None:
    """Raise if the last tensor, which is written, shares bytes with one that is read."""
    dst = uses[-1][1]
    for name, memory, _ in uses[:-1]:
        shared = memory.usage is dst.usage and memory.tracked_buffer is not None
        if shared and overlap(memory.desc, dst.desc):
            raise InvalidDescriptor(
                f"{name} {memory.desc} and destination {dst.desc} share bytes of one buffer: a "
                f"reorder cannot work in place, give it another destination"
            )


def values_on_device(name: str, memory: Memory, count: int, dtype: object) -> None:
    """Check that a memory object holds the values of an attribute. Raises `InvalidAttr`."""
    desc = memory.desc
    dense = desc.has_layout and desc.span_nbytes == desc.nelems * desc.dtype.nbytes
    if desc.dtype != dtype or desc.nelems != count or desc.offset0 or not dense:
        raise InvalidAttr(
            f"got {desc} for {name}, expected {count} values of {dtype}, dense and from the start "
            f"of their buffer"
        )


def scalar_of(name: str, scalar: Scalar, mask: int, dtype: object) -> None:
    """Check that a scalar of a recording can be an attribute's value. Raises `InvalidAttr`."""
    if mask or scalar.dtype != str(dtype):
        raise InvalidAttr(
            f"got the {scalar.dtype} scalar {scalar.name} for {name}, expected "
            f"{'a memory object, for a mask' if mask else f'one of {dtype}'}"
        )
