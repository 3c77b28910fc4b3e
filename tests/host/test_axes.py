"""Arrays whose axes stand in another order than the tensor's dimensions."""

from __future__ import annotations

import re

import numpy as np
import pytest

import clformats as cf
from clformats.host.axes import in_order

PHOTO = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
WANTED = PHOTO.transpose(2, 0, 1)[None]


@pytest.mark.parametrize("axes", ["yxf", "hwc", "HWC"])
@pytest.mark.parametrize("format", [None, "bfyx", "nhwc", "b_fs_yx_fsv16", "NCHW", "axb", "acdb"])
def test_a_photograph(axes: str, format: str | None) -> None:
    assert (in_order(PHOTO, axes, format) == WANTED).all()


def test_all_orders() -> None:
    array = np.arange(2 * 3 * 5 * 7).reshape(2, 3, 5, 7)
    assert in_order(array, "nchw", "nhwc") is not None
    assert (in_order(array, "nhwc", "nhwc") == array.transpose(0, 3, 1, 2)).all()
    assert (in_order(array, "hwio", "oiyx") == array.transpose(3, 2, 0, 1)).all()
    assert (in_order(array, "yxio", None) == array.transpose(3, 2, 0, 1)).all()
    assert in_order(array, None, "nhwc") is array


@pytest.mark.parametrize(
    ("axes", "format"),
    [("yx", None), ("yxx", None), ("yxq", None), ("zyx", "bfyx"), ("hwo", "bfyx")],
)
def test_axes_that_do_not_fit(axes: str, format: str | None) -> None:
    with pytest.raises(cf.InvalidDescriptor, match=f"axes='{axes}'"):
        in_order(PHOTO, axes, format)


def test_too_few_axes_are_refused_with_axes_that_fit() -> None:
    """What the message advises works, for each format of data or weights and each lower rank."""
    named = [f for f in cf.formats() if f.layout and f.role != "generic"]
    for fmt, ndim in [(f, k) for f in named for k in range(1, f.ndims)]:
        array = np.zeros(range(2, 2 + ndim))
        with pytest.raises(cf.InvalidDescriptor, match=f"got {ndim} dims") as caught:
            in_order(array, None, fmt)
        advised = re.search(r"axes='(\w+)'", str(caught.value))
        assert advised is not None
        ones = (1,) * (fmt.ndims - ndim)
        assert in_order(array, advised[1], fmt).shape == (*ones, *array.shape)


def test_the_letters_of_the_format_come_first() -> None:
    array = np.zeros((2, 3, 5))
    assert in_order(array, "wzx", "bfwzyx").shape == (1, 1, 2, 3, 1, 5)
    assert in_order(array, "dhw", "bfzyx").shape == (1, 1, 2, 3, 5)


@pytest.mark.parametrize("format", ["nhwc", "byxf", "NHWC", "channels_last", "acdb"])
def test_a_guess_that_nobody_would_see_is_refused(format: str) -> None:
    image = np.zeros((1, 33, 50, 3), np.uint8)
    with pytest.raises(cf.InvalidDescriptor, match="axes='nhwc'; if not, axes='nchw'"):
        in_order(image, None, format)
    assert in_order(image, "nchw", format).shape == (1, 33, 50, 3)
    assert in_order(image, "nhwc", format).shape == (1, 3, 33, 50)
    assert in_order(image, None, "nChw16c") is image
    strip = np.zeros((2, 17, 5, 3), np.uint8)
    assert in_order(strip, None, format) is strip


@pytest.mark.device
def test_from_numpy_takes_axes(engine: cf.Engine) -> None:
    memory = cf.from_numpy(PHOTO, engine, axes="hwc", format="b_fs_yx_fsv16")
    assert memory.desc.dims == (1, 3, 5, 7)
    assert (memory.numpy() == WANTED).all()
    with pytest.raises(cf.InvalidDescriptor, match="axes="):
        cf.from_numpy(np.zeros((1, 333, 501, 3), np.uint8), engine, format="nhwc")
    other = cf.from_dlpack(PHOTO, engine, axes="hwc", format="nhwc")
    assert (other.numpy() == WANTED).all()


def test_axes_may_be_a_tuple_of_letters() -> None:
    array = np.arange(2 * 5 * 4 * 17, dtype=np.float32).reshape(2, 5, 4, 17)
    packed = cf.pack(array, "b_fs_yx_fsv16", axes=("n", "h", "w", "c"))
    assert (packed == cf.pack(array, "b_fs_yx_fsv16", axes="nhwc")).all()
    with pytest.raises(cf.InvalidArgument, match=r"expected letters .*such as 'nhwc'"):
        cf.pack(array, "b_fs_yx_fsv16", axes=(0, 3, 1, 2))  # type: ignore[arg-type]
