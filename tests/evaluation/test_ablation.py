"""`make ablation`: slots taken out, starts left out, ratios and what is written."""

import gzip
import json
import math

import ablation
import numpy as np
import pytest
from contest import entries, scores, store, variants, worth
from contest.peers import PEERS
from contest.players import Played

import kernelbank as kb
from kernelbank.auto import (
    auto_serialization as files,
)
from kernelbank.auto import (
    classification,
    regression,
)
from kernelbank.auto import (
    summary as overview,
)
from kernelbank.auto import (
    task_model as desk,
)
from kernelbank.learners import Residual

ROWS = 170


def _entry(task="regression", view="given", rows=ROWS):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=rows)
    if task == "classification":
        y = (y > 0) * 1.0
    return entries.Entry("tiny", view, task, X, y, 100)


def _variant(name):
    return next(variant for variant in variants.VARIANTS if variant.name == name)


def _kept(name, entry):
    """The names that a variant keeps, by the plain rule: asked for, and its base kept too."""
    keep = _variant(name).keep
    parts = [whole.split(": ") for whole, _ in variants.recipe_slots(entry)]
    return [
        (scaling, part)
        for scaling, part in parts
        if keep(part) and (" on " not in part or keep(part.split(" on ")[1]))
    ]


def test_bases_are_numbered_anew_and_trees_go_with_their_base():
    K, L = kb.kernels, kb.learners
    line = kb.Slot(K.Linear(1.0), L.LinearRLS())
    other = kb.Slot(K.Linear(1.0), L.LinearRLS(ridge=2.0))

    def on(base):
        return kb.Slot(K.Gaussian(1.0), Residual(base, L.KLMS()))

    names = ["a", "b", "on a", "on b", "on on b"]
    slots = [line, other, on(0), on(1), on(3)]
    assert variants.variant_slots(names, slots, lambda _: True) == slots
    found = variants.variant_slots(names, slots, lambda name: name != "a")
    assert found == [other, on(0), on(1)]
    found = variants.variant_slots(names, slots, lambda name: name != "on a")
    assert found == [line, other, on(1), on(2)]
    found = variants.variant_slots(names, slots, lambda name: name != "b")
    assert found == [line, on(0)]


SLOTS = [variant.name for variant in variants.VARIANTS if variant.part == "slots"]


@pytest.mark.parametrize("name", SLOTS)
def test_trees_stand_on_what_their_names_say(name):
    entry = _entry()
    full = variants.recipe_slots(entry)
    originals = dict(full)
    bank = _variant(name).bank(entry)
    bank.run(entry.X[:6], entry.y[:6])
    slots = list(bank.bank.slots)
    kept = _kept(name, entry)
    assert len(slots) == len(kept) < len(full)
    for slot, (scaling, part) in zip(slots, kept, strict=True):
        original = originals[f"{scaling}: {part}"]
        assert slot.kernel == original.kernel
        if " on " in part:
            base = f"{scaling}: {part.split(' on ')[1]}"
            assert slots[slot.learner.base] == originals[base]
            assert slot.learner.learner == original.learner.learner
        else:
            assert slot == original


def test_slot_variants_leave_out_what_they_say():
    entry = _entry()
    count = {name: len(_kept(name, entry)) // 3 for name in SLOTS}
    assert count == {
        "no mixed that never forgets": 13 - 1 - 2,
        "no mixed, fading": 13 - 1,
        "no mixed, following": 13 - 1 - 2,
        "nothing following": 13 - 2 - 4,
        "no linear": 13 - 2 - 2,
        "no random features": 13 - 3 - 4,
        "no trees": 5,
        "trees on the target only": 5 + 2,
        "one tree of each kind": 5 + 4,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "view"),
    [("regression", "given"), ("regression", "lags3"), ("classification", "given")],
)
def test_the_full_bank_from_its_own_slots_has_the_same_bits(task, view):
    entry = _entry(task, view)
    rebuilt = variants.Variant("rebuilt", "slots", keep=lambda _: True)
    plain = kb.AutoBank(task, lags=entry.lags).run(entry.X, entry.y)
    for variant in (rebuilt, _variant("full")):
        assert (variant.play(entry).predictions == plain.predictions).all()
    other = _variant("full, seed 2").play(entry).predictions
    assert (other == kb.AutoBank(task, entry.lags, seed=2).run(entry.X, entry.y).predictions).all()


