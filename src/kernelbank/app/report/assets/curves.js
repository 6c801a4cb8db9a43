// The prediction along one input, after any of the rows at which it was recorded.

let curvesReport = null;
let recordedCurves = [];
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
  series: [
    { colour: "model", width: 1, alpha: 0.4 },
    { colour: "model", width: 1, alpha: 0.4 },
    { colour: "model", width: 2.5 },
  ],
  bands: [{ colour: "model", alpha: 0.16, series: [2, 1] }],
  xLabel: () => inputName(),
  defaultIndex: () => Math.floor(chosenLine().x.length / 2),
  readout: (at) => {
    const line = chosenLine();
    const { isClassification } = curvesReport;
    const entries = [
      [dataText(inputName()), `at ${number(line.x[at])}`],
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
const inputNameAt = (index) => curvesReport.run.inputs?.[index] ?? `input ${index + 1}`;
const inputName = () => inputNameAt(inputIndex());
const lineOf = (curves) => curves?.lines?.[inputIndex()] ?? null;
const chosenCurves = () => recordedCurves[Number(rowSlider.value)];
const chosenLine = () => lineOf(chosenCurves());

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
  curvesChart.setData([line.x, line.low, line.high, line.prediction], {
    caption: [...predicted, " along ", dataText(inputName()), `, after row ${row}`],
    note: outside ? "The interval leaves the chart here: the axis is the same for all rows." : "",
  });
}

function drawCurves(report) {
  curvesReport = report;
  setText(byId("curves-about"),
    report.isClassification ? "Probability of one label" : "Prediction and interval");
  const wasLast = Number(rowSlider.value) === recordedCurves.length - 1;
  const row = chosenCurves()?.row;
  recordedCurves = readCurves();
  const inputs = Math.max(0, ...recordedCurves.map((curves) => curves.lines?.length ?? 0));
  const names = Array.from({ length: inputs }, (_, index) => inputNameAt(index));
  const chosen = inputs ? Math.min(inputIndex(), inputs - 1) : -1;
  setChildren(inputChoice, ...names.map((name) => create("option", {}, name)));
  if (inputChoice.selectedIndex !== chosen) inputChoice.selectedIndex = chosen;
  byId("curves-choices").hidden = !inputs;
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
  setCurvesRanges();
  showCurves();
});
