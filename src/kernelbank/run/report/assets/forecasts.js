// Forecasts at several horizons: the fan from the last row, the error and the coverage by horizon
// beside simple forecasts, and the weights of the slots by horizon.


const rowsAhead = (horizon) => counted(horizon, "row ahead", "rows ahead");

const fanChart = new Chart("fan-chart", {
  label: "Last targets, forecasts and their intervals",
  height: onPhones(230, 280),
  empty: "No forecast from the last row can be shown.",
  series: [
    { colour: "ink", width: 1.5 },
    { colour: "model", width: 1, alpha: 0.5, spanGaps: true },
    { colour: "model", width: 1, alpha: 0.5, spanGaps: true },
    { colour: "model", width: 1, alpha: 0.3, spanGaps: true },
    { colour: "model", width: 1, alpha: 0.3, spanGaps: true },
    { colour: "model", width: 2.5, spanGaps: true },
  ],
  bands: [
    { colour: "model", alpha: 0.18, series: [3, 2] },
    { colour: "model", alpha: 0.3, series: [5, 4] },
  ],
  view({ forecasts: { fan, horizons, delay }, run }) {
    if (fan === null) return null;
    const pastRows = fan.past.map((_, at) => fan.rows - fan.past.length + 1 + at);
    const row = [...pastRows, ...horizons.map((horizon) => fan.rows + horizon)];
    const target = [...fan.past, ...horizons.map(() => null)];
    // Bands and lines of forecasts begin at the last target.
    const begins = pastRows.map((_, at) => (at === pastRows.length - 1 ? fan.past[at] : null));
    const [low, high, quarter_low, quarter_high, forecast] =
      ["low", "high", "inner_low", "inner_high", "point"].map((name) => [...begins, ...fan[name]]);
    const values = [fan.past, fan.low, fan.high].flat().filter(isNumber);
    const late = delay ? ", the last one whose target is known" : "";
    return {
      xRange: [row[0], lastOf(row)],
      yRange: withEdges(Math.min(...values), Math.max(...values), 0.06),
      xLabel: "row",
      data: [row, target, low, high, quarter_low, quarter_high, forecast],
      legend: [
        ["target", "ink"], ["forecast", "model"],
        [`intervals of ${number(100 * run.coverage)} % and 50 %`, "model block"],
      ],
      caption: [
        dataText(run.target ?? "target"), ` and its forecasts from row ${whole(fan.rows)}${late}`,
      ],
      table: () => ({ row, target, forecast, low, high, quarter_low, quarter_high }),
      readout: (at) => (row[at] <= fan.rows
        ? [[`row ${whole(row[at])}`, ""], ["target", number(target[at])]]
        : [
          [`row ${whole(row[at])}, ${rowsAhead(row[at] - fan.rows)}`, ""],
          ["forecast", number(forecast[at]), "model"],
          ["interval", fromTo(low[at], high[at])],
        ]),
    };
  },
});

const anyScored = ({ scored }) => scored.some((count) => count > 0);

const byHorizon = (horizons) => ({
  xRange: withEdges(horizons[0], lastOf(horizons), 0.02),
  xLabel: "rows ahead",
});

const horizonErrorChart = new Chart("horizon-error-chart", {
  label: "Error of the forecasts by horizon",
  height: 230,
  empty: "No forecast has been scored yet.",
  series: [
    { colour: "baseline", width: 1.5, dash: [6, 4] },
    { colour: "best", width: 1.5, dash: [2, 3], hidden: ({ seasons }) => !seasons },
    { colour: "model", width: 2.5 },
  ],
  view({ forecasts, run }) {
    const { horizons, error, last_value, seasonal, seasons } = forecasts;
    if (!anyScored(forecasts)) return null;
    const shown = seasons ? [error, last_value, seasonal] : [error, last_value];
    return {
      ...byHorizon(horizons),
      seasons,
      yRange: [0, 1.08 * Math.max(...shown.flat().filter(isNumber)) || 1],
      data: [horizons, last_value, seasonal, error],
      legend: [
        ["forecasts", "model"], ["last value", "baseline dashed"],
        ...(seasons ? [["the value a period before", "best dashed"]] : []),
      ],
      caption: ["RMSE by horizon, in units of ", dataText(run.target ?? "the target")],
      table: () => ({ horizon: horizons, error, last_value, ...(seasons ? { seasonal } : {}) }),
      readout: (at) => [
        [rowsAhead(horizons[at]), ""],
        ["RMSE", number(error[at]), "model"],
        ["last value", number(last_value[at]), "baseline"],
        ...(seasons ? [["a period before", number(seasonal[at]), "best"]] : []),
      ],
    };
  },
});

const horizonCoverageChart = new Chart("horizon-coverage-chart", {
  label: "Share of targets inside the intervals of the forecasts by horizon",
  height: 230,
  empty: "No forecast has been scored yet.",
  yAxis: percentAxis,
  series: [
    { colour: "change", width: 1.5, dash: [6, 4] },
    { colour: "model", width: 2.5 },
  ],
  view({ forecasts, run }) {
    const { horizons, coverage, width, scored } = forecasts;
    if (!anyScored(forecasts)) return null;
    return {
      ...byHorizon(horizons),
      yRange: rangeOfShares([coverage], Math.max(0, (run.coverage ?? 0.9) - 0.05)),
      data: [horizons, horizons.map(() => run.coverage ?? null), coverage],
      legend: [["inside", "model"], ["requested", "change dashed"]],
      caption: "share of targets inside, by horizon",
      table: () => ({ horizon: horizons, coverage, width, scored }),
      readout: (at) => [
        [rowsAhead(horizons[at]), ""],
        ["inside", percent(coverage[at]), "model"],
        ["mean width", number(width[at])],
        ["targets", whole(scored[at])],
      ],
    };
  },
});

function drawForecasts(report) {
  const { forecasts } = report;
  byId("forecasts").hidden = forecasts === null;
  byId("to-forecasts").hidden = forecasts === null;
  if (forecasts === null) return;
  setText(fanChart.empty, forecasts.known.length
    ? "Forecasts from the last row need columns of the next rows that are known in advance: " +
      `${forecasts.known.join(", ")}. The figures below are of past rows.`
    : "No row has been learned yet.");
  for (const chart of [fanChart, horizonErrorChart, horizonCoverageChart]) chart.draw(report);
}
