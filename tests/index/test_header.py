"""The header with every format: it compiles, and its functions tell where elements lie."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import clformats as cf
from clformats.cli import main
from clformats.formats import registry
from tests.index_support import Runner, by_header, hurting, one_for_each_structure, padded_data

GROUP = 60
"""Mesa's llvmpipe heeds no condition within 80 others, and makes nested ones of a switch."""
CLDNN = one_for_each_structure(f for f in cf.formats() if f.name in registry.listed("cldnn"))


@pytest.mark.parametrize("start", range(0, len(CLDNN), GROUP))
def test_every_format_of_cldnn(start: int, engine: cf.Engine) -> None:
    """The others have no other kinds of digits; the slow tier has them all."""
    descs = [hurting(fmt) for fmt in CLDNN[start : start + GROUP]]
    cases = [by_header(desc, k) for k, desc in enumerate(descs)]
    Runner(engine, cases, ["-cl-opt-disable"]).check()


def test_padded_tensors(engine: cf.Engine) -> None:
    descs = list(padded_data())
    for start in range(0, len(descs), GROUP):
        cases = [by_header(desc, k) for k, desc in enumerate(descs[start : start + GROUP])]
        Runner(engine, cases, ["-cl-opt-disable"]).check()


def test_the_whole_header_compiles(engine: cf.Engine, tmp_path: Path) -> None:
    file = tmp_path / "formats.h"
    assert main(["header", "-o", str(file)]) == 0
    text = file.read_text()
    for fmt in cf.formats():
        name = fmt.name.replace(":", "_")
        assert f"#define cf_{name} cf_" in text or f"uint cf_{name}(" in text
    use = "__kernel void k(__global uint *p) { p[0] = cf_nChw16c(2, C, 5, 4, 1, 16, 4, 3); }"
    # Twice: it guards itself. Macros of one letter, of -D perhaps, are not in its way.
    engine.kernel(f"#define C 17\n{text}\n{text}\n{use}", "k")


@pytest.mark.parametrize("wide", [False, True])
def test_as_c_and_as_cpp(wide: bool, tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    (tmp_path / "formats.h").write_text(cf.format_header(wide=wide))
    whole = "unsigned long long" if wide else "unsigned int"
    large = 1 if wide else 0
    # <complex.h> defines I, which weights have as an extent; N and C are users' own.
    (tmp_path / "use.c").write_text(
        f"typedef {whole} whole;\n#define LARGE {large}"
        """
        #define I _Imaginary_I
        #define N 2
        #define C 17
        #include "formats.h"
        int main(void)
        {
            if (cf_nchw_places(N, C, 5, 4) != 680) return 6;
            whole b, f, y, x;
            if (LARGE && cf_nchw_places(1 << 16, 1 << 16, 1, 1) != (whole)1 << LARGE * 32) return 7;
            if (cf_b_fs_yx_fsv16(2, 17, 5, 4, 1, 16, 4, 3) != 1264) return 1;
            if (!cf_nChw16c_coords(2, 17, 5, 4, 1264, &b, &f, &y, &x)) return 2;
            if (b != 1 || f != 16 || y != 4 || x != 3) return 3;
            if (cf_nChw16c_coords(2, 17, 5, 4, 1265, &b, &f, &y, &x)) return 4;
            return cf_aBcd16b_places(2, 17, 5, 4) == 1280 ? 0 : 5;
        }
    """
    )
    strict = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-pedantic"]
    for language in (["-std=c99"], ["-x", "c++"]):
        made = [compiler, *language, *strict, "use.c", "-o", "use"]
        done = subprocess.run(made, cwd=tmp_path, capture_output=True, text=True, check=False)
        if "c++" in language and "cc1plus" in done.stderr:
            continue  # a C compiler alone
        assert done.returncode == 0, done.stderr
        assert subprocess.run([tmp_path / "use"], check=False).returncode == 0
