"""What MkDocs calls: adds the generated pages, and makes links work on the site too.

Pages link to files of the repository, so that they can be read there. The site has some of these
files at other places (`PLACES`) and notebooks as pages.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

sys.path.insert(0, str(Path(__file__).parent))

from command_pages import command_reference
from notebook_pages import notebook_files
from reference_pages import addresses, reference

ROOT = Path(__file__).parents[2]
PLACES = {
    "README.md": "docs/index.md",
    "CONTRIBUTING.md": "docs/contributing.md",
    "CHANGELOG.md": "docs/changelog.md",
}
"""Where the site has files that are outside of docs/."""

LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")
CODE = re.compile(r"(?<!\">)<code>((?:kb\.)?[A-Za-z_][\w.]*)(\([^<]*\))?</code>(?!</a>)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    pages: dict[str, str | bytes] = {**reference(), **command_reference()}
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        pages[name.lower()] = _moved_links(text, name, PLACES[name])
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        pages |= notebook_files(notebook)
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to the places that the site has."""
    path = f"docs/{page.file.src_uri}"
    return _moved_links(markdown, path, path)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Link names in code, such as `kb.KernelBank`, to the reference; mend bars in tables."""
    # GitHub wants `\|` also in the code of a table, where MkDocs shows the backslash.
    html = re.sub(r"<td>.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)
    names = addresses()
    short: dict[str, list[str]] = {}
    for name in names:
        short.setdefault(name.rpartition(".")[2], []).append(name)

    def linked(code: re.Match[str]) -> str:
        name = code[1]
        if not name.startswith("kb."):
            full_names = short.get(name, [])
            if len(full_names) != 1 or not name[0].isupper():
                return code[0]
            name = full_names[0]
        target = names.get(name)
        if target is None:
            return code[0]
        path, _, anchor = target.partition("#")
        url = get_relative_url(path.removesuffix(".md") + ".html", page.url)
        return f'<a href="{url}{"#" if anchor else ""}{anchor}">{code[0]}</a>'

    # Not in headings and links, which would nest, nor in blocks of code.
    parts = re.split(r"(<(a|h[1-6]|pre)\b.*?</\2>)", html, flags=re.DOTALL)
    for at in range(0, len(parts), 3):
        parts[at] = CODE.sub(linked, parts[at])
    return "".join(part for at, part in enumerate(parts) if at % 3 != 2)


def _moved_links(markdown: str, read_at: str, shown_at: str) -> str:
    """Rewrite relative links of a file of the repository for its place on the site."""

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(read_at), link[2]))
        target = PLACES.get(target, target)
        if target.endswith(".ipynb") and not read_at.startswith("docs/notebooks/"):
            target = target.removesuffix(".ipynb") + ".md"
        return link[1] + posixpath.relpath(target, posixpath.dirname(shown_at)) + link[3]

    return LINK.sub(moved, markdown)
