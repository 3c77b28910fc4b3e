"""Change the library in small ways, one at a time, and see whether the fast tests notice.

    python scripts/mutate.py map lines.json            once: which test runs which line
    python scripts/mutate.py run lines.json --count 150 --seed 1 --out mutants.tsv
    python scripts/mutate.py map lines.json tests/formats        some rooms alone: quicker
    python scripts/mutate.py run lines.json --rooms formats --count 20

A mutant is one small fault: a comparison, an operator, a number, a condition or a boolean that is
another. `run` draws mutants evenly from the rooms, applies each in a copy of the tree, and runs the
tests that reach its line, quickest first, until one fails. The table says for each mutant where it
is, what was changed, and which test killed it; survivors need a test, or a reason why the change
changes nothing. Needs the packages of the extra `dev`.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "clformats"
ROOMS = (
    "formats",
    "tensors",
    "values",
    "host",
    "schedule",
    "kernels",
    "programs",
    "runtime",
    "index",
    "reorders",
    "transfers",
    "networks",
    "solver",
    "audits",
)
AT_ONCE = 40
"""Tests that one pytest run tries; a survivor of them meets the next ones."""
MOST_TESTS = 1000
SECONDS = 600
"""A mutant with which one run takes longer than this is killed: it hangs."""

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Mutant(NamedTuple):
    """A changed module: ``path`` inside the tree, the line, what was changed, and the new text."""

    path: str
    line: int
    change: str
    text: str


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Every small fault of one node: copies of it that differ in one place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield ast.Compare(
            node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators
        )
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = node.value
        yield ast.Constant(not value if isinstance(value, bool) else value + 1)


def skipped(tree: ast.Module) -> set[ast.AST]:
    """Nodes whose change says nothing: annotations, messages, what is for type checkers."""
    result: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[Any] = []
        if isinstance(node, ast.Raise | ast.JoinedStr):
            parts = [node]
        elif isinstance(node, ast.FunctionDef):
            arguments = [a for a in ast.walk(node.args) if isinstance(a, ast.arg)]
            parts = [*node.decorator_list, node.returns, *(a.annotation for a in arguments)]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            parts = [node]
        for part in filter(None, parts):
            result |= set(ast.walk(part))
    return result


def mutants(file: Path) -> list[Mutant]:
    """All mutants of a module."""
    text = file.read_bytes()
    tree = ast.parse(text)
    ignored, result = skipped(tree), list[Mutant]()
    raw = text.splitlines(keepends=True)
    starts = [sum(map(len, raw[:k])) for k in range(len(raw) + 1)]
    for node in ast.walk(tree):
        if node in ignored or not isinstance(node, ast.expr) or node.end_lineno is None:
            continue
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
        old = text[begin:end].decode()
        for new in changed(node):
            words = f"({ast.unparse(new)})"
            whole = text[:begin] + words.encode() + text[end:]
            name = str(file.relative_to(ROOT))
            change = " ".join(f"{old} -> {words}".split())
            result.append(Mutant(name, node.lineno, change, whole.decode()))
    return result


def drawn(lines: dict[str, Any], rooms: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants of lines that run, the same number from every room."""
    rng = random.Random(seed)  # noqa: S311  # a sample, no secret
    result: list[Mutant] = []
    for k, room in enumerate(rooms):
        found = [m for f in sorted((PACKAGE / room).rglob("*.py")) for m in mutants(f)]
        reached = [m for m in found if lines.get(m.path, {}).get(str(m.line))]
        share = count // len(rooms) + (k < count % len(rooms))
        result += rng.sample(reached, min(share, len(reached)))
    return result


def failing(tree: Path, tests: list[str]) -> str:
    """The first of the tests that fails, "hangs" where they take too long, empty if none does."""
    for k in range(0, min(len(tests), MOST_TESTS), AT_ONCE):
        line = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*line, *tests[k : k + AT_ONCE]],
                cwd=tree, env=None, capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode:
            failed = [
                row for row in done.stdout.splitlines() if row.startswith(("FAILED", "ERROR"))
            ]
            return failed[0].split()[1] if failed else f"exit {done.returncode}"
    return ""


