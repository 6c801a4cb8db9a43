"""The figure class. A module of its own, imported when a figure is made: it needs matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A Figure that a notebook shows without pyplot.

    Notebooks know how to show a Figure only after pyplot was imported, which is not needed here.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()
