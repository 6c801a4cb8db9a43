"""`kb.compare` and the commands built on it."""

import gzip
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import kernelbank as kb
from kernelbank.app.cli import commands
from kernelbank.app.cli import component_parser as parts
from kernelbank.evaluation.scores import sample_losses

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

KERNELS = kb.gaussian_grid(0.3, 3, 4)


def scheme(**settings):
    return kb.KernelBank(KERNELS, window=5, **settings)


def noisy(seed, samples=120):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-2, 2, (samples, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * draw.normal(size=samples)


class Remembers:
    """A rival of one's own: the target of the nearest input so far."""

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


# --- playing


def test_figures_are_those_of_a_loop_that_predicts_and_then_learns():
    X, y = noisy(0)
    found = kb.compare({"scheme": scheme()}, {"s": (X, y)}, skip=20)
    rows = {row["name"]: row for row in found.table()}
    bank = scheme()
    errors = []
    for x, target in zip(X, y, strict=True):
        errors.append(bank.predict_one(x) - target)
        bank.learn_one(x, target)
    own = np.array(errors)[20:]
    assert rows["scheme"]["mean_loss"] == pytest.approx((own**2).mean(), rel=1e-12)
    assert rows["scheme"]["root_mean_squared_error"] == pytest.approx(math.sqrt((own**2).mean()))
    assert rows["scheme"]["cumulative_cost"] == bank.ledger.cumulative_cost
    last = np.concatenate([[0], y[:-1]])
    mean = np.array([y[:n].mean() if n else 0.0 for n in range(len(y))])
    assert rows["persistence"]["mean_loss"] == pytest.approx(((last - y)[20:] ** 2).mean())
    assert rows["running mean"]["mean_loss"] == pytest.approx(((mean - y)[20:] ** 2).mean())
    assert rows["persistence"]["cumulative_cost"] is None
    assert [row["samples"] for row in found.table()] == [100] * 3
    assert all(row["seconds_per_sample"] > 0 for row in found.table())
    curve = dict(next(r for r in found.results if r.name == "scheme").curve)
    assert curve[21] == pytest.approx(own[0] ** 2)
    assert curve[120] == pytest.approx((own**2).mean())


def test_a_given_bank_is_never_touched_and_means_the_same_as_its_maker():
    given = scheme()
    streams = {"fixed": noisy(1), "drawn": noisy}
    found = kb.compare({"given": given, "made": lambda seed: scheme()}, streams, seeds=[3, 5])
    assert given.samples == 0
    for stream in streams:
        rows = {r.name: r for r in found.of(stream)}
        assert rows["given"].mean_loss == rows["made"].mean_loss
        assert rows["given"].excess_loss == rows["made"].excess_loss
        assert rows["made"].runs == 2  # a maker may depend on the seed
    assert {r.name: r.runs for r in found.of("fixed")}["given"] == 1
    assert {r.name: r.runs for r in found.of("drawn")}["given"] == 2
    one, two = (kb.compare({"given": given}, {"drawn": noisy}, seeds=[s]) for s in (3, 5))
    means = [found.of("drawn")[0].mean_loss for found in (one, two)]
    both = {r.name: r for r in found.of("drawn")}["given"]
    assert both.mean_loss == pytest.approx(np.mean(means))
    assert both.mean_loss_deviation == pytest.approx(np.std(means, ddof=1))


@pytest.mark.slow
def test_fresh_banks_have_all_settings_and_nothing_learned():
    K = kb.kernels
    bank = kb.KernelBank(
        slots=[
            kb.Slot(K.Gaussian(1.0), kb.learners.Norma(0.1)),
            kb.Slot(K.Linear(), kb.learners.Norma(0.01)),
        ],
        combiner=kb.combiners.Best(),
        loss=kb.losses.Huber(0.3),
        window=3,
        regularization=0.2,
        dtype="float32",
    )
    X, y = noisy(0, 50)
    first = bank.run(X, y).predictions
    fresh = bank.fresh()
    assert fresh.samples == 0
    assert fresh.slots == bank.slots
    assert (fresh.run(X, y).predictions == first).all()
    assert repr(fresh) == repr(bank)


def test_rivals_of_ones_own_and_of_river():
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    own = Remembers()
    X, y = noisy(2)
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


@pytest.mark.slow
def test_a_rival_that_diverges_is_last_and_spoils_nothing(tmp_path):
    class Explodes(Remembers):
        def predict_one(self, x):
            if len(self.seen) > 60:
                raise OverflowError
            return math.inf if len(self.seen) > 50 else 0.0

    found = kb.compare({"bad": Explodes(), "good": scheme()}, {"a": noisy(0), "b": noisy(1)})
    last = found.of("a")[-1]
    assert last.name == "bad"
    assert last.diverged
    assert last.p_value is None
    assert found.of("a")[0].name == "good"
    assert "diverged" in repr(found)
    assert found.overall[-1].name == "bad"
    written = json.loads(found.to_json(tmp_path / "t.json").read_text())
    bad = next(row for row in written["results"] if row["name"] == "bad")
    assert bad["mean_loss"] is None
    assert bad["diverged"] is True
    assert found.plot(tmp_path / "picture.png")[0].stat().st_size > 5000


def test_other_losses_score_all_players_alike():
    X, y = noisy(4)
    found = kb.compare({"scheme": scheme()}, {"s": (X, y)}, loss=kb.losses.Pinball(0.9))
    rows = {r.name: r for r in found.results}
    last = np.concatenate([[0], y[:-1]])
    expected = kb.losses.Pinball(0.9).value(last, y).mean()
    assert rows["persistence"].mean_loss == pytest.approx(expected)
    assert "Pinball" in repr(found)
    zeros = kb.datasets.Stream(np.zeros(2), np.zeros(2))
    found = sample_losses(kb.losses.Squared(), zeros, np.array([1.0, np.nan]))
    assert found.tolist() == [1.0, np.inf]


def test_the_table_the_file_and_the_picture(tmp_path):
    told = []
    found = kb.compare(
        {"scheme": scheme()},
        ["sine", "friedman"],
        seeds=2,
        samples=60,
        progress=lambda *news: told.append(news),
    )
    assert told[-1][:2] == (12, 12)
    assert [news[0] for news in told] == list(range(1, 13))
    assert found.streams == ("sine", "friedman")
    losses = [row["mean_loss"] for row in found.table() if row["stream"] == "sine"]
    assert losses == sorted(losses)
    assert sum(row["best"] for row in found.table()) == 2
    written = json.loads(found.to_json(tmp_path / "table.json").read_text())
    assert len(written["results"]) == 6
    assert len(written["overall"]) == 3
    files = found.plot(tmp_path / "picture")
    assert [file.name for file in files] == ["picture.png", "picture.svg"]
    text = repr(found)
    for word in ("2 streams", "3 competitors", "2 seeds", "scheme", "persistence", "mean rank"):
        assert word in text
    again = kb.compare({"scheme": scheme()}, ["sine", "friedman"], seeds=2, samples=60)
    assert [r.curve for r in again.results] == [r.curve for r in found.results]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"banks": {}}, "'banks'.*dictionary"),
        ({"banks": {"persistence": scheme()}}, "baseline"),
        ({"banks": {"a": 3}}, r"banks\['a'\].*predict_one"),
        ({"banks": {"a": lambda seed: 3}}, r"banks\['a'\].*predict_one"),
        ({"banks": {"a": Remembers}}, r"banks\['a'\].*function from a seed"),
        ({"banks": {"a": scheme}}, r"banks\['a'\].*function from a seed"),
        ({"streams": {}}, "'streams'.*at least one"),
        ({"streams": 3}, "'streams'"),
        ({"streams": {"s": 3}}, r"streams\['s'\].*pair"),
        ({"streams": ["unheard"]}, r"ar1.*'unheard'"),
        ({"streams": [(1, 2)]}, "'streams'.*named"),
        ({"streams": ["nothing.csv"]}, "nothing.csv: there is no such file"),
        ({"seeds": 0}, "'seeds'"),
        ({"seeds": []}, "'seeds'"),
        ({"seeds": [1, 1]}, "'seeds'"),
        ({"skip": -1}, "'skip'"),
        ({"skip": 1000}, "'skip'.*shorter"),
        ({"samples": 0}, "'samples'"),
        ({"loss": "none"}, "'loss'"),
        ({"streams": {"s": (np.zeros(3), np.zeros(2))}}, "'y'"),
        ({"loss": "hinge"}, "'y'.*-1 or"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        kb.compare(**{"banks": {"a": scheme()}, "streams": ["ar1"]} | arguments)


def test_a_bank_that_has_learned_is_refused():
    bank = scheme()
    bank.learn_one([0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"learned nothing.*fresh"):
        kb.compare({"a": bank}, ["ar1"])


def test_runs_on_one_stream_are_not_taken_for_independent_evidence():
    """Ten makers that make the same bank on one stream say no more than one of them."""
    X, y = noisy(7)
    banks = {"a": lambda seed: scheme(), "b": lambda seed: scheme(regularization=0.5)}
    few, many = (kb.compare(banks, {"s": (X, y)}, seeds=n) for n in (1, 10))
    for left, right in zip(few.results, many.results, strict=True):
        assert left.p_value == pytest.approx(right.p_value, rel=1e-6) if left.p_value else True


# --- the command line


def write(path, text):
    if path.name.endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        path.write_text(text)
    return path


def run(*arguments):
    return CliRunner().invoke(commands.cli, [str(argument) for argument in arguments])


def test_the_compare_command(tmp_path):
    X, y = noisy(0, 150)
    lines = [f"{a},{b},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    path = write(tmp_path / "load.csv.gz", "a,b,load\n" + "\n".join(lines) + "\n")
    result = run(
        "compare", path, "sine", "--target", "load", "--learners", "Norma(learning_rate=0.1,budget=20)",
        "--combiners", "Simplex,Simplex(evidence='prequential', horizon=9)", "--kernels", "Gaussian,Linear",
        "--widths", "0.5:2:3", "--seeds", 2, "--samples", 140, "--scale", 40, "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "out" / "table.json").read_text())
    names = {row["name"] for row in written["results"]}
    assert names == {
        "Simplex",
        "Simplex(evidence='prequential', horizon=9)",
        "persistence",
        "running mean",
    }
    assert {row["stream"]: row["samples"] for row in written["results"]} == {
        "load": 100,
        "sine": 100,
    }
    assert (tmp_path / "out" / "running_loss.png").stat().st_size > 5000
    for words in (
        "load: 100 samples",
        "sine: 100 samples scored, 2 seeds",
        "persistence",
        "mean rank",
    ):
        assert words in result.output


@pytest.mark.parametrize(
    ("learners", "combiners", "names"),
    [
        ("Norma", "Best", {"Norma Best"}),
        ("Norma,Norma(budget=30)", "Best", {"Norma", "Norma(budget=30)"}),
        ("Norma,Norma(budget=30)", "Best,Uniform", {"Norma Best", "Norma(budget=30) Uniform"}),
    ],
)
def test_banks_are_named_by_what_tells_them_apart(learners, combiners, names, tmp_path):
    result = run(
        "compare", "ar1", "--samples", 40, "--learners", learners, "--combiners", combiners,
        "--widths", "1,2", "--out", tmp_path,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "table.json").read_text())["results"]
    assert names <= {row["name"] for row in rows}


def test_labels_keep_their_units(tmp_path):
    draw = np.random.default_rng(0)
    lines = [f"{x},{1 if x > 3 else -1}" for x in draw.uniform(2, 4, 60)]
    path = write(tmp_path / "l.csv", "x,y\n" + "\n".join(lines) + "\n")
    result = run("compare", path, "--loss", "logistic", "--scale", 10, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.csv"], "nothing.csv: there is no such file"),
        (["nothing"], "not the name of a stream"),
        (["ar1", "--learners", "Norm"], "no 'Norm'. Use"),
        (["ar1", "--learners", "Norma(budget=__import__('os').getpid())"], "plain numbers"),
        (["ar1", "--learners", "Norma(3)"], "settings need their names"),
        (["ar1", "--learners", "Norma(**{'budget': 3})"], "settings need their names"),
        (["ar1", "--learners", "Norma(bugdet=3)"], "no setting 'bugdet'"),
        (["ar1", "--learners", "Norma(budget=3)"], "must be >= window (10)"),
        (["ar1", "--learners", "Norma(budget='many')"], "'budget' of Norma"),
        (["ar1", "--learners", "Norma("], "must list names"),
        (["ar1", "--learners", "Norma()()"], "must list names"),
        (["ar1", "--learners", "os.system('true')"], "must list names"),
        (["ar1", "--learners", "1+1"], "must list names"),
        (["ar1", "--learners", ""], "must list names"),
        (["ar1", "--learners", "(" * 500], "must list names"),
        (["ar1", "--combiners", "Simplex(evidence=1)"], "'evidence' of Simplex"),
        (["ar1", "--kernels", "Sum"], "no 'Sum'"),
        (["ar1", "--kernels", "Periodic"], "'Periodic' cannot be made"),
        (["ar1", "--widths", "1:2"], "--widths must be"),
        (["ar1", "--widths", "1,-2"], "--widths must be"),
        (["ar1", "--widths", "2:1:3"], "--widths must be"),
        (["ar1", "--loss", "unheard"], "'loss' must be"),
    ],
)
def test_wrong_wishes_are_one_line(arguments, words, tmp_path):
    result = run("compare", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_bad_cell_is_one_line_with_its_place(tmp_path):
    path = write(tmp_path / "t.csv", "a,y\n1,2\nyes,3\n")
    result = run("compare", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert result.output.startswith(f"kernelbank: {path}, line 3, column 'a': 'yes' is no")
    assert len(result.output.strip().splitlines()) == 1


def test_words_become_parts():
    found = parts.parse("Norma(budget=7), Norma", "--learners", kb.learners.BUILT_IN)
    assert list(found.values()) == [kb.learners.Norma(budget=7), kb.learners.Norma()]
    assert parts.grid("1:4:3") == pytest.approx([1, 2, 4])
    assert parts.grid("3:3:1") == [3.0]
    assert parts.grid("0.5,2") == [0.5, 2.0]
    K = kb.kernels
    kernels = parts.parse_kernels("Matern(nu=2.5),Linear,Gaussian(width=9)", [1.0, 2.0])
    assert kernels == [K.Matern(1.0, 2.5), K.Matern(2.0, 2.5), K.Linear(), K.Gaussian(9.0)]


@pytest.mark.slow
def test_the_lorenz_command(tmp_path):
    result = run("lorenz", "--samples", 120, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "lorenz.png").stat().st_size > 5000
    assert "Norma" in (tmp_path / "out" / "lorenz.csv").read_text()
    assert "10.96" in result.output


@pytest.mark.parametrize("command", ["compare", "lorenz"])
def test_help_of_the_commands_is_light(command):
    code = (
        "import sys; from kernelbank.app.cli import commands\n"
        f"try: commands.cli([{command!r}, '--help'], prog_name='kernelbank')\n"
        "except SystemExit: pass\n"
        "assert not {'numpy', 'numba', 'matplotlib', 'rich'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_bank_that_diverges_to_huge_numbers_stands_last():
    wild = kb.KernelBank([kb.kernels.Gaussian(1.0)], kb.learners.KLMS(learning_rate=50.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = kb.compare({"wild": wild}, {"s": (np.zeros((200, 1)), np.ones(200))})
    assert found.table()[-1]["name"] == "wild"


def test_a_maker_that_returns_a_used_bank_is_refused():
    bank = kb.KernelBank()
    bank.learn_one(0.0, 1.0)
    with pytest.raises(ValueError, match="learned nothing"):
        kb.compare({"used": lambda seed: bank}, {"s": noisy(1)})
