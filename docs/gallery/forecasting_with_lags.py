"""Two years of air traffic ahead, from the growth of the twelve months before."""

import argparse
from pathlib import Path

import numpy as np
from river import datasets

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out

YEAR, AHEAD = 12, 24
passengers = np.array([float(count) for _, count in datasets.AirlinePassengers()])
month = 2 * np.pi * np.arange(len(passengers)) / YEAR
season = np.column_stack([np.sin(month), np.cos(month)])
growth = np.log(passengers[YEAR:] / passengers[:-YEAR])  # over the same month a year before


def forecast(start):
    """From all that was known before month `start`; each prediction is a lag of those after."""
    bank = kb.AutoBank(lags=YEAR)
    bank.run(season[YEAR:start], growth[: start - YEAR])
    grown = bank.predict(season[start : start + AHEAD])
    return with_growth(start, grown)


def with_growth(start, grown):
    last = np.log(passengers[start - YEAR : start])
    return np.exp(np.tile(last, 2) + np.concatenate([grown[:YEAR], grown[:YEAR] + grown[YEAR:]]))


starts = range(len(passengers) - 48, len(passengers) - AHEAD + 1, 3)
errors = {"the bank": [], "growth as in the last year": [], "the last year again": []}
for start in starts:
    steady = np.full(AHEAD, growth[start - 2 * YEAR : start - YEAR].mean())
    guesses = (forecast(start), with_growth(start, steady), with_growth(start, 0 * steady))
    truth = passengers[start : start + AHEAD]
    for name, guess in zip(errors, guesses, strict=True):
        errors[name].append(np.abs(guess / truth - 1).mean())
print(f"mean error of forecasts from {len(starts)} months")
for name, found in errors.items():
    print(f"  {name}: {np.mean(found):.1%}")


@kb.plots.styled
def draw():
    figure, axes = kb.plots.new_figure(kb.plots.PAGE, 3.4)
    years = 1949 + np.arange(len(passengers)) / YEAR
    axes.plot(years, passengers, color=kb.plots.INK, lw=1, label="passengers, in thousands")
    for start, colour, dash in ((96, kb.plots.RED, "--"), (120, kb.plots.BLUE, "-")):
        label = f"forecast from January {1949 + start // YEAR}"
        span = slice(start, start + AHEAD)
        axes.plot(years[span], forecast(start), color=colour, ls=dash, lw=2, label=label)
        axes.axvline(years[start], color=colour, lw=0.8, ls=":")
    axes.set(xlabel="year", xlim=(1949, 1961), ylim=(0, 720))
    axes.legend(loc="upper left")
    return figure


kb.plots.save(draw(), out, "forecasting_with_lags", ["png"], dpi=125, palette=True)
