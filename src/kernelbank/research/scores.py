"""From the predictions on a stream to its results: losses, best slot, intervals, tests, curves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..losses import Loss
from ..utils.validation import Floats
from .competitors import Competitor, CompetitorRun
from .datasets.tables import CLASSIFICATION, Stream
from .results import Overall, Result
from .significance import Difference, diebold_mariano, holm, scipy_stats, sign_test, wilcoxon

NORMALISED = "normalised"
"""Scores by the squared error over the variance of the scored targets, or by wrong labels."""

_POINTS = 400
"""Of a curve, enough for any figure."""


def sample_losses(loss: Loss | None, stream: Stream, predictions: Floats, skip: int = 0) -> Floats:
    """(n,): the loss of every prediction, infinite where there is none. No loss: normalised."""
    y = stream.y
    finite = np.isfinite(predictions)
    values = np.full(len(y), math.inf)
    with np.errstate(over="ignore"):
        if loss is not None:
            values[finite] = loss.value(predictions[finite], y[finite])
        elif stream.task == CLASSIFICATION:
            values[finite] = predictions[finite] != y[finite]
        else:
            values[finite] = (predictions[finite] - y[finite]) ** 2
    values = np.where(np.isnan(values), math.inf, values)
    if loss is not None or stream.task == CLASSIFICATION:
        return values
    variance = float(y[skip:].var())
    return values / (variance if variance > 0 else 1.0)


def results_on(
    name: str,
    runs: dict[str, list[tuple[Stream, CompetitorRun]]],
    competitors: list[Competitor],
    loss: Loss | None,
    skip: int,
    seeded: bool,
    keep_losses: bool,
) -> list[Result]:
    """The results of all competitors that ran on one stream.

    `seeded`: whether the runs of one competitor are on different streams, one for each seed.
    """
    competitors = [competitor for competitor in competitors if runs[competitor.name]]
    losses = {
        each.name: [sample_losses(loss, s, run.predictions, skip) for s, run in runs[each.name]]
        for each in competitors
    }
    scored = {key: [series[skip:] for series in every] for key, every in losses.items()}
    means = {key: [float(series.mean()) for series in every] for key, every in scored.items()}
    best = min(means, key=lambda key: _mean(means[key]))
    tests = [_difference(scored[each.name], scored[best], seeded) for each in competitors]
    tested = zip(competitors, tests, strict=True)
    p_values = holm([math.nan if each.name == best else test.p_value for each, test in tested])
    results = []
    for competitor, test, p_value in zip(competitors, tests, p_values, strict=True):
        key = competitor.name
        pairs = runs[key]
        stream = pairs[0][0]
        errors = [_root_mean_square((r.predictions - s.y)[skip:]) for s, r in pairs]
        intervals = _interval_scores(*pairs[0], skip)
        results.append(
            Result(
                stream=name,
                name=key,
                kind=competitor.kind,
                task=stream.task,
                inputs=stream.inputs.shape[1],
                lags=stream.lags,
                samples=len(scored[key][0]),
                runs=len(pairs),
                mean_loss=_mean(means[key]),
                mean_loss_deviation=_deviation(means[key]),
                root_mean_squared_error=_mean(errors),
                root_mean_squared_error_deviation=_deviation(errors),
                cumulative_cost=_mean_of([run.cumulative_cost for _, run in pairs]),
                seconds_per_sample=_mean([run.seconds_per_sample for _, run in pairs]),
                seconds=math.fsum(run.seconds_per_sample * len(s) for s, run in pairs),
                jobs=max(run.jobs for _, run in pairs),
                note=next((run.note for _, run in pairs if run.note), ""),
                best=key == best,
                excess_loss=0.0 if key == best else test.mean,
                p_value=None if math.isnan(p_value) else p_value,
                lag=test.lag,
                best_slot_loss=_mean_of([_best_slot(loss, s, r, skip) for s, r in pairs]),
                coverage=intervals.get("coverage"),
                coverage_error=intervals.get("coverage_error"),
                interval_width=intervals.get("interval_width"),
                curve=_curve(scored[key], skip),
                losses=_mean_series(losses[key]) if keep_losses else np.zeros(0),
            )
        )
    return results


def _best_slot(loss: Loss | None, stream: Stream, run: CompetitorRun, skip: int) -> float | None:
    """The least mean loss of any single slot, chosen afterwards."""
    slots = run.slot_predictions
    if slots is None or slots.ndim != 2:
        return None
    means = []
    for column in slots.T:
        predictions = column
        if stream.task == CLASSIFICATION:
            predictions = np.where(np.isfinite(column), column > 0, np.nan)
        means.append(float(sample_losses(loss, stream, predictions, skip)[skip:].mean()))
    return min(means)


def _interval_scores(stream: Stream, run: CompetitorRun, skip: int) -> dict[str, float]:
    """How often the target lies inside its interval; the error counts correlations in time."""
    if run.lower is None or run.upper is None:
        return {}
    y, lower, upper = (rows[skip:] for rows in (stream.y, run.lower, run.upper))
    inside = ((lower <= y) & (y <= upper)).astype(np.float64)
    return {
        "coverage": float(inside.mean()),
        "coverage_error": diebold_mariano([inside]).standard_error,
        "interval_width": float((upper - lower).mean()) / (float(y.std()) or 1.0),
    }


def _difference(losses: list[Floats], best: list[Floats], independent: bool) -> Difference:
    """Losses minus the best's. Runs on one and the same stream are not independent evidence:
    their differences are averaged, sample by sample, into one series."""
    runs = max(len(losses), len(best))
    pairs = [(losses[n % len(losses)], best[n % len(best)]) for n in range(runs)]
    with np.errstate(invalid="ignore"):
        differences = [loss - least for loss, least in pairs]
        return diebold_mariano(differences if independent else [_mean_series(differences)])


def _mean_series(series: list[Floats]) -> Floats:
    shortest = min(map(len, series))
    total = np.zeros(shortest)
    for run in series:
        total += run[:shortest]
    return total / len(series)


def _curve(losses: list[Floats], skip: int) -> tuple[tuple[int, float], ...]:
    """The mean loss so far, at up to 400 samples, averaged over the runs."""
    series = _mean_series(losses)
    so_far = np.cumsum(series) / np.arange(1, len(series) + 1)
    shown = np.unique(np.linspace(0, len(series) - 1, min(_POINTS, len(series))).astype(int))
    return tuple((skip + int(index) + 1, float(so_far[index])) for index in shown)


def _root_mean_square(errors: Floats) -> float:
    if not np.isfinite(errors).all():
        return math.inf
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(errors * errors)))


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _mean_of(values: list[float | None]) -> float | None:
    recorded = [value for value in values if value is not None]
    return _mean(recorded) if recorded else None


def _deviation(values: list[float]) -> float | None:
    """The standard deviation over the runs; nothing for one run or for infinite values."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return float(np.std(values, ddof=1))


