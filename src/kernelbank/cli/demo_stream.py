"""The stream of `kernelbank demo`: a heat pump, simulated.

No sensor has measured this. The same lines are written every time.
"""

from __future__ import annotations

import csv
import math
import random
from datetime import datetime, timedelta
from pathlib import Path

COLUMNS = ("time", "outdoor", "wind", "mode", "power")
ROWS = 4800
"""100 days, two rows per hour."""

CHANGE_ROW = 3000
CHANGE_KW = 0.6
"""From this row on the pump takes more power: a valve does not close any more."""

_SEED = 1
_START = datetime(2025, 1, 6)
_OUTAGE = range(1700, 1712)
"""Rows in which the outdoor sensor is silent; besides, one cell in a hundred is missing."""


def write_stream(path: Path) -> None:
    """Write the stream as CSV, with the power in kW as the last column."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(_rows(random.Random(_SEED)))


def _rows(draw: random.Random) -> list[tuple[str, str, str, str, str]]:
    rows = []
    weather = wind = 0.0
    mode = "heating"
    for n in range(1, ROWS + 1):
        time = _START + timedelta(minutes=30 * (n - 1))
        hour = time.hour + time.minute / 60
        weather = 0.99 * weather + 0.4 * draw.gauss(0, 1)
        wind = 0.95 * wind + 0.9 * draw.gauss(0, 1)
        spring = 12 * n / ROWS
        outdoor = spring + 3 * math.sin(2 * math.pi * (hour - 9) / 24) + weather
        speed = abs(wind) + 1
        mode = _next_mode(mode, hour, draw)
        power = _power(outdoor, speed, mode, hour) + 0.08 * draw.gauss(0, 1)
        if n >= CHANGE_ROW:
            power += CHANGE_KW
        silent = n in _OUTAGE or draw.random() < 0.01
        temperature = "" if silent else f"{outdoor:.1f}"
        rows.append((f"{time:%Y-%m-%dT%H:%M}", temperature, f"{speed:.1f}", mode, f"{power:.2f}"))
    return rows


def _next_mode(mode: str, hour: float, draw: random.Random) -> str:
    """Hot water is wanted at any hour, most of all in the morning and in the evening."""
    if mode == "hot water":
        return "hot water" if draw.random() < 0.4 else "heating"
    if mode == "holiday":
        return "holiday" if draw.random() < 0.99 else "heating"
    if draw.random() < 0.002:
        return "holiday"
    busy = 6 <= hour < 9 or 18 <= hour < 22
    return "hot water" if draw.random() < (0.25 if busy else 0.05) else "heating"


def _power(outdoor: float, wind: float, mode: str, hour: float) -> float:
    """The power in kW without noise: the heat that is lost, by how well the pump works."""
    efficiency = 2.2 + 0.08 * max(min(outdoor, 20.0), -10.0)
    if mode == "hot water":
        return 7.5 / efficiency
    room = 14.0 if mode == "holiday" else 21.0 if 6 <= hour < 22 else 17.0
    return 0.2 + max(room - outdoor, 0.0) * (0.3 + 0.02 * wind) / efficiency
