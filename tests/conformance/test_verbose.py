"""What oneDNN's log prints, against what our reader makes of it and what we print ourselves."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from math import prod
from typing import Any

import pytest

import clformats as cf
from bench.peers import onednn
from clformats.interop.notations import verbose
from tests.support import hurting_dims

D = cf.MemoryDesc
TAGS = sorted(onednn.TAGS)
TYPES = ("f32", "f16", "bf16", "s32", "s8", "u8")

# A process of its own: the library reads the variable once, and writes to the real standard output.
LOGGED = """
import json, sys
from bench.peers.onednn import Desc, Reorder
def made(dims, dtype, tag=None, strides=None, region=None):
    desc = Desc.by_tag(dims, dtype, tag) if tag else Desc.by_strides(dims, dtype, strides)
    return desc.submemory(*region) if region else desc
for case in json.load(sys.stdin):
    desc = made(**case)
    plain = Desc.by_strides(desc.dims, case["dtype"], None)
    Reorder(plain, desc)
"""
# Without its cache, from which it prints an equal descriptor of another tag.
SETTINGS = {
    f"{prefix}_{name}": value
    for prefix in ("DNNL", "ONEDNN")
    for name, value in (("VERBOSE", "2"), ("PRIMITIVE_CACHE_CAPACITY", "0"))
}
LINE = re.compile(
    r"onednn_verbose,create:\w+,cpu,reorder,[^,]*,undef,src_\S+ dst_(\S+),,,([\dx]*),"
)


def logged(cases: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """For each descriptor what the log calls it, as a reorder's destination, and its sizes."""
    done = subprocess.run(
        [sys.executable, "-c", LOGGED],
        input=json.dumps(cases),
        env=os.environ | SETTINGS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = LINE.findall(done.stdout)
    assert len(found) == len(cases), done.stdout[:2000]
    return found


def as_version_2(text: str) -> str:
    """Our text, which is version 3's, without the strides, which version 2 does not print."""
    head, _, dims = text.partition(" ")
    *fields, _, extra = head.split(":")
    return f"{':'.join([*fields, extra])} {dims}".rstrip()


def tag_cases() -> list[dict[str, Any]]:
    """Each tag with sizes that hurt, in the element types by turns."""
    return [
        {"dims": hurting_dims(cf.Format(tag)), "dtype": TYPES[k % len(TYPES)], "tag": tag}
        for k, tag in enumerate(TAGS)
    ]


def test_every_tag_is_printed_and_read_as_onednn_does() -> None:
    cases = tag_cases()
    assert len(cases) == 512
    for case, (text, dims) in zip(cases, logged(cases), strict=True):
        ours = D(case["dims"], case["dtype"], case["tag"])
        assert as_version_2(verbose.render_desc(ours)) == f"{text} {dims}"
        assert verbose.parse_desc(f"dst_{text} {dims}") == ours


def test_dimensions_of_one_stand_elsewhere_in_the_log() -> None:
    """The log tells the order that the strides leave; so do we, and read an equal descriptor."""
    rng = random.Random(3)  # noqa: S311  # shapes, not secrets
    cases, others = tag_cases(), 0
    for case in cases:
        case["dims"] = [rng.choice([1, 1, n]) for n in case["dims"]]
    for case, (text, dims) in zip(cases, logged(cases), strict=True):
        ours = D(case["dims"], case["dtype"], case["tag"])
        assert as_version_2(verbose.render_desc(ours)) == f"{text} {dims}"
        assert verbose.parse_desc(f"dst_{text} {dims}") == ours, (text, ours)
        others += verbose.parse(f"dst_{text}").name != case["tag"]
    assert others > 100


def test_strides_and_regions_in_the_log() -> None:
    """Version 2 prints the order of strides, and that there is an offset; ours says the same."""
    rng = random.Random(4)  # noqa: S311
    cases: list[dict[str, Any]] = []
    while len(cases) < 300:
        ndims = rng.choice([2, 3, 4])
        shape = [rng.choice([2, 3, 5, 16]) for _ in range(ndims)]
        order, strides, step = rng.sample(range(ndims), ndims), [0] * ndims, 1
        for d in order:
            strides[d], step = step, step * shape[d] + rng.choice([0, 0, 3])
        cases.append({"dims": shape, "dtype": rng.choice(TYPES), "strides": strides})
    blocked: dict[str, Any] = {"dims": (4, 40, 3), "dtype": "f32", "tag": "aBc16b"}
    regions = [((2, 8, 3), (1, 16, 0)), ((4, 32, 3), (0, 0, 0)), ((1, 8, 2), (3, 32, 1))]
    cases += [{**blocked, "region": region} for region in regions]
    offsets = 0
    for case, (text, dims) in zip(cases, logged(cases), strict=True):
        ours = D(case["dims"], case["dtype"], case.get("tag"), strides=case.get("strides"))
        if "region" in case:
            ours = ours.submemory(*case["region"])
        assert as_version_2(verbose.render_desc(ours)) == f"{text} {dims}"
        offsets += bool(ours.offset0)
        if ours.offset0:
            with pytest.raises(cf.Unsupported, match="offset"):
                verbose.parse_desc(f"dst_{text} {dims}")
        elif ours.nbytes == prod(ours.dims) * ours.dtype.nbytes:
            assert verbose.parse_desc(f"dst_{text} {dims}") == ours
    assert offsets == 2