def run(options: argparse.Namespace) -> None:
    """Try the mutants and print how many died in each room."""
    found = json.loads(options.map.read_text())
    seconds, lines = found["seconds"], found["lines"]
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    with tempfile.TemporaryDirectory() as folder, options.out.open("w") as out:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
        for mutant in drawn(lines, options.rooms, options.count, options.seed):
            tests = sorted(lines[mutant.path][str(mutant.line)], key=lambda t: seconds.get(t, 9.0))
            (tree / mutant.path).write_text(mutant.text)
            began = monotonic()
            killer = failing(tree, tests)
            (tree / mutant.path).write_text((ROOT / mutant.path).read_text())
            room = mutant.path.split("/")[1]
            counts[room][not killer] += 1
            row = (mutant.path, mutant.line, mutant.change, len(tests), killer or "SURVIVED")
            print(*row, f"{monotonic() - began:.0f}", sep="\t", file=out, flush=True)
    for room, (dead, alive) in sorted(counts.items()):
        print(f"{room:10} killed {dead:3} of {dead + alive}")
    dead, alive = (sum(c[k] for c in counts.values()) for k in (0, 1))
    print(f"{'all':10} killed {dead:3} of {dead + alive}: {dead / max(1, dead + alive):.0%}")


PLUGIN = """
import time, pytest, json, os
seconds, failed = {}, set()
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    began = time.monotonic(); yield; seconds[item.nodeid] = time.monotonic() - began
def pytest_runtest_logreport(report):
    if report.failed: failed.add(report.nodeid)
def pytest_runtest_setup(item):
    import coverage; c = coverage.Coverage.current()
    if c: c.switch_context(item.nodeid)
def pytest_sessionfinish():
    passed = {name: s for name, s in seconds.items() if name not in failed}
    with open(os.environ["SECONDS_FILE"], "w") as file: json.dump(passed, file)
"""


def record(options: argparse.Namespace) -> None:
    """Run the fast tests under coverage and write which test runs which line.

    A test that fails without a mutant is left out: it would seem to kill all of them.
    """
    import os

    import coverage

    with tempfile.TemporaryDirectory() as folder:
        data, times = Path(folder) / "data", Path(folder) / "seconds.json"
        (Path(folder) / "timed_plugin.py").write_text(PLUGIN)
        path = os.pathsep.join([folder, str(ROOT), os.environ.get("PYTHONPATH", "")])
        line = [
            sys.executable,
            "-m",
            "coverage",
            "run",
            f"--data-file={data}",
            "--source=clformats",
        ]
        line += ["-m", "pytest", "-q", "-n0", "-p", "timed_plugin", *options.pytest]
        environment = {**os.environ, "PYTHONPATH": path, "SECONDS_FILE": str(times)}
        subprocess.run(line, cwd=ROOT, env=environment, check=False)
        found = coverage.CoverageData(str(data))
        found.read()
        seconds = json.loads(times.read_text())
        lines = {
            str(Path(file).relative_to(ROOT)): {
                str(k): sorted(seconds.keys() & set(tests))
                for k, tests in found.contexts_by_lineno(file).items()
            }
            for file in found.measured_files()
        }
        result = {"seconds": seconds, "lines": lines}
    options.map.write_text(json.dumps(result))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    add = commands.add_parser("map", help="which test runs which line")
    add.add_argument("map", type=Path)
    add.add_argument("pytest", nargs="*", help="more arguments for pytest")
    add.set_defaults(run=record)
    add = commands.add_parser("run", help="try mutants")
    add.add_argument("map", type=Path)
    add.add_argument("--rooms", nargs="+", choices=ROOMS, default=ROOMS)
    add.add_argument("--count", type=int, default=150)
    add.add_argument("--seed", type=int, default=1)
    add.add_argument("--out", type=Path, default=Path("mutants.tsv"))
    add.set_defaults(run=run)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
