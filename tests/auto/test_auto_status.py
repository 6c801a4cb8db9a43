"""The status of an AutoBank is true and harmless, in every state."""

import numpy as np
import pytest

import kernelbank as kb
from support.status_views import (
    SCRIPT,
    Mute,
    numbers,
    parsed_html,
    shown,
    small_auto,
    three,
)

K = kb.kernels
Norma = kb.learners.Norma
quiet = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_auto_bank_status_shows_error_change_and_weights():
    X, y = numbers(300)
    y[200:] = -4 * X[200:, 0]
    bank = small_auto()
    bank.run(X, y)
    lines, facts, bars = shown(bank)
    assert lines[0] == "AutoBank('regression', size='small'; 41 slots; 300 samples)"
    mean, naive = bank.ledger.mean_loss, bank.ledger.baseline_loss
    assert facts["RMSE"] == (
        f"{mean**0.5:.4g} over 299 predictions  (baseline (last value): {naive**0.5:.4g})"
    )
    last, count = bank.ledger.changes[-1], len(bank.ledger.changes)
    assert facts["last change"].startswith(f"{last.what} after row {last.row} of 300 (the ")
    assert facts["last change"].endswith("only one)" if count == 1 else f"last of {count})")
    weights = bank.bank.weights
    order = np.argsort(-weights, kind="stable")[: min(5, (weights != 0).sum())]
    assert bars == tuple((bank.names[p], weights[p]) for p in order)
    assert "  weights" in lines


def test_auto_bank_status_with_three_classes_shows_mean_weights():
    bank = small_auto("classification")
    bank.run(*three(200))
    lines, facts, bars = shown(bank)
    classes = ", ".join(map(repr, bank.classes))
    assert facts["classes"] == f"3: {classes}"
    wrong, naive = bank.ledger.mean_loss, bank.ledger.baseline_loss
    count = bank.samples - 1
    own = f"{wrong:.2%} over {count} predictions"
    assert facts["error rate"] == f"{own}  (baseline (last value): {naive:.2%})"
    assert "  weights, mean of 3 classes" in lines
    mean = bank.weights
    assert len({weights.tobytes() for weights in bank.bank.weights}) == 3
    np.testing.assert_allclose(mean[bank._model.members], bank.bank.weights.mean(axis=0))
    for name, share in bars:
        assert share == mean[bank.names.index(name)]
    assert bars[0][1] == mean.max()
    two = small_auto("classification")
    two.run(*three(60, ("a", "a", "b")))
    assert "  weights" in shown(two)[0]


def test_auto_bank_status_draws_hostile_labels_as_text():
    bank = small_auto("classification")
    bank.run(*three(40, (SCRIPT, "\x1b[2J\n", "\ud800&")))
    shown(bank)
    assert "<script" not in bank._repr_html_()
    assert "alert" in bank._repr_html_()


def test_status_before_the_first_sample_is_one_line(tmp_path):
    auto = kb.AutoBank(lags=1)
    assert repr(auto) == "AutoBank('regression', lags=1; 0 samples)"
    auto.predict_one([1.0, 2.0])
    assert repr(auto) == "AutoBank('regression', lags=1; 63 slots; 0 samples)"
    auto.save(tmp_path / "auto.kb")
    assert repr(kb.load(tmp_path / "auto.kb")) == repr(auto)
    auto.learn_one([1.0, 2.0], 3.0)
    assert "\n" in repr(auto)
    page = parsed_html(kb.AutoBank()._repr_html_())
    assert [element.tag for element in page] == ["pre", "details"]


def test_auto_bank_status_before_the_slots_start_says_why():
    bank = small_auto()
    bank.run(*numbers(1))
    lines, facts, _ = shown(bank)
    assert "baseline" not in facts["RMSE"]
    assert lines[-1].strip() == "none yet: the slots start after 5 rows"
    bank.run(*numbers(3))
    assert "baseline" in shown(bank)[1]["RMSE"]
    one = small_auto("classification")
    one.run(numbers(50)[0], ["on"] * 50)
    assert shown(one)[0][-1].strip() == "none yet: there is only one class"


# --- odd states ---------------------------------------------------------------------------------


def auto_models():
    adapter = kb.learners.Adapter(Mute())
    slots = [kb.Slot(K.NoKernel(), adapter), kb.Slot(K.Gaussian(1.0), Norma())]
    bank = small_auto("classification", slots=slots, classes=["low", "mid", "high"])
    bank.run(*three(60))
    assert [one.quarantined for one in bank.bank.ledger.outputs] == [(0,)] * 3
    return bank


def far_targets():
    bank = small_auto(lags=2)
    X, y = numbers(60)
    y[57:] = 1e140
    X[30:, 0] = np.nan
    bank.run(X, y)
    return bank


def labels_of_all_kinds():
    bank = small_auto("classification")
    bank.run(numbers(60)[0], [True, "", 2.5, 10**5000, "\n", -3] * 10)
    return bank


STATES = [auto_models, far_targets, labels_of_all_kinds]


@quiet
@pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__)
def test_status_is_short_and_harmless_in_every_state(make):
    bank = make()
    lines, facts, _ = shown(bank)
    assert f"{bank.samples} samples)" in lines[0]
    assert len(lines) < 20
    assert max(map(len, lines[1:])) <= 140
    assert "<script" not in bank._repr_html_()
    if make is auto_models:
        expected = "1 of 2: [0] NoKernel(), Adapter(model=Mute) (for 3 of 3 classes)"
        assert facts["quarantined"] == expected
    if make is labels_of_all_kinds:
        assert facts["classes"] == r"6: True, '', 2.5, int, '\n', -3"
