"""The demo's photograph: the user's own, or the one that matplotlib's wheel carries."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error
from .arguments import numbers

INSTALL = "pip install pillow matplotlib"
LONGEST_SIDE = 4096


def photograph(file: str | None, size: str | None) -> tuple[NDArray[np.uint8], str]:
    """The pixels, of shape (height, width, 3), and a line that tells where they are from.

    Raises `Error` where there is no photograph, or nothing that can read it.
    """
    try:
        image_module = import_module("PIL.Image")
    except ImportError as error:
        raise Error(f"Pillow, which reads the photograph, is missing: {INSTALL}") from error
    path = Path(file) if file else example()
    image = _open(image_module, path)
    image = _scaled(image, size)
    pixels = np.asarray(image, dtype=np.uint8)
    owner = "" if file else ", from matplotlib's sample data"
    return pixels, f"{path.name}{owner}, {image.width} x {image.height}"


def example() -> Path:
    """The photograph in matplotlib's package, found without importing it: that takes seconds."""
    spec = find_spec("matplotlib")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "mpl-data" / "sample_data" / "grace_hopper.jpg"
        if path.is_file():
            return path
    raise Error(f"no photograph: give one by --image FILE, or install the example: {INSTALL}")


def _open(image_module: Any, path: Path) -> Any:
    """The image in red, green and blue, turned as the camera meant it."""
    try:
        with image_module.open(path) as image:
            return import_module("PIL.ImageOps").exif_transpose(image).convert("RGB")
    except (OSError, ValueError, image_module.DecompressionBombError) as error:
        # Pillow's own text for a file that is no image repeats the path.
        reason = getattr(error, "strerror", None) or "this is no image that Pillow can read"
        raise Error(f"cannot read the photograph {path}: {reason}") from error


def _scaled(image: Any, size: str | None) -> Any:
    """The image at the size asked for, or at most `LONGEST_SIDE` wide and high."""
    if size is None:
        image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        return image
    sides = numbers(size, "the size")
    if len(sides) != 2 or not all(1 <= side <= LONGEST_SIDE for side in sides):
        raise Error(
            f"got --size {size}, expected width and height of 1 to {LONGEST_SIDE} pixels each, "
            f"such as 640x480"
        )
    return image.resize(sides)
