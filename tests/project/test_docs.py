"""The documents tell the truth: their code runs, their tables are whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import clformats as cf

ROOT = Path(__file__).parent.parent.parent


def test_the_readmes_code_runs(engine: cf.Engine) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    code = "\n".join(blocks).replace("cf.Engine()", "ENGINE")
    names: dict[str, Any] = {"ENGINE": engine}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102  # our own document


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("transformed.md", 2),
        ("kernels.md", 4),
        ("runtime.md", 2),
        ("speed.md", 1),
        ("networks.md", 1),
    ],
)
def test_the_code_of_a_page_runs(page: str, count: int, engine: cf.Engine) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert len(blocks) == count
    code = "\n".join(blocks).replace("cf.Engine()", "ENGINE")
    exec(compile(code, page, "exec"), {"ENGINE": engine})  # noqa: S102  # our own


MEMORY_API = [
    "desc_init_by_strides",
    "desc_init_by_tag",
    "desc_init_submemory",
    "desc_reshape",
    "desc_permute_axes",
    "desc_equal",
    "desc_get_size",
    "create",
    "get_memory_desc",
    "get_engine",
    "map_data",
    "unmap_data",
    "get_data_handle",
    "set_data_handle",
    "get_ocl_mem_object",
    "set_ocl_mem_object",
    "destroy",
]


def test_every_function_of_the_memory_api_has_a_row() -> None:
    text = (ROOT / "docs/runtime.md").read_text()
    rows = re.findall(r"^\| `dnnl_memory_(\w+)` \|", text, re.MULTILINE)
    assert [row for row in rows if not row.endswith("_t")] == MEMORY_API
    for name in re.findall(r"`cf\.(\w+)", text):
        assert hasattr(cf, name), name
    for name in re.findall(r"`memory\.(\w+)", text):
        assert hasattr(cf.Memory, name) or name in ("desc", "engine", "buffer"), name


def test_the_code_of_tuning_md_runs(engine: cf.Engine) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/tuning.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    code = "\n".join(blocks).replace("cf.Engine()", "ENGINE")
    exec(compile(code, "tuning.md", "exec"), {"ENGINE": engine})  # noqa: S102  # our own document


def test_every_refusal_has_a_row() -> None:
    sources = "\n".join(p.read_text() for p in (ROOT / "clformats").rglob("*.py"))
    codes = set(re.findall(r'Unsupported\(\s*"([A-Z0-9_]+)"', sources))
    codes |= set(re.findall(r'code="([A-Z_]+)"', sources))
    codes |= set(re.findall(r'_refuse\(\s*"([A-Z_]+)"', sources))
    rows = set(
        re.findall(r"^\| `([A-Z0-9_]+)` \|", (ROOT / "docs/refusals.md").read_text(), re.MULTILINE)
    )
    assert codes == rows
    assert len(codes) >= 4


def test_relative_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
