"""`KernelBank.evidence`: what each combiner shows of the numbers behind its weights."""

import numpy as np
import pytest

import kernelbank as kb
from support.every_bank import OWN
from support.instances import COMBINERS, stream

C = kb.combiners
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


SHAPES = {
    C.Best: {"cumulative_cost": (4,)},
    C.FixedShare: {"posterior": (4,)},
    C.Hedge: {"loss_above_best": (4,), "learning_rate": (1,)},
    C.Joint: {"gap": (), "cost": (), "scale": (), "steps": ()},
    C.OMKR: {"gradient": (4,), "rate": (1,)},
    C.Simplex: {"curvature": (4,), "linear": (4,)},
    C.RobustStacking: {
        **dict.fromkeys(("gap", "cost", "scale", "steps"), ()),
        **{f"plain_{name}": () for name in ("gap", "cost", "scale", "steps")},
        "mean_square": (),
        "share": (),
    },
    C.Stacking: {"gap": (), "cost": (), "scale": (), "steps": ()},
    C.Uniform: {"active": (4,)},
}


def shapes_of(combiner):
    if isinstance(combiner, kb.rivals.AdaRaker):
        levels = 4 // combiner.kernels
        sums = (levels, combiner.kernels)
        return {"shares": (levels,), "loss_above_best": sums, "scale": (1,)}
    return SHAPES[type(combiner)]


@pytest.mark.parametrize("combiner", [pair[0] for pair in COMBINERS], ids=repr)
def test_bank_evidence_of_every_combiner_is_that_of_the_last_sample(combiner, tmp_path):
    X, y = stream(2, 120, 1)
    bank, loop = (kb.KernelBank(kb.gaussian_grid(0.1, 1, 4), combiner=combiner) for _ in range(2))
    shapes = shapes_of(combiner)
    assert {name: array.shape for name, array in bank.evidence().items()} == shapes
    trace = bank.run(X, y)
    evidence = bank.evidence()
    assert {name: array.shape for name, array in evidence.items()} == shapes
    for n in range(120):
        loop.learn_one(X[n], y[n])
    bank.save(tmp_path / "bank.kb")
    for other in (loop, kb.load(tmp_path / "bank.kb", components=OWN)):
        assert all(np.array_equal(evidence[k], other.evidence()[k]) for k in evidence)
    for array in evidence.values():
        array[...] = -1.0
    before, again = bank.evidence(), bank.evidence()
    assert all(np.array_equal(before[k], again[k]) for k in before)
    assert not any((array == -1.0).any() for array in before.values())
    check_evidence(combiner, bank, trace, before)


def check_evidence(combiner, bank, trace, evidence):
    """The numbers are those of the last sample."""
    losses = trace.slot_loss.sum(axis=0)
    if isinstance(combiner, C.Simplex):
        both = trace.curvature[-1] + trace.window_loss[-1]
        jensen = combiner.bound == "jensen"
        assert (evidence["curvature"] == (0.0 if jensen else trace.curvature[-1])).all()
        if jensen:
            assert (evidence["linear"] == both).all()
        elif combiner.evidence == "window":
            assert (evidence["linear"] == trace.window_loss[-1]).all()
        else:
            assert evidence["linear"] == pytest.approx(trace.slot_loss[-7:].sum(axis=0))
        assert (kb.simplex_qp(*evidence.values()) == bank.weights).all()
    elif isinstance(combiner, C.Hedge):
        if combiner.evidence == "cost":
            losses = trace.slot_cost.sum(axis=0)
        assert evidence["loss_above_best"] == pytest.approx(losses - losses.min(), rel=1e-9)
        powers = np.exp(-evidence["learning_rate"] * evidence["loss_above_best"])
        assert bank.weights == pytest.approx(powers / powers.sum(), rel=1e-9)
    elif isinstance(combiner, C.Best):
        assert evidence["cumulative_cost"] == pytest.approx(trace.slot_cost.sum(axis=0))
    elif isinstance(combiner, C.FixedShare):
        mixed = (1 - combiner.share) * evidence["posterior"] + combiner.share / 4
        assert bank.weights == pytest.approx(mixed)
    elif isinstance(combiner, kb.rivals.AdaRaker):
        assert evidence["shares"].sum() == pytest.approx(1)
        assert evidence["scale"] > 0
    elif isinstance(combiner, (C.Joint, C.Stacking, C.RobustStacking)):
        assert evidence["gap"] <= combiner.tolerance * evidence["scale"]
    elif isinstance(combiner, C.OMKR):
        assert evidence["rate"] == 8e-4 * 2.0**-2
    else:
        assert evidence["active"].tolist() == [1.0] * 4
