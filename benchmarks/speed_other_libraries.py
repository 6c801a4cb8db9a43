"""One sample at a time, beside River and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import reference_loops
from measuring import (
    WIDTHS,
    Measurement,
    ar1,
    interleaved,
    microseconds,
    noise,
    paper_bank,
    timed,
)


def one_by_one(repeats: int) -> Iterator[Measurement]:
    from river import linear_model, preprocessing

    regular, irregular, y = ar1(4000)
    targets = y.tolist()

    def ours(x) -> float:
        own = paper_bank()
        own.run(x[:300], y[:300], record=())
        points = x.tolist()
        return timed(lambda: _loop(own, points, targets, 300), len(points) - 300)

    def river(x) -> float:
        model = preprocessing.StandardScaler() | linear_model.LinearRegression()
        points = [{"x": value} for value in x.tolist()]
        return timed(lambda: _loop(model, points, targets, 0), len(points))

    for name, x, goal, stretch_goal in (
        (
            "predict_one + learn_one, regular x, against River's scaled linear model",
            regular,
            0.8,
            0.6,
        ),
        ("the same, irregular x", irregular, None, None),
    ):
        times = interleaved(
            {"kernelbank": lambda x=x: ours(x), "river": lambda x=x: river(x)}, repeats
        )
        detail = f"{microseconds(times['kernelbank'])} against {microseconds(times['river'])}"
        yield Measurement(
            name,
            times["kernelbank"] / times["river"],
            "ratio",
            goal,
            stretch_goal,
            detail=detail,
            noise=noise(times),
        )


def _loop(model, points, targets, start) -> None:
    predict, learn = model.predict_one, model.learn_one
    for n in range(start, len(points)):
        predict(points[n])
        learn(points[n], targets[n])


def other_libraries(repeats: int) -> Iterator[Measurement]:
    from river import forest, linear_model, neighbors, preprocessing
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDRegressor

    regular, _, y = ar1(400)
    points = [{"x": value} for value in regular.tolist()]
    targets = y.tolist()
    scale = preprocessing.StandardScaler
    models: dict[str, Callable[[], object]] = {
        "River, scaled linear": lambda: scale() | linear_model.LinearRegression(),
        "River, scaled kNN": lambda: scale() | neighbors.KNNRegressor(),
        "River, adaptive random forest": lambda: forest.ARFRegressor(seed=0),
        "River, aggregated Mondrian forest": lambda: forest.AMFRegressor(seed=0),
    }

    def sklearn_run() -> float:
        features = RBFSampler(n_components=100, random_state=0).fit(regular[:1, None])
        model = SGDRegressor(random_state=0)
        model.partial_fit(features.transform(regular[:1, None]), y[:1])

        def work():
            for n in range(1, len(y)):
                row = features.transform(regular[n : n + 1, None])
                model.predict(row)
                model.partial_fit(row, y[n : n + 1])

        return timed(work, len(y) - 1)

    def ours() -> float:
        own = paper_bank()
        own.run(regular[:300], y[:300], record=())
        return timed(lambda: _loop(own, regular.tolist(), targets, 300), len(y) - 300)

    runs: dict[str, Callable[[], float]] = {"kernelbank, 20 kernels": ours}
    for name, make in models.items():
        runs[name] = lambda make=make: timed(lambda: _loop(make(), points, targets, 0), len(y))
    runs["scikit-learn, RBFSampler + SGDRegressor"] = sklearn_run
    runs["the scheme in plain NumPy"] = lambda: timed(
        lambda: reference_loops.scheme_in_numpy(regular[:150], y[:150], WIDTHS), 150
    )
    times = interleaved(runs, max(2, repeats // 2))
    for name, time in times.items():
        yield Measurement(
            f"predict and learn one by one: {name}",
            time.best * 1e6,
            "us per sample",
            noise=time.spread,
        )
