"""The pages as a site: it builds without a warning, its links lead somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import logging
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config  # pyright: ignore[reportUnknownVariableType]


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does it."""
    folder = tmp_path_factory.mktemp("site")
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    build(load_config(str(repository / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_page_is_there(repository: Path, site: Path) -> None:
    sources = {page.relative_to(repository / "docs") for page in (repository / "docs").rglob("*.md")}
    expected = {source.with_suffix(".html") for source in sources} | {Path("index.html"), Path("CHANGELOG.html")}
    assert expected <= {page.relative_to(site) for page in pages(site)}
    assert not list(site.rglob("*.py"))


def test_links_lead_somewhere(site: Path) -> None:
    lost: list[str] = []
    for page in pages(site):
        if page.name == "404.html":
            continue  # its links begin at the root of a server
        for link in re.findall(r'(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8")):
            path, _, anchor = unquote(unescape(link)).partition("#")
            if re.match(r"\w+:", path):
                continue
            target = (page.parent / path).resolve() if path else page
            told = target.read_text(encoding="utf-8") if target.suffix == ".html" and target.is_file() else ""
            if not target.is_file() or (anchor and told and f'id="{anchor}"' not in told):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//[^"]*"|<link[^>]+rel="stylesheet"[^>]+href="(?:https?:)?//'
    )
    assert [page.name for page in pages(site) if loaded.search(page.read_text(encoding="utf-8"))] == []


def test_the_switch_between_light_and_dark_finds_what_it_looks_for(site: Path) -> None:
    script = (site / "js" / "darkmode.js").read_text(encoding="utf-8")
    wanted = set(re.findall(r"getElementById\('([\w-]+)'\)", script))
    assert wanted >= {"hljs-light", "hljs-dark"}
    for page in pages(site):
        if page.name != "404.html":
            assert wanted <= set(re.findall(r'id="([\w-]+)"', page.read_text(encoding="utf-8"))), page
