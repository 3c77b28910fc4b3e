"""The tuner's records: one file for each device, looked up when a reorder is planned.

Neither OpenCL nor kernels are needed to read, write or show them.
"""

from .lookup import Lookup, TunedWarning, forget, lookup
from .record import DeviceNames, InvalidRecord, Key, TuningRecord
from .store import Rejected, add, folder, path_of, read, rewrite, wanted_folder

__all__ = [
    "DeviceNames",
    "InvalidRecord",
    "Key",
    "Lookup",
    "Rejected",
    "TunedWarning",
    "TuningRecord",
    "add",
    "folder",
    "forget",
    "lookup",
    "path_of",
    "read",
    "rewrite",
    "wanted_folder",
]
