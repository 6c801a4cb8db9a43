"""The notebooks as pages with outputs: each is executed when the site is built."""

import base64
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from traitlets.config import Config

SECONDS = 300
"""The longest time that a cell may take."""


def executed(path: Path) -> Any:
    """Return the notebook with the outputs of a new kernel, started in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        work, socket = Path(folder, "work"), Path(folder, "socket")
        work.mkdir()
        by_files = Config({"KernelManager": {"transport": "ipc", "ip": str(socket)}})  # no port
        resources = {"metadata": {"path": str(work)}}
        client = nbclient.NotebookClient(
            notebook, timeout=SECONDS, resources=resources, config=by_files, coalesce_streams=True
        )
        client.execute()
    return notebook


def notebook_files(path: Path) -> dict[str, str | bytes]:
    """Return the page of a notebook and its figures, by their paths below the docs."""
    figures: dict[str, bytes] = {}
    parts = []
    for cell in executed(path).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [_output(output, path.stem, figures) for output in cell.outputs]
    note = f"This page is a notebook: [download it]({path.name}) to change and run it."
    parts.insert(1, note)
    page = {f"notebooks/{path.stem}.md": "\n\n".join(part for part in parts if part) + "\n"}
    return {**page, **{f"notebooks/{name}": data for name, data in figures.items()}}


def _output(output: Any, stem: str, figures: dict[str, bytes]) -> str:
    """Return one output as Markdown; figures are added to the given ones."""
    if output.output_type == "stream":
        return _text(output.text) if output.name == "stdout" else ""
    data = output.data
    if "image/png" in data:
        name = f"{stem}-{len(figures) + 1}.png"
        figures[name] = base64.b64decode(data["image/png"])
        return f"![A figure that the cell above draws]({name}){{width={_width(figures[name])}}}"
    if "text/html" in data:
        return f'<div class="notebook-output">{data["text/html"]}</div>'
    return _text(data["text/plain"])


def _width(png: bytes) -> int:
    """Return how wide to show a figure that is drawn at 200 dots per inch, in points of a page."""
    return int.from_bytes(png[16:20], "big") * 3 // 5


def _text(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"
