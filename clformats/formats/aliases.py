"""Names that frameworks use: ``NCHW``, ``NHWC``, ``NCHW16c``, ``HWIO``, ``channels_last``.

Where a name has capitals only, it is read as in TVM, TensorFlow and ONNX: one letter for each
dimension, outermost first, then blocks. In oneDNN's notation capitals mean blocked dimensions, so
such a name is never a tag of oneDNN's, or the same one (``OI16i16o``). PyTorch's names are in the
table. `canonical` gives oneDNN's name for them.
"""

from __future__ import annotations

import re

_CHANNELS_LAST = {2: "nc", 3: "nwc", 4: "nhwc", 5: "ndhwc"}
_CHANNELS_FIRST = {2: "nc", 3: "ncw", 4: "nchw", 5: "ncdhw"}

WORDS = ("channels_last", "channels_last_3d", "channels_first")
"""Names of PyTorch's and Keras' that `canonical` knows."""


def canonical(name: str, ndims: int | None) -> str:
    """OneDNN's name of what a framework calls so; other names as they are.

    ``channels_last`` has four dimensions where ``ndims`` does not say otherwise.
    """
    if name in ("channels_last", "channels_first"):
        table = _CHANNELS_LAST if name == "channels_last" else _CHANNELS_FIRST
        return table.get(4 if ndims is None else ndims, table[4])
    if name == "channels_last_3d":
        return "ndhwc"
    found = re.fullmatch(r"([A-Z]+)((?:[1-9][0-9]*[a-z])*)", name)
    if found is None:
        return name
    outer, inner = found.groups()
    blocked = set(re.findall("[a-z]", inner))
    if not blocked <= set(outer.lower()):
        return name
    return "".join(c if c.lower() in blocked else c.lower() for c in outer) + inner
