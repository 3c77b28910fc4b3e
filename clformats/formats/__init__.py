"""What a layout is: digits, names and the registry. Pure Python, no numpy and no OpenCL."""

from .digits import Digit, Layout
from .format import Format, formats

__all__ = ["Digit", "Format", "Layout", "formats"]
