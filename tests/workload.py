"""The reorders of real networks: which tensors, between which formats and element types.

`reorders` lists them. The replay of kernels uses them; so may benchmarks of first use, and whoever
counts programs. Sizes are those of the networks named beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import clformats as cf

Dims = tuple[int, ...]
Pair = tuple[str, str]
"""Source and destination as ``type:format``."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tensors of a network, and the pairs of formats between which each of them is moved.

    ``shapes`` of activations lack the batch: it comes from the number of bytes that are to be
    moved, a multiple of ``batch``. With ``batch=0`` the shapes are whole: those of weights.
    """

    network: str
    shapes: tuple[Dims, ...]
    pairs: tuple[Pair, ...]
    batch: int = 1

    def reorders(self, nbytes: int) -> Iterator[tuple[str, cf.MemoryDesc, cf.MemoryDesc]]:
        """Each reorder of the group, its activations with about ``nbytes`` read and written."""
        for shape in self.shapes:
            for pair in self.pairs:
                src, dst = (text.split(":") for text in pair)
                dims = self._dims(shape, (src[0], dst[0]), nbytes)
                yield self.network, cf.MemoryDesc(dims, *src), cf.MemoryDesc(dims, *dst)

    def _dims(self, shape: Dims, types: Pair, nbytes: int) -> Dims:
        if not self.batch:
            return shape
        item = sum(cf.MemoryDesc((1,), dtype, "a").nbytes for dtype in types)
        images = max(1, round(nbytes / (prod(shape) * item)))
        return (max(self.batch, images // self.batch * self.batch), *shape)


# Channels, rows and columns of activations.
RESNET_50 = (
    *((3, 224, 224), (64, 112, 112), (64, 56, 56), (256, 56, 56), (128, 28, 28)),
    *((512, 28, 28), (256, 14, 14), (1024, 14, 14), (512, 7, 7), (2048, 7, 7)),
)
MOBILENET_V2 = (
    *((32, 112, 112), (16, 112, 112), (96, 112, 112), (24, 56, 56), (144, 56, 56)),
    *((576, 14, 14), (160, 7, 7), (960, 7, 7), (1280, 7, 7)),
)
MOBILENET_V3 = ((40, 28, 28), (240, 28, 28), (80, 14, 14))
ODD = ((250, 55, 57), (17, 33, 31), (72, 27, 29), (130, 19, 19))
"""No network has these sizes: no dimension fills a block, and rows start anywhere."""

PLAIN = (("f32:bfyx", "f32:byxf"), ("f32:byxf", "f32:bfyx"))
BLOCKED = (("f32:bfyx", "f32:b_fs_yx_fsv16"), ("f32:b_fs_yx_fsv16", "f32:bfyx"))
HALF = ("f16:bfyx", "f16:b_fs_yx_fsv16")
MOBILE = (
    PLAIN[0],
    BLOCKED[1],
    HALF,
    ("f16:byxf", "f16:bfyx"),
    ("s8:b_fs_yx_fsv32", "s8:bfyx"),
    ("f32:b_fs_yx_fsv16", "f32:byxf"),
)
IMAGES = (
    ("u8:byxf", "f16:b_fs_yx_fsv16"),
    ("u8:byxf", "f32:bfyx"),
    ("u8:bfyx", "u8:b_fs_yx_fsv4"),
    ("u8:byxf", "u8:bfyx"),
    ("f32:byxf", "f16:b_fs_yx_fsv16"),
)
CONVERSIONS = (
    ("f32:bfyx", "s8:b_fs_yx_fsv32"),
    ("s8:b_fs_yx_fsv32", "f32:bfyx"),
    ("f16:b_fs_yx_fsv16", "f32:bfyx"),
    ("f32:bfyx", "s8:byxf"),
)
BATCHED = (
    ("f16:bfyx", "f16:bs_fs_yx_bsv16_fsv16"),
    ("u8:bs_fs_yx_bsv32_fsv32", "u8:bfyx"),
    ("f16:b_fs_yx_fsv16", "f16:bs_fs_yx_bsv16_fsv16"),
    ("f32:bfyx", "f32:yxfb"),
)
VOLUMES = (
    ("f32:bfzyx", "f32:bzyxf"),
    ("f32:bfzyx", "f32:b_fs_zyx_fsv16"),
    ("f16:b_fs_zyx_fsv16", "f16:bfzyx"),
)
ACTIVATIONS = (
    Group("ResNet-50", RESNET_50, (*PLAIN, *BLOCKED, HALF, ("u8:bfyx", "u8:b_fs_yx_fsv32"))),
    Group("ResNet-50, input", ((3, 224, 224),), IMAGES),
    Group("ResNet-50, quantized", ((64, 56, 56), (256, 14, 14)), CONVERSIONS),
    Group("ResNet-50, batched", ((256, 14, 14), (64, 56, 56), (512, 7, 7)), BATCHED, 16),
    Group("MobileNetV2", MOBILENET_V2, MOBILE),
    Group("MobileNetV2, quantized", ((576, 14, 14),), CONVERSIONS),
    Group("MobileNetV3-Large", MOBILENET_V3, MOBILE),
    Group("odd sizes", ODD, (PLAIN[0], BLOCKED[1], ("f32:bfyx", "f16:b_fs_yx_fsv16"), MOBILE[4])),
    Group("C3D", ((64, 16, 56, 56),), VOLUMES),
    Group("3D U-Net", ((32, 32, 32, 32), (320, 8, 8, 8)), VOLUMES),
    Group("odd volumes", ((50, 15, 57, 55),), VOLUMES),
)

HEADS = (("f16:abcd", "f16:acbd"), ("f16:abcd", "f16:abdc"), ("f32:acbd", "f16:abcd"))
"""Of attention: heads, tokens and features of a head, in the order of the one or the other."""
ATTENTION = (
    Group("ViT-B/16", ((12, 197, 64),), HEADS),
    Group("LLaMA-7B", ((32, 2048, 128),), HEADS),
    Group("Stable Diffusion 1.5", ((8, 1024, 80),), HEADS),
)

FILTERS = (
    ("f32:oiyx", "f32:os_is_yx_isv16_osv16"),
    ("f16:oiyx", "f16:os_is_yx_isv16_osv16"),
    ("s8:oiyx", "s8:OIhw4i16o4i"),
    ("s8:oiyx", "s8:os_is_yx_osv16_isv4"),
    ("f32:oiyx", "f32:hwio"),
    ("f32:hwio", "f32:oiyx"),
)
AND_BACK = (("f32:os_is_yx_isv16_osv16", "f32:oiyx"), ("f32:oiyx", "bf16:OIhw8i16o2i"))
RESNET_FILTERS = (
    *((64, 64, 3, 3), (128, 128, 3, 3), (256, 256, 3, 3), (512, 512, 3, 3)),
    *((256, 64, 1, 1), (512, 2048, 1, 1), (2048, 512, 1, 1)),
)
DEPTHWISE = (("f32:goiyx", "f32:gs_oiyx_gsv16"),)
MATRICES = (
    ("f32:ab", "f32:ba"),
    ("f16:ab", "f16:ba"),
    ("f32:ab", "f32:BA16a16b"),
    ("s8:ab", "s8:BA16a64b4a"),
)
WEIGHTS = (
    Group("ResNet-50, filters", RESNET_FILTERS, FILTERS, 0),
    Group("ResNet-50, filters", ((256, 256, 3, 3), (512, 512, 3, 3)), AND_BACK, 0),
    Group("Darknet-19, filters", ((1024, 1024, 3, 3),), FILTERS, 0),
    Group("MobileNetV2, filters", ((1280, 320, 1, 1), (144, 24, 1, 1)), FILTERS, 0),
    Group("MobileNetV2, filters", ((960, 160, 1, 1),), AND_BACK, 0),
    Group("MobileNetV2, depthwise",
          tuple((g, 1, 1, 3, 3) for g in (32, 144, 576, 960)), DEPTHWISE, 0),
    Group("MobileNetV3-Large, depthwise", ((960, 1, 1, 5, 5),), DEPTHWISE, 0),
    Group("ViT-B/16", ((197, 768), (768, 768), (768, 3072)), MATRICES, 0),
    Group("LLaMA-7B", ((4096, 4096), (4096, 11008)), MATRICES, 0),
    Group("GPT-2", ((50257, 768),), MATRICES, 0),
)  # fmt: skip

AMOUNTS = (500_000, 6_000_000, 60_000_000)
"""Bytes read and written: within a core's own cache, within the last one, and beyond it."""


def reorders() -> list[tuple[str, cf.MemoryDesc, cf.MemoryDesc]]:
    """(Network, source, destination) of every reorder, each once.

    Activations come in each of `AMOUNTS`, weights as they are.
    """
    found = [
        reorder
        for nbytes in AMOUNTS
        for group in (*ACTIVATIONS, *ATTENTION)
        for reorder in group.reorders(nbytes)
    ]
    found += [reorder for group in WEIGHTS for reorder in group.reorders(0)]
    return list(dict.fromkeys(found))