# --- over several streams -------------------------------------------------------------------------


def overall(results: Sequence[Result]) -> tuple[Overall, ...]:
    """Ranks and tests of those that ran on all streams; nothing for a single stream."""
    streams = list(dict.fromkeys(result.stream for result in results))
    if len(streams) < 2:
        return ()
    kinds = {result.name: result.kind for result in results}
    by_key = {result.key: result for result in results}
    names = [name for name in kinds if all((stream, name) in by_key for stream in streams)]
    losses = [[by_key[stream, name].mean_loss for name in names] for stream in streams]
    ranks = scipy_stats().rankdata(losses, axis=1)  # (streams, names)
    mean_rank = {
        name: math.fsum(column) / len(streams)
        for name, column in zip(names, ranks.T.tolist(), strict=True)
    }
    leader = min(names, key=lambda name: mean_rank[name])
    ratios = {
        name: [_log_ratio(by_key[stream, name], by_key[stream, leader]) for stream in streams]
        for name in names
    }
    others = [name for name in names if name != leader]
    ranked = dict(zip(others, holm([wilcoxon(ratios[name]) for name in others]), strict=True))
    signed = dict(zip(others, holm([sign_test(ratios[name]) for name in others]), strict=True))
    rows = [
        Overall(
            name,
            kinds[name],
            mean_rank[name],
            int((ranks[:, index] == ranks.min(axis=1)).sum()),
            _exponential_of_mean(ratios[name]),
            ranked.get(name),
            signed.get(name),
        )
        for index, name in enumerate(names)
    ]
    return tuple(sorted(rows, key=lambda row: row.mean_rank))


def _log_ratio(result: Result, other: Result) -> float:
    """The logarithm of `Result.ratio`, for losses of 0 and infinity too."""
    ratio = result.ratio(result.mean_loss, other.mean_loss)
    if ratio == 0:
        return -math.inf
    return math.log(ratio) if ratio > 0 else math.nan


def _exponential_of_mean(logarithms: list[float]) -> float:
    mean = sum(logarithms) / len(logarithms)
    return math.exp(mean) if mean < 700 else math.inf
