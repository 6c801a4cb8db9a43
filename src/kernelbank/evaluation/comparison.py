"""`kb.compare`: banks, rivals and baselines on the same streams, prequentially, in one table."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..losses import Loss, as_loss
from ..utils import validation as check
from ..utils.validation import Floats
from . import datasets as sources
from .competitors import Played, Player, as_player, baselines
from .results import Comparison, Result, overall
from .significance import Difference, diebold_mariano, holm

Progress = Callable[[int, int, str], object]
_POINTS = 400  # of a curve, enough for any picture
_LENGTH = 1000  # of a made-up stream, unless told


def compare(
    banks: Mapping[str, Any],
    streams: Mapping[str, Any] | Iterable[str],
    seeds: int | Iterable[int] = 1,
    *,
    loss: Any = "squared",
    skip: int = 0,
    samples: int | None = None,
    target: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Play every bank on every stream, sample by sample: predict first, then learn.

    Persistence (the last target) and the running mean of the targets always stand in the table.
    On every stream each player is compared with the best one by the test of Diebold and Mariano on
    the differences of their losses, sample by sample. Losses of a stream are correlated in time;
    the variance is Newey and West's, which counts that, and the p-values of a stream are corrected
    by Holm's rule. Over several streams, see `Comparison.overall`.

    Parameters
    ----------
    banks : by name, a bank that has learned nothing, or a function from a seed to a new bank.
        Rivals may stand among them: anything with predict_one and learn_one. River's models are
        given dictionaries, all others (d,) arrays.
    streams : by name, a pair (X, y), a function from a seed to such a pair, the name of a stream
        in `kb.datasets`, or a path to a .csv or .csv.gz file; or a list of names and paths.
    seeds : how many (0, 1, 2, ...), or which. What cannot depend on a seed is played once.
    loss : a loss or its name, by which all predictions are scored, whatever the banks minimise.
    skip : how many first samples of a stream are learned but not counted.
    samples : play at most so many; the streams in `kb.datasets` have 1000 unless told.
    target : the target's column in files; by default the last one.
    progress : called with (done, total, what) after each play.

    Cost: one pass over the stream for each bank, stream and seed. Memory: one number for each
    player, seed and sample of one stream.

    >>> import kernelbank as kb
    >>> found = kb.compare({"scheme": kb.KernelBank()}, ["ar1"], seeds=2, samples=200)
    >>> found.table()[0]["name"]
    'scheme'
    >>> sorted(row["name"] for row in found.table())
    ['persistence', 'running mean', 'scheme']
    """
    if not isinstance(banks, Mapping) or not banks:
        remedy = 'Give for example {"mine": kb.KernelBank()}.'
        raise check.refuse("banks", "be a dictionary of names and banks", banks, remedy, "compare")
    players = [as_player(str(name), given) for name, given in banks.items()] + baselines()
    scored = as_loss(loss)
    unscored = check.count("skip", skip, "compare", "Give 0 or a number such as 100.", least=0)
    if samples is not None:
        samples = check.count("samples", samples, "compare", "Give a number such as 1000, or None.")
    numbers = _seeds(seeds)
    courses = [_Course.of(name, given, samples, target) for name, given in _named(streams).items()]
    total = len(courses) * len(numbers) * len(players)
    told = _Teller(progress, total)
    results: list[Result] = []
    for course in courses:
        results += _play_course(course, players, numbers, scored, unscored, told)
    return Comparison(
        loss=repr(scored),
        skip=unscored,
        seeds=tuple(numbers),
        results=tuple(results),
        overall=overall(results),
    )


@dataclass
class _Teller:
    """Counts what is done, and tells whoever wants to know."""

    listener: Progress | None
    total: int
    done: int = 0

    def tell(self, what: str) -> None:
        self.done += 1
        if self.listener is not None:
            self.listener(self.done, self.total, what)


@dataclass(frozen=True)
class _Course:
    """A named stream, and whether another seed makes another one."""

    name: str
    seeded: bool
    make: Callable[[int], tuple[Any, Any]]
    samples: int | None

    @classmethod
    def of(cls, name: str, given: Any, samples: int | None, target: str | None) -> _Course:
        if isinstance(given, str) and given in sources.BUILT_IN:
            maker = sources.BUILT_IN[given]
            length = _LENGTH if samples is None else samples
            return cls(name, True, lambda seed: maker(seed, length), samples)
        if isinstance(given, (str, os.PathLike)):
            path = Path(given)
            if not path.name.endswith((".csv", ".csv.gz")):
                known = f"be a stream's name {sorted(sources.BUILT_IN)} or a .csv or .csv.gz file"
                raise check.refuse(f"streams[{name!r}]", known, str(given), "Correct it.")
            pair = sources.read_csv(path, target, samples=samples)
            return cls(name, False, lambda _: pair, samples)
        if callable(given):
            return cls(name, True, given, samples)
        fixed = partial(_pair, name, given)
        fixed(0)
        return cls(name, False, fixed, samples)

    def stream(self, seed: int, skip: int) -> tuple[Floats, Floats]:
        """The checked stream; long enough that something is scored."""
        X, y = _pair(self.name, self.make(seed), seed)
        inputs = check.samples(X, None)
        targets = check.targets(y, len(inputs))
        if self.samples is not None:
            inputs, targets = inputs[: self.samples], targets[: self.samples]
        if len(targets) <= skip:
            rule = f"be shorter than stream {self.name!r} ({len(targets)} samples)"
            raise check.refuse("skip", rule, skip, "Count more samples.", "compare")
        return inputs, targets


