"""The story of a run: what a page is told, and the command that writes the page."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.app.report import report_data as story
from kernelbank.app.report.report_data import Story
from kernelbank.app.runner import model_session
from kernelbank.app.runner.history import EXTREMES, POINTS, TOTALS, History
from kernelbank.app.runner.status import RunStatus
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from support.running import as_csv, good, numbers, one_line, refused, run

ROWS = 700
X, Y = numbers(ROWS)


def told(folder):
    """The parts of a run's state."""
    return read(Story().parts(RunStatus.of_state(folder)))


def read(parts):
    return {name: json.loads(text, parse_constant=pytest.fail) for name, text in parts.items()}


def joined(parts, name):
    """A figure of all points."""
    found = [parts[f"points/{k}"][name] for k in range(-(-parts["now"]["points"] // story.POINTS))]
    return [value for some in found for value in some]


def near(shown, wanted, digits):
    """Whether numbers are those, rounded to so many digits."""
    wanted = np.asarray(wanted)
    # Rounding to d digits errs by at most half a unit of the last one: 0.5 * 10^(1-d) of the value.
    return (
        np.abs(np.array(shown) - wanted) <= 0.5000001 * 10.0 ** (1 - digits) * abs(wanted)
    ).all()


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    source = as_csv(folder / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    good(source, "--target", "y", "--state", folder / "state", "--coverage", 0.8)
    source.unlink()  # nothing is read again
    return folder / "state"


def test_figures_are_those_of_the_bank(state):
    parts = told(state)
    trace = kb.AutoBank(size="small").run(X, Y, record="all", coverage=0.8)
    stride = parts["now"]["stride"]
    cuts = np.arange(stride, ROWS, stride)
    assert parts["now"]["rows"] == ROWS
    assert stride == 2
    assert joined(parts, "rows") == [len(part) for part in np.split(Y, cuts)]
    errors = (trace.predictions - Y) ** 2
    before = (np.concatenate([Y[:1], Y[:-1]]) - Y) ** 2
    slots = (trace.slot_predictions - Y[:, None]) ** 2
    inside = ((trace.lower <= Y) & (trace.upper >= Y)).astype(float)
    errors[0] = before[0] = slots[0] = inside[0] = 0.0  # said before anything was known
    width = trace.upper - trace.lower
    width[0] = 0.0
    for name, rows, digits in (
        ("loss", errors, 7),
        ("baseline_loss", before, 7),
        ("covered", inside, 12),
        ("width", width, 7),
        ("losses", slots, 5),
    ):
        assert near(joined(parts, name), [p.sum(axis=0) for p in np.split(rows, cuts)], digits), (
            name
        )
    answers = trace.predictions[1:]
    for name, rows, extreme in (
        ("worst_loss", errors[1:], np.max),
        ("prediction_high", answers, np.max),
        ("prediction_low", answers, np.min),
    ):
        wanted = [extreme(part) for part in np.split(rows, cuts - 1)]
        assert near(joined(parts, name), wanted, 6), name
    assert near(joined(parts, "target_low"), [part.min() for part in np.split(Y, cuts)], 6)
    assert near(joined(parts, "target_high"), [part.max() for part in np.split(Y, cuts)], 6)
    for name, extreme in (("weights", np.mean), ("weights_high", np.max)):
        wanted = [extreme(part, axis=0) for part in np.split(trace.weights, cuts)]
        assert np.abs(np.array(joined(parts, name)) / 1e4 - wanted).max() <= 0.5001e-4


def test_snapshots_are_those_of_the_bank(state):
    parts = told(state)
    assert parts["run"]["columns"] == ["a", "b"]
    bank, done = kb.AutoBank(size="small"), 0
    for name, row in [*((f"snapshot/{n}", n) for n in (64, 128, 256, 512)), ("snapshot/now", ROWS)]:
        bank.run(X[done:row], Y[done:row])
        done = row
        assert parts[name]["row"] == row
        medians = np.median(X[:row], axis=0)
        for k, line in enumerate(parts[name]["lines"]):
            low, high = X[:row, k].min(), X[:row, k].max()
            where = np.linspace(low, high, 24)
            points = np.tile(medians, (24, 1))
            points[:, k] = where
            said = bank.survey(points, 0.8)
            assert near(line["at"], where, 6)
            for place, one in enumerate(("middle", "low", "high")):
                assert near(line[one], said[:, place], 6), (name, k, one)


@pytest.mark.parametrize("count", [2, 3])
def test_labels(count, tmp_path):
    labels = np.array(["no", "yes", "perhaps"])[
        1 * (np.abs(X[:, 0]) > 0.7) + (X[:, 1] > 1) * (count > 2)
    ]
    rows = np.column_stack([X.astype(object), labels])
    source = as_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    good(source, "--target", "y", "--task", "classification", "--state", tmp_path / "state")
    parts = told(tmp_path / "state")
    bank = kb.AutoBank("classification", size="small")
    trace = bank.run(X, labels, record="all")
    wrong = (trace.predictions != labels)[1:]
    slots = (
        trace.slot_classes[1:] != np.array([bank.classes.index(one) for one in labels])[1:, None]
    )
    assert sum(joined(parts, "loss")) == wrong.sum()
    assert sum(joined(parts, "covered")) == (~wrong).sum()
    assert (np.sum(joined(parts, "losses"), axis=0) == slots.sum(axis=0)).all()
    assert near(sum(joined(parts, "width")), trace.probabilities.max(axis=1)[1:].sum(), 5)
    assert joined(parts, "target_low") == [None] * parts["now"]["points"]
    assert parts["run"]["classes"] == list(bank.classes)
    assert parts["run"]["weights_of"] == ("" if count == 2 else bank.classes[0])
    lines = parts["snapshot/512"]["lines"]
    assert len(lines) == 2
    assert all(0 <= share <= 1 for line in lines for share in line["middle"])


def test_lagged_targets_are_drawn_along(tmp_path):
    source = as_csv(tmp_path / "s.csv", ["y"], Y[:, None])
    good(source, "--target", "y", "--lags", 3, "--state", tmp_path / "state")
    parts = told(tmp_path / "state")
    assert parts["run"]["columns"] == ["y, 1 before", "y, 2 before", "y, 3 before"]
    bank = kb.AutoBank(size="small", lags=3)
    bank.run(np.zeros((ROWS, 1)), Y)
    where = np.linspace(Y.min(), Y.max(), 24)
    lagged = np.tile(Y[:-4:-1], (24, 1))
    lagged[:, 1] = where
    said = bank._desk.ask(np.zeros((24, 1)), lagged, 0.05)
    line = parts["snapshot/now"]["lines"][1]
    assert near(line["at"], where, 6)
    assert near(line["middle"], [one.answer[0] for one in said], 6)


def test_what_ran_is_told(tmp_path):
    kinds = np.array(["u", "v", "w"])[np.arange(ROWS) % 3]
    rows = np.column_stack([X.astype(object), kinds, Y.astype(object)])
    rows[[30, 60], 0] = "oh"
    source = as_csv(tmp_path / "s.csv", ["a", "b", "kind", "y"], rows)
    options = ("--categorical", "kind", "--on-bad-row", "skip", "--max-rows", 300)
    for _ in range(2):
        good(source, "--target", "y", *options, "--state", tmp_path / "state")
    parts = told(tmp_path / "state")
    facts = {label: text for _, pairs in parts["run"]["facts"] for label, text in pairs}
    assert facts["source"] == str(source)
    assert facts["numeric inputs"] == "a, b"
    assert facts["categories of kind"] == "u, v, w"
    assert facts["kernelbank"] == kb.__version__
    assert facts["starts"] == "2"
    assert parts["run"]["status"] == "saved"
    assert [one["row"] for one in parts["bad"]["examples"]] == [31, 61]
    assert parts["bad"]["count"] == parts["now"]["bad"] == 2
    assert dict(parts["now"]["time"])["the model"] > 0
    assert parts["now"]["starts"] == 2


def test_signals_stand_where_they_were_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(model_session, "make_model", one_line)
    level = Y + 1000 * (np.arange(ROWS) > 400)
    source = as_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, level]))
    found = {}
    for delay in (0, 5):
        folder = tmp_path / str(delay)
        good(source, "--target", "y", "--state", folder, "--delay", delay)
        changes = kb.load(folder / "state.kb").ledger.changes
        found[delay] = told(folder)["changes"]
        assert found[delay] == [[c.row + delay, c.what, ""] for c in changes]
    assert "target level" in {what for _, what, _ in found[0]}


def test_a_run_tells_the_same_as_its_state(tmp_path, monkeypatch):
    """And a story that goes on tells the same as one that begins."""
    kept, going_on = {}, Story()

    def noted(self, run):
        going_on.parts(RunStatus.of_run(run, "running"))
        kept["run"] = RunStatus.of_run(run, "saved")

    monkeypatch.setattr("kernelbank.app.live.publisher.Pictures.update", noted)
    source = as_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    good(source, "--target", "y", "--state", tmp_path / "state", "--checkpoint-every", 90)
    mine, other = going_on.parts(kept["run"]), Story().parts(RunStatus.of_state(tmp_path / "state"))
    assert mine.keys() == other.keys()
    assert {name for name in mine if mine[name] != other[name]} <= {"now", "run"}
    times = {"seconds", "speed", "time", "updated"}
    now = [
        {k: v for k, v in json.loads(one["now"]).items() if k not in times} for one in (mine, other)
    ]
    assert now[0] == now[1]


def filled(rows, slots):
    """A history of made-up rows with as many digits as there can be."""
    draw = np.random.default_rng(0)
    history = History(slots)
    for _ in range(rows // 1000):
        figures = np.abs(draw.normal(size=(1000, len(TOTALS)))) * 1e-9
        figures[:, 0] = 1.0
        extremes = draw.normal(size=(1000, len(EXTREMES))) * 1e-9
        weights = draw.dirichlet(np.ones(slots), 1000)
        history.add(figures, extremes, weights, draw.normal(size=(1000, slots)) * 1e-9)
    return history


def test_a_page_of_many_rows_is_small(state):
    """10^5 rows of as many slots as the largest size has."""
    slots = len(_large().names)
    given = dataclasses.replace(RunStatus.of_state(state), history=filled(100_000, slots))
    parts = Story().parts(given)
    snapshots = (
        len(parts["snapshot/now"]) * 40 * 4
    )  # of eight inputs instead of two, and all there can be
    assert sum(map(len, parts.values())) + snapshots < 1.6e6


def _large():
    bank = kb.AutoBank(size="large")
    bank.learn_one([0.0] * 8, 0.0)
    return bank


def test_parts_stay_as_they_are(state):
    """Only what has changed is put into words anew."""
    given, telling = RunStatus.of_state(state), Story()
    history = filled(0, 3)
    seen = []
    for count in (1, 1, 40, 1000):
        rows = np.ones((count, len(TOTALS)))
        history.add(rows, np.ones((count, len(EXTREMES))), np.ones((count, 3)), np.ones((count, 3)))
        parts = telling.parts(dataclasses.replace(given, history=history))
        fresh = Story().parts(dataclasses.replace(given, history=history))
        assert {n: p for n, p in parts.items() if n[:6] == "points"} == {
            n: p for n, p in fresh.items() if n[:6] == "points"
        }
        seen.append(parts)
    assert seen[0]["points/0"] != seen[1]["points/0"]
    assert "points/1" not in seen[1]
    again = telling.parts(dataclasses.replace(given, history=history))
    assert again["points/0"] is seen[-1]["points/0"]
    assert history.stride > 1
    assert history.points <= POINTS


def test_the_present_function_may_be_that_told_last(state):
    given, telling = RunStatus.of_state(state), Story()
    first = telling.parts(given, present=False)  # there is none yet: it is made
    given.bank.run(X[:50], Y[:50])
    assert telling.parts(given, present=False)["snapshot/now"] is first["snapshot/now"]
    assert telling.parts(given)["snapshot/now"] != first["snapshot/now"]


def test_what_is_not_finite_is_null(state):
    history = filled(0, 2)
    rows = np.full((3, len(TOTALS)), np.nan)
    rows[:, 0] = 1.0
    wild = np.full((3, 2), np.inf)
    history.add(rows, np.full((3, len(EXTREMES)), np.nan), np.full((3, 2), np.nan), wild)
    parts = read(Story().parts(dataclasses.replace(RunStatus.of_state(state), history=history)))
    assert parts["points/0"]["loss"] == [None] * 3
    assert parts["points/0"]["losses"] == [[None, None]] * 3
    assert parts["points/0"]["worst_loss"] == [None] * 3


# --- the command ----------------------------------------------------------------------------------


def command(*words):
    """`kernelbank report` with these words."""
    return run_words("report", *words)


def run_words(*words):
    import contextlib
    import io

    from kernelbank.app.cli import commands

    err = io.StringIO()
    code = 0
    with contextlib.redirect_stderr(err):
        try:
            commands.cli.main(list(map(str, words)), prog_name="kernelbank")
        except SystemExit as ended:
            code = ended.code
    return code, err.getvalue()


def story_of(path):
    """The parts inside a page."""
    text = path.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="story">(.*?)</script>', text, re.S)
    return json.loads(found)


def test_report(state, tmp_path):
    out = tmp_path / "page.html"
    code, said = command(state, "--out", out)
    assert (code, said) == (0, f"Wrote {out}\n")
    assert story_of(out) == told(state)
    assert out.stat().st_size < 2e6
    assert sorted(tmp_path.iterdir()) == [out]
    assert command(state, "--out", out)[0] == 0  # again


def test_run_writes_a_report(tmp_path):
    source = as_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    out = tmp_path / "page.html"
    done = good(source, "--target", "y", "--report", out)
    assert str(out) in done.err
    parts = story_of(out)
    assert parts["run"]["status"] == "ended"
    assert parts["now"]["rows"] == ROWS


def test_a_run_that_stops_at_a_bad_row_leaves_a_report(tmp_path):
    rows = np.column_stack([X, Y]).astype(object)
    rows[200, 0] = "oh"
    source = as_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    out = tmp_path / "page.html"
    refused(source, "--target", "y", "--report", out)
    assert story_of(out)["run"]["status"] == "stopped"
    assert story_of(out)["now"]["rows"] == 200


@pytest.mark.parametrize(
    ("place", "word"),
    [("page.csv", ".html"), ("nowhere/page.html", "no folder"), ("folder.html", "is a folder")],
)
def test_places_that_cannot_be(state, tmp_path, place, word):
    (tmp_path / "folder.html").mkdir()
    source = as_csv(tmp_path / "s.csv", ["a", "y"], np.zeros((3, 2)))
    code, said = command(state, "--out", tmp_path / place)
    assert (code, said.count("\n")) == (2, 1)
    assert word in said
    assert word in refused(source, "--target", "y", "--report", tmp_path / place)


def test_what_is_no_state(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        code, said = command(folder, "--out", tmp_path / "page.html")
        assert (code, said.count("\n")) == (2, 1)
        assert "--state" in said
    kb.AutoBank().save(tmp_path / "state.kb")
    code, said = command(tmp_path, "--out", tmp_path / "page.html")
    assert "not the state of a run" in said
    assert not (tmp_path / "page.html").exists()


FORGED = [
    ("options", {}),
    ("options.coverage", "much"),
    ("options.coverage", 2.0),
    ("options.delay", "1"),
    ("options.preset", "other"),
    ("options.task", "cooking"),
    ("options.features", 5),
    ("options.more", 5),
    ("source", 5),
    ("predictions", None),
    ("features", 7),
    ("categories", [["a"]]),
    ("rows", [1]),
    ("rows", "a"),
    ("rejected_rows", {"count": 3, "first": [], "last": []}),
    ("timings", {}),
    ("timings.seconds", 5),
    ("timings.started", "now"),
    ("timings.versions", 5),
    ("timings.updated", 5),
    ("history.slots", 2),
    ("bank", {}),
]


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_forged_states_are_refused(state, tmp_path, name, value):
    header, arrays = checkpoint.read(state / "state.kb")
    place = header
    *path, last = name.split(".")
    for one in path:
        place = place[one]
    place[last] = value
    checkpoint.write(tmp_path / "state.kb", header, arrays)
    with pytest.raises(FileRefused):
        Story().parts(RunStatus.of_state(tmp_path))


def test_an_empty_run_has_a_page(tmp_path):
    (tmp_path / "s.csv").write_text("a,y\n")
    out = tmp_path / "page.html"
    assert run(tmp_path / "s.csv", "--target", "y", "--report", out).code == 0
    parts = story_of(out)
    assert parts["now"]["points"] == 0
    assert parts["run"]["slots"] == []
    assert math.isfinite(parts["now"]["seconds"])
