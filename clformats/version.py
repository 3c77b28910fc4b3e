"""The version of the library, and when this process loaded it."""

import time

__version__ = "0.1.0.dev0"
LOADED_NS = time.time_ns()
"""Files of the library that have changed since are not what runs."""
