"""The site as `make docs` builds it: no warning, no dead link, nothing from elsewhere, searchable."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from support import browser

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\s\">]+)"
    r"|<link\b[^>]*rel=\"?(?:stylesheet|icon|preload)\"?[^>]*href=\"?([^\s\">]+)"
)
HREF = re.compile(r"<a\b[^>]*\bhref=\"?([^\s\">]+)")
ID = re.compile(r"\bid=\"?([^\s\">]+)")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""
    return folder


@pytest.fixture(scope="module")
def pages(site):
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    pages.pop(site / "404.html")  # for servers; its links are absolute
    assert len(pages) > 40
    return pages


def test_site_loads_nothing_from_elsewhere(pages):
    for path, html in pages.items():
        for sources in LOADED.findall(html):
            target = sources[0] or sources[1]
            assert "//" not in target, (path.name, target)
            assert (path.parent / unquote(target.partition("?")[0])).exists(), (path.name, target)


def test_site_links_lead_somewhere(pages):
    for path, html in pages.items():
        for href in HREF.findall(html):
            if re.match(r"https?:|mailto:", href):
                continue
            file, _, anchor = unquote(href.replace("&amp;", "&")).partition("#")
            target = (path.parent / file).resolve() if file else path
            if target.is_dir():
                target /= "index.html"
            assert target.exists(), (path.name, href)
            if anchor and anchor != "__comments" and target in pages:
                assert anchor in ID.findall(pages[target]), (path.name, href)


def test_site_links_names_to_the_reference(site):
    html = (site / "tutorials" / "beyond-one-machine.html").read_text(encoding="utf-8")
    assert '<a href="../reference/engines.html#kb.engines.Ray">' in html


@pytest.fixture(scope="module")
def opened():
    browser.needs_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.CHROMIUM, args=browser.FLAGS)
        yield chromium
        chromium.close()


@pytest.mark.parametrize(("scheme", "widths"), [("light", (1280, 360)), ("dark", (1280,))])
def test_site_from_the_disk_shows_every_page(site, pages, opened, scheme, widths):
    context = opened.new_context(color_scheme=scheme)
    page = context.new_page()
    asked, told = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("console", lambda message: told.append(message.text) if message.type == "error" else 0)
    for path in pages:
        page.set_viewport_size({"width": widths[0], "height": 800})
        page.goto(path.as_uri())
        for width in widths:
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), path
        shown = page.locator("body").get_attribute("data-md-color-scheme")
        assert shown == {"light": "default", "dark": "slate"}[scheme]
    assert told == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    context.close()


def test_site_from_the_disk_can_be_searched_offline(site, opened):
    context = opened.new_context(offline=True)
    page = context.new_page()
    page.goto((site / "gallery" / "index.html").as_uri())
    page.locator(".md-search__input").click()
    page.keyboard.type("kkt_residual")
    page.wait_for_selector(".md-search-result__link")
    links = page.locator(".md-search-result__link").evaluate_all("all => all.map(a => a.href)")
    assert any("reference/index.html" in link for link in links), links
    context.close()
