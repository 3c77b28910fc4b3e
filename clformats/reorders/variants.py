"""The kernels of a reorder's search space, and the space in kernel_tuner's form."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, Unsupported
from ..kernels import render
from ..kernels.source import Launch
from ..opencl import places
from ..programs import compiler
from ..runtime import Engine
from ..schedule.choices import Choices
from ..schedule.schedule import Schedule
from ..spaces.parts import LOCAL_SIZE as LOCAL
from ..spaces.parts import Config, Parts
from ..spaces.space import Space, space
from ..tensors.desc import MemoryDesc
from ..values.attr import Attr
from .profiles import traits_of
from .trial import Case, with_canary


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
        """The kernel of a configuration; parameters that are not of the space are ignored.

        Raises `InvalidArgument` for parts that do not fit together.
        """
        return self._launch(self.value(config))

    def value(self, config: Config) -> object:
        """What a configuration has of the space's parameter, by itself or in parts.

        Raises `InvalidArgument` where parts are missing.
        """
        if self.space.parameter in config:
            return config[self.space.parameter]
        if missing := sorted({*self.parts.parameters} - {*config}):
            raise InvalidArgument(f"the result has no {missing[0]}, which as_kernel_tuner gives")
        return self.parts.line(config)

    @cached_property
    def parts(self) -> Parts:
        """The questions of the space's parameter. Raises `Unsupported` for a mere number."""
        s = self.space
        if found := s.parts():
            return found
        raise Unsupported(
            "TUNING",
            f"{s.src} -> {s.dst} goes by the family {s.family}, whose one parameter is "
            f"{s.parameter}: leave parts=True out",
        )

    def choices(self, config: Config) -> Choices:
        """The choices that make the kernel of a configuration."""
        return Choices.of({self.space.parameter: self.value(config), "baked": True})

    def _launched(self, value: object) -> Launch:
        made = render(self.space.plan(value, baked=True))
        assert made is not None  # noqa: S101  # a space has something to move
        return made

    def _asked(self, local_size: int, *, parts: bool) -> dict[str, Any]:
        """The parameters, and which of them go together.

        By functions that are no methods: kernel_tuner copies those, and with them the engine.
        """

        def parts_fit(config: Config) -> bool:
            with suppress(InvalidArgument):
                return bool(self.parts.line(config))
            return False

        def is_of_group(config: Config) -> bool:
            return bool(config[LOCAL] == self.launch(config).local_size)

        s = self.space
        asked: dict[str, list[Any]] = {LOCAL: [local_size], "baked": [True]}
        if parts:
            return {"tune_params": asked | self.parts.parameters, "restrictions": parts_fit}
        asked[s.parameter] = [*s.values]
        if s.parameter != LOCAL:  # a schedule says the size of its groups
            asked[LOCAL] = sorted({Schedule.parse(value).group for value in s.values})
            if len(asked[LOCAL]) > 1:
                return {"tune_params": asked, "restrictions": is_of_group}
        return {"tune_params": asked}

    def kernel_tuner(self, seed: int = 0, *, parts: bool = False) -> dict[str, Any]:
        """The arguments of ``kernel_tuner.tune_kernel``: see `Reorder.as_kernel_tuner`."""
        from pyopencl import cltypes

        s = self.space
        case = Case(s.src, s.dst, Attr(), seed)
        default = self._launch(s.values[0])
        src, dst = (np.dtype(getattr(cltypes, name)) for name in default.buffers)
        before = with_canary(case.before)
        place = places().get(self.engine.device)
        if place is None:
            text = f"{self.engine} is a part of a device, which kernel_tuner cannot find"
            raise Unsupported("TUNING", text)
        return {
            "kernel_name": Launch.KERNEL,
            "kernel_source": lambda params: self.launch(params).source,
            "problem_size": lambda params: self.launch(params).groups,
            "arguments": [_whole(case.source, src).view(src), _whole(before, dst).view(dst)],
            **self._asked(default.local_size, parts=parts),
            "grid_div_x": [],
            "block_size_names": [LOCAL],
            "answer": [None, _whole(case.answer, dst).view(dst)],
            "verify": same_bytes,
            "defines": {},
            "compiler_options": [*compiler.options(self.engine.device)],
            "lang": "OpenCL",
            "platform": place[0],
            "device": place[1],
        }  # fmt: skip


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
