"""The notebooks run from the first to the last cell, and are kept without outputs."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
all_notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 2


@all_notebooks
def test_notebook_is_kept_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    for cell in code:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.slow
@all_notebooks
def test_notebook_runs_and_shows_results(path):
    import notebook_pages

    files = notebook_pages.notebook_files(path)
    page = files[f"notebooks/{path.stem}.md"]
    figures = [name for name in files if name.endswith(".png")]
    assert figures
    for name in figures:
        assert f"]({Path(name).name})" in page
    assert "```text\n" in page
    assert "Warning" not in page
    assert "False" not in page  # notebooks print what must hold


@pytest.mark.slow
def test_notebook_that_fails_is_an_error(tmp_path):
    from nbclient.exceptions import CellExecutionError

    import notebook_pages

    notebook = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    notebook["cells"] = [{**code, "source": "1 / 0"}]
    (tmp_path / "broken.ipynb").write_text(json.dumps(notebook))
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        notebook_pages.executed(tmp_path / "broken.ipynb")
