"""`make ablation`: slots taken out, starts left out, ratios and what is written."""

import gzip
import json
import math
from pathlib import Path

import ablation
import ablation_variants as variants
import numpy as np
import pytest
from accuracy_competitors import ONLINE

import kernelbank as kb
from kernelbank.research.competitors import BANK, Competitor, CompetitorRun
from kernelbank.research.results import Comparison
from kernelbank.research.run_cache import RunCache
from kernelbank.research.scores import sample_losses
from support.results import result_row

ROWS = 170


def _stream(task="regression", lags=0, rows=ROWS):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=rows)
    if task == "classification":
        y = (y > 0) * 1.0
    return kb.datasets.Stream(X, y, task, lags)


def _variant(name):
    return next(variant for variant in variants.VARIANTS if variant.name == name)


def _predictions(name, stream):
    return variants.run_variant(name, 0, stream).predictions


def _pool(stream, name="full"):
    """The pool of a variant's bank."""
    variant = _variant(name)
    with variant.in_force():
        bank = variant.bank(stream)
        bank.run(stream.X[:6], stream.y[:6])
        return bank._model.pool


def _by_name(pool):
    """Kernel, learner and the name of the base of every slot."""
    return {
        name: (
            slot.kernel,
            slot.learner,
            None if slot.residual_of is None else pool.names[slot.residual_of],
        )
        for name, slot in zip(pool.names, pool.slots, strict=True)
    }


SCALED = ("standard:", "asinh:", "rank:")
SLOTS = [variant.name for variant in variants.VARIANTS if variant.part == "slots"]


@pytest.mark.parametrize("name", SLOTS)
def test_slots_of_a_variant_are_those_of_the_full_bank_with_their_bases(name):
    stream = _stream()
    full, kept = _by_name(_pool(stream)), _by_name(_pool(stream, name))
    assert 0 < len(kept) < len(full)
    assert {part: full[part] for part in kept} == kept
    keep = _variant(name).keep
    for part, (_, _, base) in full.items():
        asked = keep(variants.without_scaling(part))
        if part not in kept:
            assert not asked or base not in kept or "nearest" in part
        else:
            assert asked
            assert base is None or base in kept


def test_slot_variants_leave_out_what_their_names_say():
    stream = _stream()
    pools = {name: _pool(stream, name) for name in SLOTS}
    running = {
        name: sum(
            pool.names[i].startswith(SCALED) and "nearest" not in pool.names[i] for i in initial
        )
        // 3
        for name, pool in pools.items()
        for initial in [pool.members(pool.initial_groups)]
    }
    assert running == {
        "no random features, no forgetting": 13 - 1 - 2,
        "no random features, forgetting": 13 - 1,
        "no random features, adaptive bias": 13 - 1 - 2,
        "no adaptive bias": 13 - 2 - 4,
        "no linear": 13 - 2 - 2,
        "no random features": 13 - 3 - 4,
        "no trees": 5,
        "trees on the target only": 5 + 2,
        "one tree of each kind": 5 + 4,
        "no nearest neighbors": 13,
        "no last value": 13,
        "no relevant columns": 13,
        "nothing on the past": 13,
        "no reserves": 13,
    }
    assert not any("nearest" in name for name in pools["no nearest neighbors"].names)
    assert not any("last value" in name for name in pools["no last value"].names)
    assert all(group.initial for group in pools["no reserves"].groups)
    assert not all(group.initial for group in pools["no trees"].groups)


def test_a_bank_without_revision_keeps_its_slots():
    draw = np.random.default_rng(0)
    stream = kb.datasets.Stream(draw.normal(size=(600, 2)), draw.normal(size=600), "regression", 0)
    counts = {}
    for name in ("full", "no revision: all initial slots run"):
        variant = _variant(name)
        with variant.in_force():
            bank = variant.bank(stream)
            bank.run(stream.X, stream.y)
        counts[name] = len(bank.ledger.slot_changes)
    assert counts["full"] > 0 == counts["no revision: all initial slots run"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "lags"), [("regression", 0), ("regression", 3), ("classification", 0)]
)
def test_full_variant_has_the_bits_of_an_auto_bank(task, lags):
    stream = _stream(task, lags)
    plain = kb.AutoBank(task, lags=lags).run(stream.X, stream.y)
    assert (_predictions("full", stream)[1:] == plain.predictions[1:]).all()
    other = kb.AutoBank(task, lags, seed=2).run(stream.X, stream.y).predictions
    assert (_predictions("full, seed 2", stream)[1:] == other[1:]).all()


