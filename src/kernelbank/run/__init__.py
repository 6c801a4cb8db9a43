"""A run over a source: rows in, predictions out, nothing lost.

One file, replaced atomically, holds the model, the position in the source, how far every sink is
written, and the history; after a crash everything goes back to that file.
"""

from collections.abc import Mapping
from typing import Any

Saved = Mapping[str, Any]
"""JSON data of a checkpoint; whoever restores something from it checks it."""
