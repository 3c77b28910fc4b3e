"""What is known of OpenCL drivers: what their compilers translate, and which versions were tried.

Kernels use built-in functions of clang's for shuffles, prefetches and stores past the cache, and
only OpenCL C where ``CLFORMATS_PORTABLE`` is defined: the *portable path*. That a compiler has
such a function does not mean that it can translate it: Mesa's, which goes by SPIR-V, ends the
process at a prefetch. So the host decides, with `programs.compiler`, which reads this table.
"""

from __future__ import annotations

from dataclasses import dataclass

PORTABLE = "-DCLFORMATS_PORTABLE"
"""The option with which kernels are OpenCL C 1.2 and nothing else."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One that was tried: the name of its OpenCL ``platform``, and the ``kind`` of its devices.

    The kind is "CPU" or "GPU", "" for any. The compiler gets ``options`` beside those of the
    device; ``why`` is the reason.
    """

    name: str
    platform: str
    kind: str = ""
    options: tuple[str, ...] = ()
    why: str = ""


RUNTIMES = (
    Runtime("PoCL", "Portable Computing Language", "CPU"),
    Runtime("Intel's CPU runtime", "Intel(R) OpenCL", "CPU"),
    Runtime(
        "NVIDIA", "NVIDIA CUDA", "GPU", (PORTABLE,),
        "kernels are OpenCL C alone: its compiler has a prefetch, and refuses each call of it",
    ),
    Runtime(
        "Mesa rusticl", "rusticl", "", (PORTABLE,),
        "kernels are OpenCL C alone: its translator to SPIR-V ends the process at a prefetch",
    ),
    Runtime(
        "Oclgrind", "Oclgrind", "", ("-DCLFORMATS_NO_PREFETCH", "-cl-opt-disable"),
        "no prefetches, no optimiser: it simulates neither them nor the instruction `freeze`",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """What was run on a version of a runtime of `RUNTIMES`, and what fails there.

    ``version`` is how the driver's version begins, ``system`` where the driver comes from.
    """

    runtime: str
    version: str
    system: str
    ran: str
    fails: str
    date: str


TRIALS = (
    Trial(
        "PoCL", "3.1", "Debian 12",
        "the fast tests, at each commit; 5,000 random reorders (fuzz)",
        "kernels for GPUs may lose stores, but with POCL_WORK_GROUP_METHOD=auto",
        "2026-11-26",
    ),
    Trial(
        "PoCL", "6.0", "Debian 13",
        "the fast tests of devices (2,081), alone and with rusticl visible; 5,000 random reorders "
        "(fuzz)",
        "a kernel between random lists of digits may end the compiler (cf.CompilerDied)",
        "2026-11-26",
    ),
    Trial(
        "Intel's CPU runtime", "2026.22", "PyPI, intel-opencl-rt",
        "the fast tests of devices (2,127); 5,000 random reorders (fuzz); 21,894 of bytes (3,010 "
        "kernels)", "one kernel for GPUs of 3,010 takes its compiler minutes",
        "2026-11-26",
    ),
    Trial(
        "NVIDIA", "580.159", "Linux, H200 and H100",
        "the fast tests of devices (2,234 on the H200, 5,189 of all on the H100); 4,500 random "
        "reorders (fuzz)",
        "a NaN that becomes f16 loses its payload, as OpenCL allows",
        "2026-11-27",
    ),
    Trial(
        "Mesa rusticl", "25.0", "Debian 13, llvmpipe",
        "the fast tests of devices (2,028); 5,000 random reorders (fuzz, 2026-11-24)",
        "a few kernels end or hang the compiler (cf.CompilerDied): 1 of 5,000; f64 is refused",
        "2026-11-26",
    ),
)  # fmt: skip


def runtime_of(platform: str, kind: str) -> Runtime | None:
    """The row of the devices of a kind of a platform; None where it was never tried."""
    named = (r for r in RUNTIMES if r.platform == platform.strip())
    return next((r for r in named if r.kind in ("", kind)), None)


def known(platform: str, kind: str, version: str) -> str:
    """Whether a driver is in the table of docs/drivers.md, in words."""
    runtime = runtime_of(platform, kind)
    if runtime is None:
        return "this driver is in no row of docs/drivers.md: nobody has tried clformats on it"
    of_it = (t for t in TRIALS if t.runtime == runtime.name)
    trial = next((t for t in of_it if version.strip().startswith(t.version)), None)
    why = f"; {runtime.why}" if runtime.why else ""
    if trial is None:
        return f"{runtime.name}: no tests of this version are on record (docs/drivers.md){why}"
    return f"{runtime.name} {trial.version}: tried on {trial.date}, fails: {trial.fails}{why}"
