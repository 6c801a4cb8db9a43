// Forecasts at several horizons: the fan from the last row, the error and the coverage by horizon
// beside simple forecasts, and the weights of the slots by horizon.

let forecastsReport = null;
let fanXs = [0];
let fanRange = [0, 1];
let horizonErrorTop = 1;
let horizonShares = [0, 1];

const MOST_COLUMNS = 8; // of the table of weights

const rowsAhead = (horizon) => counted(horizon, "row ahead", "rows ahead");

const fanChart = new Chart("fan-chart", {
  label: "Last targets, forecasts and their intervals",
  height: () => (innerWidth < 600 ? 230 : 280),
  empty: "No forecast from the last row can be shown.",
  xRange: () => [fanXs[0], lastOf(fanXs)],
  yRange: () => fanRange,
  xLabel: () => "row",
  series: [
    { colour: "ink", width: 1.5 },
    { colour: "model", width: 1, alpha: 0.5, spanGaps: true },
    { colour: "model", width: 1, alpha: 0.5, spanGaps: true },
    { colour: "model", width: 1, alpha: 0.3, spanGaps: true },
    { colour: "model", width: 1, alpha: 0.3, spanGaps: true },
    { colour: "model", width: 2.5, spanGaps: true },
  ],
  table: () => {
    const [row, target, low, high, quarter_low, quarter_high, forecast] = fanChart.data;
    return { row, target, forecast, low, high, quarter_low, quarter_high };
  },
  bands: [
    { colour: "model", alpha: 0.18, series: [3, 2] },
    { colour: "model", alpha: 0.3, series: [5, 4] },
  ],
  readout: (at) => {
    const [xs, target, low, high, , , point] = fanChart.data;
    const { rows } = forecastsReport.fan;
    if (xs[at] <= rows) return [[`row ${whole(xs[at])}`, ""], ["target", number(target[at])]];
    return [
      [`row ${whole(xs[at])}, ${rowsAhead(xs[at] - rows)}`, ""],
      ["forecast", number(point[at]), "model"],
      ["interval", `${number(low[at])} to ${number(high[at])}`],
    ];
  },
});

const horizonErrorChart = new Chart("horizon-error-chart", {
  label: "Error of the forecasts by horizon",
  height: () => 230,
  empty: "No forecast has been scored yet.",
  xRange: () => rangeOfHorizons(),
  yRange: () => [0, horizonErrorTop],
  xLabel: () => "rows ahead",
  series: [
    { colour: "baseline", width: 1.5, dash: [6, 4] },
    { colour: "best", width: 1.5, dash: [2, 3], hidden: () => !forecastsReport?.seasons },
    { colour: "model", width: 2.5 },
  ],
  table: () => {
    const { horizons, error, last_value, seasonal, seasons } = forecastsReport;
    return { horizon: horizons, error, last_value, ...(seasons ? { seasonal } : {}) };
  },
  readout: (at) => {
    const { horizons, error, last_value, seasonal, seasons } = forecastsReport;
    return [
      [rowsAhead(horizons[at]), ""],
      ["RMSE", number(error[at]), "model"],
      ["last value", number(last_value[at]), "baseline"],
      ...(seasons ? [["a period before", number(seasonal[at]), "best"]] : []),
    ];
  },
});

const horizonCoverageChart = new Chart("horizon-coverage-chart", {
  label: "Share of targets inside the intervals of the forecasts by horizon",
  height: () => 230,
  empty: "No forecast has been scored yet.",
  xRange: () => rangeOfHorizons(),
  yRange: () => horizonShares,
  yAxis: percentAxis,
  xLabel: () => "rows ahead",
  series: [
    { colour: "change", width: 1.5, dash: [6, 4] },
    { colour: "model", width: 2.5 },
  ],
  legend: [["inside", "model"], ["requested", "change dashed"]],
  table: () => {
    const { horizons, coverage, width, scored } = forecastsReport;
    return { horizon: horizons, coverage, width, scored };
  },
  readout: (at) => {
    const { horizons, coverage, width, scored } = forecastsReport;
    return [
      [rowsAhead(horizons[at]), ""],
      ["inside", percent(coverage[at]), "model"],
      ["mean width", number(width[at])],
      ["targets", whole(scored[at])],
    ];
  },
});

function rangeOfHorizons() {
  const { horizons } = forecastsReport;
  const edge = 0.02 * (lastOf(horizons) - horizons[0] || 1);
  return [horizons[0] - edge, lastOf(horizons) + edge];
}

