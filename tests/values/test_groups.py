"""Values for groups of neighbours: one for each 32 elements, say."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.problems.computation import for_groups, from_attr
from clformats.values.groups import Grouped, group_of

DIMS = (3, 5, 70)
GROUPS = [(1, 1, 32), (1, 5, 32), (2, 1, 7), (None, 2, 64), (3, None, 1), (1, 3, None), (9, 9, 99)]


def by_hand(values: Any, group: tuple[int | None, ...], index: tuple[int, ...]) -> Any:
    return values[tuple(0 if g is None else i // g for g, i in zip(group, index, strict=True))]


def some(group: tuple[int | None, ...], dims: tuple[int, ...] = DIMS) -> Any:
    shape = tuple(1 if g is None else -(-n // g) for n, g in zip(dims, group, strict=True))
    return np.arange(1, 1 + np.prod(shape)).reshape(shape)


@pytest.mark.parametrize("group", GROUPS)
def test_each_element_has_the_value_of_its_group(group: tuple[int | None, ...]) -> None:
    values = some(group)
    for given in (values, values.ravel(), values.squeeze(), values.astype(np.float16)):
        attr = cf.Attr(src_scale=Grouped(given, group))
        made = attr.apply(np.ones(DIMS, np.int8), "s8", "f32")
        assert all(made[i] == by_hand(values, group, i) for i in np.ndindex(*DIMS))
        late = cf.Attr(src_scale=cf.at_execution(group=group))
        assert (late.apply(np.ones(DIMS), "f64", "f32", src_scale=given) == made).all()


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("format", ["abc", "cba", "aBc16b", "Abc3a", "bCa8c"])
def test_the_operand_lies_where_the_group_says(group: tuple[int | None, ...], format: str) -> None:
    """Law 2 of what a kernel reads, for values in any layout."""
    values = cf.MemoryDesc(some(group).shape, "f16", format)
    desc = for_groups(values, DIMS, group)
    want = [by_hand(values.offsets(), group, i) for i in np.ndindex(*DIMS)]
    assert desc.offsets().ravel().tolist() == want
    assert [desc.offset(*i) for i in np.ndindex(*DIMS)] == want
    assert desc.span_nbytes <= values.span_nbytes or None in group


def test_operands_of_attributes() -> None:
    desc = cf.MemoryDesc((4, 96), "s8")
    computation = from_attr(
        cf.Attr(src_scale=Grouped(some((1, 32), desc.dims), (1, 32))), desc, desc
    )
    assert computation is not None
    assert computation.operands[0].desc.offsets()[1, ::32].tolist() == [3, 4, 5]


def test_what_does_not_fit() -> None:
    desc = cf.MemoryDesc((4, 96), "s8")
    wrong: list[tuple[Any, Any, str]] = [
        (np.ones((3, 4)), (1, 32), r"an array of \(3, 4\) for src_scale in groups of 1x32"),
        (np.ones(11), (1, 32), r"11 values for src_scale.*expected \(4, 3\): one for each group"),
        (np.ones((4, 3)), (1, 32, 1), "a group of 3 axes, the tensor has 2"),
    ]
    for values, group, match in wrong:
        with pytest.raises(cf.InvalidAttr, match=match):
            cf.Attr(src_scale=Grouped(values, group)).resolve(
                desc.dims, {}, cf.MemoryDesc((1,), "f32").dtype
            )
    wrong_groups: list[Any] = [32, (), (1, 0), (1, -3), (1, 2.5), (1, True), "ab"]
    for group in wrong_groups:
        with pytest.raises(cf.InvalidAttr, match="expected how many elements share a value"):
            Grouped(1, group)
    with pytest.raises(cf.InvalidAttr, match="leave mask out"):
        cf.at_execution(3, group=(1, 32))


def test_attributes_with_groups_print_and_travel() -> None:
    attr = cf.Attr(
        src_scale=Grouped(np.ones((2, 3)), (1, 32)), beta=cf.at_execution(group=(2, None))
    )
    assert "src_scale=6 values, groups of 1x32" in repr(attr)
    assert "groups of 2xall" in repr(attr)
    again = pickle.loads(pickle.dumps(attr))  # noqa: S301
    assert again.terms["src_scale"].group == (1, 32)
    assert repr(again) == repr(attr)


def test_the_group_of_an_operand() -> None:
    assert group_of((4, 96), (4, 3)) == (1, 32)
    assert group_of((4, 100), (4, 4)) == (1, 32)  # 25 divides it, 32 is what is meant
    assert group_of((4, 33), (4, 2)) == (1, 32)
    assert group_of((60,), (6,)) == (10,)
    assert group_of((64, 7), (1, 7)) == (None, 1)
    assert group_of((7,), (3,)) is None  # 3 of 3 + 3 + 1, which nobody says
    assert group_of((7,), (8,)) is None
    assert group_of((7, 1), (7,)) is None