def test_starts_are_left_out_and_come_back():
    users = (desk, regression, classification, files, overview)
    entry = _entry()
    full = _variant("full").play(entry).predictions
    few = _variant("starts after 5, 32 rows only").play(entry).predictions
    assert (full[:128] == few[:128]).all()
    assert (full[128:] != few[128:]).any()
    one = _variant("start after 5 rows only").play(entry).predictions
    assert (full[:32] == one[:32]).all()
    assert (one[32:] != few[32:]).any()
    with variants.starting_after((5,)):
        assert {user.STARTS for user in users} == {(5,)}
    with pytest.raises(ZeroDivisionError), variants.starting_after((5,)):
        _ = 1 / 0
    assert {user.STARTS for user in users} == {(5, 32, 128)}


def test_everyone_who_reads_the_starts_is_told():
    """A module that imports STARTS by name has a copy of its own."""
    from pathlib import Path

    folder = Path(kb.auto.__file__).parent
    readers = {path.stem for path in folder.glob("*.py") if "STARTS" in path.read_text()}
    assert readers == {"desk", "regression", "classification", "files", "overview"}


def _outcome(row, ratio, to_peer=None, first=None):
    return worth.Outcome(row, 0.1 * ratio, ratio, to_peer, first, first, 10.0, 1)


def test_worth_and_luck_against_plain_sums():
    seeds = [seed.name for seed in variants.OTHER_SEEDS]
    table = {
        "full": [1.0, 1.0],
        seeds[0]: [1.1, 1.0],
        seeds[1]: [0.9, 0.8],
        seeds[2]: [1.0, 1.25],
        "no trees": [1.2, 0.9],
        "Hedge": [0.5, 0.7],
    }
    rows = [
        {name: _outcome(f"row {r}/given", v[r], 0.5 * v[r], v[r] < 1) for name, v in table.items()}
        for r in range(2)
    ]
    found = worth.worth(_variant("no trees"), rows)
    assert found.geometric_mean == pytest.approx(math.sqrt(1.2 * 0.9))
    assert (found.worst, found.worst_row, found.best, found.best_row) == (
        1.2,
        "row 0/given",
        0.9,
        "row 1/given",
    )
    assert (found.least, found.most) == (pytest.approx(0.9), pytest.approx(1.2))
    assert found.median == pytest.approx(1.05)
    views = [
        {"no trees": _outcome(f"row/{v}", r)} | {"full": _outcome("", 1)}
        for v, r in (("a", 2.0), ("b", 8.0))
    ]
    assert worth.worth(_variant("no trees"), views).least == pytest.approx(4.0)
    assert (found.worse, found.better) == (1, 0)
    assert (found.first, found.peer_rows) == (1, 2)
    assert found.to_peer == pytest.approx(0.5 * math.sqrt(1.2 * 0.9))
    found = worth.worth(_variant("Hedge"), rows)
    assert (found.worse, found.better) == (0, 2)
    assert worth.worth(_variant("full"), rows).worse is None
    spread = worth.luck(rows)
    assert spread.least == pytest.approx(math.sqrt(0.72))
    assert spread.most == pytest.approx(math.sqrt(1.25))
    logs = [np.log([1.0, 1.1, 0.9, 1.0]), np.log([1.0, 1.0, 0.8, 1.25])]
    sums = [((one - one.mean()) ** 2).sum() / 3 for one in logs]
    assert spread.error == pytest.approx(math.sqrt(2 * sum(sums)) / 2)
    assert worth.luck([{"full": _outcome("row", 1.0)}]) is None


