"""What Mako compiles templates to is kept, and is only ever a short cut."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clformats import templates
from clformats.templates import RenderError, filled


def copied(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A template's text, by what a new process finds in the folder."""
    templates._templates.cache_clear()
    monkeypatch.setattr(templates, "_folder_of_modules", lambda: folder)
    return filled("place")


def test_compiled_templates_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = copied(None, monkeypatch)
    assert copied(tmp_path, monkeypatch) == wanted
    (file,) = tmp_path.glob("place.mako.*.py")
    file.write_text(file.read_text() + "\nrender_body.seen = 1\n")
    assert copied(tmp_path, monkeypatch) == wanted
    assert templates._templates(tmp_path).get_template("place.mako").module.render_body.seen


def test_what_cannot_be_used_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = copied(tmp_path, monkeypatch)
    (file,) = tmp_path.glob("place.mako.*.py")
    for spoilt in ("", "no Python", "_magic_number = 0", "raise SystemError"):
        file.write_text(spoilt)
        assert copied(tmp_path, monkeypatch) == wanted
        assert copied(tmp_path, monkeypatch) == wanted
        assert file.read_text() != spoilt  # the next process has written it anew
    assert copied(file / "is no folder", monkeypatch) == wanted
    with pytest.raises(RenderError, match=r"no\.mako"):
        filled("no")


def test_nothing_is_kept_where_python_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert templates._folder_of_modules() is None
