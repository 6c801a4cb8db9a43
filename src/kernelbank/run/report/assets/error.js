// Error of the model, the best slot and the baseline, cumulative or per segment of rows.

let errorMode = "cumulative";

const errorChart = new Chart("error-chart", {
  label: "Error of the model, the best slot and the baseline over rows",
  height: onPhones(240, 300),
  overTime: true,
  empty: "No row has been predicted yet.",
  yAxis: { values: (...axis) => errorAxis(errorChart.report).values(...axis) },
  series: [
    { colour: "baseline", width: 1.5, dash: [6, 4] },
    { colour: "best", width: 2 },
    { colour: "model", width: 2.5 },
  ],
  view(report) {
    const { model, best, baseline, worst, starts, ends, changes, isClassification } = report;
    if (!report.scored.some((rows) => rows > 0)) return null;
    const isCumulative = errorMode === "cumulative";
    const showWorst = !isCumulative && !isClassification;
    const lines = [baseline, best, model].map((series) => series[errorMode]);
    const { top, above } = axisTop(showWorst ? [...lines, worst] : lines);
    const yTop = isClassification ? Math.min(1, top) : top;
    const text = (error) => errorText(report, error);
    return {
      yRange: [0, yTop],
      data: [report.timeline.xs, ...lines],
      legend: [
        ["model", "model"],
        [isCumulative ? "best slot so far" : "best slot of the whole run", "best"],
        ["baseline (last value)", "baseline dashed"],
        ...(showWorst ? [["largest error of the model", "mark"]] : []),
        ...(changes.length ? [["detected change", "change upright"]] : []),
      ],
      caption: isClassification
        ? "error rate"
        : ["RMSE of ", dataText(report.run.target ?? "the target")],
      note: leftOutNote(above, "value is above", "values are above"),
      paintBelow: (plot, context) => paintChanges(plot, context, report),
      paintAbove: (plot, context) => showWorst && paintWorst(plot, context, report, yTop),
      table: () => {
        const table = { ...pointColumns(report), "largest error": worst };
        for (const [name, series] of Object.entries({ model, "best slot": best, baseline })) {
          table[`${name}, all rows so far`] = series.cumulative;
          table[`${name}, segment`] = series.segment;
        }
        return table;
      },
      readout: (at) => [
        [pointText(report, at, isCumulative ? 1 : starts[at] + 1), ""],
        ["model", text(model[errorMode][at]), "model"],
        ["best slot", withSlotName(
          report, text(best[errorMode][at]), isCumulative ? best.slots[at] : best.slot), "best"],
        ["baseline", text(baseline[errorMode][at]), "baseline"],
        ...(showWorst ? [["largest error", text(worst[at]), "mark"]] : []),
        ...changesBetween(changes, starts[at] + 1, ends[at]),
      ],
    };
  },
});

function withSlotName(report, text, slot) {
  if (slot === null) return text;
  return create("span", {}, `${text} (`, dataText(report.slots.names[slot]), ")");
}

