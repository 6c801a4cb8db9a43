// The weights of all slots over time, and a table of the slots that have most of it now.

let weightsView = null;
let weightsHighest = WHOLE_WEIGHT;
let weightsSlot = 0; // the line under the cursor
let weightsChosen = false; // until somebody points at one, it is the slot with the largest weight

const LISTED = 8;
const heatLegend = new HeatLegend();

const namesRoom = (plot) => Math.round(Math.min(210, plot.width * 0.3));

const weightsChart = new Chart("weights-chart", {
  label: "Heat map of the weights, slots from top to bottom, rows from left to right",
  height: () => {
    const slots = weightsView?.names.length ?? 1;
    return 56 + Math.max(90, Math.min(innerWidth < 600 ? 380 : 560, slots * 15));
  },
  overTime: true,
  cursorY: true,
  empty: "No weights yet.",
  down: true,
  range: () => [0, weightsView.names.length],
  across: (at) => (weightsView.starts[at] + weightsView.ends[at]) / 2,
  series: [{ role: "muted", width: 0, points: { show: false } }],
  axis: {
    size: namesRoom,
    grid: { show: false },
    ticks: { show: false },
    gap: 6,
    splits: (plot) => namedSlots(plot).map((slot) => slot + 0.5),
    values: (plot, middles) => {
      plot.ctx.font = plot.axes[1].font[0];
      const room = (namesRoom(plot) - 12) * devicePixelRatio;
      const nameAt = (middle) => weightsView.names[Math.floor(middle)] ?? "";
      return middles.map((middle) => cropped(plot.ctx, nameAt(middle), room));
    },
  },
  finish: (plot, context) => paintHeat(plot, context),
  indexAt: (plot, left) => {
    const row = plot.posToVal(left, "x");
    const at = weightsView.ends.findIndex((end) => row <= end);
    return at < 0 ? weightsView.count - 1 : at;
  },
  hover: (plot, at, top) => {
    const slot = Math.floor(plot.posToVal(top, "y"));
    const next = Math.max(0, Math.min(weightsView.names.length - 1, slot));
    const turned = next !== weightsSlot;
    weightsSlot = next;
    weightsChosen = true;
    return turned;
  },
  up: (step) => {
    weightsSlot = Math.max(0, Math.min(weightsView.names.length - 1, weightsSlot + step));
    weightsChosen = true;
  },
  cursorTop: (plot) => plot.valToPos(weightsSlot + 0.5, "y"),
  tell: (at) => {
    const { points: all, names, starts, ends } = weightsView;
    return [
      [rowsFromTo(starts[at] + 1, ends[at]), ""],
      [fromData(names[weightsSlot]), "", "slot-name"],
      ["mean weight", weight(all.weights[at]?.[weightsSlot])],
      ["highest", weight(all.weights_high[at]?.[weightsSlot])],
    ];
  },
});
weightsChart.legend.replaceWith(heatLegend.element);
whenRecoloured.push(() => weightsView && heatLegend.draw(weightsHighest));

// 1234 of 10000 -> "12.34 %"
const weight = (value) => (known(value) ? `${(value / 100).toFixed(2)} %` : UNKNOWN);

// As many names as can be read, at even distances.
function namedSlots(plot) {
  const slots = weightsView.names.length;
  const fit = Math.max(1, Math.floor(plot.bbox.height / devicePixelRatio / 14));
  const step = Math.ceil(slots / fit);
  return Array.from({ length: Math.ceil(slots / step) }, (_, place) => place * step);
}

function paintHeat(plot, context) {
  const { left, top, width, height } = plot.bbox;
  const picture = heatPicture(weightsView, weightsHighest, Math.round(width), Math.round(height));
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, left, top, width, height);
}

function drawWeights(view) {
  weightsView = view;
  const drawn = view.points.weights.some((weights) => weights?.length);
  heatLegend.element.hidden = !drawn;
  byId("weights-table").hidden = !drawn;
  if (!drawn) {
    weightsChart.set(null);
    return;
  }
  const present = lastOf(view.points.weights) ?? [];
  weightsSlot = weightsChosen
    ? Math.min(weightsSlot, view.names.length - 1)
    : present.reduce((most, one, slot) => (one > present[most] ? slot : most), 0);
  let highest = 1;
  for (const weights of view.points.weights) {
    for (const one of weights ?? []) if (one > highest) highest = one;
  }
  weightsHighest = highest;
  heatLegend.draw(highest);
  weightsChart.set([view.ends, view.ends.map(() => null)], {
    caption: view.run.weights_of
      ? ["slots of the bank for ", fromData(view.run.weights_of)]
      : "slots",
  });
  weightsChart.resize();
  drawStanding(view);
}

const folded = new Folded(() => [standingTable("Smaller weights", standing.slice(LISTED))]);
const standingTop = make("div");
byId("weights-table").append(standingTop, folded.element);
let standing = [];

const COLUMNS_OF_STANDING = [
  ["slot", "text"], ["weight now", "number"], ["highest ever", "number"], ["error alone", "number"],
];

const standingTable = (caption, rows) =>
  table("named", caption, COLUMNS_OF_STANDING, rows.map(({ name, now, highest, error }) => [
    fromData(name), weight(now), weight(highest),
    weightsView.classes ? percent(error) : number(error),
  ]));

function drawStanding(view) {
  const present = view.points.weights[view.count - 1] ?? [];
  const answered = lastOf(view.answered);
  standing = view.names.map((name, slot) => ({
    name,
    now: present[slot],
    highest: Math.max(0, ...view.points.weights_high.map((weights) => weights?.[slot] ?? 0)),
    error: view.errorOf(lastOf(view.slots.totals[slot]), answered),
  })).sort((one, other) => (other.now ?? 0) - (one.now ?? 0));
  fill(standingTop, standingTable("Largest weights now", standing.slice(0, LISTED)));
  const others = standing.length - LISTED;
  folded.set(others > 0 ? `Show ${counted(others, "other slot", "other slots")}` : null);
}