def _pair(name: str, given: Any, _: int) -> tuple[Any, Any]:
    if not (isinstance(given, (tuple, list)) and len(given) == 2):
        remedy = "Give (X, y), a function from a seed to it, a name or a path."
        raise check.refuse(f"streams[{name!r}]", "be a pair (X, y)", given, remedy, "compare")
    return given[0], given[1]


def _named(streams: Any) -> dict[str, Any]:
    remedy = 'Give for example {"mine": (X, y)}, or ["ar1", "lorenz"].'
    if isinstance(streams, (str, os.PathLike)):
        streams = [streams]
    if isinstance(streams, Mapping):
        named = {str(name): given for name, given in streams.items()}
    elif isinstance(streams, Iterable):
        listed = list(streams)
        if not all(isinstance(item, (str, os.PathLike)) for item in listed):
            raise check.refuse("streams", "be named", streams, remedy, "compare")
        named = {os.fspath(item): item for item in listed}
    else:
        raise check.refuse("streams", "be a dictionary or a list", streams, remedy, "compare")
    if not named:
        raise check.refuse("streams", "hold at least one stream", streams, remedy, "compare")
    return named


def _seeds(seeds: Any) -> list[int]:
    remedy = "Give how many seeds to play, such as 5, or a list of them."
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = [check.count("seeds", seed, "compare", remedy, least=0) for seed in seeds]
        if not numbers or len(set(numbers)) < len(numbers):
            raise check.refuse("seeds", "be different, at least one", numbers, remedy, "compare")
        return numbers
    return list(range(check.count("seeds", seeds, "compare", remedy)))


def _play_course(
    course: _Course, players: list[Player], seeds: list[int], loss: Loss, skip: int, told: _Teller
) -> list[Result]:
    """All players on one stream, for all seeds."""
    plays: dict[str, list[Played]] = {player.name: [] for player in players}
    losses: dict[str, list[Floats]] = {player.name: [] for player in players}
    squares: dict[str, list[float]] = {player.name: [] for player in players}
    data: tuple[Floats, Floats] | None = None
    for seed in seeds:
        if data is None or course.seeded:
            data = course.stream(seed, skip)
            loss.check_targets(data[1])
        X, y = data
        for player in players:
            own = plays[player.name]
            if not own or course.seeded or player.seeded:
                played = player.play(seed, X, y)
                own.append(played)
                losses[player.name].append(score(loss, played.predictions, y)[skip:])
                squares[player.name].append(_root_mean_square((played.predictions - y)[skip:]))
            told.tell(f"{player.name} on {course.name}")
    means = {name: _mean([float(run.mean()) for run in runs]) for name, runs in losses.items()}
    best = min(means, key=lambda name: means[name])
    tests = [_against(losses[p.name], losses[best], course.seeded) for p in players]
    chances = holm(
        [
            math.nan if player.name == best else test.p_value
            for player, test in zip(players, tests, strict=True)
        ]
    )
    return [
        Result(
            stream=course.name,
            name=player.name,
            kind=player.kind,
            samples=len(losses[player.name][0]),
            runs=len(plays[player.name]),
            mean_loss=means[player.name],
            mean_loss_deviation=_deviation([float(run.mean()) for run in losses[player.name]]),
            root_mean_squared_error=_mean(squares[player.name]),
            root_mean_squared_error_deviation=_deviation(squares[player.name]),
            cumulative_cost=_mean_cost(plays[player.name]),
            seconds_per_sample=_mean([one.seconds_per_sample for one in plays[player.name]]),
            best=player.name == best,
            excess_loss=0.0 if player.name == best else test.mean,
            p_value=None if math.isnan(chance) else chance,
            lag=test.lag,
            curve=_curve(losses[player.name], skip),
        )
        for player, test, chance in zip(players, tests, chances, strict=True)
    ]


def score(loss: Loss, predictions: Floats, y: Floats) -> Floats:
    """The loss of every prediction; infinite where there is none."""
    finite = np.isfinite(predictions)
    values = np.full(len(y), math.inf)
    with np.errstate(over="ignore"):
        values[finite] = loss.value(predictions[finite], y[finite])
    return np.where(np.isnan(values), math.inf, values)


def _against(own: list[Floats], best: list[Floats], independent: bool) -> Difference:
    """Own losses minus the best's. Runs on one and the same stream are no independent evidence:
    their differences are averaged, sample by sample, into one series."""
    runs = max(len(own), len(best))
    pairs = [(own[n % len(own)], best[n % len(best)]) for n in range(runs)]
    with np.errstate(invalid="ignore"):
        differences = [mine - other for mine, other in pairs]
        return diebold_mariano(differences if independent else [_mean_series(differences)])


def _mean_series(series: list[Floats]) -> Floats:
    shortest = min(map(len, series))
    total = np.zeros(shortest)
    for one in series:
        total += one[:shortest]
    return total / len(series)


def _curve(losses: list[Floats], skip: int) -> tuple[tuple[int, float], ...]:
    """The mean loss so far, at up to 400 samples, averaged over the runs."""
    series = _mean_series(losses)
    so_far = np.cumsum(series) / np.arange(1, len(series) + 1)
    places = np.unique(np.linspace(0, len(series) - 1, min(_POINTS, len(series))).astype(int))
    return tuple((skip + int(place) + 1, float(so_far[place])) for place in places)


def _root_mean_square(errors: Floats) -> float:
    if not np.isfinite(errors).all():
        return math.inf
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(errors * errors)))


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _deviation(values: list[float]) -> float | None:
    """The standard deviation over the runs; nothing for one run or for infinite values."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return float(np.std(values, ddof=1))


def _mean_cost(plays: list[Played]) -> float | None:
    costs = [played.cumulative_cost for played in plays if played.cumulative_cost is not None]
    return _mean(costs) if costs else None
