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
  table: () => {
    const { model, best, baseline, worst } = errorReport;
    const lists = { model, "best slot": best, baseline };
    const table = { ...pointColumns(errorReport), "largest error": worst };
    for (const [name, series] of Object.entries(lists)) {
      table[`${name}, all rows so far`] = series.cumulative;
      table[`${name}, segment`] = series.segment;
    }
    return table;
  },
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

// Cumulative loss: every slot in grey as in the paper, the model in colour, the baseline dashed.

let lossReport = null;
let lossAxisTop = 1;
let slotsByLoss = []; // slots from the least to the largest loss, unknown losses last
let selectedSlot = null;

const MAX_SEGMENTS = 60000; // of all grey lines, so that a thousand slots are drawn quickly

const lossChart = new Chart("loss-chart", {
  label: "Cumulative loss of slots, model and baseline over rows. Up and down select a slot",
  height: () => (innerWidth < 600 ? 260 : 340),
  overTime: true,
  empty: "No row has been predicted yet.",
  yRange: () => [0, lossAxisTop],
  series: [
    { colour: "baseline", width: 1.5, dash: [6, 4] },
    { colour: "model", width: 3 },
    { colour: "selected", width: 2 },
  ],
  legend: [
    ["model", "model"], ["each slot alone", "slot"], ["baseline (last value)", "baseline dashed"],
  ],
  paintBelow: (plot, context) => paintSlots(plot, context),
  table: () => {
    const { model, baseline, slots } = lossReport;
    const table = {
      ...pointColumns(lossReport), model: model.totals, "baseline (last value)": baseline.totals,
    };
    slots.names.forEach((name, slot) => { table[name] = [...slots.totals[slot]]; });
    return table;
  },
  readout: (at) => {
    const { model, baseline, best, slots, ends, timeline: line } = lossReport;
    const time = line.name === null ? "" : `, ${timeText(line.xs[at])}`;
    const entries = [
      [`after row ${whole(ends[at])}${time}`, ""],
      ["model", number(model.totals[at]), "model"],
      ["baseline", number(baseline.totals[at]), "baseline"],
    ];
    const total = (slot) => number(slots.totals[slot][at]);
    if (selectedSlot !== null) {
      entries.push([dataText(slots.names[selectedSlot]), total(selectedSlot), "selected"]);
    } else if (best.slots[at] !== null) {
      entries.push(["best slot", withSlotName(total(best.slots[at]), best.slots[at])]);
    }
    return entries;
  },
  // Up is a larger loss, as in the chart.
  moveVertically: (step) => {
    const here = slotsByLoss.indexOf(selectedSlot);
    const next = selectedSlot === null
      ? 0
      : Math.max(0, Math.min(slotsByLoss.length - 1, here - step));
    selectSlot(slotsByLoss[next] ?? null);
  },
  onHover: (plot, at, y) => selectSlot(nearestSlot(plot, at, y)),
  onLeave: () => selectSlot(null),
});

function paintSlots(plot, context) {
  const { slots, count } = lossReport;
  const step = Math.max(1, Math.ceil((slots.totals.length * count) / MAX_SEGMENTS));
  const last = count - 1;
  const xs = lossReport.timeline.xs.map((x) => plot.valToPos(x, "x", true));
  const zero = plot.valToPos(0, "y", true);
  const scale = (plot.valToPos(lossAxisTop, "y", true) - zero) / lossAxisTop;
  context.lineWidth = devicePixelRatio;
  context.strokeStyle = translucent("slot", slots.totals.length > 300 ? 0.25 : 0.75);
  for (const total of slots.totals) {
    context.beginPath();
    for (let at = 0; ; at = Math.min(last, at + step)) {
      if (Number.isNaN(total[at])) break;
      // Coordinates far outside of a canvas lose precision: just above the chart is enough.
      context.lineTo(xs[at], zero + scale * Math.min(total[at], 3 * lossAxisTop));
      if (at === last) break;
    }
    context.stroke();
  }
}

// The slot whose line is closest to the mouse, within 24 pixels; else null.
function nearestSlot(plot, at, y) {
  let [nearest, distance] = [null, 24];
  lossReport.slots.totals.forEach((total, slot) => {
    const away = Math.abs(plot.valToPos(total[at], "y") - y);
    if (away < distance) [nearest, distance] = [slot, away];
  });
  return nearest;
}

// Returns whether the selection has changed.
function selectSlot(slot) {
  if (slot === selectedSlot) return false;
  selectedSlot = slot;
  const selected = slot === null ? [] : [["selected slot", "selected"]];
  lossChart.setLegend([...lossChart.spec.legend, ...selected]);
  if (lossChart.data) lossChart.applyNow(() => lossChart.plot.setData(lossData()));
  return true;
}

const asLine = (totals) => Array.from(totals, (total) => (known(total) ? total : null));

function lossData() {
  const { model, baseline, slots, timeline: { xs } } = lossReport;
  const selected = selectedSlot === null ? xs.map(() => null) : asLine(slots.totals[selectedSlot]);
  return [xs, asLine(baseline.totals), asLine(model.totals), selected];
}

// The axis holds lines that end within six times the larger loss of model and best slot.
function drawLoss(report) {
  lossReport = report;
  if (selectedSlot !== null && selectedSlot >= report.slots.names.length) selectedSlot = null;
  const ends = report.slots.totals.map((totals) => lastOf(totals) ?? NaN);
  const rank = (slot) => (known(ends[slot]) ? ends[slot] : Number.MAX_VALUE);
  slotsByLoss = ends.map((_, slot) => slot).sort((one, other) => rank(one) - rank(other));
  const model = lastOf(asLine(report.model.totals)) ?? 0;
  const lines = [...ends, lastOf(report.baseline.totals) ?? NaN];
  const reference = Math.max(model, ends[report.best.slot] ?? 0);
  const limit = reference > 0 ? 6 * reference : Math.max(...lines.filter(known), 0);
  lossAxisTop = 1.05 * Math.max(model, ...lines.filter((end) => known(end) && end <= limit)) || 1;
  const outside = lines.filter((end) => !(end <= limit)).length;
  lossChart.setData(report.scored.some((rows) => rows > 0) ? lossData() : null, {
    caption: report.isClassification ? "sum of wrong labels" : "sum of squared errors",
    note: outside
      ? `${counted(outside, "line leaves", "lines leave")} the chart: more than six times the ` +
        "loss of model and best slot, or not a number."
      : "",
  });
}
