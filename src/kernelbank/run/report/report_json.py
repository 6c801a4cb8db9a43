"""JSON for the page: short numbers, and null where a number is not finite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...utils.validation import Floats


def encode(value: Any) -> str:
    """JSON; numbers that are not finite become null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value


def json_object(texts: dict[str, str]) -> str:
    """A JSON object of values that are JSON already."""
    return "{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}"


def json_numbers(values: Iterable[float], digits: int) -> str:
    """Numbers with `digits` significant digits: more cannot be seen, and would fill the page."""
    form = f"%.{digits}g"
    return f"[{','.join(form % v if math.isfinite(v) else 'null' for v in values)}]"


def ten_thousandths(weights: Floats) -> list[list[int]]:
    """Weights (points, P) as whole numbers, 10,000 for a weight of 1; NaN becomes 0."""
    return np.rint(1e4 * np.clip(np.nan_to_num(weights), -1e6, 1e6)).astype(int).tolist()
