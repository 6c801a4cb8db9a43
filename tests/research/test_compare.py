"""`kb.compare`: figures against plain loops, seeds, warm-up, rivals, arguments, tables."""

import json
import math
import warnings

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import KernelBankWarning, UnstableStep
from kernelbank.research.competitors import RIVAL, Competitor, CompetitorRun
from kernelbank.research.results import sample_losses
from support.comparisons import noisy_stream

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

KERNELS = kb.gaussian_grid(0.3, 3, 4)


def scheme(**settings):
    return kb.KernelBank(KERNELS, window=5, **settings)


class Remembers:
    """A rival: the target of the nearest input so far."""

    def __init__(self):
        self.seen = []

    def predict_one(self, x):
        assert isinstance(x, np.ndarray)
        assert x.shape == (2,)
        return (
            min(self.seen, key=lambda s: float(((s[0] - x) ** 2).sum()))[1] if self.seen else None
        )

    def learn_one(self, x, y):
        self.seen.append((x, y))


class Counts:
    """Predicts how many samples it has learned."""

    def __init__(self):
        self.learned = 0

    def predict_one(self, x):
        return float(self.learned)

    def learn_one(self, x, y):
        self.learned += 1


def test_compare_figures_equal_a_loop_that_predicts_and_then_learns():
    X, y = noisy_stream(0)
    found = kb.compare({"scheme": scheme()}, {"s": (X, y)}, skip=20)
    rows = {row["name"]: row for row in found.table()}
    bank = scheme()
    errors = []
    for x, target in zip(X, y, strict=True):
        errors.append(bank.predict_one(x) - target)
        bank.learn_one(x, target)
    own = np.array(errors)[20:]
    assert rows["scheme"]["mean_loss"] == pytest.approx((own**2).mean(), rel=1e-12)
    assert rows["scheme"]["cumulative_cost"] == bank.ledger.cumulative_cost
    last = np.concatenate([[0], y[:-1]])
    mean = np.array([y[:n].mean() if n else 0.0 for n in range(len(y))])
    assert rows["persistence"]["mean_loss"] == pytest.approx(((last - y)[20:] ** 2).mean())
    assert rows["running mean"]["mean_loss"] == pytest.approx(((mean - y)[20:] ** 2).mean())
    assert rows["persistence"]["cumulative_cost"] is None
    assert [row["samples"] for row in found.table()] == [100] * 3
    assert all(row["seconds_per_sample"] > 0 for row in found.table())
    assert found.result("s", "scheme").losses[20:] == pytest.approx(own**2)


def test_given_bank_stays_unused_and_equals_its_maker():
    given = scheme()
    streams = {"fixed": noisy_stream(1), "drawn": noisy_stream}
    found = kb.compare({"given": given, "made": lambda seed: scheme()}, streams, seeds=[3, 5])
    assert given.samples == 0
    for stream in streams:
        rows = {r.name: r for r in found.of(stream)}
        assert rows["given"].mean_loss == rows["made"].mean_loss
        assert rows["made"].runs == 2  # a maker may depend on the seed
    assert found.result("fixed", "given").runs == 1
    both = found.result("drawn", "given")
    assert both.runs == 2
    one, two = (kb.compare({"given": given}, {"drawn": noisy_stream}, seeds=[s]) for s in (3, 5))
    means = [found.result("drawn", "given").mean_loss for found in (one, two)]
    assert both.mean_loss == pytest.approx(np.mean(means))
    assert both.mean_loss_deviation == pytest.approx(np.std(means, ddof=1))


def test_rivals_of_the_user_and_of_river_equal_plain_loops():
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    own = Remembers()
    X, y = noisy_stream(2)
    found = kb.compare(
        {"river": model, "own": own, "class": lambda seed: Remembers()}, {"s": (X, y)}
    )
    assert own.seen == []
    again = model.clone()
    errors = []
    for x, target in zip(X.tolist(), y.tolist(), strict=True):
        named = {"x0": x[0], "x1": x[1]}
        errors.append(again.predict_one(named) - target)
        again.learn_one(named, target)
    rows = {r.name: r for r in found.results}
    assert rows["river"].mean_loss == pytest.approx(np.mean(np.square(errors)))
    assert rows["own"].mean_loss == rows["class"].mean_loss < rows["persistence"].mean_loss
    assert rows["river"].kind == "rival"


