"""Codes to inputs: numbers, waves of a time, mean targets and inputs of single categories."""

import math

import numpy as np
import pytest

from kernelbank.auto import inputs
from kernelbank.auto.inputs import (
    OWN_INPUTS,
    PERIODS,
    CategoryStatistics,
    ColumnEncoder,
    category_code,
    encode_time,
)
from kernelbank.errors import FileRefused

COLUMNS = [("site", "category"), ("load", "number"), ("when", "time"), ("kind", "category")]


def codes_of(words, **columns):
    texts = {category_code(word): word for word in words if word}
    codes = [category_code(word) if word else math.nan for word in words]
    return np.column_stack([codes, *columns.values()]), texts


def test_encode_time_gives_day_week_and_year():
    assert list(PERIODS) == ["day", "week", "year"]
    assert np.allclose(encode_time(43_200.0)[:2], [0, -1])
    assert np.allclose(encode_time(-86_400.0)[:2], [0, 1])
    assert np.isnan(encode_time(math.nan)).all()


def test_inputs_have_names_in_their_order():
    encoder = ColumnEncoder(COLUMNS, labels=False)
    assert encoder.width == 1 + 6 + 2
    assert encoder.input_names[:3] == ["load", "when (sine of day)", "when (cosine of day)"]
    assert encoder.input_names[7:] == ["site (mean target)", "kind (mean target)"]
    assert ColumnEncoder(COLUMNS, labels=True).width == 1 + 6 + 6
    assert ColumnEncoder([], labels=False).width == 1


def test_own_inputs_come_with_the_third_row_of_a_category():
    encoder = ColumnEncoder([("site", "category")], labels=False)
    words = ["u", "v", "u", "w", "u", "v", "", "x"]
    codes, texts = codes_of(words)
    targets = np.arange(1.0, 9.0)[:, None]
    first, added = encoder.take(codes, targets, texts)
    assert (len(first), added) == (4, 0)  # the fifth row is the third with u
    # Mean of the earlier targets of the category and, once, of all.
    assert first[1:, 0].tolist() == [1.0, (1 + 1.5) / 2, 2.0]
    second, added = encoder.take(codes[4:], targets[4:], texts)
    assert (second.shape, added) == ((1, 4), 3)
    assert encoder.categories == [("site", "u"), ("site", "v"), ("site", "w")]
    rest, added = encoder.take(codes[5:], targets[5:], texts)
    assert added == 0
    assert rest[:, 1:].tolist()[0] == [0.0, 1.0, 0.0]
    assert np.isnan(rest[1]).all()  # missing
    assert rest[2, 1:].tolist() == [0.0, 0.0, 0.0]  # its turn has not come


def test_encoding_does_not_depend_on_pieces():
    draw = np.random.default_rng(0)
    words = draw.choice([f"k{n}" for n in range(50)], 400)
    codes, texts = codes_of(words, load=draw.normal(size=400))
    targets = draw.normal(size=(400, 1))
    columns = [("site", "category"), ("load", "number")]
    whole, single = (ColumnEncoder(columns, labels=False) for _ in range(2))
    done, pieces = 0, []
    while done < 400:
        X, _ = whole.take(codes[done:], targets[done:], texts)
        pieces += list(X)
        done += len(X)
    for t in range(400):
        expected = single.expand(codes[t : t + 1])[0]  # before its own target is known
        X, added = single.take(codes[t : t + 1], targets[t : t + 1], texts)
        assert X.tobytes() == pieces[t].tobytes()
        assert np.array_equal(X[0, : len(expected)], expected, equal_nan=True)
        assert X.shape[1] == len(expected) + added
    assert len(single.categories) == OWN_INPUTS
    assert single.beyond["site"]["categories"] == 50 - OWN_INPUTS
    assert single.beyond["site"]["rows"] > 0


