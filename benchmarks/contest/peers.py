"""The peers with their defaults: models of River, and scikit-learn's kernel approximation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .entries import CLASSIFICATION, REGRESSION, Entry
from .players import PEER, Played, Player, one_by_one

_SEED = 42


def _linear(entry: Entry) -> Any:
    from river import linear_model

    return _scaled(linear_model.LinearRegression())


def _bayesian_linear(entry: Entry) -> Any:
    from river import linear_model

    return _scaled(linear_model.BayesianLinearRegression())


def _logistic(entry: Entry) -> Any:
    from river import linear_model, multiclass

    model = linear_model.LogisticRegression()
    return _scaled(multiclass.OneVsRestClassifier(model) if entry.classes > 2 else model)


def _nearest(entry: Entry) -> Any:
    from river import neighbors

    if entry.task == CLASSIFICATION:
        return _scaled(neighbors.KNNClassifier())
    return _scaled(neighbors.KNNRegressor())


def _adaptive_forest(entry: Entry) -> Any:
    from river import forest

    if entry.task == CLASSIFICATION:
        return forest.ARFClassifier(seed=_SEED)
    return forest.ARFRegressor(seed=_SEED)


def _mondrian_forest(entry: Entry) -> Any:
    from river import forest

    if entry.task == CLASSIFICATION:
        return forest.AMFClassifier(seed=_SEED)
    return forest.AMFRegressor(seed=_SEED)


def _adaptive_tree(entry: Entry) -> Any:
    from river import tree

    if entry.task == CLASSIFICATION:
        return tree.HoeffdingAdaptiveTreeClassifier(seed=_SEED)
    return tree.HoeffdingAdaptiveTreeRegressor(seed=_SEED)


def _scaled(model: Any) -> Any:
    from river import preprocessing

    return preprocessing.StandardScaler() | model


def _play_river(make: Callable[[Entry], Any], entry: Entry) -> Played:
    """Rows as the dictionaries that River wants, made outside the timer. A model that has seen
    nothing yet may say None, which counts as 0."""
    model = make(entry)
    names = [f"x{place}" for place in range(entry.inputs.shape[1])]
    rows = [dict(zip(names, row)) for row in entry.inputs.tolist()]
    labels = entry.task == CLASSIFICATION
    truths = labels and entry.classes <= 2  # LogisticRegression learns from truth values alone

    def predict(row: dict) -> float:
        predicted = model.predict_one(row)
        return 0.0 if predicted is None else float(predicted)

    def learn(row: dict, target: float) -> None:
        model.learn_one(row, target == 1.0 if truths else int(target) if labels else target)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows; the table says who has diverged
        return one_by_one(entry, rows, predict, learn)


def _play_features(entry: Entry) -> Played:
    """Random Fourier features of inputs that are scaled as they come, and gradient descent.

    The inputs of a row are known when it is predicted, so the scaler has seen them by then.
    """
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    sampler = RBFSampler(n_components=300, random_state=0)
    sampler.fit(np.zeros((1, entry.inputs.shape[1])))  # draws by the number of columns alone
    labels = entry.task == CLASSIFICATION
    model = SGDClassifier(random_state=0) if labels else SGDRegressor(random_state=0)
    known = {"classes": np.arange(float(entry.classes))} if labels else {}
    seen: dict[str, np.ndarray] = {}

    def predict(row: np.ndarray) -> float:
        seen["features"] = sampler.transform(scaler.partial_fit(row).transform(row))
        return float(model.predict(seen["features"])[0]) if hasattr(model, "coef_") else 0.0

    def learn(_: np.ndarray, target: float) -> None:
        model.partial_fit(seen["features"], [target], **known)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return one_by_one(entry, list(entry.inputs[:, None, :]), predict, learn)


def _river(name: str, words: str, make: Callable[[Entry], Any], *tasks: str) -> Player:
    return Player(
        name,
        PEER,
        words,
        partial(_play_river, make),
        tasks or (REGRESSION, CLASSIFICATION),
        libraries=("river", "numpy"),
    )


PEERS = [
    _river("linear", "River: StandardScaler | LinearRegression", _linear, REGRESSION),
    _river(
        "bayesian-linear",
        "River: StandardScaler | BayesianLinearRegression",
        _bayesian_linear,
        REGRESSION,
    ),
    _river("logistic", "River: StandardScaler | LogisticRegression", _logistic, CLASSIFICATION),
    _river("knn", "River: StandardScaler | KNNRegressor or KNNClassifier", _nearest),
    _river("arf", "River: ARFRegressor or ARFClassifier", _adaptive_forest),
    _river("amf", "River: AMFRegressor or AMFClassifier", _mondrian_forest),
    _river("hat", "River: HoeffdingAdaptiveTreeRegressor or -Classifier", _adaptive_tree),
    Player(
        "rbf-sgd",
        PEER,
        "scikit-learn: StandardScaler, RBFSampler(300), SGDRegressor or SGDClassifier",
        _play_features,
        libraries=("scikit-learn", "numpy"),
    ),
]
