// The prediction along one input, after any of the rows at which it was recorded. An input is a
// number, a part of the time (in shares of its day, week or year) or a category (by its number).

let curvesReport = null;
let allCurves = [];
let recordedCurves = []; // those of the chosen input
let curvesYRange = [0, 1];
let curvesXRange = [0, 1];

const inputChoice = byId("curves-input");
const rowSlider = byId("curves-slider");
const playButton = byId("curves-play");

const curvesChart = new Chart("curves-chart", {
  label: "Prediction along one input, with its interval",
  height: () => (innerWidth < 600 ? 260 : 340),
  empty: "No predictions have been recorded yet.",
  xRange: () => curvesXRange,
  yRange: () => curvesYRange,
  yAxis: {
    values: (...args) => (curvesReport.isClassification ? percentAxis : numberAxis).values(...args),
  },
  xAxis: {
    splits: (plot, at, low, high, step) => inputTicks(plot, low, high, step),
    values: (plot, values, at, space, step) => inputTickLabels(plot, values, step),
  },
  series: [
    { colour: "model", width: 1, alpha: 0.4, hidden: () => isCategory() },
    { colour: "model", width: 1, alpha: 0.4, hidden: () => isCategory() },
    { colour: "model", width: 2.5, hidden: () => isCategory() },
  ],
  bands: [{ colour: "model", alpha: 0.16, series: [2, 1], hidden: () => isCategory() }],
  paintAbove: (plot, context) => isCategory() && paintCategories(plot, context),
  table: () => {
    const { x, prediction, low, high } = chosenLine();
    const lists = { [inputName()]: isCategory() ? x.map(categoryName) : x, prediction };
    return curvesReport.isClassification ? lists : { ...lists, low, high };
  },
  xLabel: () => inputName(),
  defaultIndex: () => Math.floor(chosenLine().x.length / 2),
  readout: (at) => {
    const line = chosenLine();
    const { isClassification } = curvesReport;
    const entries = [
      [dataText(inputName()), atText(line.x[at])],
      [
        isClassification ? "probability" : "prediction",
        (isClassification ? percent : number)(line.prediction[at]), "model",
      ],
    ];
    if (isClassification) return entries;
    return [...entries, ["interval", `${number(line.low[at])} to ${number(line.high[at])}`]];
  },
});

const inputIndex = () => Math.max(0, inputChoice.selectedIndex);
const inputAt = (index) => curvesReport.run.inputs?.[index] ?? {};
const inputNameAt = (index) => inputAt(index).name ?? `input ${index + 1}`;
const inputName = () => inputNameAt(inputIndex());
const inputKind = () => inputAt(inputIndex()).kind;
const isCategory = () => inputKind() === "category";
const lineOf = (curves) => curves?.lines?.find((line) => line.input === inputIndex()) ?? null;
const chosenCurves = () => recordedCurves[Number(rowSlider.value)];
const chosenLine = () => lineOf(chosenCurves());

// --- axes of times and categories -----------------------------------------------------------------

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

