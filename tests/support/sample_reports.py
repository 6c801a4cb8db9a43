"""Reports of runs that never were: a warm-up, drifting weights and a best slot."""

import numpy as np


def rounded(values, digits=6):
    """Numbers as a report has them: short, and null where they are not finite."""
    return [
        None if not np.isfinite(value) else float(f"{value:.{digits}g}")
        for value in np.asarray(values, dtype=float)
    ]


def sample_points(rng, points, slots, task, stride):
    """All points of a run, as columns."""
    rows = np.full(points, stride)
    if points > 1:
        rows[-1] = max(1, stride // 3)
    scored = rows.copy()
    scored[:1] = max(1, rows[0] - 1)
    along = np.linspace(0, 1, points) if points > 1 else np.zeros(1)
    warm_up = 1 + 25 * np.exp(-along * 90)
    shift = np.where((along > 0.55) & (along < 0.6), 2.2, 1.0)
    slot_error = 1 + 2.2 * rng.random(slots) ** 0.7
    slot_error[slots // 3] = 0.93
    slot_noise = np.exp(0.12 * rng.normal(size=(points, slots)))
    noise = np.exp(0.15 * rng.normal(size=points))
    level = 0.16 if task == "regression" else 0.09
    loss = level * scored * warm_up * shift * noise * 0.9
    losses = level * scored[:, None] * (warm_up * shift * noise)[:, None] * slot_error * slot_noise
    baseline = 3.1 * level * scored * np.exp(0.2 * rng.normal(size=points))
    if task == "classification":
        loss, baseline = np.minimum(loss, scored), np.minimum(baseline, scored)
        losses = np.minimum(losses, scored[:, None])
    centre = slots * (0.33 + 0.3 * (along > 0.57) + 0.04 * np.sin(9 * along))
    weights = np.exp(-(((np.arange(slots) - centre[:, None]) / (0.06 * slots + 0.6)) ** 2))
    weights = weights * (0.6 + 0.8 * rng.random((points, slots))) * (rng.random(slots) > 0.35)
    weights += 0.4 * np.exp(-60 * along)[:, None] + 1e-9
    weights /= weights.sum(axis=1, keepdims=True)
    target = 12 + 5 * np.sin(14 * along) + 3 * along
    covered = scored * np.clip(0.9 + 0.02 * rng.normal(size=points) - 0.25 * (shift > 1), 0, 1)
    ten_thousandths = np.round(weights * 10000).astype(int)
    width = 0.88 if task == "classification" else 1.3 * np.sqrt(warm_up)
    columns = {
        "rows": rows.tolist(),
        "scored": scored.tolist(),
        "loss": rounded(np.round(loss) if task == "classification" else loss),
        "baseline_loss": rounded(np.round(baseline) if task == "classification" else baseline),
        "covered": np.round(covered).astype(int).tolist(),
        "width": rounded(scored * width),
        "worst_loss": rounded(
            np.ones(points) if task == "classification" else 9 * level * warm_up * shift * noise
        ),
        "target_low": rounded(target - 2 - rng.random(points)),
        "target_high": rounded(target + 2 + rng.random(points)),
        "prediction_low": rounded(target - 1.6 - 0.5 * rng.random(points)),
        "prediction_high": rounded(target + 1.6 + 0.5 * rng.random(points) + 0.1 * warm_up),
        "weights": ten_thousandths.tolist(),
        "weights_high": np.minimum(10000, ten_thousandths * 3 // 2 + 3).tolist(),
        "losses": [rounded(row, 5) for row in losses],
    }
    if task == "classification":
        for name in ("target_low", "target_high", "prediction_low", "prediction_high"):
            columns[name] = [None] * points
    return columns


def sample_errors(columns, slots, task):
    """The errors in the status of a run with these points."""

    def error(losses):
        mean = sum(losses) / scored
        return mean if task == "classification" else mean**0.5

    scored = sum(columns["scored"])
    alone = [error(losses) for losses in zip(*columns["losses"], strict=True)]
    best = alone.index(min(alone))
    coverage = sum(columns["covered"]) / scored
    return {
        "scored": scored,
        "error": error(columns["loss"]),
        "baseline_error": error(columns["baseline_loss"]),
        "best_slot": slots[best],
        "best_slot_error": alone[best],
        "coverage": None if task == "classification" else coverage,
    }


def sample_lines(count, share, rng, task):
    """The lines of all inputs."""
    return [{"input": k, **sample_curve(k, share, rng, task)} for k in range(count)]


def sample_curve(number, share, rng, task):
    """The prediction along input `number` after a share of the run, with its interval."""
    x = np.linspace(-2, 2.5, 24)
    learned = 1 - np.exp(-5 * share)
    prediction = (
        12
        + 3 * learned * np.sin((2.1 + number) * x + 1.5 * share)
        + 0.4 * rng.normal(size=24) * (1 - learned)
    )
    half = 1.2 + 4 * np.exp(-6 * share) + 0.3 * x**2 * 0.5
    if task == "classification":
        prediction = 1 / (1 + np.exp(-(prediction - 12)))
        half = np.zeros(24)
    return {
        "x": rounded(x),
        "prediction": rounded(prediction),
        "low": rounded(prediction - half),
        "high": rounded(prediction + half),
    }


KINDS = (
    "standard: random features, no forgetting",
    "rank: random features, adaptive bias",
    "asinh: linear, no forgetting",
    "rank: tree",
    "standard: random features, adaptive bias + tree",
)

DETAILS = [
    ["Data", [["source", "sensors.csv"], ["target", "load"], ["inputs", "wind, sun, hour, day"]]],
    ["Settings", [["task", "regression"], ["coverage", "0.9"], ["checkpoint every", "60 s"]]],
    ["Versions", [["kernelbank", "0.1.0"], ["numpy", "2.1.3"], ["Python", "3.12.3"]]],
]

BAD_ROWS = [
    {
        "row": 812,
        "where": "line 813",
        "column": "wind",
        "value": "n/a?",
        "reason": "is not a number",
    },
    {
        "row": 4033,
        "where": "line 4034",
        "column": None,
        "value": None,
        "reason": "has 3 fields instead of 5",
    },
    {
        "row": 90210,
        "where": "line 90211",
        "column": "load",
        "value": "1e999",
        "reason": "is not finite",
    },
]


def sample_recent(rng, task, time):
    """The last 200 rows."""
    row = np.arange(200)
    times = START + MINUTE * row if time else [np.nan] * 200
    if task == "classification":
        target = rng.integers(2, size=200)
        prediction = np.where(rng.random(200) < 0.9, target, 1 - target)
        low = high = 0.5 + 0.5 * rng.random(200)
    else:
        target = 12 + 5 * np.sin(row / 9) + 0.3 * rng.normal(size=200)
        prediction = target + 0.4 * rng.normal(size=200)
        low, high = prediction - 1, prediction + 1
    fields = {"target": target, "prediction": prediction, "low": low, "high": high}
    return {
        "time": rounded(times, 13),
        **{name: rounded(values, 7) for name, values in fields.items()},
        "baseline": rounded(np.roll(target, 1), 7),
    }


def sample_worst(task, time):
    """Two rows."""
    values = ("spam", "ham", 0.9) if task == "classification" else (12.5, -999.0, 11.0)
    row = dict(zip(("prediction", "target", "low"), values, strict=True))
    row |= {"row": 1501, "time": START if time else None, "high": 14.0, "baseline": 1.0}
    return [row, {**row, "row": 7}]


LABELS = {
    "labels": ["spam", "ham"],
    "confusion": [[40.0, 10.0], [5.0, 45.0]],
    "areas": [0.93, 0.93],
    "reliability": [[0.55, 0.6, 30.0], [0.75, 0.7, 30.0], [0.95, 0.97, 40.0]],
}

START, MINUTE = 1704067200.0, 60.0


def sample_report(
    points=200, slots=39, task="regression", stride=None, seed=0, inputs=4, time=False
):
    """All parts of a report, as Python values by name."""
    rng = np.random.default_rng(seed)
    stride = stride or max(2, 100_000 // max(1, points))
    report = {}
    rows = 0
    if points:
        columns = sample_points(rng, points, slots, task, stride)
        rows = sum(columns["rows"])
        ends = np.cumsum(columns["rows"])
        times = START + MINUTE * ends if time else np.full(points, np.nan)
        starts = START + MINUTE * (ends - columns["rows"] + 1) if time else times
        columns |= {"time_high": rounded(times, 13), "time_low": rounded(starts, 13)}
        report["recent"] = sample_recent(rng, task, time)
        if task == "classification":
            report["labels"] = LABELS
        report["worst_rows"] = sample_worst(task, time)
        report["categories"] = [
            {
                "column": "site",
                "rows": [["north", 120, 0.5, 0.75], ["south", 80, 0.25, 1.0]],
                "more": 3,
            }
        ]
        for first in range(0, points, 32):
            report[f"points/{first // 32}"] = {
                "stride": stride,
                **{name: column[first : first + 32] for name, column in columns.items()},
            }
    report["run"] = {
        "title": "load from sensors.csv",
        "task": task,
        "target": "load",
        "details": DETAILS,
        "slots": [f"{KINDS[slot % 5]}, number {slot // 5 + 1}" for slot in range(slots)],
        "slot_terms": [["rank", "inputs by their rank"], ["tree", "a partition tree"]],
        "coverage": 0.9,
        "weights_of": "",
        "classes": ["spam", "ham"] if task == "classification" else [],
        "time": "when" if time else None,
        "inputs": [
            {"kind": "number", "name": name, "labels": []}
            for name in ["wind", "sun", "hour of the day", "day"][:inputs]
        ],
    }
    report["status"] = {
        **(sample_errors(columns, report["run"]["slots"], task) if points else {}),
        "phase": "ended",
        "labels": {
            "spam": {"rows": 50, "predicted": 45, "recall": 0.8, "precision": 0.8889},
            "ham": {"rows": 500, "predicted": 505, "recall": 0.9, "precision": 0.8182},
        },
        "recent_errors": {
            "period": "24 hours" if time else None,
            "rows": 1440,
            "whole": False,
            "loss": 0.1,
            "baseline_loss": 0.2,
            "absolute_error": 3.14159,
            "baseline_absolute_error": 5.4,
        }
        if points
        else None,
        "rows": rows,
        "stride": stride,
        "points": points,
        "bad_rows": 3 if rows else 0,
        "rows_without_target": 17 if rows else 0,
        "seconds": 21.4 if rows else 0.0,
        "rows_per_second": 4672.9 if rows else None,
        "started": "2026-01-05T09:14:03+00:00",
        "starts": 2,
        "updated": "2026-01-05T09:14:25+00:00",
    }
    changes = [
        [int(rows * 0.55), int(rows * 0.553), [["error grew", "", 1], ["target level", "", 3]]],
        [int(rows * 0.57), int(rows * 0.57), [["weights", "", 1]]],
        [int(rows * 0.61), int(rows * 0.61), [["error fell", "", 1]]],
        [int(rows * 0.8), int(rows * 0.8), [["input level", "wind", 1]]],
    ]
    report["changes"] = changes if points > 1 else []
    examples = [dict(one) for one in BAD_ROWS] if rows else []
    report["bad_rows"] = {"count": len(examples), "examples": examples}
    if points and inputs:
        shares = np.linspace(0.01, 1, min(40, points))
        for share in shares[:-1]:
            lines = sample_lines(inputs, share, rng, task)
            report[f"curves/{int(share * rows)}"] = {"row": int(share * rows), "lines": lines}
        lines = sample_lines(inputs, 1.0, rng, task)
        report["curves/now"] = {"row": rows, "lines": lines}
    return report


def sample_forecasts(count, rows=1000):
    """The part of a report with forecasts 1 to `count` rows ahead."""
    horizons = list(range(1, count + 1))
    return {
        "horizons": horizons,
        "known": [],
        "delay": 0,
        "seasons": True,
        "fan": {
            "rows": rows,
            "past": [10.0] * 30,
            "point": [12.0] * count,
            "low": [10.0 - h / 10 for h in horizons],
            "high": [14.0 + h / 10 for h in horizons],
            "inner_low": [11.0] * count,
            "inner_high": [13.0] * count,
        },
        "scored": [500] * count,
        "error": [h / 10 for h in horizons],
        "last_value": [h / 5 for h in horizons],
        "seasonal": [1.5] * count,
        "coverage": [0.88] * count,
        "width": [4.0] * count,
        "weights": [["random features", [6000] * count], ["tree", [4000] * count]],
    }
