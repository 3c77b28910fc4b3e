"""What is measured, as data: the cases, and the groups whose geometric means are printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import clformats as cf

MB = 1e6


@dataclass(frozen=True, slots=True)
class Case:
    """One reorder: dims in logical order, source and destination as ``dtype:format``.

    ``shared``: so many neighbours of the last dimension have one scale and one zero point; 0: none.
    """

    name: str
    group: str
    dims: tuple[int, ...]
    src: str
    dst: str
    shared: int = 0

    def descriptors(self) -> tuple[cf.MemoryDesc, cf.MemoryDesc]:
        """The source's and the destination's descriptor."""
        read, written = (cf.MemoryDesc(self.dims, *t.split(":")) for t in (self.src, self.dst))
        return read, written

    def attr(self) -> cf.Attr:
        """Scales and zero points of the groups, if there are any: exact in every type."""
        if not self.shared:
            return cf.Attr()
        counts, group = (*self.dims[:-1], -(-self.dims[-1] // self.shared)), (1, self.shared)
        numbers = np.arange(np.prod(counts)).reshape(counts)
        return cf.Attr(src_scale=cf.Grouped(2.0 ** (numbers % 5 - 8), group),
                       src_zero_point=cf.Grouped(numbers % 11, group))  # fmt: skip


# Widths of real networks at the sizes where a reorder takes time; ODD has rows and features that
# fill neither a cache line nor a block.
ACT = (16, 64, 112, 112)
HALF = (4, 64, 112, 112)
ONE = (1, 64, 112, 112)
ODD = (16, 250, 55, 57)
RGB = (8, 3, 224, 224)
W3 = (1024, 1024, 3, 3)
W1 = (512, 512, 1, 1)
VOLUME = (2, 64, 16, 56, 56)
ODD_VOLUME = (2, 50, 15, 57, 55)
TINY = (1, 64, 8, 8)
# Weights (k, n) of 4 bits. GPTQ's words have 8 of k, AWQ's 8 of n, the even ones first.
Q = (4096, 14336)
Q_LESS = (4096, 4096)
GPTQ, AWQ = "Ab8a", "a b/8 b%2 b/2%4"

F32, F16, U8 = "f32 data", "16-bit", "8-bit"
ODDS, UNEVEN, CONVERT, WEIGHTS = "odd sizes", "uneven blocks", "conversions", "weights"
PACKED, GROUPED = "4-bit moves", "4-bit conversions"
IMAGES, FIVE_D, SMALL, LAUNCH = "3-channel images", "5-D", "2-10 MB", "tiny"
DRAWN = "drawn at random"

# Blocks that do not divide each other, by their sizes and types.
UNEVENS = tuple(
    Case(f"uneven_{a}_{b}_{t}", UNEVEN, (n, 144, 56, 57), f"{t}:aBcd{a}b", f"{t}:aBcd{b}b")
    for n, t, pairs in (
        (16, "f32", ((24, 16), (16, 24), (18, 16), (12, 8), (3, 16), (16, 3), (63, 64))),
        (32, "f16", ((24, 16), (48, 32), (3, 16))),
        (64, "u8", ((48, 32), (24, 16))),
    )
    for a, b in pairs
)

CASES = (
    Case("bfyx_fsv16_f32", F32, ACT, "f32:bfyx", "f32:b_fs_yx_fsv16"),
    Case("fsv16_bfyx_f32", F32, ACT, "f32:b_fs_yx_fsv16", "f32:bfyx"),
    Case("bfyx_byxf_f32", F32, ACT, "f32:bfyx", "f32:byxf"),
    Case("byxf_bfyx_f32", F32, ACT, "f32:byxf", "f32:bfyx"),
    Case("byxf_fsv16_f32", F32, ACT, "f32:byxf", "f32:b_fs_yx_fsv16"),
    Case("fsv16_byxf_f32", F32, ACT, "f32:b_fs_yx_fsv16", "f32:byxf"),
    Case("bfyx_yxfb_f32", F32, ACT, "f32:bfyx", "f32:yxfb"),
    Case("bfyx_bsv16fsv16_f32", F32, ACT, "f32:bfyx", "f32:bs_fs_yx_bsv16_fsv16"),
    Case("bfyx_fsv16_f16", F16, ACT, "f16:bfyx", "f16:b_fs_yx_fsv16"),
    Case("fsv16_bfyx_f16", F16, ACT, "f16:b_fs_yx_fsv16", "f16:bfyx"),
    Case("bfyx_byxf_f16", F16, ACT, "f16:bfyx", "f16:byxf"),
    Case("byxf_bfyx_f16", F16, ACT, "f16:byxf", "f16:bfyx"),
    Case("bfyx_fsv16_u8", U8, ACT, "u8:bfyx", "u8:b_fs_yx_fsv16"),
    Case("bfyx_fsv32_u8", U8, ACT, "u8:bfyx", "u8:b_fs_yx_fsv32"),
    Case("bfyx_fsv4_u8", U8, ACT, "u8:bfyx", "u8:b_fs_yx_fsv4"),
    Case("bfyx_byxf_u8", U8, ACT, "u8:bfyx", "u8:byxf"),
    Case("byxf_bfyx_u8", U8, ACT, "u8:byxf", "u8:bfyx"),
    Case("fsv4_fsv32_u8", U8, ACT, "u8:b_fs_yx_fsv4", "u8:b_fs_yx_fsv32"),
    Case("odd_bfyx_fsv16_f32", ODDS, ODD, "f32:bfyx", "f32:b_fs_yx_fsv16"),
    Case("odd_fsv16_bfyx_f32", ODDS, ODD, "f32:b_fs_yx_fsv16", "f32:bfyx"),
    Case("odd_bfyx_byxf_f32", ODDS, ODD, "f32:bfyx", "f32:byxf"),
    Case("odd_byxf_fsv16_f32", ODDS, ODD, "f32:byxf", "f32:b_fs_yx_fsv16"),
    Case("odd_bfyx_fsv16_f16", ODDS, ODD, "f16:bfyx", "f16:b_fs_yx_fsv16"),
    Case("odd_bfyx_fsv32_u8", ODDS, ODD, "u8:bfyx", "u8:b_fs_yx_fsv32"),
    *UNEVENS,
    Case("cv_bfyx_bfyx_f32_f16", CONVERT, ACT, "f32:bfyx", "f16:bfyx"),
    Case("cv_bfyx_fsv16_f32_f16", CONVERT, ACT, "f32:bfyx", "f16:b_fs_yx_fsv16"),
    Case("cv_fsv16_bfyx_f16_f32", CONVERT, ACT, "f16:b_fs_yx_fsv16", "f32:bfyx"),
    Case("cv_bfyx_fsv16_f32_bf16", CONVERT, ACT, "f32:bfyx", "bf16:b_fs_yx_fsv16"),
    Case("cv_bfyx_fsv16_f32_s8", CONVERT, ACT, "f32:bfyx", "s8:b_fs_yx_fsv16"),
    Case("cv_bfyx_byxf_f32_s8", CONVERT, ACT, "f32:bfyx", "s8:byxf"),
    Case("cv_byxf_bfyx_u8_f32", CONVERT, ACT, "u8:byxf", "f32:bfyx"),
    Case("w3_isv16_osv16_f32", WEIGHTS, W3, "f32:oiyx", "f32:os_is_yx_isv16_osv16"),
    Case("w3_isv16_osv16_f16", WEIGHTS, W3, "f16:oiyx", "f16:os_is_yx_isv16_osv16"),
    Case("w3_osv16_isv4_s8", WEIGHTS, W3, "s8:oiyx", "s8:os_is_yx_osv16_isv4"),
    Case("w3_isa8_osv8_isv4_s8", WEIGHTS, W3, "s8:oiyx", "s8:os_is_yx_isa8_osv8_isv4"),
    Case("w3_hwio_f32", WEIGHTS, W3, "f32:oiyx", "f32:hwio"),
    Case("w1_isv16_osv16_f32", WEIGHTS, W1, "f32:oiyx", "f32:os_is_yx_isv16_osv16"),
    Case("w1_osv16_isv4_s8", WEIGHTS, W1, "s8:oiyx", "s8:os_is_yx_osv16_isv4"),
    Case("dw_goiyx_gsv16_f32", WEIGHTS, (512, 1, 1, 3, 3), "f32:goiyx", "f32:gs_oiyx_gsv16"),
    Case("q_gptq_awq_u4", PACKED, Q, f"u4:{GPTQ}", f"u4:{AWQ}"),
    Case("q_awq_gptq_u4", PACKED, Q, f"u4:{AWQ}", f"u4:{GPTQ}"),
    Case("q_gptq_plain_u4", PACKED, Q, f"u4:{GPTQ}", "u4:ba"),
    Case("q_plain_gptq_u4", PACKED, Q, "u4:ba", f"u4:{GPTQ}"),
    Case("q_awq_plain_u4", PACKED, Q, f"u4:{AWQ}", "u4:ba"),
    Case("q_plain_awq_u4", PACKED, Q, "u4:ba", f"u4:{AWQ}"),
    Case("q_ab_BA16b16a_u4_f16", GROUPED, Q_LESS, "u4:ab", "f16:BA16b16a"),
    Case("q_ab_BA16b16a_s8_f16", GROUPED, Q_LESS, "s8:ab", "f16:BA16b16a"),
    Case("q_ab_ab_u4_f16", GROUPED, Q_LESS, "u4:ab", "f16:ab"),
    Case("q_ab_ab_u4_f32", GROUPED, Q_LESS, "u4:ab", "f32:ab"),
    Case("q_ab_ab_f16_u4", GROUPED, Q_LESS, "f16:ab", "u4:ab"),
    Case("q_ab_ab_f32_u4", GROUPED, Q_LESS, "f32:ab", "u4:ab"),
    Case("q_groups_BA16b16a_u4_f16", GROUPED, Q_LESS, "u4:ab", "f16:BA16b16a", 128),
    Case("q_groups_ba_u4_f16", GROUPED, Q_LESS, "u4:ab", "f16:ba", 128),
    Case("q_groups_BA16b16a_s4_f16", GROUPED, Q_LESS, "s4:ab", "f16:BA16b16a", 128),
    Case("q_groups_ba_s4_f16", GROUPED, Q_LESS, "s4:ab", "f16:ba", 128),
    Case("im3_bfyx_fsv16_f32", IMAGES, RGB, "f32:bfyx", "f32:b_fs_yx_fsv16"),
    Case("im3_bfyx_fsv4_u8", IMAGES, RGB, "u8:bfyx", "u8:b_fs_yx_fsv4"),
    Case("im3_byxf_bfyx_u8", IMAGES, RGB, "u8:byxf", "u8:bfyx"),
    Case("im3_bfyx_byxf_f32", IMAGES, RGB, "f32:bfyx", "f32:byxf"),
    Case("im3_byxf_fsv16_u8_f16", IMAGES, RGB, "u8:byxf", "f16:b_fs_yx_fsv16"),
    Case("d5_bfzyx_fsv16_f32", FIVE_D, VOLUME, "f32:bfzyx", "f32:b_fs_zyx_fsv16"),
    Case("d5_bfzyx_bzyxf_f32", FIVE_D, VOLUME, "f32:bfzyx", "f32:bzyxf"),
    Case("d5_odd_fsv16_bfzyx_f32", FIVE_D, ODD_VOLUME, "f32:b_fs_zyx_fsv16", "f32:bfzyx"),
    Case("a1_bfyx_fsv16_f32", SMALL, ONE, "f32:bfyx", "f32:b_fs_yx_fsv16"),
    Case("a1_fsv16_bfyx_f32", SMALL, ONE, "f32:b_fs_yx_fsv16", "f32:bfyx"),
    Case("a1_bfyx_byxf_f32", SMALL, ONE, "f32:bfyx", "f32:byxf"),
    Case("a4_bfyx_fsv32_u8", SMALL, HALF, "u8:bfyx", "u8:b_fs_yx_fsv32"),
    Case("tiny_bfyx_fsv16_f32", LAUNCH, TINY, "f32:bfyx", "f32:b_fs_yx_fsv16"),
    Case("tiny_bfyx_byxf_f32", LAUNCH, TINY, "f32:bfyx", "f32:byxf"),
    Case("tiny_bfyx_bfyx_u8_f32", LAUNCH, TINY, "u8:bfyx", "f32:bfyx"),
)


LEAST_SHARE = 0.6
"""No case shall have less of the copy."""


@dataclass(frozen=True, slots=True)
class Group:
    """A line of the summary: the cases it takes by name, group and size, and the project's goals.

    ``share`` is the goal for the share of the plain copy, ``onednn`` that for the ratio to oneDNN,
    ``launch`` the most times of an empty kernel's launch and wait.
    """

    name: str
    takes: Callable[[str, str, float], bool]
    share: float | None = None
    onednn: float | None = None
    launch: float | None = None


GROUPS = (
    Group("all of 18 MB and more", lambda _, __, mb: mb >= 18, onednn=3.0),
    Group("f32 data", lambda _, group, __: group == F32, share=0.92),
    Group("16-bit", lambda _, group, __: group == F16, share=0.88),
    Group("8-bit", lambda _, group, __: group == U8, share=0.8),
    Group("odd sizes", lambda _, group, __: group == ODDS, share=0.88),
    Group("uneven blocks", lambda _, group, __: group == UNEVEN, share=0.5),
    Group("conversions", lambda _, group, __: group == CONVERT, share=0.88),
    Group("3x3 weights", lambda name, *_: name.startswith("w3_"), share=0.75),
    Group("4-bit moves", lambda _, group, __: group == PACKED),
    Group("4-bit conversions", lambda _, group, __: group == GROUPED),
    Group("3-channel images", lambda _, group, __: group == IMAGES),
    Group("5-D", lambda _, group, __: group == FIVE_D),
    Group("drawn at random", lambda _, group, __: group == DRAWN),
    Group("2 to 10 MB", lambda _, __, mb: 2 <= mb <= 10, share=0.92),
    Group("under 1 MB", lambda _, __, mb: mb < 1, launch=1.15),
)
