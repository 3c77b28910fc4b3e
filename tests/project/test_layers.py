"""The shape of the library itself: imports run downwards, and no module or function is too long."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Container, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "clformats"
FILES = sorted(file for file in ROOT.rglob("*.py") if "__pycache__" not in file.parts)
MOST_LINES = 400
LONGEST_FUNCTION = 45
LARGEST_ROOM = 4500
AT_THE_TOP = {"__init__.py", "__main__.py", "py.typed"} | {
    f"{name}.py" for name in ("errors", "opencl", "timing", "trust", "version")
}

# From the top down. A room may import from the lines below its own, and within itself.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"audits"},
    {"networks"},
    {"recording"},
    {"files", "interop", "tuning"},
    {"transfers"},
    {"reorders"},
    {"runtime", "kernels", "recoding", "records"},
    {"spaces"},
    {"index", "schedule"},
    {"pictures"},
    {"quantised"},
    {"host", "problems"},
    {"values"},
    {"tensors"},
    {"formats", "shuffles", "solver", "templates"},
    {"programs"},
    {"opencl"},
    {"doctor"},
    {"errors", "timing", "trust", "version"},
]
LEVEL = {room: -k for k, layer in enumerate(LAYERS) for room in layer}
# The runtime knows buffers and queues but no kernels.
UNKNOWN = {"runtime": {"schedule"}}
# The rooms between plans and calls, where imports stand at the top but for those of `LATE`.
MIDDLE = (
    "problems",
    "shuffles",
    "schedule",
    "kernels",
    "recoding",
    "programs",
    "runtime",
    "recording",
    "reorders",
)


def name_of(file: Path) -> tuple[str, ...]:
    """The module's name inside the package: ``("formats", "digits")``; a package's is its own."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Every module that is imported, anywhere; those of the library without its name in front."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            for alias in node.names:
                yield ".".join(("clformats", *base, *filter(None, [node.module]), alias.name))


def imports(file: Path) -> list[str]:
    package = file.relative_to(ROOT).parent.parts
    return list(imported(ast.parse(file.read_text(encoding="utf-8")), package))


def inner(names: list[str]) -> list[str]:
    """The imports from the library, without its name."""
    return [n.removeprefix("clformats.") for n in names if n.startswith("clformats.")]


def part_of(name: str, parts: Container[str]) -> str:
    """The one of ``parts`` that a dotted name belongs to: the longest that fits."""
    words = name.split(".")
    begins = (".".join(words[:n]) for n in range(len(words), 0, -1))
    return next((part for part in begins if part in parts), "")


def wrong(name: str, target: str) -> bool:
    """Whether module ``name`` may not import ``target``, such as ``problems.traits.Traits``."""
    room, other = (dotted.partition(".")[0] for dotted in (name, target))
    if room == other:
        return False
    return LEVEL[other] >= LEVEL[room] or other in UNKNOWN.get(room, ())


def test_every_room_has_its_layer() -> None:
    rooms = {name[0] for file in FILES if (name := name_of(file))}
    assert rooms == set(LEVEL), "put a new room on its layer, above"
    assert {p for p in ROOT.iterdir() if p.is_file()} == {ROOT / name for name in AT_THE_TOP}


@pytest.mark.parametrize("file", FILES, ids=lambda f: ".".join(name_of(f)) or "clformats")
def test_imports_run_downwards(file: Path) -> None:
    name = name_of(file)
    if name:
        own = ".".join(name)
        assert not [target for target in inner(imports(file)) if wrong(own, target)]


def circle() -> list[str]:
    """Modules that import each other in a circle, types and late imports included."""
    own = {".".join(name): file for file in FILES if (name := name_of(file))}
    left = {
        name: {part_of(target, own) for target in inner(imports(file))} - {name, ""}
        for name, file in own.items()
    }
    while free := [module for module, used in left.items() if not used & set(left)]:
        for module in free:
            del left[module]
    return sorted(left)


def test_no_circle() -> None:
    assert not circle()


LATE = {
    ("reorders.profiles", "reorders.calibration"),
    ("reorders.reorder", "reorders.quantised.QuantisedReorder"),
    ("reorders.reorder", "reorders.variants.Variants"),
}
"""What few processes call: a second process would spend as long on it as on loading a program."""


def test_the_rooms_between_plans_and_calls_import_at_the_top() -> None:
    late = {
        (".".join(name), target)
        for file in FILES
        if (name := name_of(file)) and name[0] in MIDDLE
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        for target in inner([*imported(node, name[:-1])])
    }
    assert late == LATE


def test_formats_are_pure_python() -> None:
    """They import the standard library, themselves and the errors."""
    for file in FILES:
        if name_of(file)[:1] == ("formats",):
            names = imports(file)
            outer = {n.split(".")[0] for n in names} - {"clformats"}
            assert outer <= sys.stdlib_module_names, file
            assert {n.split(".")[0] for n in inner(names)} <= {"formats", "errors"}, file


def test_the_rule_sees_all_ways_to_import() -> None:
    text = "import a.b\nfrom . import c\nfrom ..d import e\ndef f():\n    from .g.h import i"
    found = list(imported(ast.parse(text), ("kernels",)))
    assert found == ["a.b", "clformats.kernels.c", "clformats.d.e", "clformats.kernels.g.h.i"]
    assert inner(found) == ["kernels.c", "d.e", "kernels.g.h.i"]
    assert wrong("tensors.desc", "host.packing.pack")
    assert wrong("host", "schedule.Plan")
    assert wrong("runtime.memory", "schedule.plan.Plan")
    assert wrong("reorders.ready", "tuning.run")
    assert not wrong("reorders.ready", "records.lookup")
    assert not wrong("runtime", "problems.traits.Traits")
    assert not wrong("kernels", "schedule.Plan")


def test_no_room_is_too_large() -> None:
    """A room that grows over this has two subjects."""
    kinds = {".py", ".mako", ".c", ".h", ".cl"}
    for room in filter(Path.is_dir, ROOT.iterdir()):
        files = [f for f in room.rglob("*") if f.suffix in kinds and "__pycache__" not in f.parts]
        assert sum(f.read_bytes().count(b"\n") for f in files) <= LARGEST_ROOM, room.name


def test_one_module_reads_the_clock_of_measurements() -> None:
    """All others take times by `timing`, and keep deadlines by ``monotonic``."""
    readers = [f for f in FILES if re.search(r"\bperf_counter\b", f.read_text(encoding="utf-8"))]
    assert [name_of(file) for file in readers] == [("timing",)]


def test_importing_the_library_imports_no_opencl() -> None:
    code = "import clformats, sys; sys.exit('pyopencl' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_stay_what_they_are() -> None:
    """Also after the package of the same name was imported, and when they are used again."""
    code = (
        "import clformats as cf, clformats.transfers.route, clformats.formats.digits, types\n"
        "for name in [*cf.__all__, *cf.__all__]:\n"
        "    module = isinstance(getattr(cf, name), types.ModuleType)\n"
        "    assert module == (name == 'notations'), name\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("file", FILES, ids=lambda f: ".".join(name_of(f)) or "clformats")
def test_nothing_is_too_long(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES, "split the module"
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno
        and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    }
    assert not long, "split the function"