// The entries of a readout for the groups of changes that begin inside a segment.
function changesBetween(changes, first, last) {
  const inside = changes.filter(([row]) => row >= first && row <= last);
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
function paintWorst(plot, context, { worst, timeline: { xs } }, yTop) {
  const ratio = devicePixelRatio;
  context.fillStyle = translucent("model", 0.55);
  worst.forEach((error, at) => {
    if (error === null) return;
    const x = plot.valToPos(xs[at], "x", true);
    const y = plot.valToPos(Math.min(error, yTop), "y", true);
    context.fillRect(x - 2.5 * ratio, y, 5 * ratio, ratio);
  });
}

for (const radio of document.querySelectorAll("input[name=error-mode]")) {
  radio.addEventListener("change", () => {
    errorMode = radio.value;
    if (errorChart.report) errorChart.draw(errorChart.report);
  });
  if (radio.checked) errorMode = radio.value; // a browser may restore the choice after a reload
}

// Cumulative loss: every slot in grey as in the paper, the model in colour, the baseline dashed.

let selectedSlot = null;

const MAX_SEGMENTS = 60000; // of all grey lines, so that a thousand slots are drawn quickly

const asLine = (totals) => totals.map((total) => (isNumber(total) ? total : null));

const lossChart = new Chart("loss-chart", {
  label: "Cumulative loss of slots, model and baseline over rows. Up and down select a slot",
  height: onPhones(260, 340),
  overTime: true,
  empty: "No row has been predicted yet.",
  series: [
    { colour: "baseline", width: 1.5, dash: [6, 4] },
    { colour: "model", width: 3 },
    { colour: "selected", width: 2 },
  ],
  view(report) {
    const { model, baseline, best, slots, ends, timeline: { xs, name } } = report;
    if (!report.scored.some((rows) => rows > 0)) return null;
    if (selectedSlot !== null && selectedSlot >= slots.names.length) selectedSlot = null;
    const isSelected = selectedSlot !== null;
    const { top, outside } = lossAxis(report);
    const total = (slot, at) => number(slots.totals[slot][at]);
    return {
      yRange: [0, top],
      data: [
        xs, asLine(baseline.totals), asLine(model.totals),
        isSelected ? asLine(slots.totals[selectedSlot]) : xs.map(() => null),
      ],
      legend: [
        ["model", "model"], ["each slot alone", "slot"],
        ["baseline (last value)", "baseline dashed"],
        ...(isSelected ? [["selected slot", "selected"]] : []),
      ],
      caption: report.isClassification ? "sum of wrong labels" : "sum of squared errors",
      note: outside
        ? `${counted(outside, "line leaves", "lines leave")} the chart: more than six times the ` +
          "loss of model and best slot, or not a number."
        : "",
      paintBelow: (plot, context) => paintSlots(plot, context, report, top),
      table: () => ({
        ...pointColumns(report), model: model.totals, "baseline (last value)": baseline.totals,
        ...Object.fromEntries(slots.names.map((slot, at) => [slot, slots.totals[at]])),
      }),
      readout: (at) => {
        const entries = [
          [`after row ${whole(ends[at])}${name === null ? "" : `, ${timeText(xs[at])}`}`, ""],
          ["model", number(model.totals[at]), "model"],
          ["baseline", number(baseline.totals[at]), "baseline"],
        ];
        const bestSlot = best.slots[at];
        if (isSelected) {
          entries.push([dataText(slots.names[selectedSlot]), total(selectedSlot, at), "selected"]);
        } else if (bestSlot !== null) {
          entries.push(["best slot", withSlotName(report, total(bestSlot, at), bestSlot)]);
        }
        return entries;
      },
    };
  },
  // Up is a larger loss, as in the chart.
  moveVertically: (step) => {
    const order = slotsByLoss(lossChart.report);
    const next = selectedSlot === null
      ? 0
      : Math.max(0, Math.min(order.length - 1, order.indexOf(selectedSlot) - step));
    selectSlot(order[next] ?? null);
  },
  onHover: (plot, at, y) => selectSlot(nearestSlot(plot, at, y)),
  onLeave: () => selectSlot(null),
});

// The axis holds lines that end within six times the larger loss of model and best slot.
function lossAxis({ slots, model, baseline, best }) {
  const ends = slots.totals.map((totals) => lastOf(totals) ?? NaN);
  const ofModel = lastOf(asLine(model.totals)) ?? 0;
  const lines = [...ends, lastOf(baseline.totals) ?? NaN];
  const reference = Math.max(ofModel, ends[best.slot] ?? 0);
  const limit = reference > 0 ? 6 * reference : Math.max(...lines.filter(isNumber), 0);
  const inside = lines.filter((end) => isNumber(end) && end <= limit);
  const outside = lines.filter((end) => !(end <= limit)).length;
  return { top: 1.05 * Math.max(ofModel, ...inside) || 1, outside };
}

// Slots from the least to the largest loss, unknown losses last.
function slotsByLoss({ slots }) {
  const rank = (slot) => {
    const end = lastOf(slots.totals[slot]);
    return isNumber(end) ? end : Number.MAX_VALUE;
  };
  return slots.totals.map((_, slot) => slot).sort((a, b) => rank(a) - rank(b));
}

function paintSlots(plot, context, { slots, count, timeline: { xs } }, yTop) {
  const step = Math.max(1, Math.ceil((slots.totals.length * count) / MAX_SEGMENTS));
  const last = count - 1;
  const pixels = xs.map((x) => plot.valToPos(x, "x", true));
  const zero = plot.valToPos(0, "y", true);
  const scale = (plot.valToPos(yTop, "y", true) - zero) / yTop;
  context.lineWidth = devicePixelRatio;
  context.strokeStyle = translucent("slot", slots.totals.length > 300 ? 0.25 : 0.75);
  for (const total of slots.totals) {
    context.beginPath();
    for (let at = 0; ; at = Math.min(last, at + step)) {
      if (Number.isNaN(total[at])) break;
      // Coordinates far outside of a canvas lose precision: just above the chart is enough.
      context.lineTo(pixels[at], zero + scale * Math.min(total[at], 3 * yTop));
      if (at === last) break;
    }
    context.stroke();
  }
}

// The slot whose line is closest to the mouse, within 24 pixels; else null.
function nearestSlot(plot, at, y) {
  let [nearest, distance] = [null, 24];
  lossChart.report.slots.totals.forEach((total, slot) => {
    const away = Math.abs(plot.valToPos(total[at], "y") - y);
    if (away < distance) [nearest, distance] = [slot, away];
  });
  return nearest;
}

// Returns whether the selection has changed.
function selectSlot(slot) {
  if (slot === selectedSlot) return false;
  selectedSlot = slot;
  if (lossChart.view) lossChart.draw(lossChart.report);
  return true;
}