@pytest.mark.slow
def test_starts_are_left_out_and_restored():
    stream = _stream()
    full = _predictions("full", stream)
    few = _predictions("starts after 5, 32 rows only", stream)
    assert (full[:128] == few[:128]).all()
    assert (full[128:] != few[128:]).any()
    one = _predictions("start after 5 rows only", stream)
    assert (full[:32] == one[:32]).all()
    assert (one[32:] != few[32:]).any()
    with pytest.raises(ZeroDivisionError), _variant("start after 5 rows only").in_force():
        _ = 1 / 0
    assert (_predictions("full", stream) == full).all()


def test_restarts_are_read_from_one_module():
    """A module that imported RESTARTS by name would have a copy of its own."""
    files = Path(kb.auto.__file__).parent.rglob("*.py")
    assert not [path for path in files if "import RESTARTS" in path.read_text()]


def _found(table, to_rival=None):
    """A comparison with these losses: name -> one for each stream."""
    streams = [f"set {r}" for r in range(2)]
    results = []
    for index, stream in enumerate(streams):
        results += [result_row(stream, name, values[index]) for name, values in table.items()]
        if to_rival is not None:
            results.append(result_row(stream, "rival", to_rival, "rival"))
    return Comparison("normalised error", 0, 0, (0,), tuple(results), ())


def test_summary_and_spread_of_seeds_equal_plain_sums():
    seeds = [seed.name for seed in variants.OTHER_SEEDS]
    table = {
        "full": [1.0, 1.0],
        seeds[0]: [1.1, 1.0],
        seeds[1]: [0.9, 0.8],
        seeds[2]: [1.0, 1.25],
        "no trees": [1.2, 0.9],
        "Hedge": [0.5, 0.7],
    }
    comparison = _found(table, to_rival=1.0)
    found = ablation.summarise(comparison, _variant("no trees"))
    assert found.geometric_mean == pytest.approx(math.sqrt(1.2 * 0.9))
    assert (found.worst, found.worst_stream) == (1.2, "set 0")
    assert (found.best, found.best_stream) == (0.9, "set 1")
    assert (found.least, found.most) == (pytest.approx(0.9), pytest.approx(1.2))
    assert found.median == pytest.approx(1.05)
    assert (found.worse, found.better) == (1, 0)
    assert (found.first, found.rival_streams) == (1, 2)
    assert found.to_rival == pytest.approx(math.sqrt(1.2 * 0.9))
    found = ablation.summarise(comparison, _variant("Hedge"))
    assert (found.worse, found.better) == (0, 2)
    assert ablation.summarise(comparison, _variant("full")).worse is None
    spread = ablation.seed_spread(comparison)
    assert spread.least == pytest.approx(math.sqrt(0.72))
    assert spread.most == pytest.approx(math.sqrt(1.25))
    logs = [np.log([1.0, 1.1, 0.9, 1.0]), np.log([1.0, 1.0, 0.8, 1.25])]
    sums = [((one - one.mean()) ** 2).sum() / 3 for one in logs]
    assert spread.error == pytest.approx(math.sqrt(2 * sum(sums)) / 2)
    assert ablation.seed_spread(_found({"full": [1.0, 1.0]})) is None


def test_both_views_of_a_data_set_are_left_out_together():
    without = ablation._without_each_data_set({"a": 2.0, "a +3": 8.0})
    assert without == [pytest.approx(4.0)]
    without = ablation._without_each_data_set({"a": 2.0, "a +3": 8.0, "b": 3.0})
    assert sorted(without) == [pytest.approx(3.0), pytest.approx(4.0)]


