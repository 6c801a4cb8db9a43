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

// The sums of model and of slots that were chosen in hindsight, in one sentence.
function regretText({ status: { regret }, isClassification }) {
  if (!regret) return "";
  const sums = isClassification ? "wrong labels" : "squared errors";
  const compared = (difference) =>
    `${number(Math.abs(difference))} ${difference < 0 ? "below" : "above"} that of`;
  return `Regret: the model's sum of ${sums} is ${compared(regret.best_slot)} the best slot of the ` +
    `whole run, and ${compared(regret.best_slot_per_segment)} the best slot of each segment of ` +
    `${counted(regret.segment, "row", "rows")}, all chosen in hindsight.`;
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
  setText(byId("regret"), regretText(report));
  lossChart.setData(report.scored.some((rows) => rows > 0) ? lossData() : null, {
    caption: report.isClassification ? "sum of wrong labels" : "sum of squared errors",
    note: outside
      ? `${counted(outside, "line leaves", "lines leave")} the chart: more than six times the ` +
        "loss of model and best slot, or not a number."
      : "",
  });
}
