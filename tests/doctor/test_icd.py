"""Making pip-installed OpenCL runtimes visible: everything that needs no OpenCL."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from clformats.doctor import findings as seen
from clformats.doctor import icd

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with pocl in its vendors folder and Intel's runtime installed by pip."""
    vendors = tmp_path / "etc"
    vendors.mkdir()
    (vendors / "pocl.icd").write_text("libpocl.so.2\n")
    (vendors / "notes.txt").write_text("no platform")
    library = tmp_path / "lib" / "libintelocl.so"
    library.parent.mkdir()
    library.write_text("")
    monkeypatch.setattr(icd, "SYSTEM_VENDORS", vendors)
    monkeypatch.setattr(icd, "bundled_library", lambda name: library)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def environment(machine: Path, **more: str) -> dict[str, str]:
    return dict(more)


def exposed(environ: dict[str, str]) -> icd.Exposed:
    (entry,) = icd.expose_bundled_runtimes(environ)
    return entry


def targets(environ: dict[str, str]) -> set[str]:
    return {icd.icd_target(file) for file in icd.seen_files(environ)}


# ---- exposing ----------------------------------------------------------------------------------


def test_the_runtime_is_added_and_the_systems_platforms_stay(machine: Path) -> None:
    environ = environment(machine)
    entry = exposed(environ)
    assert (entry.name, entry.state) == ("intel-opencl-rt", "exposed")
    assert targets(environ) == {"libpocl.so.2", str(machine / "lib/libintelocl.so")}


def test_twice_is_once(machine: Path) -> None:
    environ = environment(machine)
    exposed(environ)
    before = dict(environ)
    assert exposed(environ).state == "exposed"
    assert environ == before
    assert len(list((machine / "cache/clformats").iterdir())) == 1


def test_a_child_process_goes_on_with_its_parents_folder(machine: Path) -> None:
    environ = environment(machine)
    exposed(environ)
    assert icd.user_setting(environ) is None
    assert exposed(dict(environ)).state == "exposed"


def test_a_new_platform_of_the_system_appears(machine: Path) -> None:
    environ = environment(machine)
    exposed(environ)
    (machine / "etc/other.icd").write_text("libother.so\n")
    exposed(environ)
    assert "libother.so" in targets(environ)


@pytest.mark.parametrize("name", icd.VENDOR_VARIABLES)
def test_the_users_choice_is_left_alone(machine: Path, name: str) -> None:
    environ = environment(machine, **{name: "/opt/vendors"})
    before = dict(environ)
    entry = exposed(environ)
    assert entry.state == "overruled"
    assert f"{name}=/opt/vendors" in entry.reason
    assert environ == before


def test_an_empty_variable_is_no_choice(machine: Path) -> None:
    assert exposed(environment(machine, OCL_ICD_VENDORS="")).state == "exposed"


def test_a_runtime_that_the_system_names_is_not_loaded_twice(machine: Path) -> None:
    (machine / "etc/intel.icd").write_text(str(machine / "lib/libintelocl.so"))
    environ = environment(machine)
    assert exposed(environ).state == "already visible"
    assert "OCL_ICD_VENDORS" not in environ


def test_a_dead_entry_of_the_system_does_not_count(machine: Path) -> None:
    (machine / "etc/intel.icd").write_text("/gone/libintelocl.so\n")
    assert exposed(environment(machine)).state == "exposed"


def test_the_switch_turns_it_off(machine: Path) -> None:
    environ = environment(machine, CLFORMATS_BUNDLED_RUNTIMES="0")
    assert icd.expose_bundled_runtimes(environ) == []
    assert "OCL_ICD_VENDORS" not in environ


def test_nothing_installed_changes_nothing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(icd, "bundled_library", lambda name: None)
    environ = environment(machine)
    before = dict(environ)
    assert icd.expose_bundled_runtimes(environ) == []
    assert environ == before


