"""Mean targets of categories: against a naive definition, with outliers, and through a file."""

import math

import numpy as np
import pytest

from kernelbank.auto import inputs
from kernelbank.auto.inputs import CategoryStatistics, category_code
from kernelbank.errors import FileRefused


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


def test_before_the_first_target_the_mean_is_missing():
    assert math.isnan(CategoryStatistics(1, clipped=True).mean(category_code("a"))[0])


def test_single_outlier_does_not_stay_in_the_mean():
    draw = np.random.default_rng(0)
    targets = draw.normal(size=200)
    targets[100] = 1e9
    known = fed(["a"] * 200, targets)
    assert abs(known.mean(category_code("a"))[0]) < 0.5


def test_new_level_is_reached():
    targets = np.concatenate([np.zeros(100), np.full(900, 50.0)])
    known = fed(["a"] * 1000, targets)
    assert known.mean(category_code("a"))[0] > 45


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