def test_rival_that_diverges_is_last_and_changes_nothing_else(tmp_path):
    class Explodes(Remembers):
        def predict_one(self, x):
            if len(self.seen) > 60:
                raise OverflowError
            return math.inf if len(self.seen) > 50 else 0.0

    streams = {"a": noisy_stream(0), "b": noisy_stream(1)}
    found = kb.compare({"bad": Explodes(), "good": scheme()}, streams)
    last = found.of("a")[-1]
    assert (last.name, last.diverged, last.p_value) == ("bad", True, None)
    assert found.of("a")[0].name == "good"
    assert "diverged" in repr(found)
    assert found.overall[-1].name == "bad"
    written = json.loads(found.to_json(tmp_path / "t.json").read_text())
    bad = next(row for row in written["results"] if row["name"] == "bad")
    assert (bad["mean_loss"], bad["diverged"]) == (None, True)


def test_given_loss_scores_all_competitors():
    X, y = noisy_stream(4)
    found = kb.compare({"scheme": scheme()}, {"s": (X, y)}, loss=kb.losses.Pinball(0.9))
    last = np.concatenate([[0], y[:-1]])
    expected = kb.losses.Pinball(0.9).value(last, y).mean()
    assert found.result("s", "persistence").mean_loss == pytest.approx(expected)
    assert "Pinball" in repr(found)
    zeros = kb.datasets.Stream(np.zeros(2), np.zeros(2))
    found = sample_losses(kb.losses.Squared(), zeros, np.array([1.0, np.nan]))
    assert found.tolist() == [1.0, np.inf]


def test_comparison_has_a_table_a_file_and_figures(tmp_path):
    calls = []
    found = kb.compare(
        {"scheme": scheme()},
        ["sine", "ar1"],
        seeds=2,
        samples=60,
        progress=lambda *news: calls.append(news),
    )
    assert [news[:2] for news in calls] == [(done, 12) for done in range(1, 13)]
    losses = [row["mean_loss"] for row in found.table() if row["stream"] == "sine"]
    assert losses == sorted(losses)
    assert sum(row["best"] for row in found.table()) == 2
    written = json.loads(found.to_json(tmp_path / "table.json").read_text())
    assert (len(written["results"]), len(written["overall"])) == (6, 3)
    text = repr(found)
    for word in ("all 2 streams", "2 seeds", "scheme", "persistence", "mean rank"):
        assert word in text
    again = kb.compare({"scheme": scheme()}, ["sine", "ar1"], seeds=2, samples=60)
    for one, two in zip(again.results, found.results, strict=True):
        assert one.losses.tolist() == two.losses.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"banks": {}}, "'banks'.*dictionary"),
        ({"banks": {"persistence": scheme()}}, "baseline"),
        ({"banks": {"a": lambda seed: 3}}, r"banks\['a'\].*predict_one"),
        ({"banks": {"a": scheme}}, r"banks\['a'\].*function from a seed"),
        ({"streams": {}}, "'streams'.*at least one"),
        ({"streams": {"s": 3}}, r"streams\['s'\].*pair"),
        ({"streams": ["unheard"]}, r"ar1.*'unheard'"),
        ({"streams": [(1, 2)]}, "'streams'.*list of names"),
        ({"streams": ["nothing.csv"]}, "read_csv"),
        ({"seeds": 0}, "'seeds'"),
        ({"seeds": [1, 1]}, "'seeds'"),
        ({"skip": -1}, "'skip'"),
        ({"skip": 1000}, "'skip'.*shorter"),
        ({"samples": 0}, "'samples'"),
        ({"streams": {"s": (np.zeros(3), np.zeros(2))}}, "'y'"),
        ({"loss": "hinge"}, "'y'.*-1 or"),
    ],
)
def test_wrong_compare_arguments_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kb.compare(**{"banks": {"a": scheme()}, "streams": ["ar1"]} | arguments)


