"""Tensors of model files, quantised ones too: descriptors, and their bytes as the file has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Unsupported
from ..host.packing import unpack
from ..quantised import QuantisedDesc
from ..tensors.desc import MemoryDesc

if TYPE_CHECKING:
    from ..runtime import Engine, Memory


@dataclass(frozen=True, slots=True, eq=False)
class StoredTensor:
    """A tensor of a file: its name, what the file calls its type, its descriptor, and its bytes.

    ``desc`` is None for what has no layout here; ``note`` says why. ``arrays`` are mapped, not
    read: one, or one for each buffer of the descriptor, under the names that the file has for them.
    Dims are rows and columns, columns the side that is summed over.
    """

    name: str
    kind: str
    dims: tuple[int, ...]
    desc: MemoryDesc | QuantisedDesc | None
    arrays: Mapping[str, NDArray[Any]]
    note: str = ""

    @property
    def nbytes(self) -> int:
        """The bytes in the file."""
        return sum(a.nbytes for a in self.arrays.values())

    @property
    def raw(self) -> NDArray[Any]:
        """The bytes as the descriptor has them, 1-D: of one array mapped, of several joined.

        Elements, not bytes, for a tensor of one element type.
        """
        if len(self.arrays) == 1:
            return next(iter(self.arrays.values())).reshape(-1)
        joined: NDArray[np.uint8] = self._known().join(self.buffers)
        return joined

    @property
    def buffers(self) -> dict[str, NDArray[np.uint8]]:
        """The bytes of each buffer of a quantised tensor, by the names of `QuantisedDesc.split`."""
        desc = self._known()
        if len(self.arrays) == 1:
            own: dict[str, NDArray[np.uint8]] = desc.split(self.raw)
            return own
        names = [b.first for b in desc.buffers]
        found = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in self.arrays.values())
        return dict(zip(names, found, strict=True))

    def _known(self) -> Any:
        if self.desc is None:
            raise Unsupported("GGUF", f"{self.name} is of type {self.kind}: {self.note}")
        return self.desc

    def memory(self, engine: Engine | None = None, layout: str | None = None) -> Memory:
        """The tensor on a device; with ``layout`` in that layout, or format, reordered there.

        Raises `Unsupported` (code GGUF) for an unknown type, and as `reorder` does.
        """
        from ..host.memory import HostMemory
        from ..reorders.reorder import reorder
        from ..runtime import Memory
        from ..transfers import transfer

        result = Memory.unfilled(self._known(), engine)
        transfer(HostMemory(result.desc, self.raw), result)
        return result if layout is None else reorder(result, layout)

    def numpy(self) -> NDArray[Any]:
        """The values, of shape ``dims``. Raises `Unsupported` (code GGUF) for an unknown type."""
        return unpack(self.raw, self._known())
