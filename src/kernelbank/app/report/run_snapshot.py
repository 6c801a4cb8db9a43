"""What a page is told of a run: from the run itself, or from the state that it has left."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...auto import AutoBank
from ...auto.serialization import DAMAGE, RUN
from ...errors import FileRefused, RunRefused
from ...io import checkpoint
from ..runner.checkpoint_dir import STATE
from ..runner.history import History
from ..runner.model_session import Player
from ..runner.rejected_rows import Aside
from ..runner.run import Run
from ..runner.settings import Settings
from ..runner.timings import Diary, looked_at


@dataclass(frozen=True)
class Account:
    """All that is told: nothing of it is read from the rows again."""

    settings: Settings
    source: Mapping[str, Any]
    """The identity of the source."""
    places: Sequence[str]
    """Where the predictions are."""
    features: Sequence[str]
    levels: Sequence[tuple[str, str]]
    bank: AutoBank
    history: History | None
    rows: int
    without_target: int
    aside: Aside
    diary: Mapping[str, Any]
    """What `Diary.plain` says."""
    status: str
    """running, ended, stopped or saved."""


def of_run(run: Run, status: str) -> Account:
    """The account of a run in this process."""
    return Account(
        settings=run.settings,
        source=run.source.identity,
        places=[output.place for output in run.outputs],
        features=run.intake.features,
        levels=run.intake.levels,
        bank=run.bank,
        history=run.history,
        rows=run.progress.rows,
        without_target=run.player.predicted_only,
        aside=run.aside,
        diary=run.diary.plain(),
        status=status,
    )


def of_state(folder: str | os.PathLike[str]) -> Account:
    """The account of a run from its folder. The run may be at work: it is not disturbed."""
    path = Path(folder, STATE)
    if not path.exists():
        raise RunRefused(
            f"{folder} is not the state of a run: there is no {STATE} in it. Give the folder that "
            "`kernelbank run` was given by --state."
        )
    header, arrays = checkpoint.read(path)
    if header.get("kind") != RUN:
        raise FileRefused(f"{path} is not the state of a run.")
    try:
        settings = Settings.told(header["settings"])
        aside = Aside()
        player = Player(settings, "serial", Diary())
        player.restore(header, arrays)
        aside.restore(header["bad_rows"])
        rows, without_target = map(int, header["progress"])
        if player.history is not None and player.history.slots != len(player.bank.names):
            raise FileRefused("its history is of another bank.")
        return Account(
            settings=settings,
            source=dict(header["source"]),
            places=[str(place) for place in header["places"]],
            features=[str(name) for name in header["features"] or []],
            levels=[(str(column), str(level)) for column, level in header["levels"]],
            bank=player.bank,
            history=player.history,
            rows=rows,
            without_target=without_target,
            aside=aside,
            diary=looked_at(header["diary"]),
            status="saved",
        )
    except (FileRefused, *DAMAGE) as error:
        raise FileRefused(f"{path} is damaged: {error}") from None
