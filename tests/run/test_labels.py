"""Runs whose target is a label: probabilities in the predictions, a rare label, recall, precision."""

import json

import numpy as np
import pytest

from kernelbank.io import checkpoint
from kernelbank.run import session
from kernelbank.run.report.data import report_text
from kernelbank.run.scores import LabelScores, probability_of
from kernelbank.run.status import RunStatus
from support.run_command import (
    make_rows,
    options_of,
    read_column,
    read_csv,
    refusal,
    same_bits,
    succeed,
    write_csv,
)

COUNT = 560
X, _ = make_rows(COUNT)
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no").astype(object)
LABELS[COUNT // 2 :: 50] = "perhaps, so"
OPTIONS = ("--target", "y", "--task", "classification")


def source(folder, labels=LABELS):
    rows = np.column_stack([X[: len(labels)].astype(object), labels])
    return write_csv(folder / "s.csv", ["a", "b", "y"], rows)


@pytest.mark.parametrize("delay", [0, 3])
def test_predictions_hold_the_models_labels_and_all_probabilities(delay, tmp_path, request):
    if delay:  # row by row: one slot is enough
        request.getfixturevalue("light")
    path, files = source(tmp_path), []
    for every in (10_000, COUNT // 3):
        files.append(tmp_path / f"{every}.csv")
        more = ("--predictions", files[-1], "--checkpoint-every", every)
        succeed(path, *OPTIONS, "--delay", delay, *more)
    assert files[0].read_bytes() == files[1].read_bytes()
    header, rows = read_csv(files[0])
    first = list(dict.fromkeys(LABELS))
    columns = [f"probability:{name}" for name in (*first, "other")]
    assert header == ["row", "prediction", "probability", "target", *columns]
    assert [row[3] for row in rows] == LABELS.tolist()
    assert all(set(row[1:3] + row[4:]) == {""} for row in rows[: delay + 1])  # none was known
    bank = session.make_model(options_of(task="classification"), "serial")
    trace = bank.run(X, LABELS, delay)
    rows, probabilities = rows[delay + 1 :], trace.probabilities[delay + 1 :]
    assert [row[1] for row in rows] == list(trace.predictions[delay + 1 :])
    assert same_bits([float(row[2]) for row in rows], probabilities.max(axis=1))
    for place, label in enumerate(trace.classes):
        column = read_column(files[0], f"probability:{label}")[delay + 1 :]
        assert same_bits(column, probabilities[:, place])
    assert not read_column(files[0], "probability:other")[delay + 1 :].any()


def test_labels_without_a_column_share_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelbank.run.runner.BLOCK_ROWS", 64)
    labels = ["no", "yes"] * 40 + ["late", "other"] * 30
    out, whole = tmp_path / "out.csv", tmp_path / "whole.csv"
    path, state = source(tmp_path, np.array(labels, object)), ("--state", tmp_path / "state")
    succeed(path, *OPTIONS, "--predictions", out, *state, "--max-rows", 70)
    note = succeed(path, *OPTIONS, "--predictions", out, *state).err
    assert note.count("label 'late' came after the first rows") == 1
    assert read_csv(out)[0][4:] == ["probability:no", "probability:yes", "probability:other"]
    named = (*OPTIONS, "--classes", "no,yes,late,other")
    succeed(path, *OPTIONS, "--predictions", whole)
    assert whole.read_bytes() == out.read_bytes()
    sums = sum(read_column(out, f"probability:{name}") for name in ("no", "yes", "other"))
    assert np.allclose(sums[2:], 1.0)  # before there are two labels, another may come
    assert read_column(out, "probability:other")[-30:].mean() > 0.5
    succeed(path, *named, "--predictions", tmp_path / "named.csv")
    assert read_csv(tmp_path / "named.csv")[0][4:] == [
        f"probability:{name}" for name in ("no", "yes", "late", "other")
    ]
    kept = write_csv(tmp_path / "k.csv", ["probability:up", "y"], [(1, "a"), (2, "b")])
    words = "--keep: the predictions have a column 'probability:up' already"
    assert words in refusal(kept, *OPTIONS, "--keep", "probability:up")


def test_state_of_an_earlier_version_goes_on_without_probabilities(tmp_path):
    path, out, state = source(tmp_path), tmp_path / "out.csv", tmp_path / "state"
    outputs = ("--predictions", out, "--state", state)
    succeed(path, *OPTIONS, *outputs, "--max-rows", 20)
    header, arrays = checkpoint.read(state / "state.kb")
    del header["named_labels"]
    for name in ("history/worst", "history/categories"):
        del arrays[name]
    checkpoint.write(state / "state.kb", header, arrays)
    succeed(path, *OPTIONS, *outputs, "--max-rows", 30)
    _, rows = read_csv(out)
    assert [len(row) for row in rows] == [8] * 20 + [4] * 10


def test_rare_label_is_predicted_from_its_threshold_on(tmp_path):
    path, out, plain = source(tmp_path), tmp_path / "out.csv", tmp_path / "plain.csv"
    state = ("--state", tmp_path / "state")
    rare = ("--positive", "perhaps, so", "--threshold", 0.02)
    succeed(path, *OPTIONS, "--predictions", plain, "--max-rows", COUNT)
    text = succeed(path, *OPTIONS, *rare, "--predictions", out, *state).err
    (header, rows), (_, usual) = read_csv(out), read_csv(plain)
    place = header.index("probability:perhaps, so")
    changed = 0
    for row, before in zip(rows[1:], usual[1:], strict=True):
        if float(row[place]) >= 0.02:
            assert row[1] == "perhaps, so"
            changed += before[1] != row[1]
        else:
            others = {name: float(cell) for name, cell in zip(header[4:-1], row[4:], strict=False)}
            del others["probability:perhaps, so"]  # of equal ones the first
            assert f"probability:{row[1]}" == max(others, key=lambda name: others[name])
        assert float(row[2]) == float(row[header.index(f"probability:{row[1]}")])
        assert row[4:] == before[4:]
    assert changed > 10
    # What is told of each label is what the predictions are.
    pairs = [(row[1], row[3]) for row in rows[1:]]
    status = RunStatus.of_state(tmp_path / "state")
    assert status.scores.error == pytest.approx(np.mean([one != other for one, other in pairs]))
    for name, score in status.label_scores.items():
        hits = sum(pair == (name, name) for pair in pairs)
        assert score.rows == sum(target == name for _, target in pairs)
        assert score.predicted == sum(predicted == name for predicted, _ in pairs)
        assert (score.recall, score.precision) == (hits / score.rows, hits / score.predicted)
        line = f"recall {100 * score.recall:.1f} % of {score.rows} rows, precision "
        assert line + f"{100 * score.precision:.1f} % of {score.predicted} predictions" in text
    parts = json.loads(report_text(status))
    assert parts["run"]["positive"] == "perhaps, so"
    assert parts["status"]["labels"]["yes"]["recall"] == status.label_scores["yes"].recall
    assert ["--threshold", "0.02"] in parts["run"]["details"][1][1]


def test_rare_label_must_be_one_of_the_classes(tmp_path):
    words = refusal(source(tmp_path), *OPTIONS, "--positive", "x", "--classes", "a,b")
    assert "--positive must be one of --classes; 'x'" in words


def test_label_scores_without_rows_or_predictions_are_unknown():
    scores = LabelScores()
    labels, predicted = np.array([0, 0, 1]), np.array([0, 2, 0])
    scores.add(labels, predicted, np.full((3, 3), 1 / 3))
    assert [tuple(score) for score in scores.of_each()] == [
        (2, 2, 0.5, 0.5), (1, 0, 0.0, None), (0, 1, None, 0.0),
    ]  # fmt: skip
    assert probability_of(np.array([[0.2, 0.8], [np.nan, np.nan]]), np.array([1, -1])).tolist() == [
        0.8,
        0.0,
    ]
