"""What MkDocs calls while it builds the site: adds pages and figures, rewrites links."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import commands
import figures
import gallery
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"\]\(((?:\.\./)+)((?:examples|bench|clformats)/[\w./-]+|[A-Z]+\.md)\)")
"""A link from a page to a file of the repository outside docs/."""
LANGUAGES = {".cl": "c", ".c": "c", ".py": "python"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the gallery, the figures, and a page for each file that a page links to."""
    for path, content in gallery.files():
        files.append(File.generated(config, path, content=content))
    for name, draw in figures.FIGURES.items():
        files.append(File.generated(config, f"figures/{name}", content=draw()))
    files.append(File.generated(config, "commands.md", content=commands.page()))
    for path in sorted(_linked(files)):
        files.append(
            File.generated(
                config,
                f"source/{path}.md",
                content=_source(path),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
        )
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links to files outside docs/ lead to their pages."""
    up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)
    return OUTSIDE.sub(lambda found: f"]({up}source/{found[2]}.md)", markdown)


def _linked(files: Files) -> set[str]:
    """The files outside docs/ that pages link to."""
    written = [f for f in files.documentation_pages() if f.generated_by is None]
    return {found[2] for f in written for found in OUTSIDE.finditer(f.content_string)}


def _source(path: str) -> str:
    """A file as a page."""
    content = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return content
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"---\nsearch: {{exclude: true}}\n---\n\n# {path}\n\n````{language}\n{content}\n````\n"


SHIM = "https://unpkg.com/iframe-worker/shim"
"""A script for searching without a server, which the theme fetches; the site has its own copy."""


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Take the script from the site itself."""
    up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)
    return output.replace(SHIM, f"{up}assets/iframe-worker.js")


def on_post_template(output_content: str, **_: Any) -> str:
    """The same on the page that says that there is no such page."""
    return output_content.replace(SHIM, "assets/iframe-worker.js")
