"""From the settings of a `KernelBank` to the description that a bank of the core is made from."""

import copy
from dataclasses import fields

import numpy as np

import kernelbank as kb
from kernelbank.kernels.dimensions import active_coordinates, without_active_dims
from kernelbank.kernels.program import ADD, EVALUATE, SCALE
from kernelbank.learners.fourier import _draw_features
from kernelbank.losses.envelope import envelope
from kernelbank.combiners.base import Evidence

STATISTICS = {
    "_square": "squared_distance",
    "_distance": "distance",
    "_product": "dot_product",
    "_sine": "squared_sines",
    "_spline": "spline_product",
}
FORMULAS = {
    "_exponential": "exponential",
    "identity": "identity",
    "_matern_1": "matern1",
    "_matern_3": "matern3",
    "_matern_5": "matern5",
    "RationalQuadratic": "rational_quadratic",
    "Linear": "linear",
    "Polynomial": "polynomial",
}


def kernel(given, dimension):
    """(name, statistic, constants, parts), from the postfix program."""
    if not given.pairwise:
        return ("none", None, [], [])
    stack = []
    for step in given.for_dimension(dimension).program():
        if step.operation == EVALUATE:
            function = step.formula.function
            name = FORMULAS.get(function.__name__) or FORMULAS[function.__qualname__.split(".")[0]]
            stack.append((name, statistic(step.statistic, dimension), list(step.constants), []))
        elif step.operation == SCALE:
            stack.append(("scaled", None, list(step.constants), [stack.pop()]))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(("sum" if step.operation == ADD else "product", None, [], [left, right]))
    return stack[0]


def statistic(bound, dimension):
    """(name, parameter, coordinates), and a user's function and its name."""
    chosen = bound.coordinates
    coordinates = list(range(dimension) if chosen is None else chosen)
    if hasattr(bound.statistic, "function"):
        function = bound.statistic
        return ("python", 0.0, coordinates, function.function, function.name)
    return (STATISTICS[bound.statistic.step.__name__], float(bound.parameter), coordinates)


def loss(given):
    """(name, parameters), or a user's functions."""
    if given.callbacks:
        functions = (given.value_function, given.derivative_function)
        if given.smoothing > 0:
            functions = envelope(*functions, given.smoothing, given.domain)
        return ("python", *functions, given.name, given.curvature or 0.0)
    name = {kind: name for name, kind in kb.losses.BUILT_IN.items()}[type(given)]
    return (name, [float(getattr(given, field.name)) for field in fields(given)])


def settings_of(component):
    """The fields of a component, by name."""
    return {field.name: getattr(component, field.name) for field in fields(component)}


def learner_settings(learner, kernels, dimension, identity):
    """The fields of a learner, and what follows from the kernel and the slot's identity."""
    name, settings = type(learner).__name__, settings_of(learner)
    if name in ("FourierRLS", "FourierSGD"):
        drawn = _draw_features(kernels[0], learner.features, dimension, learner.seed, identity)
        settings |= {
            "frequencies": np.ascontiguousarray(drawn.frequencies),
            "phases": drawn.phases,
            "amplitudes": drawn.amplitudes,
            "trigonometric": drawn.trigonometric,
        }
    if name in ("FourierRLS", "FourierSGD", "PartitionTree", "NearestNeighborGP"):
        active = active_coordinates(kernels[0], dimension)
        settings["coordinates"] = np.array(active, dtype=float)
    if name == "PartitionTree":
        settings["variances"] = np.array(without_active_dims(kernels[0]).variances())
        settings["seed_parts"] = np.array([learner.seed >> 32, learner.seed & 0xFFFFFFFF], float)
        settings["identity"] = float(identity)
    return settings