def test_used_banks_are_refused():
    bank = kb.KernelBank()
    bank.learn_one(0.0, 1.0)
    for given in (bank, lambda seed: bank):
        with pytest.raises(ValueError, match=r"banks\['used'\].*learned nothing.*1 samples"):
            kb.compare({"used": given}, {"s": noisy_stream(1)})


def test_runs_on_one_stream_are_not_independent_evidence():
    """Ten makers that make the same bank on one stream say no more than one of them."""
    X, y = noisy_stream(7)
    banks = {"a": lambda seed: scheme(), "b": lambda seed: scheme(regularization=0.5)}
    few, many = (kb.compare(banks, {"s": (X, y)}, seeds=n) for n in (1, 10))
    for left, right in zip(few.results, many.results, strict=True):
        assert left.p_value == pytest.approx(right.p_value, rel=1e-6) if left.p_value else True


def test_warnings_of_a_comparison_begin_with_the_name_of_the_competitor():
    x = np.linspace(0, 1, 60)
    banks = {
        "steady": kb.KernelBank([kb.kernels.Gaussian(5.0)], kb.learners.Norma(0.01, 60)),
        "hasty": kb.KernelBank([kb.kernels.Gaussian(5.0)], kb.learners.Norma(0.5, 60)),
    }
    with pytest.warns(UnstableStep) as record:
        kb.compare(banks, {"line": (x, np.sin(9 * x))}, seeds=1)
    messages = [str(one.message) for one in record if one.category is UnstableStep]
    assert messages
    assert all(message.startswith("hasty: 1 of 1 slots") for message in messages)
    with pytest.warns(UnstableStep, match="^1 of 1 slots"):  # outside a comparison
        banks["hasty"].fresh().run(x, np.sin(9 * x))


def test_rival_that_fails_in_a_comparison_is_named():
    class Breaks(Counts):
        def predict_one(self, x):
            raise TypeError("no")

    x = np.linspace(0, 1, 20)
    with pytest.warns(UserWarning, match="^mine: Breaks failed at sample 0"):
        kb.compare({"mine": Breaks()}, {"line": (x, x)}, seeds=1)


def test_targets_far_from_standard_units_warn_for_a_bank_with_fixed_widths():
    X, y = noisy_stream(0)
    with pytest.warns(KernelBankWarning, match="targets of far have mean 1e.05"):
        kb.compare({"a": scheme()}, {"far": (X, y + 1e5)})
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The targets")
        kb.compare({"a": Counts()}, {"far": (X, y + 1e5)})
        kb.compare({"a": scheme()}, {"far": kb.datasets.standardised(X, y + 1e5, 50)}, skip=50)


# --- the run before the timed one -----------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [lambda: kb.KernelBank(kb.gaussian_grid(0.5, 2, 2)), lambda: kb.AutoBank(size="small"), Counts],
)
def test_first_rows_are_run_before_and_teach_nothing(given):
    """Both runs of each kind predict the first rows alike, or there would be a warning."""
    X, y = noisy_stream(0, 250)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".* does not predict the same")
        found = kb.compare({"given": given(), "made": lambda seed: given()}, {"s": (X, y)})
    own = found.result("s", "given")
    assert own.losses.tolist() == found.result("s", "made").losses.tolist()
    if given is Counts:
        assert own.losses == pytest.approx((np.arange(250) - y) ** 2)


def test_competitor_with_a_run_of_its_own_is_warmed_up_and_has_its_figures():
    lengths, said = [], []

    def run(seed, stream):
        lengths.append(len(stream))
        return CompetitorRun(np.zeros(len(stream)), 1.0, figures={"rows": len(stream)})

    found = kb.compare(
        {"own": Competitor("own", RIVAL, run)},
        {"s": noisy_stream(0, 250)},
        progress=lambda done, total, what: said.append(what),
    )
    assert lengths == [200, 250]
    assert said[0] == "own on s: 2.5e+02 s"
    assert next(row for row in found.table() if row["name"] == "own")["rows"] == 250


def test_runs_that_share_what_they_learned_are_found_out():
    shared = Counts()
    with pytest.warns(KernelBankWarning, match="leaks does not predict the same"):
        kb.compare({"leaks": lambda seed: shared}, {"s": noisy_stream(0, 250)})
