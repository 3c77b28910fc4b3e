"""Which OpenCL devices really work: list them, and build and run a small kernel on each.

A platform that is listed may still be unable to compile, and a broken one may crash the process
instead of raising. So this module is a program of its own (`python -m clformats.doctor.probe`),
and `probe_devices` runs it in a process per device. It needs pyopencl and numpy, and of
clformats only the file `icd.py`: the doctor uses it where the rest cannot be imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

TIMEOUT = 120
"""Seconds for one device; the first build of a cold compiler takes about two."""
_SOURCE = """
__kernel void clformats_probe(__global int *out, int step) {
    int i = (int)get_global_id(0);
    out[i] = i * step + 1;
}
"""
# What kernels use of clang, under the conditions of the templates. It writes what the other one
# does, four numbers at a time.
_BUILTINS = """
typedef int4 any_int4 __attribute__((aligned(4)));
__kernel void clformats_probe(__global int *out, int step) {
    int i = 4 * (int)get_global_id(0);
    int4 v = (int4)(i, i + 1, i + 2, i + 3) * step + 1;
    __global any_int4 *to = (__global any_int4 *)(out + i);
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
    __builtin_prefetch((const void *)(uintptr_t)to, 0, 2);
    __builtin_prefetch((const void *)(uintptr_t)to, 1, 2);
#endif
#if __has_builtin(__builtin_shufflevector)
    v = __builtin_shufflevector(v, v, 3, 2, 1, 0);
    v = __builtin_shufflevector(v, v, 3, 6, 1, 4);
#endif
#if __has_builtin(__builtin_nontemporal_store)
    __builtin_nontemporal_store(v, (__global int4 *)to);
    if (i % 8) { return; }
#endif
#endif
    *to = v;
}
"""
_TYPES = {2: "CPU", 4: "GPU", 8: "accelerator", 16: "custom"}
"""Bits of CL_DEVICE_TYPE. pyopencl's to_string writes "ALL | CPU" and the like."""
_MARK = "clformats-probe:"

Report = dict[str, Any]


# ---- inside the probing process ----------------------------------------------------------------


def list_devices() -> list[Report]:
    """Describe every device of every platform: plain values only, sizes in bytes."""
    import pyopencl as cl

    found: list[tuple[int, int, Any]] = []
    for i, platform in enumerate(cl.get_platforms()):
        with suppress(cl.Error):  # a platform without devices says so by an error
            found += [(i, j, device) for j, device in enumerate(platform.get_devices())]
    return [{"platform_index": i, "device_index": j, **describe(d)} for i, j, d in found]


def describe(device: Any) -> Report:  # pyopencl's, imported late
    """What a reader of a bug report wants to know of a device."""
    platform, extensions = device.platform, set(device.extensions.split())
    return {
        "platform": platform.name.strip(),
        "platform_version": platform.version.strip(),
        "device": device.name.strip(),
        "type": next((name for bit, name in _TYPES.items() if device.type & bit), "other"),
        "version": device.version.strip(),
        "driver": device.driver_version.strip(),
        "fp16": "cl_khr_fp16" in extensions,
        "fp64": "cl_khr_fp64" in extensions,
        "subgroups": bool(extensions & {"cl_khr_subgroups", "cl_intel_subgroups"}),
        "compute_units": device.max_compute_units,
        "cache_bytes": device.global_mem_cache_size,
        "vector_bytes": 4 * device.native_vector_width_int,
        "global_memory": device.global_mem_size,
        "largest_buffer": device.max_mem_alloc_size,
        "local_memory": device.local_mem_size,
    }


def run_kernel(platform_index: int, device_index: int, *, builtins: bool = False) -> float:
    """Build and run the probe kernel and check what it wrote; the seconds it took.

    With ``builtins`` the kernel that uses what some compilers cannot translate. Raises RuntimeError
    if the device computed something else, and pyopencl's errors.
    """
    import numpy as np
    import pyopencl as cl

    start = time.monotonic()
    device = cl.get_platforms()[platform_index].get_devices()[device_index]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    result = np.zeros(64, np.int32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, result.nbytes)
    program = cl.Program(context, _BUILTINS if builtins else _SOURCE).build()
    kernel = cl.Kernel(program, "clformats_probe")
    items = result.size // 4 if builtins else result.size
    kernel(queue, (items,), None, buffer, np.int32(3))
    cl.enqueue_copy(queue, result, buffer)
    queue.finish()
    if not np.array_equal(result, np.arange(64) * 3 + 1):
        message = f"the probe kernel wrote {result[:4].tolist()}..., expected [1, 4, 7, 10]..."
        raise RuntimeError(message)
    return time.monotonic() - start


# ---- outside: one process per question ---------------------------------------------------------


def _ask(*question: object) -> Report:
    """Run this file in a process of its own and return its answer, or {"error": why}.

    By path and not by module name: it must work where the package cannot be imported.
    """
    start = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    command = [sys.executable, "-c", start, str(Path(__file__).resolve()), *map(str, question)]
    try:
        done = subprocess.run(
            command,
            # No cache of built programs: whether the compiler works is the question.
            env={**os.environ, "PYOPENCL_NO_CACHE": "1"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {TIMEOUT} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(_MARK):
            answer: Report = json.loads(line.removeprefix(_MARK))
            return answer
    crashed = f"the process crashed with signal {-done.returncode}: " if done.returncode < 0 else ""
    return {"error": crashed + (done.stderr.strip().splitlines() or ["no message"])[-1]}


def probe_devices() -> tuple[list[Report], str]:
    """Every device with "seconds" (it works) or "error"; and why none could be listed, or ""."""
    listed = _ask("list")
    if "error" in listed:
        return [], str(listed["error"])
    devices: list[Report] = listed["devices"]
    for device in devices:
        device.update(_ask("run", device["platform_index"], device["device_index"]))
    return devices, ""


def builtins_work(platform_index: int, device_index: int) -> bool:
    """Whether kernels with clang's built-in functions are built, and right, on a device."""
    return "seconds" in _ask("builtins", platform_index, device_index)


# ---- the program -------------------------------------------------------------------------------


def _answer(question: str, *place: str) -> Report:
    """The answer of a probing process; every exception becomes an error in words."""
    try:
        if question == "list":
            return {"devices": list_devices()}
        return {"seconds": run_kernel(*map(int, place), builtins=question == "builtins")}
    except Exception as error:  # noqa: BLE001  # whatever a driver throws is the answer
        # The start of a long build log, blank lines dropped.
        told = [line.rstrip() for line in str(error).splitlines() if line.strip()][:6]
        return {"error": f"{type(error).__name__}: " + "\n".join(told)}


def main() -> int:
    """Print one line per device; exit status 0 if at least one works.

    With the arguments of `_answer`: its answer as JSON.
    """
    import runpy

    if questions := sys.argv[1:]:
        print(_MARK + json.dumps(_answer(*questions)))
        return 0
    # By path: this must answer even while the package around it is being edited.
    runpy.run_path(str(Path(__file__).with_name("icd.py")))["expose_bundled_runtimes"]()
    devices, reason = probe_devices()
    print(reason or "\n".join(f"{d['device']}: {d.get('error', 'works')}" for d in devices))
    return 0 if any("seconds" in device for device in devices) else 1


if __name__ == "__main__":
    sys.exit(main())
