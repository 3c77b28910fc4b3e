"""Kernels that compute on the way: the formula as a function, its operands as texts.

A value is loaded in its own type and moved in it; where it is stored, one function for each vector
width makes of it, and of the operands at the same place, what is stored. Where all operands are
read as the source is, that is done as it is loaded. All steps are in ``float`` or ``double``, each
rounded by itself: contraction is off, so that the host gets the same bits.
Where every step is a whole number of 16 bits, ``short`` gets them too, by fewer instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..problems.computation import Computation, Operand
from ..problems.problem import Problem
from ..tensors.dtypes import DType
from ..values.attr import OLD
from ..values.bounds import HELD_WITHIN
from ..values.lanes import definitions
from .codecs import Codec, codec, needed
from .source import moved
from .types import Helpers, KernelConversion, conversion, storage_type
from .words import in_words


@dataclass(frozen=True, slots=True)
class Computed(KernelConversion):
    """The types of a kernel that computes: loads and stores move bits, `functions` convert.

    Where it is ``early``, what is loaded is computed at once, and the results are moved.
    """

    computation: Computation

    @property
    def real(self) -> str:
        """The C type of the formula."""
        if self.computation.whole:
            return "short"
        return "double" if self.computation.real.name == "f64" else "float"

    @property
    def moves_bits(self) -> bool:
        """Whether values are moved unchanged; they never are."""
        return False

    @property
    def helpers(self) -> Helpers:
        """What converts the value that is moved, the operands, and the result."""
        if self.computation.whole:
            return Helpers()
        loaded = (self.src_type, *(o.desc.dtype for o in self.computation.operands))
        return replace(
            self._result.helpers,
            reads_halves=any(t.name == "f16" for t in loaded),
            fp64=self.real == "double",
            widens=frozenset(t for t in loaded if t.is_coded),
            small=self.computation.small,
        )

    @property
    def _result(self) -> KernelConversion:
        return conversion(self.computation.real, self.dst_type)

    def converted(self, value: str, n: str) -> str:
        """``value`` unchanged: `functions` have converted it."""
        del n
        return value

    @property
    def stored(self) -> str:
        """The type of what a store is given."""
        return self.dst

    @property
    def operand_types(self) -> frozenset[str]:
        """The C types of operands that are loaded as vectors."""
        types = {storage_type(o.desc.dtype) for o in self.computation.operands
                 if not o.desc.dtype.is_packed}  # fmt: skip
        return frozenset(types - {"half"})

    @property
    def codecs(self) -> list[Codec]:
        """How elements that share bytes are loaded."""
        read = (o.desc.dtype for o in self.computation.operands)
        return needed([self.source, *(codec(t, t.opencl) for t in read)])

    @property
    def parameters(self) -> list[str]:
        """The kernel's parameters after its sizes: operands, then scalars."""
        pointers = [
            f"__global const {storage_type(o.desc.dtype)} *restrict {pointer_to(o)}"
            for o in self.computation.operands if o.name != OLD
        ]  # fmt: skip
        c = self.computation
        return pointers + [f"const {c.real.opencl} {name}" for name in c.scalars]

    def functions(self, widths: Sequence[int]) -> str:
        """The functions that make what is stored, for each width."""
        widths = sorted(set(widths))
        lanes = definitions(self.computation.formula.calls, self.real, widths)
        return "\n".join(filter(None, [lanes, *map(self._function, widths)]))

    def _function(self, width: int) -> str:
        n = str(width) if width > 1 else ""
        c, real = self.computation, f"{self.real}{n}"
        value = self._as_real("value", self.src_type, n)
        result = self._as_stored(c.formula.source(self.real, width, by_lane=True), n)
        names = [*(o.name for o in c.operands), *c.scalars]
        parameters = [f"{self.bare}{n} value", *(f"{real} {name}" for name in names)]
        return (
            f"static inline {self.dst}{n} computed_{width}({', '.join(parameters)})\n"
            f"{{\n    const {real} {c.value} = {value};\n{self._holding(real)}"
            f"    return {result};\n}}\n"
        )

    def _holding(self, real: str) -> str:
        """A statement that clamps the factor `Computation.held`; empty if there is none."""
        name, most = self.computation.held, f"{HELD_WITHIN}f"
        if not name:
            return ""
        near = f"clamp({name}, -{most}, {most})"
        why = "beyond it every product but 0 saturates as well; NaN makes 0"
        return f"    {name} = select({near}, ({real})(0.0f), {name} != {name});  // {why}\n"

    def _as_stored(self, value: str, n: str) -> str:
        """The formula's value as the destination's type."""
        if not self.computation.whole:
            return self._result.converted(value, n)
        low, high = (f"(short)({limit})" for limit in self.dst_type.limits)
        return f"convert_{self.dst}{n}(clamp({value}, {low}, {high}))"

    def call(self, value: str, operands: Sequence[str], width: int) -> str:
        """What is stored, of a value and of operands as texts of ``width`` lanes."""
        c = self.computation
        scalars = [self.spread(self._as_real(name, c.real, ""), width) for name in c.scalars]
        return f"computed_{width}({', '.join([value, *operands, *scalars])})"

    def spread(self, value: str, width: int) -> str:
        """One number in every lane."""
        return f"({self.real}{width})({value})" if width > 1 else value

    def load_operand(self, operand: Operand, at: str, width: int) -> str:
        """An expression: ``width`` elements of an operand from offset ``at``, in the real type."""
        dtype, n = operand.desc.dtype, str(width) if width > 1 else ""
        pointer = pointer_to(operand)
        if operand.name == OLD and dtype.name == "f16":
            pointer = "(__global const half *)dst"
        if found := codec(dtype, dtype.opencl):
            value = f"load_{found.name}_{width}({pointer}, {at})"
        elif dtype.name == "f16":
            value = f"vload_half{n}(0, {moved(pointer, at)})"
        elif n:
            value = f"LOAD_{storage_type(dtype)}{n}({moved(pointer, at)})"
        else:
            value = f"{pointer}[{at}]"
        return self._as_real(value, dtype, n)

    def _as_real(self, value: str, dtype: DType, n: str) -> str:
        """A loaded value of ``n`` lanes in the type that is computed with."""
        if self.computation.whole:
            return f"convert_short{n}({value})"
        real = self.computation.real
        return value if dtype == real else conversion(dtype, real).converted(value, n)


def pointer_to(operand: Operand) -> str:
    """The kernel's parameter in which an operand is."""
    return "dst" if operand.name == OLD else f"{operand.name}_values"


def types_of(p: Problem) -> KernelConversion:
    """The types of the kernel for a problem: those of a conversion, or of a computation."""
    src, dst = p.dtypes if p.word else (p.src.dtype, p.dst.dtype)
    found = conversion(src, dst)
    if p.computation:
        stored = "ushort" if dst.name == "f16" else dst.opencl
        work = "float" if src.name == "f16" else src.opencl
        found = Computed(src, dst, src.opencl, stored, work, early=False, computation=p.computation)
    if p.inside:
        return in_words(found, p)
    if not (src.is_packed or dst.is_packed):
        return found
    return replace(found, source=codec(src, found.src), target=codec(dst, found.dst))
