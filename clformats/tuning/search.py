"""The search for fast kernels, by kernel_tuner; every kernel is checked before it is timed."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

from ..errors import Error
from ..reorders.trial import Case
from ..reorders.variants import Variants
from ..schedule.space import Config

HINT = "pip install kernel-tuner tqdm"
LEAST_SECONDS = 5.0
"""The least time limit given to kernel_tuner: it fails if its own start takes longer."""
ITERATIONS = 7
"""Runs of each kernel in the search. Records are measured again, and longer."""
EXHAUSTIVE = 64
"""Spaces up to this size are tried completely, in random order, because the brute force of
kernel_tuner has no time limit. Larger ones are searched by its genetic algorithm; many others fail
on sparse spaces. If it fails too (kernel_tuner 1.5 may lose its list of neighbours), random
configurations follow."""
RANDOM = "random_sample"
MOST_FAILURES = 5
"""Kernels that do not build or are wrong, after which the search gives up."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A configuration that the search has tried: its times in seconds, or why it failed."""

    config: Config
    times: tuple[float, ...]
    failure: str = ""

    @property
    def seconds(self) -> float:
        """The median; infinite if it failed."""
        return median(self.times) if self.times else math.inf


def kernel_tuner() -> Any:
    """The module. Raises `Error` with the command that installs it."""
    try:
        import kernel_tuner as found
    except ImportError as error:
        raise Error(f"tuning needs kernel_tuner ({error}): {HINT}") from error
    return found


def search(
    variants: Variants,
    case: Case | None = None,
    *,
    seconds: float,
    strategy: str | None = None,
    watch: Callable[[], None] = lambda: None,
) -> list[Tried]:
    """The configurations tried within ``seconds``, the fastest first; ``watch`` is called for each.

    A configuration that is being tried when the time is up is finished, and at least one is tried.
    ``case`` is the data, ``strategy`` one of kernel_tuner's. A kernel that does not build, or is
    wrong, ends a run of kernel_tuner; the search goes on without it. Raises `Error` if the strategy
    itself fails.
    """
    space = variants.space
    name = strategy or (RANDOM if len(space) <= EXHAUSTIVE else "genetic_algorithm")
    end = perf_counter() + seconds
    run = _Run(variants, variants.kernel_tuner(case=case), watch, end)
    while True:
        options = {
            "time_limit": max(end - perf_counter(), LEAST_SECONDS),
            "max_fevals": len(space) - len(run.failures),
        }
        try:
            run.go(strategy=name, strategy_options=options)
        except Exception as error:  # whatever a compiler, a driver or a strategy may raise
            failed = run.failed(error)
            if not failed and strategy is None and name != RANDOM:
                name = RANDOM
            elif not failed:
                raise Error(
                    f"kernel_tuner's strategy {name} failed on {space.src} -> {space.dst}: "
                    f"{type(error).__name__}: {error}"
                ) from error
        else:
            break
        if len(run.failures) >= MOST_FAILURES or perf_counter() > end:
            break
    return sorted([*run.tried.values(), *run.failures.values()], key=lambda t: t.seconds)


class _Run:
    """Runs of kernel_tuner on one space until ``end``, and the result of each configuration."""

    def __init__(
        self, variants: Variants, arguments: Config, watch: Callable[[], None], end: float
    ) -> None:
        self.tried: dict[tuple[Any, ...], Tried] = {}
        self.failures: dict[tuple[Any, ...], Tried] = {}
        self._names = tuple(variants.space.table)
        self._watch = watch
        self._end = end
        self._current: Config | None = None
        source, is_legal, failures = variants.source, variants.space.is_legal, self.failures
        values = self._values

        def noted(params: Config) -> str:
            self._current = params
            return source(params)

        def legal(params: Config) -> bool:
            return is_legal(params) and values(params) not in failures

        self._arguments = {**arguments, "kernel_source": noted, "restrictions": legal}

    def _values(self, params: Config) -> tuple[Any, ...]:
        return tuple(params[name] for name in self._names)

    def _config(self, params: Config) -> Config:
        return {name: params[name] for name in self._names}

    def go(self, **options: Any) -> None:
        """One run, until its end or the first failure."""
        # kernel_tuner adds to the list of names.
        arguments = {**self._arguments, "block_size_names": [*self._arguments["block_size_names"]]}
        with redirect_stdout(io.StringIO()):  # it greets even when told to be quiet
            kernel_tuner().tune_kernel(
                **arguments, **options, iterations=ITERATIONS, quiet=True,
                metrics={"median": self._median}, objective="median",
                objective_higher_is_better=False,
            )  # fmt: skip

    def _median(self, result: Mapping[str, Any]) -> float:
        """The value to minimise; every result passes through this function."""
        times = tuple(float(ms) * 1e-3 for ms in result["times"])
        self.tried[self._values(result)] = Tried(self._config(result), times)
        self._current = None
        self._watch()
        if perf_counter() > self._end:
            raise import_module("kernel_tuner.util").StopCriterionReached("the time is up")
        return median(times)

    def failed(self, error: Exception) -> bool:
        """Note why the configuration that was just tried failed; False if there was none."""
        params, self._current = self._current, None
        if params is None:
            return False
        reason = f"{type(error).__name__}: {error}"
        self.failures[self._values(params)] = Tried(self._config(params), (), reason)
        self._watch()
        return True
