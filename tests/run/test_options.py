"""The options of a run: one declaration for the command, the checks and the checkpoint."""

from dataclasses import fields, replace
from pathlib import Path

import click
import pytest

from kernelbank.auto import config, seasons
from kernelbank.cli.commands import run_command
from kernelbank.errors import FileRefused, RunRefused
from kernelbank.run import options
from kernelbank.run.options import FIXED, OPTIONS, RunOptions

OPTION = RunOptions(source="s.csv", target="y", features=("a", "b"), lags=2)


def test_every_field_but_the_source_is_an_option_of_the_command():
    names = {parameter.name for parameter in run_command.params}
    assert names == {field.name for field in fields(RunOptions)} == {"source", *OPTIONS}


def test_command_without_options_has_the_declared_defaults():
    context = run_command.make_context("run", ["s.csv", "--target", "y"])
    given = {name: value for name, value in context.params.items() if value is not None}
    assert RunOptions(**given) == RunOptions(source="s.csv", target="y")
    assert OPTIONS["coverage"].default == given["coverage"] == 0.9


def given(*words):
    return run_command.make_context("run", ["--target", "y", *words]).params


def test_live_takes_a_port_and_never_the_source():
    for words in ("--live s.csv", "s.csv --live", "--live --quiet s.csv", "--live -"):
        found = given(*words.split())
        assert (found["live"], found["source"]) == (0, "-" if words.endswith("-") else "s.csv")
    for words in ("--live 8080 s.csv", "--live=8080 s.csv"):
        found = given(*words.split())
        assert (found["live"], found["source"]) == (8080, "s.csv")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ("a", "b")),
        (" a , b ,", ("a", "b")),
        ('"a, b", c', ("a, b", "c")),
        ('"say ""a"""', ('say "a"',)),
        ("", ()),
    ],
)
def test_names_are_separated_by_commas_and_quoted_as_in_csv(text, names):
    for option in ("features", "categorical", "keep"):
        assert given("s.csv", f"--{option}", text)[option] == names


def test_names_with_an_open_quote_are_refused():
    with pytest.raises(click.BadParameter, match="a quote that is not closed"):
        given("s.csv", "--features", '"a, b')


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lags", 1001, "--lags must be a whole number from 0 to 1000; got 1001."),
        ("lags", True, "--lags must be a whole number"),
        ("seasons", ("1",), "--seasons must be auto, or up to 4 different whole numbers of rows"),
        ("seasons", ("20001",), "from 2 to 20000, such as 24,168; got 20001."),
        ("seasons", ("24", "24"), "got 24,24."),
        ("seasons", ("auto", "24"), "got auto,24."),
        ("seasons", ("2", "3", "4", "5", "6"), "up to 4"),
        ("horizon", ("0",), "--horizon must be a number of rows from 1 to 1000, or several"),
        ("horizon", ("6", "6"), "such as 1,6,24; got 6,6."),
        ("known", ("hour",), "--known needs --horizon"),
        ("coverage", 1.0, "--coverage must be a number above 0 and below 1; got 1.0."),
        ("size", "huge", "--size must be small or default or large"),
        ("features", "a,b", "--features must be names with commas"),
        ("checkpoint_every", 0, "--checkpoint-every must be a whole number from 1"),
        ("target", None, "--target must be text"),
        ("predictions", "out.txt", "--predictions must end with .csv or .parquet"),
        ("delimiter", ";;", "--delimiter must be one character, or the word tab; got ';;'."),
        ("decimal", ";", "--decimal must be '.' or ','; got ';'."),
        ("threshold", 0.2, "--threshold needs --positive"),
        ("ray_address", "head:6379", "--ray-address needs --engine ray"),
        ("ray_allow_unauthenticated", True, "--ray-allow-unauthenticated needs --engine ray"),
        ("shards", 2, "--shards needs --engine threads or --engine ray"),
    ],
)
def test_option_out_of_range_is_refused(name, value, message):
    with pytest.raises(RunRefused) as caught:
        replace(OPTION, **{name: value})
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "periods"), [("168,24", (24, 168)), ("auto", "auto"), ("", None)])
def test_seasons_are_periods(text, periods):
    assert replace(OPTION, seasons=given("s.csv", "--seasons", text)["seasons"]).periods == periods


def test_periods_and_horizons_have_the_limits_of_autobank():
    limits = (options.LARGEST_PERIOD, options.MOST_PERIODS, options.LONGEST_HORIZON)
    assert limits == (seasons.LARGEST_PERIOD, seasons.MOST_PERIODS, config.LONGEST_HORIZON)


@pytest.mark.parametrize(
    ("text", "horizons"), [("3", (1, 2, 3)), ("24,1", (1, 24)), ("1", (1,)), ("", ())]
)
def test_one_horizon_means_all_up_to_it(text, horizons):
    chosen = replace(OPTION, horizon=given("s.csv", "--horizon", text)["horizon"])
    assert chosen.horizons == horizons
    assert RunOptions.from_json(chosen.to_json()).horizons == horizons


def test_saved_options_without_a_younger_one_have_its_default():
    saved = OPTION.to_json()
    del saved["max_classes"]
    assert RunOptions.from_json(saved) == replace(OPTION, source="")
    OPTION.check_resumes(saved, Path("run"))
    del saved["target"]  # which has no default
    with pytest.raises(FileRefused):
        RunOptions.from_json(saved)


def test_resuming_with_other_fixed_options_is_refused_and_names_them():
    saved = replace(OPTION, lags=3, features=None, on_bad_row="skip").to_json()
    with pytest.raises(RunRefused) as caught:
        OPTION.check_resumes(saved, Path("run"))
    assert "--features was none, now a,b; --lags was 3, now 2" in str(caught.value)
    assert "bad" not in str(caught.value)


def test_resuming_with_other_free_options_is_accepted():
    free = [name for name, spec in OPTIONS.items() if spec.saved and spec.saved != FIXED]
    assert free == ["classes", "max_classes", "on_bad_row", "allow_missing", "predict_missing"]
    other = replace(OPTION, on_bad_row="skip", allow_missing=True, predict_missing=True)
    OPTION.check_resumes(other.to_json(), Path("run"))
