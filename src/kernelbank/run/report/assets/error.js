// Error of the model, the best slot and the baseline, cumulative or per segment of rows.

let errorReport = null;
let errorMode = "cumulative";
let errorAxisTop = 1;

const errorChart = new Chart("error-chart", {
  label: "Error of the model, the best slot and the baseline over rows",
  height: () => (innerWidth < 600 ? 240 : 300),
  overTime: true,
  empty: "No row has been predicted yet.",
  yRange: () => [0, errorAxisTop],
  yAxis: {
    values: (...args) => (errorReport.isClassification ? percentAxis : numberAxis).values(...args),
  },
  series: [
    { colour: "baseline", width: 1.5, dash: [6, 4] },
    { colour: "best", width: 2 },
    { colour: "model", width: 2.5 },
  ],
  paintBelow: (plot, context) => paintChanges(plot, context, errorReport),
  paintAbove: (plot, context) => errorMode === "segment" && paintWorst(plot, context),
  readout: (at) => {
    const { model, best, baseline, worst, starts, ends, isClassification } = errorReport;
    const from = errorMode === "cumulative" ? 1 : starts[at] + 1;
    const text = (error) => errorText(errorReport, error);
    const slot = errorMode === "cumulative" ? best.slots[at] : best.slot;
    const entries = [
      [pointText(errorReport, at, from), ""],
      ["model", text(model[errorMode][at]), "model"],
      ["best slot", withSlotName(text(best[errorMode][at]), slot), "best"],
      ["baseline", text(baseline[errorMode][at]), "baseline"],
    ];
    if (errorMode === "segment" && !isClassification) {
      entries.push(["largest error", text(worst[at]), "mark"]);
    }
    return [...entries, ...changesBetween(starts[at] + 1, ends[at])];
  },
});

function withSlotName(text, slot) {
  if (slot === null) return text;
  return create("span", {}, `${text} (`, dataText(errorReport.slots.names[slot]), ")");
}

// The entries of a readout for the groups of changes that begin inside a segment.
function changesBetween(first, last) {
  const inside = errorReport.changes.filter(([row]) => row >= first && row <= last);
  if (!inside.length) return [];
  const texts = inside.slice(0, 3).map(([row, , kinds]) =>
    `${kinds.map(([kind]) => kind).join(", ")} at ${whole(row)}`);
  if (inside.length > 3) texts.push(`and ${inside.length - 3} more`);
  return [["change", texts.join("; "), "change"]];
}

// A tick at the top for each group of changes, as wide as the group; lines through the chart only
// while they do not fill it.
function paintChanges(plot, context, { changes, timeline: line }) {
  const { top, height } = plot.bbox;
  const ratio = devicePixelRatio;
  const drawLines = changes.length <= 40;
  const pixelOf = (row) => Math.round(plot.valToPos(line.positionOf(row), "x", true));
  for (const [first, last] of changes) {
    const [from, to] = [pixelOf(first), pixelOf(last)];
    context.fillStyle = translucent("change", 0.45);
    if (drawLines) context.fillRect(from, top, Math.max(1, ratio), height);
    context.fillStyle = colours.change;
    context.fillRect(from - ratio, top, Math.max(3 * ratio, to - from), 7 * ratio);
  }
}

// The largest error of each segment as a thin dash, at the upper edge if it lies above.
function paintWorst(plot, context) {
  const ratio = devicePixelRatio;
  context.fillStyle = translucent("model", 0.55);
  errorReport.worst.forEach((worst, at) => {
    if (worst === null || errorReport.isClassification) return;
    const x = plot.valToPos(errorReport.timeline.xs[at], "x", true);
    const y = plot.valToPos(Math.min(worst, errorAxisTop), "y", true);
    context.fillRect(x - 2.5 * ratio, y, 5 * ratio, ratio);
  });
}

function drawError(report) {
  errorReport = report;
  const lines = ["baseline", "best", "model"].map((name) => report[name][errorMode]);
  const showWorst = errorMode === "segment" && !report.isClassification;
  const { top, above } = axisTop(showWorst ? [...lines, report.worst] : lines);
  errorAxisTop = report.isClassification ? Math.min(1, top) : top;
  errorChart.setLegend([
    ["model", "model"],
    [errorMode === "cumulative" ? "best slot so far" : "best slot of the whole run", "best"],
    ["baseline (last value)", "baseline dashed"],
    ...(showWorst ? [["largest error of the model", "mark"]] : []),
    ...(report.changes.length ? [["detected change", "change upright"]] : []),
  ]);
  const { xs } = report.timeline;
  errorChart.setData(report.scored.some((rows) => rows > 0) ? [xs, ...lines] : null, {
    caption: report.isClassification
      ? "error rate"
      : ["RMSE of ", dataText(report.run.target ?? "the target")],
    note: above
      ? `${counted(above, "value is", "values are")} above the chart, so that the rest can be ` +
        "seen. The readout has every value."
      : "",
  });
}

for (const radio of document.querySelectorAll("input[name=error-mode]")) {
  radio.addEventListener("change", () => {
    errorMode = radio.value;
    if (errorReport) drawError(errorReport);
  });
  if (radio.checked) errorMode = radio.value; // a browser may restore the choice after a reload
}
