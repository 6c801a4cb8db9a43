"""All passes, one after the other or some side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from .entries import Entry
from .players import PEER, Played, Player
from .store import Store

Told = Callable[[str], None]


def play_all(
    entries: list[Entry], players: list[Player], store: Store, jobs: int, tell: Told
) -> Iterator[tuple[Entry, dict[str, Played]]]:
    """Each entry with the passes of all who take it, as soon as they are done.

    With several jobs the peers play in processes of their own. What is ours never does.
    """
    if jobs == 1:
        for entry in entries:
            takers = [player for player in players if player.takes(entry)]
            yield entry, {p.name: _play(entry, p, store, tell) for p in takers}
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: dict[tuple[str, str], Future[Played]] = {}
        for entry in entries:
            for player in players:
                if player.kind == PEER and player.takes(entry) and not store.get(entry, player):
                    future = pool.submit(_elsewhere, player.name, entry)
                    waiting[entry.name, player.name] = future
        for entry in entries:
            passes = {}
            for player in players:
                future = waiting.get((entry.name, player.name))
                if future is not None:
                    tell(f"{player.name} on {entry.name}")
                    passes[player.name] = replace(future.result(), jobs=jobs)
                    store.put(entry, player, passes[player.name])
                elif player.takes(entry):
                    beside = jobs if waiting else 1
                    passes[player.name] = _play(entry, player, store, tell, beside)
            yield entry, passes


def _play(entry: Entry, player: Player, store: Store, tell: Told, jobs: int = 1) -> Played:
    tell(f"{player.name} on {entry.name}")
    kept = store.get(entry, player)
    if kept is not None:
        return kept
    played = replace(player.play(entry), jobs=jobs)
    store.put(entry, player, played)
    return played


def _elsewhere(name: str, entry: Entry) -> Played:
    """By name, because a process is sent no functions."""
    from .peers import PEERS

    return next(player for player in PEERS if player.name == name).play(entry)
