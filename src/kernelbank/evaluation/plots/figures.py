"""The figure itself. Imported when one is made, because it needs matplotlib at once."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A Figure that a notebook shows by itself.

    Notebooks know what to do with a Figure only after pyplot was imported, which these pictures do
    without.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()
