"""The kernels of a reorder's search space, and the space in kernel_tuner's form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Unsupported
from ..kernels import launch
from ..kernels.source import Launch
from ..runtime import Engine
from ..runtime.opencl import opencl
from ..schedule.space import BOX, Space, space
from ..tensors.desc import MemoryDesc
from ..values.attr import Attr
from .profiles import traits_of
from .trial import Case, with_canary

LOCAL = "local_size"
Config = Mapping[str, Any]
"""Names of parameters and their values."""


class Variants:
    """The kernels of moving ``src`` to ``dst``, one for each value of the search space.

    Sizes and schedules are baked in, so that all of them have the same two arguments. Raises
    `Unsupported` (code TUNING) where there is nothing to choose.
    """

    def __init__(
        self, src: MemoryDesc, dst: MemoryDesc, engine: Engine, family: str | None = None
    ) -> None:
        found = space(src, dst, traits_of(engine), family)
        if found is None:
            raise Unsupported(
                "TUNING",
                f"there is nothing to choose in {src} -> {dst}: its family of kernels has no "
                f"parameter, sums follow the elements, or nothing is moved",
            )
        self.space: Space = found
        self.engine = engine
        self._launch = lru_cache(maxsize=256)(self._launched)

    def launch(self, config: Config) -> Launch:
        """The kernel of a configuration; other parameters than that of the space are ignored."""
        return self._launch(config[self.space.parameter])

    def source(self, config: Config) -> str:
        """The source of a configuration's kernel."""
        return self.launch(config).source

    def _launched(self, value: object) -> Launch:
        made = launch(self.space.plan(value, baked=True))
        assert made is not None  # noqa: S101  # a space has something to move
        return made

    def kernel_tuner(self, seed: int = 0) -> dict[str, Any]:
        """The arguments of ``kernel_tuner.tune_kernel``: see `Reorder.as_kernel_tuner`."""
        s = self.space
        case = Case(s.src, s.dst, Attr(), seed)
        default = self._launch(s.values[0])
        src, dst = map(_array_type, default.buffers)
        before = with_canary(case.before)
        platform, device = place_of(self.engine)
        asked: dict[str, list[Any]] = {LOCAL: [default.local_size], s.parameter: [*s.values]}
        limits: dict[str, Any] = {}
        if s.parameter == BOX:  # which says the size of its groups

            def fits(config: Config) -> bool:
                return bool(config[LOCAL] == self.launch(config).local_size)

            asked[LOCAL] = sorted({self._launch(value).local_size for value in s.values})
            limits["restrictions"] = fits
        return {
            "kernel_name": Launch.KERNEL,
            "kernel_source": self.source,
            "problem_size": lambda params: self.launch(params).groups,
            "arguments": [_whole(case.source, src).view(src), _whole(before, dst).view(dst)],
            "tune_params": {**asked, "baked": [True]},
            **limits,
            "grid_div_x": [],
            "block_size_names": [LOCAL],
            "answer": [None, _whole(case.answer, dst).view(dst)],
            "verify": same_bytes,
            "defines": {},
            "lang": "OpenCL",
            "platform": platform,
            "device": device,
        }  # fmt: skip


def _array_type(name: str) -> np.dtype[Any]:
    """The numpy type of OpenCL C's."""
    sizes = {"char": 1, "short": 2, "half": 2, "int": 4, "float": 4, "long": 8, "double": 8}
    kind = "f" if name in ("half", "float", "double") else "u" if name.startswith("u") else "i"
    return np.dtype(f"{kind}{sizes[name.removeprefix('u')]}")


def _whole(data: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[np.uint8]:
    """The bytes, padded to a whole number of elements."""
    return np.concatenate([data, np.zeros(-data.size % dtype.itemsize, np.uint8)])


def same_bytes(answer: list[Any], result: list[Any], atol: object = None) -> bool:
    """kernel_tuner's check of a kernel: the destination is right, to the byte."""
    del atol
    return all(
        want is None or np.array_equal(want.view(np.uint8), got.view(np.uint8))
        for want, got in zip(answer, result, strict=True)
    )


def place_of(engine: Engine) -> tuple[int, int]:
    """kernel_tuner's numbers of a device: of its platform, and within the platform."""
    for k, platform in enumerate(opencl().get_platforms()):
        if platform == engine.device.platform:
            return k, platform.get_devices().index(engine.device)
    raise Unsupported("TUNING", f"{engine} has no platform, by which kernel_tuner finds devices")
