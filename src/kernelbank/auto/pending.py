"""Questions whose targets have not come yet."""

from __future__ import annotations

import numpy as np

from ..utils.validation import Floats
from .task_model import Said

MOST = 1000
"""How many are remembered, unless a bank is told that targets come later than that."""

DEEPEST = 100_001
"""How many may be."""


class Pending:
    """The last questions, the oldest first, by their input.

    A question that is asked twice before anything is learned is one question.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, Said]] = []
        self.most = MOST

    def note(self, x: Floats, said: Said, *, anew: bool = False) -> None:
        """Remember what was answered; `anew` if it is a question of its own in any case."""
        key = x.tobytes()
        for place in range(-1 if anew else len(self.asked) - 1, -1, -1):
            other, before = self.asked[place]
            if before.row != said.row:
                break
            if other == key:
                self.asked[place] = (key, said)
                return
        self.asked.append((key, said))
        del self.asked[: -self.most]

    def widen(self, count: int) -> None:
        """Inputs have so many columns more, which were missing when they were asked for."""
        missing = np.full(count, np.nan).tobytes()
        self.asked = [(key + missing, said) for key, said in self.asked]

    def take(self, x: Floats) -> Said | None:
        """The oldest question for this input, which is then answered for; None if there is none."""
        key = x.tobytes()
        for place, (other, said) in enumerate(self.asked):
            if other == key:
                del self.asked[place]
                return said
        return None
