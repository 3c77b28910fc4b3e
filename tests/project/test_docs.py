"""The documents tell the truth: their code runs, their tables are whole."""

from __future__ import annotations

import doctest
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.files import pack_file

ROOT = Path(__file__).parent.parent.parent


def test_the_readmes_code_runs(engine: cf.Engine) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    code = "\n".join(blocks).replace("cf.Engine()", "ENGINE")
    names: dict[str, Any] = {"ENGINE": engine}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102  # our own document


OTHERS = ("Conversion", "Drawing", "Explanation", "StoredTensor", "Inferred", "Traits")
"""Names of the reference that are no names of the package."""
PAGES = sorted((ROOT / "docs").rglob("*.md"))
RUN = [page for page in PAGES if "```python" in page.read_text()]
TYPED = [page for page in PAGES if "```pycon" in page.read_text()]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs"))


def _blocks(page: Path, language: str) -> str:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return "\n".join(pattern.findall(page.read_text()))


def test_every_kind_of_page_has_code_that_runs() -> None:
    assert {"index.md", "start.md", "kernels.md", "digits.md"} <= {_name(page) for page in RUN}
    assert [_name(page) for page in TYPED] == ["refusals.md"]
    for page in [*ROOT.glob("docs/from-*.md"), *ROOT.glob("docs/api/[!i]*.md")]:
        assert page in RUN, f"{_name(page)} has no example"


@pytest.mark.parametrize("page", RUN, ids=_name)
def test_the_code_of_a_page_runs(
    page: Path, engine: cf.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "weights.npy", np.ones((64, 3, 7, 7), np.float32))
    pack_file(tmp_path / "weights.npy", tmp_path / "packed.npy", "os_is_yx_isv16_osv16")
    shutil.copy(ROOT / "docs/photo.jpg", tmp_path)
    monkeypatch.chdir(tmp_path)
    code = _blocks(page, "python").replace("cf.Engine()", "ENGINE")
    exec(compile(code, page.name, "exec"), {"ENGINE": engine, "np": np})  # noqa: S102  # our own


@pytest.mark.parametrize("page", TYPED, ids=_name)
def test_what_a_page_shows_is_what_is_printed(page: Path, engine: cf.Engine) -> None:
    text = _blocks(page, "pycon").replace("cf.Engine()", "ENGINE")
    examples = doctest.DocTestParser().get_doctest(text, {"ENGINE": engine}, page.name, None, None)
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert tried > 1
    assert not failed


def test_the_examples_of_docstrings_print_what_they_show() -> None:
    tried = 0
    for info in pkgutil.walk_packages(cf.__path__, "clformats."):
        if info.name != "clformats.__main__":
            result = doctest.testmod(import_module(info.name), optionflags=doctest.ELLIPSIS)
            assert not result.failed, info.name
            tried += result.attempted
    assert tried > 10


def test_every_public_name_has_its_place_in_the_reference() -> None:
    text = "\n".join(page.read_text() for page in (ROOT / "docs/api").glob("*.md"))
    shown = re.findall(r"^::: clformats\.(?:\w+\.)*(\w+)$", text, re.MULTILINE)
    assert sorted(shown) == sorted([*cf.__all__, *OTHERS])


def test_every_function_of_the_reference_is_in_an_example() -> None:
    code = "\n".join(_blocks(page, "python") for page in RUN)
    used = set(re.findall(r"\bcf\.(\w+)", code))
    called = {name for name in cf.__all__ if not isinstance(getattr(cf, name), type)}
    assert called - used - {"RUNTIME_DIM"} == set()


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
    made = (
        "figures/",
        "../figures/",
        "gallery/",
        "commands.md",
    )  # when the site is built, which checks these
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            is_made = target.startswith(made) or page.parent.name == "gallery"
            assert is_made or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_speed_in_the_readme_is_that_of_the_pages() -> None:
    readme, speed, gpu = (
        " ".join((ROOT / name).read_text().split())
        for name in ("README.md", "docs/speed.md", "docs/gpu.md")
    )
    cpus = re.findall(r"\| Zen [345], [^|]* \| (\d\.\d+) \| \d\.\d+ \| (\d\.\d) \|", speed)
    copied, onednn = (sorted(column) for column in zip(*cpus, strict=True))
    assert f"at {copied[0]} to {copied[-1]} of a plain copy in the mean of 68 cases" in readme
    assert f"{onednn[0]} to {onednn[-1]} times as fast as oneDNN" in readme
    rows = re.findall(r"\| \d\.\d+ \| (\d\.\d+) \| \d\.\d+ \| (\d\.\d) \|", gpu)
    shares, torch = sorted(s for s, _ in rows), sorted(t for _, t in rows)
    assert f"at {shares[0]} to {shares[-1]} of it, {torch[0]} to {torch[-1]} times as" in readme


def test_the_gallery_has_every_format_under_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts/site")
    gallery = import_module("gallery")
    found = {name: e for e in gallery.entries() for names in e.names.values() for name in names}
    assert {f.name for f in cf.formats()} <= found.keys()
    assert found["NCHW16c"] is found["nChw16c"] is found["b_fs_yx_fsv16"]
    assert {e.page for e in found.values()} == gallery.PAGES.keys()
    config = (ROOT / "mkdocs.yml").read_text()
    assert all(f": gallery/{page}.md" in config for page in gallery.PAGES)


def test_every_figure_is_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts/site")
    shown = {f for page in PAGES for f in re.findall(r"\bfigures/([\w-]+\.svg)", page.read_text())}
    assert shown == import_module("figures").FIGURES.keys()


def test_the_figure_of_a_kernel_moves_each_element_to_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts/site")
    kernel = import_module("kernel")
    cells = re.findall(r'x="([\d.]+)" y="([\d.]+)"[^>]* class="cell">(\d+)<', kernel.figure())
    found: dict[str, dict[int, tuple[int, ...]]] = {"src": {}, "dst": {}}
    for x, y, element in cells:
        for side, left in (("src", kernel.LEFT), ("dst", kernel.LAST)):
            desc, columns = kernel.SIDES[side], max(kernel.ALONG[side])
            column = int((float(x) - left) // kernel.CELL)
            if 0 <= column < columns:
                row = int((float(y) - kernel.TOP) // kernel.CELL)
                found[side][int(element)] = desc.coords(row * columns + column)
    assert found["src"] == found["dst"]
    assert sorted(found["src"]) == [*range(16)]
    assert len(cells) == 16 * (1 + 3 + 1)  # the source, three columns of vectors, the destination


@pytest.mark.slow
def test_the_site_has_no_broken_link_and_needs_no_network(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="pip install 'clformats[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        fetched = re.findall(r"(?:src|href)=\"(https?://[^\"]+)", page.read_text())
        assert [f for f in fetched if "kerneltuner" not in f] == [], page.name