class PythonModel:
    """A slot of a `PythonLearner` or an `Adapter`, as the core calls it."""

    def __init__(self, learner, kernel, dimension, half_regularization):
        self.learner, self.kernel = learner, kernel
        self.half_regularization = half_regularization
        self.may_fail = learner.saveable
        self.arrays, self.model = {}, None
        if learner.saveable:
            start = learner.start(dimension, kernel)
            self.arrays = {name: np.array(array, dtype=float) for name, array in start.items()}
        else:
            from kernelbank.learners.adapter import _AdaptedModel

            self.model = _AdaptedModel(copy.deepcopy(learner.model))

    def value(self, x):
        if self.model is not None:
            return self.model.value(x)
        return float(self.learner.value(self.arrays, x, self.kernel))

    def learn(self, x, y, slope):
        if self.model is not None:
            self.model.learn(x, y)
        else:
            self.learner.step(self.arrays, x, y, slope, self.kernel)

    def norm(self):
        if self.model is None:
            return float(self.learner.norm(self.arrays, self.kernel))
        half = self.half_regularization
        return self.learner.curvature / half if half else 0.0

    def variance(self, x):
        return float("nan")

    def copy(self):
        other = copy.copy(self)
        other.arrays = {name: array.copy() for name, array in self.arrays.items()}
        other.model = copy.deepcopy(self.model)
        return other


class PythonState:
    """The state of a combiner in Python."""

    def __init__(self, shapes):
        self.arrays = {name: np.zeros(shape) for name, shape in shapes.items()}

    def copy(self):
        return copy.deepcopy(self)


class PythonRule:
    """A combiner in Python, as the core calls it."""

    def __init__(self, combiner, objective):
        self.combiner, self.objective = combiner, objective

    def choose(self, evidence, state, weights):
        seen = Evidence(**evidence)
        chosen = self.combiner.combine(self.objective, seen, state.arrays, weights)
        return np.ascontiguousarray(chosen, dtype=float)


def combiner(settings):
    """(name, settings), or (rule, a state for each output)."""
    rule, objective = settings.combiner, settings.objective
    if type(rule) not in kb.combiners.BUILT_IN:
        states = [PythonState(rule.shapes(len(settings.slots))) for _ in range(settings.outputs)]
        return (PythonRule(rule, objective), states)
    given = settings_of(rule)
    if isinstance(rule, kb.combiners.Joint):
        rows = rule.horizon if rule.evidence == "prequential" else objective.window
        given["powers"] = rule.discount ** np.arange(float(rows))
    return (type(rule).__name__, given)


def description(settings, dimension, *, block=64, threads=1):
    """All of it; settings : those of a `KernelBank`."""
    layout, objective = settings.layout, settings.objective
    packs, place = [], {}
    for number, leaf in enumerate(layout.leaves):
        group = layout.groups[leaf.group]
        place |= {slot: (number, lane) for lane, slot in enumerate(leaf.slots)}
        kernels = [layout.slots[slot].kernel for slot in leaf.slots]
        base, transform = group.residual_of, group.transform
        pack = {
            "slots": list(leaf.slots),
            "learner": type(group.learner).__name__,
            "loss": None if group.loss is None else loss(group.loss),
            "base": None if base is None else list(place[base]),
            "transform": None
            if transform is None
            else (type(transform).__name__, transform.parameter()),
            "settings": {},
            "kernels": [],
        }
        if isinstance(group.learner, (kb.learners.PythonLearner, kb.learners.Adapter)):
            parts = (group.learner, kernels[0], dimension, objective.half_regularization)
            pack["models"] = [PythonModel(*parts) for _ in range(settings.outputs)]
        else:
            parts = (group.learner, kernels, dimension, leaf.slots[0])
            pack["settings"] = learner_settings(*parts)
            pack["kernels"] = [kernel(one, dimension) for one in kernels]
        packs.append(pack)
    return {
        "window": objective.window,
        "regularization": float(objective.regularization),
        "losses": [loss(one) for one in settings.losses or [settings.loss] * settings.outputs],
        "dimension": dimension,
        "slots": len(layout.slots),
        "block": block,
        "threads": threads,
        "on_simplex": settings.combiner.on_simplex,
        "needs_values": "values" in settings.combiner.needs,
        "sums_weights": False,
        "first_sample": 0,
        "packs": packs,
        "combiner": combiner(settings),
        "history": layout.history_length(objective),
        "first_weights": settings.first_weights().tolist(),
    }
