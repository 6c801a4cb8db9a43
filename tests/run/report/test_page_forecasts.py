"""The section of forecasts in a real browser."""

import pytest

from support import browser
from support.browser import LIGHT_MODEL, count_pixels, readout
from support.sample_reports import sample_forecasts, sample_report

chromium, show, show_live = browser.chromium, browser.show, browser.show_live


@pytest.mark.parametrize("width", [1200, 390])
def test_fan_scores_and_weights_are_drawn(show, width):
    report = sample_report(points=3) | {"forecasts": sample_forecasts(24)}
    shown = show(report, width=width)
    assert shown.page.locator("#forecasts").is_visible()
    assert count_pixels(shown, "fan", LIGHT_MODEL) > 100
    assert readout(shown, "fan").startswith("row 1,024, 24 rows ahead  forecast 12")
    assert readout(shown, "horizon-error").startswith("24 rows ahead  RMSE 2.4 last value 4.8")
    assert "a period before" in readout(shown, "horizon-error")
    assert readout(shown, "horizon-coverage").startswith("24 rows ahead  inside 88.0 %")
    shown.page.locator("#fan-chart .chart").focus()
    shown.page.keyboard.press("Home")
    assert readout(shown, "fan") == "row 971  target 10"
    cells = shown.page.locator("#horizon-weights tbody tr").first.locator("td").all_text_contents()
    assert cells[0] == "60 %"
    assert len(cells) == (4 if width < 600 else 8)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_horizons_there_is_no_such_section(show):
    shown = show(sample_report(points=3))
    assert not shown.page.locator("#forecasts").is_visible()
    assert not shown.page.locator("#to-forecasts").is_visible()


def test_known_columns_and_few_rows_have_a_sentence(show):
    forecasts = sample_forecasts(2) | {"fan": None, "known": ["hour", "<b>"], "weights": []}
    forecasts |= {"scored": [0, 0], "error": [None, None], "coverage": [None, None]}
    shown = show(sample_report(points=3) | {"forecasts": forecasts})
    assert "hour, <b>" in shown.text("#fan-chart")
    assert "No forecast has been scored yet." in shown.text("#horizon-error-chart")
    assert "no weights yet" in shown.text("#horizon-weights")


@pytest.mark.slow
def test_a_live_page_draws_forecasts_as_they_come(show_live):
    server, shown = show_live(sample_report(points=3))
    assert not shown.page.locator("#forecasts").is_visible()
    server.send({"forecasts": sample_forecasts(3)})
    shown.wait_until(lambda: shown.page.locator("#forecasts").is_visible())
    assert readout(shown, "fan").startswith("row 1,003, 3 rows ahead")
    server.send({"forecasts": sample_forecasts(3, rows=1100)})
    shown.wait_until(lambda: readout(shown, "fan").startswith("row 1,103, 3 rows ahead"))
