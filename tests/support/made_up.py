"""Made-up stories of runs, for the pages to tell: a warm-up, drifting weights and a best slot."""

import numpy as np


def rounded(values, digits=6):
    """Numbers as the story has them: short, and null where they are not finite."""
    return [
        None if not np.isfinite(value) else float(f"{value:.{digits}g}")
        for value in np.asarray(values, dtype=float)
    ]


def made_up_points(draw, points, slots, task, stride):
    """All points of a run with a warm-up, drifting weights and a best slot, as columns."""
    rows = np.full(points, stride)
    if points > 1:
        rows[-1] = max(1, stride // 3)
    answered = rows.copy()
    answered[:1] = max(1, rows[0] - 1)
    along = np.linspace(0, 1, points) if points > 1 else np.zeros(1)
    warm = 1 + 25 * np.exp(-along * 90)
    shift = np.where((along > 0.55) & (along < 0.6), 2.2, 1.0)
    skill = 1 + 2.2 * draw.random(slots) ** 0.7
    skill[slots // 3] = 0.93
    wobble = np.exp(0.12 * draw.normal(size=(points, slots)))
    noise = np.exp(0.15 * draw.normal(size=points))
    level = 0.16 if task == "regression" else 0.09
    loss = level * answered * warm * shift * noise * 0.9
    losses = level * answered[:, None] * (warm * shift * noise)[:, None] * skill * wobble
    persistence = 3.1 * level * answered * np.exp(0.2 * draw.normal(size=points))
    if task == "classification":
        loss, persistence = np.minimum(loss, answered), np.minimum(persistence, answered)
        losses = np.minimum(losses, answered[:, None])
    centre = slots * (0.33 + 0.3 * (along > 0.57) + 0.04 * np.sin(9 * along))
    weights = np.exp(-(((np.arange(slots) - centre[:, None]) / (0.06 * slots + 0.6)) ** 2))
    weights = weights * (0.6 + 0.8 * draw.random((points, slots))) * (draw.random(slots) > 0.35)
    weights += 0.4 * np.exp(-60 * along)[:, None] + 1e-9
    weights /= weights.sum(axis=1, keepdims=True)
    target = 12 + 5 * np.sin(14 * along) + 3 * along
    right = answered * np.clip(0.9 + 0.02 * draw.normal(size=points) - 0.25 * (shift > 1), 0, 1)
    many = np.round(weights * 10000).astype(int)
    columns = {
        "rows": rows.tolist(),
        "scored": answered.tolist(),
        "loss": rounded(np.round(loss) if task == "classification" else loss),
        "baseline_loss": rounded(np.round(persistence) if task == "classification" else persistence),
        "covered": np.round(right).astype(int).tolist(),
        "width": rounded(answered * (0.88 if task == "classification" else 1.3 * np.sqrt(warm))),
        "worst_loss": rounded(
            np.ones(points) if task == "classification" else 9 * level * warm * shift * noise
        ),
        "target_low": rounded(target - 2 - draw.random(points)),
        "target_high": rounded(target + 2 + draw.random(points)),
        "prediction_low": rounded(target - 1.6 - 0.5 * draw.random(points)),
        "prediction_high": rounded(target + 1.6 + 0.5 * draw.random(points) + 0.1 * warm),
        "weights": many.tolist(),
        "weights_high": np.minimum(10000, many * 3 // 2 + 3).tolist(),
        "losses": [rounded(row, 5) for row in losses],
    }
    if task == "classification":
        for name in ("target_low", "target_high", "prediction_low", "prediction_high"):
            columns[name] = [None] * points
    return columns


def made_up_line(name, share, draw, task):
    """The function along one input after a share of the run, with its interval."""
    at = np.linspace(-2, 2.5, 24)
    known = 1 - np.exp(-5 * share)
    middle = (
        12
        + 3 * known * np.sin((2.1 + name) * at + 1.5 * share)
        + 0.4 * draw.normal(size=24) * (1 - known)
    )
    half = 1.2 + 4 * np.exp(-6 * share) + 0.3 * at**2 * 0.5
    if task == "classification":
        middle = 1 / (1 + np.exp(-(middle - 12)))
        half = np.zeros(24)
    return {
        "at": rounded(at),
        "middle": rounded(middle),
        "low": rounded(middle - half),
        "high": rounded(middle + half),
    }


KINDS = (
    "RandomFeatureRLS",
    "KRLSTracker",
    "Norma",
    "line",
    "tree on what RandomFeatureRLS leaves, rank",
)


def made_up_story(points=200, slots=39, task="regression", stride=None, seed=0, columns=4):
    """All parts of a run that never was, as Python values by name."""
    draw = np.random.default_rng(seed)
    stride = stride or max(2, 100_000 // max(1, points))
    story = {}
    rows = 0
    if points:
        told = made_up_points(draw, points, slots, task, stride)
        rows = sum(told["rows"])
        for piece in range(0, points, 32):
            story[f"points/{piece // 32}"] = {
                "stride": stride,
                **{name: column[piece : piece + 32] for name, column in told.items()},
            }
    classes = ["spam", "ham"] if task == "classification" else []
    names = [
        f"{KINDS[slot % 5]} {slot // 5 + 1}, width {2.0 ** (slot % 9 - 4):g}"
        for slot in range(slots)
    ]
    story["run"] = {
        "title": "sensors.csv: load",
        "task": task,
        "target": "load",
        "status": "ended",
        "facts": [
            [
                "Data",
                [["source", "sensors.csv"], ["target", "load"], ["inputs", "wind, sun, hour, day"]],
            ],
            [
                "Settings",
                [
                    ["bank", "AutoBank()"],
                    ["slots", str(slots)],
                    ["coverage", "0.9"],
                    ["checkpoint every", "60 s"],
                ],
            ],
            [
                "Versions",
                [
                    ["kernelbank", "0.1.0"],
                    ["numpy", "2.1.3"],
                    ["numba", "0.61.0"],
                    ["Python", "3.12.3"],
                ],
            ],
        ],
        "slots": names,
        "coverage": 0.9,
        "weights_of": "",
        "loss": "wrong answers" if task == "classification" else "squared error",
        "classes": classes,
        "columns": ["wind", "sun", "hour of the day", "day"][:columns],
    }
    story["now"] = {
        "rows": rows,
        "stride": stride,
        "points": points,
        "bad": 3 if rows else 0,
        "without_target": 17 if rows else 0,
        "seconds": 21.4 if rows else 0.0,
        "speed": 4672.9 if rows else None,
        "time": [
            ["reading", 1.31],
            ["the bank", 17.02],
            ["snapshots", 0.44],
            ["writing", 1.9],
            ["checkpoints", 0.35],
        ]
        if rows
        else [],
        "started": "2026-01-05T09:14:03+00:00",
        "starts": 2,
        "updated": "2026-01-05T09:14:25+00:00",
    }
    story["changes"] = (
        [
            [int(rows * 0.55), "error grew", ""],
            [int(rows * 0.553), "target level", ""],
            [int(rows * 0.57), "weights", ""],
            [int(rows * 0.61), "error fell", ""],
            [int(rows * 0.8), "input level", "wind"],
        ]
        if points > 1
        else []
    )
    story["bad"] = {
        "count": 3 if rows else 0,
        "examples": [
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
        if rows
        else [],
    }
    if points and columns:
        shares = np.linspace(0.01, 1, min(40, points))
        for share in shares[:-1]:
            row = int(share * rows)
            story[f"snapshot/{row}"] = {
                "row": row,
                "lines": [made_up_line(name, share, draw, task) for name in range(columns)],
            }
        story["snapshot/now"] = {
            "row": rows,
            "lines": [made_up_line(name, 1.0, draw, task) for name in range(columns)],
        }
    return story
