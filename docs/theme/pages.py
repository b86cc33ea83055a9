"""What MkDocs asks while it builds the site: the pages of the top folder become pages of it, with their links."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

TOP = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
_CODE_STYLES = '<style id="hljs-light"></style><style id="hljs-dark"></style>'
_LINK = re.compile(r"(?<=\]\()((?:\.\./)*)([\w./-]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the top folder."""
    root = Path(config.docs_dir).parent
    for name, place in TOP.items():
        text = _LINK.sub(_from_top, (root / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, "LICENSE", content=(root / "LICENSE").read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # by name
    """Let links to the top folder lead to its pages in the site."""
    folder = Path(page.file.src_uri).parent.as_posix()

    def moved(found: re.Match[str]) -> str:
        place = TOP.get(found[2]) if found[1] else None
        return found[0] if place is None else relpath(place, folder)

    return _LINK.sub(moved, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001  # by name
    """Give the theme's switch between light and dark what it looks for: style sheets of code, which are not loaded."""
    return output.replace("</head>", f"{_CODE_STYLES}</head>", 1)


def _from_top(found: re.Match[str]) -> str:
    """A link of a page in the top folder, as it is from the folder of the site."""
    path = found[2].removeprefix("docs/")
    return TOP.get(path, path)