def test_category_can_be_written_into_an_input():
    encoder = ColumnEncoder([("load", "number"), ("site", "category")], labels=False)
    codes, texts = codes_of(["u", "v"] * 4)
    codes = codes[:, [0, 0]]
    codes[:, 0] = 7.0
    done = 0
    while done < 8:
        done += len(encoder.take(codes[done:], np.arange(8.0)[done:, None], texts)[0])
    row = encoder.expand(codes[:1])[0]
    encoder.set_category("site", category_code("v"), row)
    assert row.tolist() == encoder.expand(codes[1:2])[0].tolist()


def test_forged_encoders_are_refused():
    encoder = ColumnEncoder([("site", "category")], labels=False)
    codes, texts = codes_of(["u"] * 3)
    for t in range(3):
        encoder.take(codes[t : t + 1], np.ones((1, 1)), texts)
    facts, arrays = encoder.describe()
    again = ColumnEncoder.restored(facts, arrays, labels=False)
    assert again.categories == encoder.categories == [("site", "u")]
    wrong = [
        (facts | {"columns": [["site", "colour"]]}, arrays),
        (facts, arrays | {"own": np.array([[0.0, 5.0]])}),
        (facts, arrays | {"own": np.repeat(arrays["own"], 2, axis=0)}),
    ]
    for some, more in wrong:
        with pytest.raises(FileRefused):
            ColumnEncoder.restored(some, more, labels=False)


# --- mean targets of categories -------------------------------------------------------------------


def fed(words, targets, **more):
    known = CategoryStatistics(1, clipped=True)
    for word, target in zip(words, targets, strict=True):
        known.update(category_code(word), word, [target], beyond=False, **more)
    return known


def test_codes_are_exact_floats_that_differ():
    codes = [category_code(f"site {n}") for n in range(5000)]
    assert len(set(codes)) == 5000
    assert all(code == int(code) < 2**48 for code in codes)
    assert category_code("été") == category_code("été")


def test_mean_is_that_of_the_category_and_one_row_of_the_mean_of_all():
    draw = np.random.default_rng(0)
    words = draw.choice(["a", "b", "c"], 90)
    targets = draw.normal(5, 1, 90)
    known = fed(words, targets)
    for word in "abc":
        own = targets[words == word]
        expected = (own.sum() + targets.mean()) / (len(own) + 1)
        assert known.mean(category_code(word)) == [pytest.approx(expected)]
    assert known.mean(category_code("new")) == [pytest.approx(targets.mean())]
    assert math.isnan(known.mean(math.nan)[0])


def test_single_outlier_does_not_stay_in_the_mean():
    draw = np.random.default_rng(0)
    targets = draw.normal(size=200)
    targets[100] = 1e9
    known = fed(["a"] * 200, targets)
    assert abs(known.mean(category_code("a"))[0]) < 0.5


def test_categories_beyond_the_limit_share_one_mean(monkeypatch):
    monkeypatch.setattr(inputs, "MOST_CATEGORIES", 3)
    known = fed([f"k{n}" for n in range(10)], np.arange(10.0))
    assert len(known) == 4
    assert known.is_full
    late = known.mean(category_code("k9"))
    assert late == known.mean(category_code("k5"))
    assert late != known.mean(category_code("k1"))


def test_saved_statistics_continue_with_the_same_bits():
    draw = np.random.default_rng(0)
    words, targets = draw.choice(["a", "b", "c"], 60), draw.normal(size=60)
    whole, part = fed(words, targets), fed(words[:30], targets[:30])
    again = CategoryStatistics(1, clipped=True)
    again.restore(*part.describe())
    for word, target in zip(words[30:], targets[30:], strict=True):
        again.update(category_code(word), word, [target], beyond=False)
    assert again.describe()[1].tobytes() == whole.describe()[1].tobytes()
    assert again.describe()[0] == whole.describe()[0]


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (1, 2)])
def test_forged_statistics_are_refused(place):
    known = fed(["a", "b"], [1.0, 2.0])
    facts, array = known.describe()
    array[place] = np.nan if place != (0, 0) else array[1, 0]
    with pytest.raises(FileRefused):
        CategoryStatistics(1, clipped=True).restore(facts, array)
