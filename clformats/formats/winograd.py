"""The transforms of the Winograd formats, as data: matrices, and along which axes they act.

A convolution of r filter taps is cheaper on transformed values: y = A' [(G g) * (B' d)], where g
is the filter, d a window of the data, * the product of each pair of values and y the m outputs of
the window. It is called F(m, r). See A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural
Networks, 2015, arXiv:1509.09308. A filter of two dimensions is transformed along both: G g G'.

The numbers, and the order in which a row is summed up, are those of DNNL 1.3 (its weights) and of
clDNN 2017 to OpenVINO 2026 (all others); with other numbers G and B' fit together as well, but not
with other people's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Axis = Literal["y", "x"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows of a transform. ``scales`` multiply a row's sum, where they are not all 1.

    ``dense`` rows are summed up from zero and multiply by each coefficient, also by 0 and 1, which
    is seen in the sign of zero and in what infinity times 0 gives; other rows have no such terms.
    """

    rows: tuple[tuple[float, ...], ...]
    scales: tuple[float, ...] = ()
    dense: bool = False

    @property
    def taps(self) -> int:
        """The number of values that a row takes."""
        return len(self.rows[0])

    def apply(self, row: int, values: Sequence[Any], number: Callable[[float], Any]) -> Any:
        """Row ``row`` of the matrix times ``values``: anything that knows ``+``, ``-`` and ``*``.

        From the left to the right; ``number`` makes a coefficient of the type of ``values``.
        """
        terms = list(zip(self.rows[row], values, strict=True))
        if self.dense:
            total = number(0.0)
            for coefficient, value in terms:
                total = total + value * number(coefficient)
            return total
        (first, value), *rest = (term for term in terms if term[0])
        total = value if first == 1 else value * number(first)
        for coefficient, value in rest:
            size = abs(coefficient)
            term = value if size == 1 else value * number(size)
            total = total + term if coefficient > 0 else total - term
        scale = self.scales[row] if self.scales else 1.0
        return total if scale == 1 else total * number(scale)


_H = 0.5
# DNNL's F(2,3) and F(4,3) for weights; the latter with the points 0, -5/8, 5/8, 3/2, -3/2.
_DNNL_F23 = Matrix(((1, 0, 0), (_H, _H, _H), (_H, -_H, _H), (0, 0, 1)), dense=True)
_A, _B, _C = 0.688403361344538, 0.430252100840336, 0.26890756302521
_D, _E = 0.119514472455649, 0.179271708683473
_DNNL_F43 = Matrix(
    (
        (1.13777777777778, 0, 0),
        (-_A, -_B, -_C),
        (-_A, _B, -_C),
        (_D, _E, _C),
        (_D, -_E, _C),
        (0, 0, 1),
    ),
    dense=True,
)
# clDNN's: weights of F(2,3) and F(6,3), data of F(2,3), and the outputs from the products.
_F23 = Matrix(((1, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 1)), scales=(1, _H, _H, 1))
_F63 = Matrix(
    (
        (1, 0, 0),
        (-20 / 90, -20 / 90, -20 / 90),
        (-20 / 90, 20 / 90, -20 / 90),
        (1 / 90, 2 / 90, 4 / 90),
        (1 / 90, -2 / 90, 4 / 90),
        (64 / 90, 32 / 90, 16 / 90),
        (64 / 90, -32 / 90, 16 / 90),
        (0, 0, 1),
    )
)
F23_DATA = Matrix(((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)))
F23_OUTPUTS = Matrix(((1, 1, 1, 0), (0, 1, -1, -1)))
# The weights of F(2,3) again: a left inverse of both matrices for it, of whole numbers.
_F23_BACK = Matrix(((1, 0, 0, 0), (0, 1, -1, 0), (0, 0, 0, 1)))


@dataclass(frozen=True, slots=True)
class Transform:
    """The transform of a tensor's last two dimensions, y and x.

    ``inner`` acts along ``src_axis``; its rows give the positions along ``dst_axis``. The other
    axis stays as it is, or ``outer`` acts along it, after ``inner``. ``step`` is None where the
    axis is one window; else windows begin every ``step`` elements, and their rows follow each other
    in the result; the last window may reach beyond the end, into zeros.
    """

    name: str
    inner: Matrix
    outer: Matrix | None = None
    src_axis: Axis = "x"
    dst_axis: Axis = "x"
    step: int | None = None

    @property
    def overlaps(self) -> bool:
        """Whether windows share elements, as those of a convolution's data do."""
        return self.step is not None and self.step < self.inner.taps

    @property
    def results(self) -> dict[int, int]:
        """For each dimension that the transform acts along the number of a window's results."""
        along = 3 if self.dst_axis == "x" else 2
        across = {5 - along: len(self.outer.rows)} if self.outer else {}
        return {along: len(self.inner.rows)} | across


FORWARD = {
    "winograd_2x3_s1_data": Transform("F(2,3) of data along x", F23_DATA, step=2),
    "winograd_2x3_s1_weights": Transform("F(2,3) along x", _F23),
    "winograd_2x3_s1_fused_weights": Transform("F(2,3) along y, turned", _F23, src_axis="y"),
    "winograd_6x3_s1_fused_weights": Transform("F(6,3) along y, turned", _F63, src_axis="y"),
    **dict.fromkeys(
        ("wino_wei_aaOIoi", "wino_wei_aaOio", "wino_wei_aaOBiOo"),
        Transform("F(2,3) along x and y", _DNNL_F23, _DNNL_F23),
    ),
    "wino_wei_OBaaIBOIio": Transform("F(4,3) along x and y", _DNNL_F43, _DNNL_F43),
}
BACK = {
    "winograd_2x3_s1_data": Transform("outputs of F(2,3) along x", F23_OUTPUTS, step=4),
    "winograd_2x3_s1_weights": Transform("F(2,3) along x, undone", _F23_BACK),
    "winograd_2x3_s1_fused_weights": Transform(
        "F(2,3) along y, undone", _F23_BACK, dst_axis="y"
    ),
    **dict.fromkeys(
        ("wino_wei_aaOIoi", "wino_wei_aaOio", "wino_wei_aaOBiOo"),
        Transform("F(2,3) along x and y, undone", _F23_BACK, _F23_BACK),
    ),
}  # fmt: skip
"""The transforms that have an inverse. F(4,3) and F(6,3) do not: their coefficients are rounded."""

S8_SCALE = {"wino_wei_aaOIoi": 4 / 9}
"""The factor of transformed values that become s8: |G g G'| is at most 9/4 |g|."""


def method(format_name: str) -> str:
    """The key of a Winograd format in the tables above; empty for other formats."""
    name = format_name.removeprefix("image_2d_weights_")
    if name.startswith("wino_wei_"):
        return "_".join(name.split("_")[:3])
    if name in ("winograd_6x3_s1_fbxyb", "winograd_6x3_s1_xfbyb"):
        return "winograd_6x3_s1_fused_weights"
    return name if name in FORWARD else ""