def test_peers_count_only_if_all_are_kept(tmp_path):
    entry = _entry(rows=130)
    kept = store.Store(tmp_path)
    passes = {"full": Played(entry.y + 0.5, 1.0), "Hedge": Played(entry.y + 0.1, 1.0)}
    takers = [peer for peer in PEERS if peer.takes(entry)]
    for peer in takers[1:]:
        kept.put(entry, peer, Played(entry.y + 0.2, 1.0))
    found = worth.outcomes(entry, passes, kept)
    assert found["Hedge"].to_full == pytest.approx(0.04)
    assert found["Hedge"].to_peer is found["Hedge"].first is None
    kept.put(entry, takers[0], Played(entry.y + 1.0, 1.0))
    found = worth.outcomes(entry, passes, kept)
    assert found["Hedge"].to_peer == pytest.approx(0.25)
    assert (found["Hedge"].first, found["full"].first) == (True, False)


@pytest.fixture
def folder(tmp_path):
    entry = _entry()
    rows = [",".join(map(repr, map(float, (*x, y)))) for x, y in zip(entry.X, entry.y, strict=True)]
    data = tmp_path / "data"
    data.mkdir()
    with gzip.open(data / "tiny.csv.gz", "wt") as file:
        file.write("\n".join(["a,b,y", *rows]) + "\n")
    return data


def _run(folder, out, *more):
    wishes = "full;no trees;scaling standard only;Hedge"
    ablation.main(["--data", str(folder), "--out", str(out), "--variants", wishes, *more])
    return json.loads((out / "ablation.json").read_text())


@pytest.mark.slow
def test_the_command_on_a_tiny_stream(folder, tmp_path, capsys):
    out = tmp_path / "out"
    found = _run(folder, out)
    assert [row["full"]["row"] for row in found["rows"]] == ["tiny/given", "tiny/lags3"]
    names = [one["variant"] for one in found["variants"]]
    assert names[:4] == ["full", "full, seed 1", "full, seed 2", "full, seed 3"]
    assert names[4:] == ["no trees", "scaling standard only", "Hedge"]
    entry = _entry()
    hedge = kb.AutoBank(combiner=kb.combiners.Hedge()).run(entry.X, entry.y).predictions
    figure = float(scores.losses(entry, hedge)[100:].mean())
    outcome = found["rows"][0]["Hedge"]
    assert outcome["figure"] == pytest.approx(figure, rel=1e-12)
    assert outcome["to_full"] == pytest.approx(figure / found["rows"][0]["full"]["figure"])
    assert outcome["first"] is None
    assert found["luck"]["seeds"] == 3
    shown = capsys.readouterr().out
    assert "no peers are kept" in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 100
    assert "| Hedge |" in (out / "ablation.md").read_text()


@pytest.mark.slow
def test_side_by_side_gives_the_same(folder, tmp_path):
    alone = _run(folder, tmp_path / "alone")
    beside = _run(folder, tmp_path / "beside", "--jobs", "2")
    for one, other in zip(alone["rows"], beside["rows"], strict=True):
        assert {k: v["figure"] for k, v in one.items()} == {
            k: v["figure"] for k, v in other.items()
        }
    assert "~" in (tmp_path / "beside" / "ablation.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", [v.name for v in variants.VARIANTS if v.part == "combiner"])
def test_every_combiner_plays(name):
    found = _variant(name).play(_entry("classification", rows=60))
    assert set(np.unique(found.predictions)) <= {0.0, 1.0}


def test_wrong_variants_are_told(folder, tmp_path):
    with pytest.raises(SystemExit, match="there is no 'nonsense'"):
        ablation.main(["--data", str(folder), "--out", str(tmp_path), "--variants", "nonsense"])
