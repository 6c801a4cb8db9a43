"""From the settings of a `KernelBank` to the description that a bank of the core is made from."""

from dataclasses import replace


def description(settings, dimension, *, block=64, threads=1):
    """All of it; settings : those of a `KernelBank`."""
    layout, objective = settings.layout, settings.objective
    losses = settings.losses or [settings.loss] * settings.outputs
    packs, place = [], {}
    for number, leaf in enumerate(layout.leaves):
        group = layout.groups[leaf.group]
        learner, loss, transform, base = (
            group.learner,
            group.loss,
            group.transform,
            group.residual_of,
        )
        place |= {slot: (number, lane) for lane, slot in enumerate(leaf.slots)}
        kernels = [layout.slots[slot].kernel for slot in leaf.slots]
        pack = {
            "slots": list(leaf.slots),
            "learner": learner.core_name,
            "loss": None if loss is None else loss.core_spec(),
            "base": None if base is None else list(place[base]),
            "transform": None if transform is None else transform.core_spec(),
            "settings": {},
            "kernels": [],
        }
        if learner.core_name:
            pack["settings"] = learner.core_settings(kernels, dimension, leaf.slots[0])
            pack["kernels"] = learner.core_kernels(kernels, dimension)
        else:
            parts = (kernels[0], dimension, objective)
            pack["models"] = [learner.core_model(*parts) for _ in range(settings.outputs)]
        packs.append(pack)
    objectives = [replace(objective, loss=loss) for loss in losses]
    return {
        "window": objective.window,
        "regularization": float(objective.regularization),
        "losses": [loss.core_spec() for loss in losses],
        "dimension": dimension,
        "slots": len(layout.slots),
        "block": block,
        "threads": threads,
        "on_simplex": settings.combiner.on_simplex,
        "needs_values": "values" in settings.combiner.needs,
        "sums_weights": False,
        "first_sample": 0,
        "packs": packs,
        "combiner": settings.combiner.core_spec(objectives, len(layout.slots)),
        "history": layout.history_length(objective),
        "first_weights": settings.first_weights().tolist(),
    }
