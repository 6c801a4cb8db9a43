"""Settings of every component are refused by name, with the rule, the value and a remedy."""

import re
from dataclasses import fields

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.instances import FOURTH

C, E, K, L, M, S = kb.combiners, kb.engines, kb.kernels, kb.losses, kb.learners, kb.Slot

GIVEN = {
    K.ActiveDims: {"base": K.Linear(), "coordinates": [0]},
    K.Additive: {"base": K.Linear(), "order": 1},
    K.Matern: {"width": 1.0},
    K.RationalQuadratic: {"width": 1.0, "alpha": 1.0},
    K.Polynomial: {"degree": 2},
    L.Custom: {"value_function": np.add, "derivative_function": np.add},
    S: {"kernel": K.Linear(), "learner": M.Norma()},
    kb.AdaptiveDictionary: {"kernels": kb.gaussian_grid(1, 2, 4), "size": 2},
    kb.gaussian_grid: {"low": 1, "high": 2, "count": 3},
}
"""What a component needs besides the setting that is wrong."""

WRONG = {
    K.Gaussian: {"width": [0, "1", 1e-170, 10**400]},
    K.Matern: {"nu": [np.ones(2), 1]},
    K.RationalQuadratic: {"alpha": [0]},
    K.Periodic: {"period": [0.0]},
    K.Linear: {"offset": [-0.1]},
    K.Polynomial: {"degree": [2.5, 0], "scale": [0]},
    K.Custom: {"function": ["no", 0, True, 1.5, -1]},
    K.ActiveDims: {"base": ["gaussian"], "coordinates": [0, "01", [], [1, 1], [-1], [0.5]]},
    K.Additive: {"base": [None], "order": [0]},
    K.TreeKernel: {"decay": [1.1], "levels": [65], "scale": [-1.0]},
    kb.gaussian_grid: {"high": [0.5], "low": [0], "count": [0], "spacing": ["log"]},
    L.Huber: {"delta": [0]},
    L.EpsilonInsensitive: {"epsilon": [-1]},
    L.Pinball: {"quantile": [1]},
    L.Poisson: {"smoothing": [-1]},
    L.Custom: {
        "value_function": [1, 0, True, 1.5, -1],
        "derivative_function": [None, 5],
        "curvature": [-1],
    },
    M.Norma: {"learning_rate": [0, np.inf], "budget": [0]},
    M.KLMS: {"step_size": ["sqrt"]},
    M.PartitionTree: {"nodes": [0], "split_after": [1], "noise": [0.0], "seed": [2**63]},
    M.NearestNeighborGP: {"neighbors": [0], "noise": [0.0], "constant": [-1.0]},
    M.LastValue: {"column": [-1]},
    M.LinearRLS: {"constant_forgetting": [0.9]},
    C.Simplex: {"evidence": ["guess"], "horizon": [0]},
    C.Hedge: {"learning_rate": [0]},
    C.FixedShare: {"learning_rate": [-1], "share": [0, 1.5]},
    C.Joint: {"evidence": ["guess"], "horizon": [0], "ridge": [-1], "tolerance": [0], "steps": [0]},
    C.Stacking: {"discount": [0, 1.1], "ridge": [-1, 1e10], "tolerance": [0], "steps": [0]},
    C.OMKR: {"gradient": ["wrong"], "learning_rate": [-1], "halve_every": [0], "least_rate": [-1]},
    kb.transforms.ShiftedLog: {"shift": [0, np.inf, 1e-10, 1e10, "2", None]},
    E.Ray: {
        "shards": [0],
        "address": [7],
        "block": [0],
        "retries": [-1],
        "patience": [0],
        "replay": [0],
        "cpus": [-1],
        "allow_unauthenticated": [1],
    },
    E.Threads: {"threads": [0], "block": [257]},
    E.Serial: {"block": [0]},
    kb.AdaptiveDictionary: {
        "size": [0, 9],
        "every": [0],
        "threshold": [1.5],
        "retire": [0.0],
        "patience": [0],
    },
    S: {
        "kernel": ["linear"],
        "learner": ["norma"],
        "loss": [np.square, "hinge", FOURTH],
        "residual_of": [-1, 0.5, "0", True],
        "transform": [np.log1p],
    },
    kb.KernelBank: {
        "window": [0, 2.5, True, "ten"],
        "regularization": [-0.1, np.nan, None],
        "dictionary": [[], 5, ["gaussian"], "gaussian"],
        "combiner": ["simplex"],
        "engine": ["warp"],
        "loss": ["squarred", 3],
        "slots": [[], [K.Linear()]],
        "outputs": [0, 2.5],
    },
}
CASES = [
    pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{value!r:.30}")
    for kind, settings in WRONG.items()
    for name, values in settings.items()
    for value in values
]
COUNTS = [
    (kind, field.name, 10**12)
    for kind in M.standalone()
    for field in fields(kind)
    if field.type in ("int", "int | None") and field.name != "seed"
]
"""More than the core can count."""


@pytest.mark.parametrize(("kind", "name", "value"), [*CASES, *COUNTS])
def test_wrong_setting_is_refused_by_its_name(kind, name, value):
    with pytest.raises(InvalidArgument) as caught:
        kind(**{**GIVEN.get(kind, {}), name: value})
    text = str(caught.value)
    assert re.match(rf"'{name}'( of {kind.__name__})? must .*got .*[.]", text, re.DOTALL), text