def test_an_inherited_folder_that_is_gone_is_forgotten(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(icd, "bundled_library", lambda name: None)
    environ = environment(machine, OCL_ICD_VENDORS="/gone/clformats-vendors-0123456789abcdef")
    icd.expose_bundled_runtimes(environ)
    assert "OCL_ICD_VENDORS" not in environ


def test_without_a_writable_cache_a_temporary_folder_serves(machine: Path) -> None:
    blocked = machine / "cache"
    blocked.write_text("a file where the folder should be")
    environ = environment(machine)
    assert exposed(environ).state == "exposed"
    assert not Path(environ["OCL_ICD_VENDORS"]).is_relative_to(machine)
    assert "libpocl.so.2" in targets(environ)


def test_the_cache_is_where_the_user_keeps_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert icd.cache_root() == tmp_path / "clformats"


def test_without_a_home_or_platformdirs_a_temporary_folder_serves(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: f"~/.cache/{name}")
    environ = environment(machine)
    assert exposed(environ).state == "exposed"
    assert Path(environ["OCL_ICD_VENDORS"]).is_absolute()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert exposed(environment(machine)).state == "exposed"


def test_after_pyopencl_it_says_that_it_may_be_late(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in icd.VENDOR_VARIABLES:
        monkeypatch.setenv(name, "")
    monkeypatch.setitem(sys.modules, "pyopencl", sys)
    states = [entry.state for _ in range(2) for entry in icd.expose_bundled_runtimes()]
    assert states == ["late", "late"]


def test_the_module_imports_neither_pyopencl_nor_numpy() -> None:
    code = (
        "import runpy, sys; sys.path = [p for p in sys.path if 'site-packages' not in p];"
        "runpy.run_path(sys.argv[1]);"
        "sys.exit(bool({'pyopencl', 'numpy'} & set(sys.modules)))"
    )
    file = ROOT / "clformats/doctor/icd.py"
    assert subprocess.run([sys.executable, "-c", code, str(file)], check=False).returncode == 0


# ---- the folder --------------------------------------------------------------------------------


def test_two_files_of_one_name_both_get_in() -> None:
    files = [Path("/a/x.icd"), Path("/b/x.icd"), Path("/c/x.icd")]
    entries = icd.merged_entries(files, {})
    assert sorted(entries) == ["x-2.icd", "x-3.icd", "x.icd"]
    assert set(entries.values()) == set(files)


def test_the_folders_name_changes_with_its_content() -> None:
    one = {"a.icd": Path("/a.icd"), "b.icd": Path("/b.icd")}
    assert icd.folder_name(one) == icd.folder_name(dict(reversed(one.items())))
    assert icd.folder_name(one) != icd.folder_name({**one, "b.icd": Path("/c.icd")})
    assert icd.is_own_folder("/x/" + icd.folder_name(one))
    assert not icd.is_own_folder("/etc/OpenCL/vendors")


def test_a_folder_made_meanwhile_by_another_process_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {"a.icd": tmp_path / "liba.so"}
    fill, root = icd.fill_folder, tmp_path / "made" / "too"

    def fill_late(folder: Path, content: dict[str, Path]) -> None:
        monkeypatch.setattr(icd, "fill_folder", fill)
        icd.make_folder(entries, root)
        fill(folder, content)

    monkeypatch.setattr(icd, "fill_folder", fill_late)
    folder = icd.make_folder(entries, root)
    assert list(root.iterdir()) == [folder]
    assert icd.icd_target(folder / "a.icd") == str(tmp_path / "liba.so")


# ---- reading -----------------------------------------------------------------------------------


def test_icd_target_takes_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "x.icd"
    file.write_bytes(b"  libx.so.1 \r\nrest\xff\n")
    assert icd.icd_target(file) == "libx.so.1"
    file.write_bytes(b"")
    assert icd.icd_target(file) == ""
    assert icd.icd_target(tmp_path / "none.icd") == ""
    assert icd.icd_target(Path("/lib/libx.so")) == "/lib/libx.so"


def test_unreadable_folders_are_empty(tmp_path: Path) -> None:
    assert icd.icd_files(tmp_path / "none") == []


def test_the_users_variable_decides_what_is_seen(tmp_path: Path) -> None:
    (tmp_path / "x.icd").write_text("libx.so\n")
    environ = {"OCL_ICD_VENDORS": str(tmp_path), "OPENCL_VENDOR_PATH": "/other"}
    assert icd.seen_files(environ) == [tmp_path / "x.icd"]
    assert icd.seen_files({"OCL_ICD_VENDORS": "/lib/libx.so"}) == [Path("/lib/libx.so")]


def test_condas_folder_is_read_in_a_conda_environment(tmp_path: Path) -> None:
    assert icd.default_vendors(tmp_path) == [icd.SYSTEM_VENDORS]
    (tmp_path / "conda-meta").mkdir()
    assert tmp_path / "etc/OpenCL/vendors" in icd.default_vendors(tmp_path)


# ---- findings ----------------------------------------------------------------------------------


def test_a_vendor_file_without_its_library_is_a_problem(tmp_path: Path) -> None:
    missing = "/opt/gone/libx.so"
    finding = seen.vendor_finding(tmp_path / "x.icd", missing, seen.load_error(missing))
    assert finding.level == "problem"
    assert missing in finding.text
    assert finding.remedy


def test_why_a_library_does_not_load_is_the_last_line_alone(tmp_path: Path) -> None:
    """Not the traceback of the process that tried."""
    (tmp_path / "lib.so").write_text("no library")
    error = seen.load_error(str(tmp_path / "lib.so"))
    assert error.startswith(str(tmp_path / "lib.so"))
    assert "\n" not in error


def test_a_library_that_loads_is_ok(tmp_path: Path) -> None:
    assert seen.load_error("libc.so.6") == ""
    assert seen.vendor_finding(tmp_path / "x.icd", "libc.so.6", "").level == "ok"


def test_intels_runtime_without_its_parts_names_them(tmp_path: Path) -> None:
    error = "libsvml.so: cannot open shared object file: No such file or directory"
    finding = seen.vendor_finding(tmp_path / "x.icd", "/lib/libintelocl.so", error)
    assert "intel-cmplr-lib-rt" in finding.remedy


def test_no_platform_at_all_gives_the_line_to_type(tmp_path: Path) -> None:
    found = seen.findings({"OCL_ICD_VENDORS": str(tmp_path), "PATH": "/usr/bin"})
    if any(finding.text.startswith("platform file") for finding in found):
        pytest.skip("pyopencl's own folder holds a platform here")
    assert found[-1].level == "problem"
    assert found[-1].remedy.startswith("unset OCL_ICD_VENDORS; if none is visible then:")
    assert "pocl" in found[-1].remedy
    assert seen.no_platform_finding({}).remedy.startswith(seen.APT_LINE[:4])


def test_pips_pocl_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "3.0")
    (finding,) = seen.pocl_wheel_findings()
    assert finding.level == "problem"
    assert "unknown target CPU" in finding.text
    assert "uninstall pocl-binary-distribution" in finding.remedy


def test_pyopencl_missing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "pyopencl_folder", lambda: None)
    assert seen.loader_finding().remedy == "python -m pip install pyopencl"


def test_the_users_settings_are_reported() -> None:
    environ = {"OCL_ICD_VENDORS": "/v", "CLFORMATS_BUNDLED_RUNTIMES": "0"}
    remedies = [finding.remedy.split()[1] for finding in seen.setting_findings(environ)]
    assert remedies == ["OCL_ICD_VENDORS", "CLFORMATS_BUNDLED_RUNTIMES"]


def test_files_that_name_no_library(tmp_path: Path) -> None:
    """A byte of 0 is part of no name, and a pipe does not end."""
    odd, pipe = tmp_path / "odd.icd", tmp_path / "pipe.icd"
    odd.write_bytes(b"a\0b")
    os.mkfifo(pipe)
    assert icd.icd_target(odd) == icd.icd_target(pipe) == ""