def test_rivals_count_only_if_all_are_kept(tmp_path):
    stream = _stream(rows=130)
    cache = RunCache(tmp_path)

    def compare():
        own = {"full": stream.y + 0.5, "Hedge": stream.y + 0.1}
        competitors = [
            Competitor(name, BANK, lambda *_, y=y: CompetitorRun(y, 1.0)) for name, y in own.items()
        ]
        competitors += ablation.cached_rivals(ONLINE, cache)
        found = kb.compare(
            {one.name: one for one in competitors},
            {"tiny": stream},
            loss="normalised",
            skip=100,
            keep_losses=True,
            cache=cache,
        )
        return [ablation.summarise(found, _variant(name)) for name in ("full", "Hedge")]

    takers = [rival for rival in ONLINE if rival.takes(stream)]
    for rival in takers[1:]:
        cache.put(rival, 0, stream, CompetitorRun(stream.y + 0.2, 1.0))
    _, hedge = compare()
    assert hedge.geometric_mean == pytest.approx(0.04)
    assert hedge.to_rival is hedge.first is None
    cache.put(takers[0], 0, stream, CompetitorRun(stream.y + 1.0, 1.0))
    full, hedge = compare()
    assert hedge.to_rival == pytest.approx(0.25)
    assert (hedge.first, full.first) == (1, 0)


@pytest.fixture
def folder(tmp_path):
    stream = _stream()
    rows = [
        ",".join(map(repr, map(float, (*x, y)))) for x, y in zip(stream.X, stream.y, strict=True)
    ]
    data = tmp_path / "data"
    data.mkdir()
    with gzip.open(data / "tiny.csv.gz", "wt") as file:
        file.write("\n".join(["a,b,y", *rows]) + "\n")
    return data


def _run(folder, out, *more):
    names = "full;no trees;scaling standard only;Hedge"
    ablation.main(["--data", str(folder), "--out", str(out), "--variants", names, *more])
    return json.loads((out / "ablation.json").read_text())


@pytest.mark.slow
def test_ablation_of_a_tiny_stream_writes_tables_and_figures(folder, tmp_path, capsys):
    out = tmp_path / "out"
    found = _run(folder, out)
    results = {(row["stream"], row["name"]): row for row in found["results"]}
    assert list(dict.fromkeys(stream for stream, _ in results)) == ["tiny", "tiny +3"]
    names = [one["variant"] for one in found["variants"]]
    assert names[:4] == ["full", "full, seed 1", "full, seed 2", "full, seed 3"]
    assert names[4:] == ["no trees", "scaling standard only", "Hedge"]
    stream = _stream()
    hedge = kb.AutoBank(combiner=kb.combiners.Hedge()).run(stream.X, stream.y).predictions
    error = float(sample_losses(None, stream, hedge, 100)[100:].mean())
    assert results["tiny", "Hedge"]["mean_loss"] == pytest.approx(error, rel=1e-12)
    assert found["variants"][-1]["first"] is None
    assert found["chance"]["seeds"] == 3
    shown = capsys.readouterr().out
    assert "no rivals are kept" in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 100
    assert "| Hedge |" in (out / "ablation.md").read_text()


@pytest.mark.slow
def test_variants_side_by_side_give_the_same_figures(folder, tmp_path):
    alone, beside = (
        _run(folder, tmp_path / jobs, "--jobs", jobs)["results"] for jobs in ("1", "2")
    )
    for one, other in zip(alone, beside, strict=True):
        assert (one["name"], one["mean_loss"]) == (other["name"], other["mean_loss"])
    assert "~" in (tmp_path / "2" / "ablation.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", [v.name for v in variants.VARIANTS if v.part == "combiner"])
def test_every_combiner_predicts_labels(name):
    found = _predictions(name, _stream("classification", rows=60))
    assert found[0] == -1.0  # no class is known
    assert set(np.unique(found[1:])) <= {0.0, 1.0}


def test_unknown_variant_is_refused(folder, tmp_path):
    with pytest.raises(SystemExit, match="there is no 'nonsense'"):
        ablation.main(["--data", str(folder), "--out", str(tmp_path), "--variants", "nonsense"])
