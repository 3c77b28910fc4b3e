"""What a run ran on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

import clformats as cf
from clformats.reorders.profiles import kept_of, traits_of

from .cases import MB
from .peers import onednn, torch_


def facts(engine: cf.Engine) -> dict[str, str]:
    """The device, the processor, the versions, and how busy the machine was at the start."""
    import pyopencl as cl

    device = engine.device
    return {
        "device": device.name.strip(),
        "platform": f"{device.platform.name.strip()}, {device.platform.version.strip()}",
        "driver": device.driver_version.strip(),
        "units": f"{device.max_compute_units}, {device.global_mem_cache_size >> 10} KiB cache",
        "stores": _stores(engine),
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "load": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
        "clformats": cf.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyopencl": cl.VERSION_TEXT,
        "oneDNN": onednn.available() or ".".join(map(str, onednn.version())),
        "torch": torch_.version() or "not installed",
    }


def _stores(engine: cf.Engine) -> str:
    """From where on they pass the cache."""
    if not engine.traits.is_cpu:
        return "through the caches"
    origin = "as measured" if kept_of(engine) else "by default: clformats calibrate"
    return f"past the cache from {traits_of(engine).stream_bytes / MB:.1f} MB on, {origin}"


def processor() -> str:
    """The processor's name where the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