// A share of a day, week or year as text.
const SHARE_TEXTS = {
  __proto__: null,
  day: (share) => {
    const minutes = Math.round(24 * 60 * share);
    return `${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
  },
  week: (share) => {
    const hours = Math.round(7 * 24 * share);
    return `${WEEKDAYS[Math.floor(hours / 24) % 7]} ${twoDigits(hours % 24)}:00`;
  },
  year: (share) => MONTHS[Math.floor(12 * share + 1e-9) % 12],
};
const SHARE_TICKS = { __proto__: null, day: 8, week: 7, year: 12 }; // parts of the axis

const categoryName = (index) => inputAt(inputIndex()).labels?.[index] ?? "";

function atText(x) {
  if (isCategory()) return create("span", {}, "is ", dataText(categoryName(x)));
  const text = SHARE_TEXTS[inputKind()];
  return `at ${text ? text(x) : number(x)}`;
}

// As many categories as have room for a name.
function inputTicks(plot, low, high, step) {
  const parts = SHARE_TICKS[inputKind()];
  if (parts) return Array.from({ length: parts + 1 }, (_, at) => at / parts);
  if (!isCategory()) return ticksBetween(low, high, step);
  const { x } = chosenLine();
  const room = Math.max(1, Math.floor(plot.bbox.width / devicePixelRatio / 44));
  const every = Math.ceil(x.length / room);
  return x.map((_, at) => at).filter((at) => at % every === 0);
}

function inputTickLabels(plot, ticks, step) {
  const kind = inputKind();
  if (kind === "week") return ticks.map((share) => WEEKDAYS[Math.round(7 * share)] ?? "");
  if (SHARE_TEXTS[kind]) {
    return ticks.map((share) => (share < 1 || kind === "day" ? SHARE_TEXTS[kind](share) : ""));
  }
  if (!isCategory()) return tickLabels(ticks, step);
  plot.ctx.font = plot.axes[0].font[0];
  const width = plot.bbox.width / Math.max(1, ticks.length) - 8 * devicePixelRatio;
  const { x } = chosenLine();
  return ticks.map((at) => cropText(plot.ctx, categoryName(x[at]), width));
}

// A dot with its interval for each category.
function paintCategories(plot, context) {
  const [positions, low, high, prediction] = plot.data;
  const ratio = devicePixelRatio;
  const place = (value) => plot.valToPos(value, "y", true);
  context.lineWidth = 2 * ratio;
  context.strokeStyle = translucent("model", 0.5);
  context.fillStyle = colours.model;
  positions.forEach((at, index) => {
    const x = plot.valToPos(at, "x", true);
    context.beginPath();
    context.moveTo(x, place(low[index]));
    context.lineTo(x, place(high[index]));
    for (const end of [low[index], high[index]]) {
      context.moveTo(x - 6 * ratio, place(end));
      context.lineTo(x + 6 * ratio, place(end));
    }
    context.stroke();
    context.beginPath();
    context.arc(x, place(prediction[index]), 5 * ratio, 0, 2 * Math.PI);
    context.fill();
  });
}

// Points of a line at which it was not seen are left out; between neighbours far apart it breaks.
function drawnLine(line) {
  const { x, low, high, prediction } = line;
  if (isCategory()) return [x.map((_, at) => at), low, high, prediction];
  if (!SHARE_TEXTS[inputKind()]) return [x, low, high, prediction];
  const columns = [[], [], [], []];
  x.forEach((share, at) => {
    if (at > 0 && share - x[at - 1] > 1.5 / 24) {
      [(share + x[at - 1]) / 2, null, null, null].forEach((value, n) => columns[n].push(value));
    }
    [share, low[at], high[at], prediction[at]].forEach((value, n) => columns[n].push(value));
  });
  return columns;
}

// --- the chart -----------------------------------------------------------------------------------

// Both axes stay fixed while the slider moves. A few curves of a model that had learned little may
// reach far out; they leave the chart rather than flatten the others.
function setCurvesRanges() {
  const lines = recordedCurves.map(lineOf).filter((line) => line?.x?.length);
  const extremes = (pick, choose) => lines
    .map((line) => choose(...pick(line).filter(known)))
    .filter(known)
    .sort((one, other) => one - other);
  const lows = extremes((line) => [...line.low, ...line.prediction], Math.min);
  const highs = extremes((line) => [...line.high, ...line.prediction], Math.max);
  const xs = lines.flatMap((line) => line.x).filter(known);
  const [left, right] = xs.length ? [Math.min(...xs), Math.max(...xs)] : [0, 1];
  curvesXRange = left < right ? [left, right] : [left - 1, left + 1];
  if (SHARE_TEXTS[inputKind()]) curvesXRange = [0, 1];
  if (isCategory()) curvesXRange = [-0.5, Math.max(...lines.map(({ x }) => x.length)) - 0.5];
  if (curvesReport.isClassification) {
    curvesYRange = [0, 1];
    return;
  }
  const low = quantile(lows, 0.08) ?? 0;
  const high = quantile(highs, 0.92) ?? 1;
  const edge = 0.06 * (high - low || Math.abs(high) || 1);
  curvesYRange = [low - edge, high + edge];
}

function showCurves() {
  const curves = chosenCurves();
  const line = lineOf(curves);
  const row = curves ? whole(curves.row) : "";
  setText(byId("curves-row"), row);
  rowSlider.setAttribute("aria-valuetext", `row ${row}`);
  if (!line?.x?.length) {
    curvesChart.setData(null);
    return;
  }
  const { run, isClassification } = curvesReport;
  const predicted = isClassification
    ? ["probability of ", dataText(run.classes?.[0] ?? "the first class")]
    : ["predicted ", dataText(run.target ?? "target")];
  const [low, high] = curvesYRange;
  const outside = [...line.low, ...line.high]
    .some((value) => known(value) && (value < low || value > high));
  curvesChart.setData(drawnLine(line), {
    caption: [...predicted, " along ", dataText(inputName()), `, after row ${row}`],
    note: outside ? "The interval leaves the chart here: the axis is the same for all rows." : "",
  });
}

function drawCurves(report) {
  curvesReport = report;
  setText(byId("curves-about"),
    report.isClassification ? "Probability of one label" : "Prediction and interval");
  allCurves = readCurves();
  const lines = allCurves.flatMap((curves) => curves.lines ?? []);
  const inputs = Math.max(0, ...lines.map((line) => line.input + 1));
  const names = Array.from({ length: inputs }, (_, index) => inputNameAt(index));
  const chosen = inputs ? Math.min(inputIndex(), inputs - 1) : -1;
  setChildren(inputChoice, ...names.map((name) => create("option", {}, name)));
  if (inputChoice.selectedIndex !== chosen) inputChoice.selectedIndex = chosen;
  byId("curves-choices").hidden = !inputs;
  chooseCurves();
}

// Take up the curves of the chosen input. Of some inputs only the present curve is recorded.
function chooseCurves() {
  const wasLast = Number(rowSlider.value) === recordedCurves.length - 1;
  const row = chosenCurves()?.row;
  recordedCurves = allCurves.filter((curves) => lineOf(curves)?.x.length);
  const last = Math.max(0, recordedCurves.length - 1);
  rowSlider.max = String(last);
  rowSlider.disabled = playButton.disabled = last === 0;
  // A viewer at the newest row stays at the newest; a viewer at an earlier row stays at that row.
  const same = recordedCurves.findLastIndex((curves) => curves.row <= row);
  if (!playTimer) rowSlider.value = String(wasLast || same < 0 ? last : same);
  setCurvesRanges();
  showCurves();
}

let playTimer = null;

function play() {
  stopPlaying();
  if (Number(rowSlider.value) >= recordedCurves.length - 1) rowSlider.value = "0";
  const slow = matchMedia("(prefers-reduced-motion: reduce)").matches;
  playTimer = setInterval(() => {
    rowSlider.value = String(Number(rowSlider.value) + 1);
    showCurves();
    if (Number(rowSlider.value) >= recordedCurves.length - 1) stopPlaying();
  }, slow ? 1000 : 250);
  playButton.setAttribute("aria-pressed", "true");
  setText(playButton, "Stop");
  showCurves();
}

function stopPlaying() {
  clearInterval(playTimer);
  playTimer = null;
  playButton.setAttribute("aria-pressed", "false");
  setText(playButton, "Play");
}

playButton.addEventListener("click", () => (playTimer ? stopPlaying() : play()));
rowSlider.addEventListener("input", () => {
  stopPlaying();
  showCurves();
});
inputChoice.addEventListener("change", () => {
  stopPlaying();
  chooseCurves();
});
