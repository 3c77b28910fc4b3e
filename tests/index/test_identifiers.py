"""Formats' names in C: of any list of digits a legal one, and no two alike."""

from __future__ import annotations

import random
import re

import clformats as cf
from clformats.index.names import identifier
from tests.digits_support import random_format


def test_names_in_c() -> None:
    assert identifier("nh|Cw|4c") == "nh_Cw_4c"
    assert identifier("k/8 n k%8 dims kn") == "k_div_8_n_k_mod_8_dims_kn"
    assert "cf_nh_Cw_4c(" in cf.format_header(["nh|Cw|4c"])


def test_lists_of_digits_have_distinct_names_in_c() -> None:
    rng = random.Random(0)  # noqa: S311  # cases, not secrets
    names: dict[str, cf.Format] = {}
    for _ in range(1000):
        fmt = random_format(rng)
        name = identifier(fmt.name)
        assert re.fullmatch(r"\w+", name)
        assert names.setdefault(name, fmt).structure == fmt.structure