function drawForecasts({ run }) {
  const forecasts = part("forecasts", null);
  byId("forecasts").hidden = forecasts === null;
  byId("to-forecasts").hidden = forecasts === null;
  if (forecasts === null) return;
  forecastsReport = forecasts;
  drawFan(forecasts, run);
  drawHorizonErrors(forecasts, run);
  drawHorizonCoverage(forecasts, run);
  setChildren(byId("horizon-weights"), ...horizonWeights(forecasts));
}

function drawFan({ fan, horizons, known: columns, delay }, run) {
  setText(fanChart.empty, columns.length
    ? "Forecasts from the last row need columns of the next rows that are known in advance: " +
      `${columns.join(", ")}. The figures below are of past rows.`
    : "No row has been learned yet.");
  if (fan === null) {
    fanChart.setData(null);
    return;
  }
  const rowsOf = fan.past.map((_, at) => fan.rows - fan.past.length + 1 + at);
  fanXs = [...rowsOf, ...horizons.map((horizon) => fan.rows + horizon)];
  const none = horizons.map(() => null);
  // Bands and lines of forecasts begin at the last target.
  const begins = rowsOf.map((_, at) => (at === rowsOf.length - 1 ? fan.past[at] : null));
  const ahead = (name) => [...begins, ...fan[name]];
  const values = [fan.past, fan.low, fan.high].flat().filter(known);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const edge = 0.06 * (high - low || Math.abs(high) || 1);
  fanRange = [low - edge, high + edge];
  fanChart.setLegend([
    ["target", "ink"], ["forecast", "model"],
    [`intervals of ${number(100 * run.coverage)} % and 50 %`, "model block"],
  ]);
  const late = delay ? ", the last one whose target is known" : "";
  fanChart.setData([
    fanXs, [...fan.past, ...none],
    ahead("low"), ahead("high"), ahead("inner_low"), ahead("inner_high"), ahead("point"),
  ], {
    caption: [dataText(run.target ?? "target"), ` and its forecasts from row ${whole(fan.rows)}${late}`],
  });
}

const anyScored = ({ scored }) => scored.some((count) => count > 0);

function drawHorizonErrors(forecasts, run) {
  const { horizons, error, last_value, seasonal, seasons } = forecasts;
  if (!anyScored(forecasts)) {
    horizonErrorChart.setData(null);
    return;
  }
  horizonErrorChart.setLegend([
    ["forecasts", "model"], ["last value", "baseline dashed"],
    ...(seasons ? [["the value a period before", "best dashed"]] : []),
  ]);
  const shown = seasons ? [error, last_value, seasonal] : [error, last_value];
  horizonErrorTop = 1.08 * Math.max(...shown.flat().filter(known)) || 1;
  horizonErrorChart.setData([horizons, last_value, seasonal, error], {
    caption: ["RMSE by horizon, in units of ", dataText(run.target ?? "the target")],
  });
}

function drawHorizonCoverage(forecasts, run) {
  const { horizons, coverage } = forecasts;
  if (!anyScored(forecasts)) {
    horizonCoverageChart.setData(null);
    return;
  }
  horizonShares = rangeOfShares([coverage], Math.max(0, (run.coverage ?? 0.9) - 0.05));
  horizonCoverageChart.setData([horizons, horizons.map(() => run.coverage ?? null), coverage], {
    caption: "share of targets inside, by horizon",
  });
}

// A line per slot, a column for some of the horizons; the stronger the colour, the larger.
function horizonWeights({ horizons, weights }) {
  if (!weights.length) return [emptyMessage("The forecasts have no weights yet.")];
  const count = Math.min(innerWidth < 600 ? MOST_COLUMNS / 2 : MOST_COLUMNS, horizons.length);
  const places = Array.from({ length: count }, (_, at) =>
    (count > 1 ? Math.round((at * (horizons.length - 1)) / (count - 1)) : 0));
  const heading = (text, className) => create("th", { scope: "col", className }, text);
  const rows = weights.map(([name, values]) => create("tr", {},
    create("th", { scope: "row" }, dataText(name)),
    ...places.map((place) => {
      const share = values[place] / WEIGHT_OF_ONE;
      const text = Math.abs(share) < 0.005 ? "–" : `${Math.round(100 * share)} %`;
      const cell = create("td", { className: "number cell right" }, text);
      cell.style.setProperty("--share", `${Math.round(Math.min(100, Math.abs(100 * share)))}%`);
      return cell;
    })));
  return [create("div", { className: "scrolls", tabindex: "0" }, create(
    "table", { className: "confusion by-horizon" },
    create("caption", {}, "Weights of the slots by rows ahead (columns)"),
    create("thead", {}, create("tr", {},
      heading("slot", ""), ...places.map((place) => heading(`+${horizons[place]}`, "number")))),
    create("tbody", {}, ...rows)))];
}
