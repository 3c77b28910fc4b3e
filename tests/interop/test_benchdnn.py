"""benchdnn's language: what is read, what is printed, and that the one is the other's inverse."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from clformats import cli
from clformats.cli.bench import sampled
from clformats.interop.benchdnn.attributes import PostOps, Scales, ZeroPoints
from clformats.interop.benchdnn.knobs import COMMON, DRIVER, SINGLE, Filter
from clformats.interop.benchdnn.parse import Task, UnknownOption, batch_words, expanded, tasks
from clformats.interop.benchdnn.problem import concrete
from clformats.interop.benchdnn.template import CSV, DEFAULT, check_template, filled
from clformats.interop.benchdnn.values import BadValue

# Texts of every knob of a problem, as they are printed.
TEXTS = {
    "sdt": ("f32", "bf16", "s4", "f8_e4m3", "f4_e2m1"),
    "ddt": ("u8", "f64", "u2"),
    "stag": ("abx", "nChw16c", "aBx16b", "b_fs_yx_fsv16", "any"),
    "dtag": ("xba", "OIhw4i16o4i", "aby", "os_is_yx_isv16_osv16", "undef"),
    "strides": (":", "105x15x5x1:", ":1x2x6x30", "105x15x5x1:1x2x6x30"),
    "oflag": ("", "s8s8_comp:1", "zp_comp:3", "s8s8_comp:1+zp_comp:1"),
    "cross-engine": ("none", "cpu2gpu", "gpu2cpu"),
    "attr-scales": (
        "",
        "src:common:0.25",
        "src:common:1.00000005",
        "src:per_dim_1+dst:per_dim_0",
        "dst:common:1e+20",
        "src:per_tensor:bf16",
        "src:per_ocic:f16:1x16+dst:common:2:bf16",
        "dst:mx:e8m0:1x32",
    ),
    "attr-zero-points": (
        "",
        "src:common:-1+dst:common:2",
        "dst:per_dim_01",
        "src:per_tensor:s4:1x16",
    ),
    "attr-post-ops": (
        "",
        "sum",
        "sum:0.5",
        "sum:0.5:3",
        "sum:1:0:s8",
        "sum+relu:0.5",
        "add:s32:common",
    ),
    "attr-scratchpad": ("library", "user"),
    "attr-fpmath": ("strict", "bf16:true"),
    "attr-acc-mode": ("strict", "f32"),
    "attr-deterministic": ("false", "true"),
    "attr-dropout": ("", "0.5:17"),
    "attr-rounding-mode": ("", "dst:stochastic:123"),
    "ctx-init": ("auto:auto:auto", "4"),
    "ctx-exe": ("auto:auto:auto", "8:auto:2"),
    "runtime-dim-mask": ("0", "63"),
}  # fmt: skip
STATES = {
    "mode": ("C", "P", "CP", "F", "L", "I", "R"),
    "mode-modifier": ("", "p"),
    "max-ms-per-prb": ("3000", "50", "10.5"),
    "fix-times-per-prb": ("0", "7"),
    "canonical": ("false", "true"),
    "engine": ("", "cpu", "gpu:1"),
    "device": ("", "pocl"),
    "mem-check": ("true", "false"),
    "allow-enum-tags-only": ("true", "false"),
    "cpu-isa-hints": ("none", "prefer_ymm"),
    "memory-kind": ("usm", "buffer"),
    "stream-kind": ("def", "in_order"),
}


def read(*words: str) -> list[Task]:
    return list(tasks(expanded(words)))


def one(*words: str) -> Task:
    (task,) = read("--reorder", *words)
    return task


# --- printing and reading -------------------------------------------------------------------------


def test_every_knob_of_a_problem_and_of_repro_lines_is_tried() -> None:
    assert set(TEXTS) == {k.name for k in DRIVER}
    assert set(STATES) == {k.name for k in COMMON if k.place != "never"}


@pytest.mark.parametrize(
    ("name", "text"), [(k, t) for table in (TEXTS, STATES) for k, v in table.items() for t in v]
)
def test_a_value_is_printed_as_it_is_read(name: str, text: str) -> None:
    knob = next(k for k in (*DRIVER, *COMMON) if k.name == name)
    value = knob.read(text) if text else knob.default
    assert knob.text(value) == f"--{name}={text}"


@pytest.mark.parametrize("seed", range(100))
def test_a_repro_line_makes_its_task_alone(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    names = [*rng.sample(sorted(STATES), 3), "--", *rng.sample(sorted(TEXTS), 6)]
    chosen = {n: rng.choice((STATES | TEXTS)[n]) for n in names if n != "--"}
    if chosen.get("strides", ":") != ":":
        chosen |= {"stag": "abx", "dtag": "abx"}
    words = [f"--{name}={text}" for name, text in chosen.items()]
    words += rng.choice([[], ["--skip-impl=ref,simple"], ["--impl=tile"]])
    task = one(*words, rng.choice(["2x3x5x7", '2x3x5x7_n"conv1:0"', "2x3x5x7_nlast*2"]))
    assert read(*str(task).split(" ")) == [task]


def test_repro_lines_are_benchdnns() -> None:
    words = ("--ddt=s8", "--runtime-dim-mask=3", "--attr-scales=dst:common:0.5", '2x3n"a"')
    assert str(one(*words)) == (
        '--reorder --sdt=f32 --ddt=s8 --stag=abx --dtag=abx --runtime-dim-mask=3 '
        '--attr-scales=dst:common:0.5 2x3_n"a"'
    )  # fmt: skip
    task = one(
        "--mode=P", "--max-ms-per-prb=100", "--engine=gpu", "--skip-impl='ref','simple'", "7"
    )
    assert str(task) == (
        "--mode=P --max-ms-per-prb=100 --reorder --engine=gpu "
        "--sdt=f32 --ddt=f32 --stag=abx --dtag=abx --skip-impl=ref,simple 7"
    )


def test_repro_lines_quote_what_a_shell_would_take_apart() -> None:
    task = one("--device=Portable Computing", "2x3")
    assert read(*shlex.split(str(task))) == [task]


def test_canonical_lines_print_everything() -> None:
    text = str(one("--canonical=true", "2x3"))
    shown = [k.name for k in (*COMMON, *DRIVER) if k.place != "never"]
    assert sorted(re.findall(r"--([a-z-]+)=", text)) == sorted(shown)
    assert read(*text.split(" ")) == [one("--canonical=true", "2x3")]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("src:common:1", ""),
        ("src0:common:2*", "src:common:2"),
        ("src:per_dim_1:0.5*", "src:per_dim_1"),
        ("dst:common:2+src:COMMON:4", "src:common:4+dst:common:2"),
        ("src:common", ""),
        ("src:common:2+src:common:3", "src:common:3"),
    ],
)
def test_scales_are_printed_in_one_way(text: str, printed: str) -> None:
    assert str(Scales.parse(text)) == printed


def test_what_changes_nothing_is_the_default() -> None:
    assert ZeroPoints.parse("src:common:0+dst:common") == ZeroPoints()
    assert str(PostOps.parse("sum:1")) == "sum"
    assert str(PostOps.parse("eltwise_relu:0.5")) == "relu:0.5"


# --- the machine of states ------------------------------------------------------------------------


def test_lists_are_cross_products_in_benchdnns_order() -> None:
    found = read(
        "--reorder", "--sdt=f32,s8", "--dtag=axb,xba", "--runtime-dim-mask=0,1", "2x3", "5x7"
    )
    assert [t.problem.dims for t in found] == [(2, 3)] * 8 + [(5, 7)] * 8
    assert [(t.problem.sdt, t.problem.dtag, t.problem.runtime_dim_mask) for t in found[:4]] == [
        ("f32", "axb", 0),
        ("f32", "axb", 1),
        ("f32", "xba", 0),
        ("f32", "xba", 1),
    ]


def test_an_empty_part_of_a_list_is_the_default() -> None:
    found = read("--reorder", "--attr-scales=,src:common:2", "--oflag=", "3")
    assert [str(t.problem.attr_scales) for t in found] == ["", "src:common:2"]


def test_options_count_for_what_follows_and_reset_brings_defaults_back() -> None:
    first, second, third = read(
        "--reorder", "2", "--sdt=s8", "--mode=L", "--match=s8", "3", "--reset", "5"
    )
    assert (first.problem.sdt, second.problem.sdt, third.problem.sdt) == ("f32", "s8", "f32")
    assert (first.common.mode, second.common.mode, third.common.mode) == ("C", "L", "L")


def test_an_option_without_a_value_has_its_default() -> None:
    assert one("--sdt=s8", "--sdt=", "--mode=P", "--mode=", "--perf-template=", "2") == one("2")


def test_pairs_of_types() -> None:
    found = read("--reorder", "--dt=f32:u2,s8", "2", "--sdt=f16", "2")
    types = [(t.problem.sdt, t.problem.ddt) for t in found]
    assert types == [("f32", "u2"), ("s8", "s8"), ("f16", "f32")]


def test_match_keeps_the_problems_it_finds() -> None:
    found = read("--reorder", "--sdt=f32,s8", "--match=sdt=s8.*7$", "2x3", "2x7")
    assert [str(t.problem) for t in found] == ["--sdt=s8 --ddt=f32 --stag=abx --dtag=abx 2x7"]


def test_a_problem_is_repeated() -> None:
    assert len(read("--reorder", "--repeats-per-prb=3", "--sdt=f32,s8", "2")) == 6


def test_global_filters_override() -> None:
    task = one("--global-impl=tile", "--skip-impl=ref", "2")
    assert task.problem.impl == Filter(("tile",), wanted=True)
    assert task.problem.impl.accepts("ocl:tile")
    assert not task.problem.impl.accepts("ocl:copy")
    assert not Filter(("ref", "tile")).accepts("ocl:tile")
    assert Filter().accepts("ocl:tile")


# --- batch files ----------------------------------------------------------------------------------


def test_words_of_a_batch_file() -> None:
    text = """# all of it
    --reset --sdt=f32,\\
    s8 # types
    --attr-scales=, \\
        src:common:2, \\
        dst:common:4
    2x3 # problem
    """
    assert batch_words(text) == [
        "--reset",
        "--sdt=f32,s8",
        "--attr-scales=,src:common:2,dst:common:4",
        "2x3",
    ]


def test_batch_files_find_those_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "all").write_text("--sdt=s8 2x3 --batch=some 5")
    (folder / "some").write_text("7 --reset")
    found = read("--reorder", f"--batch={folder / 'all'}")
    assert [(t.problem.sdt, t.problem.dims) for t in found] == [
        ("s8", (2, 3)),
        ("s8", (7,)),
        ("f32", (5,)),
    ]


def test_batch_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "round").write_text("--batch=round")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "wrong").write_text("2x3 --sdt=f33")
    for name, message in [
        ("round", "inside each other"),
        ("binary", "cannot read"),
        ("none", "no such file"),
    ]:
        with pytest.raises(BadValue, match=message):
            read(f"--batch={tmp_path / name}")
    with pytest.raises(BadValue, match=r"wrong: --sdt=f33: unknown data type 'f33'"):
        read("--reorder", f"--batch={tmp_path / 'wrong'}")


# --- tags -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "names"),
    [
        ("abx", {1: "a", 2: "ab", 4: "abcd", 6: "abcdef"}),
        ("axb", {1: "a", 2: "ab", 3: "acb", 5: "acdeb"}),
        ("xba", {1: "a", 2: "ba", 4: "cdba"}),
        ("xcab", {4: "dcab", 5: "decab", 6: "defcab"}),
        ("aBx16b", {1: "a", 3: "aBc16b", 4: "aBcd16b"}),
        ("ABx4b16a4b", {1: "A16a", 2: "AB4b16a4b", 5: "ABcde4b16a4b"}),
        ("aby", {1: "a", 2: "ba", 3: "acb", 4: "abdc", 5: "abced"}),
        ("OIhw4i16o4i", {4: "OIhw4i16o4i"}),
        ("b_fs_yx_fsv16", {4: "b_fs_yx_fsv16"}),
        ("bfyx", {4: "bfyx"}),
        ("any", {3: "any"}),
    ],
)
def test_meta_tags_adapt_to_the_rank(tag: str, names: dict[int, str]) -> None:
    assert {n: concrete(tag, n) for n in names} == names


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sdt=f33", "2"], "--sdt=f33: unknown data type 'f33': expected one of f32"),
        (["--stag=abz", "2"], "--stag=abz: .*abz"),
        (["--stag=abc'; rm", "2"], "--stag=abc'; rm"),
        (["--runtime-dim-mask=-1", "2"], "not negative"),
        (["--runtime-dim-mask=1.5", "2"], "expected a whole number"),
        (["--oflag=s8s8_comp", "2"], "FLAG:MASK"),
        (["--oflag=comp:1", "2"], "one of s8s8_comp, zp_comp"),
        (["--cross-engine=gpu2gpu", "2"], "none, cpu2gpu, gpu2cpu"),
        (["--attr-scales=wei:common:2", "2"], "src and dst, got 'wei'"),
        (["--attr-scales=src:per_oc", "2"], "ambiguous"),
        (["--attr-scales=src:per_dim_9", "2"], "a policy of common"),
        (["--attr-scales=src", "2"], "a policy of common"),
        (["--attr-scales=src:common:-2", "2"], "cannot be negative"),
        (["--attr-scales=src:common:nan", "2"], "a real number"),
        (["--attr-scales=src:common:2:f32:8x1", "2"], "two groups"),
        (["--attr-scales=src:per_tensor:f32:8x1x3", "2"], "two groups"),
        (["--attr-zero-points=src:common:0.5", "2"], "whole number"),
        (["--attr-post-ops=summ", "2"], "unknown post-op 'summ'"),
        (["--attr-post-ops=sum:", "2"], "behind a colon"),
        (["--attr-post-ops=sum:1:2:s8:4", "2"], "sum.:SCALE"),
        (["--attr-rounding-mode=up", "2"], "dst:environment"),
        (["--ctx-init=four", "2"], "8:auto:1"),
        (["--strides=1x2", "2x3"], "one colon"),
        (["--strides=1x2x3:", "2x3"], "has 3 for src, expected 2"),
        (["--stag=ba", "--strides=1x2:", "2x3"], "leave one out"),
        (["--match=(", "2"], "no regular expression"),
        (["--mode=B", "2"], "a mode of L, I, R, C, P, F, CP"),
        (["--cold-cache=all", "2"], "only none is possible here, got 'all'"),
        (["--check-ref-impl=true", "2"], "only false"),
        (["--summary=all", "2"], "failures, impl or impl-csv"),
        (["--canonical=maybe", "2"], "true or false"),
        (["--perf-template=%-cfg%", "2"], "%-cfg% is no option"),
        (["--perf-template=%-sdt%", "2"], "%-sdt% is no option"),
        (["--perf-template=50%", "2"], "a lone %"),
        (["2x"], "2x: expected a whole number"),
        (["x2"], "such as 2x64x3x3"),
        (["ic16oc16"], "such as 2x64x3x3"),
        (['2x3_n"a b"'], "such as 2x64x3x3"),
        (["02x3"], "whole number"),
    ],
)  # fmt: skip
def test_bad_values_are_told(words: list[str], message: str) -> None:
    with pytest.raises(BadValue, match=message) as caught:
        read("--reorder", *words)
    assert not isinstance(caught.value, UnknownOption)


@pytest.mark.parametrize("word", ["--stg=abx", "--conv", "-sdt=f32", "-v", "--batch"])
def test_unknown_options_are_named(word: str) -> None:
    with pytest.raises(UnknownOption, match=re.escape(word)):
        read("--reorder", word, "2")


def test_a_problem_needs_a_driver() -> None:
    with pytest.raises(UnknownOption, match="put --reorder before it"):
        read("--sdt=s8", "2x3")


# --- templates ------------------------------------------------------------------------------------


def test_templates_are_filled() -> None:
    texts = {"name": "first", "sdt": "f32"}
    amounts = {"iobytes": 2e9, "ibytes": 1.5e9, "obytes": 5e8, "ops": 0.0}
    times = {"time": (1.0, 2.0, 4.0), "ctime": (10.0, 20.0, 40.0)}
    template = (
        "%name%,%sdt%,%time%,%-time%,%0time%,%+Ktime%,%ctime%,%-ctime%,%Gibytes%,%0Gbw%,%flops%"
    )
    assert check_template(template) == template
    assert filled(template, texts, amounts, times) == "first,f32,1,1,2,0.004,40,10,1.5,1000,0"


def test_the_templates_of_the_tool_itself_are_whole() -> None:
    assert check_template("def") == DEFAULT
    assert check_template("csv") == CSV


# --- the command ----------------------------------------------------------------------------------


def test_listing_prints_repro_lines_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--reorder", "--mode=L", "--sdt=f32,s8", "2x3", "-v0", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    repro = "--mode=L --reorder --sdt=s8 --ddt=f32 --stag=abx --dtag=abx 2x3"
    assert lines[1] == f"1:LISTED __REPRO: {repro}"
    counts = "passed:0 skipped:0 mistrusted:0 unimplemented:0 invalid_arguments:0 failed:0 listed:4"
    assert lines[-2] == f"tests:4 {counts}"
    assert re.fullmatch(r"total: \d+\.\d\ds;", lines[-1])


def test_problems_before_the_start_are_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--reorder", "--mode=L", "--start=2", "2", "3", "5"]) == 0
    states = re.findall(r"^(\d:\w+(?: \([\w -]+\))?)", capsys.readouterr().out, re.MULTILINE)
    assert states == [
        "0:SKIPPED (Skip-start option hit)",
        "1:SKIPPED (Skip-start option hit)",
        "2:LISTED",
    ]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--reorder", "--stg=abx", "2"], 2, "clformats bench: --stg=abx: there is no such option"),
        (["--conv", "2"], 2, "clformats bench: --conv: neither an option nor a driver"),
        (["--reorder", "--sdt=f33", "2"], 1, "clformats: --sdt=f33: unknown data type"),
    ],
)
def test_the_command_refuses_in_one_line(
    words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", *words]) == status
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert captured.err.count("\n") == 1
    assert not captured.out


def test_nothing_runs_before_all_words_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--reorder", "2x3", "--sdt=f33", "2x3"]) == 1
    assert not capsys.readouterr().out


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    text = capsys.readouterr().out
    assert not [k.name for k in (*DRIVER, *COMMON) if f"--{k.name}=" not in text]


def test_the_documents_tell_every_option() -> None:
    text = (Path(__file__).parents[2] / "docs/benchdnn.md").read_text()
    assert not [k.name for k in (*DRIVER, *SINGLE, *COMMON) if f"--{k.name}" not in text]


@pytest.mark.parametrize(("size", "count"), [(0, 100), (7, 7), (100, 100), (1000, 100), (1, 1)])
def test_a_sample_is_drawn(size: int, count: int) -> None:
    found = read("--reorder", f"--sample={size}", *map(str, range(1, 101)))
    chosen = list(sampled(iter(found), len(found)))
    assert len(chosen) == count
    assert chosen == list(sampled(iter(found), len(found)))
    assert chosen == [task for task in found if task in set(chosen)]


def test_a_sample_meets_every_value_of_a_list() -> None:
    found = read(
        "--reorder", "--sample=32", "--sdt=f32,s8", "--ddt=f16,u8", "--dtag=ab,ba", *["2x3"] * 16
    )
    chosen = [t.problem for t in sampled(iter(found), len(found))]
    assert {(p.sdt, p.ddt, p.dtag) for p in chosen} == {
        (t.problem.sdt, t.problem.ddt, t.problem.dtag) for t in found
    }


def test_listing_needs_no_opencl() -> None:
    code = (
        "import sys; from clformats.cli import main; "
        "main(['bench', '--reorder', '--mode=L', '2x3']); sys.exit('pyopencl' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_repro_lines_of_digits_are_for_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    """Bars, spaces and brackets in quotes; a line that is printed is read again as it is."""
    for tag, dims in (("nh|Cw|4c", "2x5x3x4"), ("(a b)/4 (a b)%4", "5x6"), ("b/8 a b%8", "5x6")):
        words = ["bench", "--reorder", "--mode=L", "--stag=abx", f"--dtag={tag}", dims]
        assert cli.main(words) == 0
        line = capsys.readouterr().out.splitlines()[0]
        assert shlex.quote(f"--dtag={tag}") in line
        assert cli.main(["bench", *shlex.split(line.split("REPRO: ")[1])]) == 0
        assert capsys.readouterr().out.splitlines()[0] == line
