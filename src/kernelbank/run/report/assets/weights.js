// The heat map of weights: a colour scale, and one small image that the chart stretches.

const SHADES = 256;
const WEIGHT_OF_ONE = 10000; // weights come as whole numbers in 1/10000

// Red, green and blue of each shade, interpolated between the five colours of the theme.
function heatScale() {
  const stops = [0, 1, 2, 3, 4].map((stop) => rgbOf(colours[`heat-${stop}`]));
  return Array.from({ length: SHADES }, (_, shade) => {
    const at = (shade / (SHADES - 1)) * (stops.length - 1);
    const below = Math.min(stops.length - 2, Math.floor(at));
    const above = stops[below + 1];
    return stops[below].map((channel, index) => channel + (at - below) * (above[index] - channel));
  });
}

// The square root keeps small weights visible beside a large one.
function shadeOf(weight, highest) {
  const share = Math.min(1, Math.max(0, weight) / highest);
  return Math.round((SHADES - 1) * Math.sqrt(share));
}

// The image: `width` columns of pixels, and a line per slot or per several slots. Where several
// weights fall on one pixel the largest is shown: none is lost.
function heatImage(report, highest, width, height) {
  const slots = report.slots.names.length;
  const lines = Math.min(slots, height);
  const shades = new Uint8ClampedArray(width * lines);
  const { xs, range: [first, last], startOf } = report.timeline;
  const pixelOf = (x) => Math.round(((x - first) / (last - first || 1)) * width);
  for (let at = 0; at < report.count; at += 1) {
    const weights = report.points.weights[at];
    if (!weights) continue;
    const from = Math.min(width - 1, pixelOf(startOf(at)));
    const to = Math.max(from + 1, pixelOf(xs[at]));
    for (let slot = 0; slot < slots; slot += 1) {
      const shade = shadeOf(weights[slot] ?? 0, highest);
      if (shade === 0) continue;
      const start = Math.floor((slot * lines) / slots) * width;
      for (let column = from; column < to; column += 1) {
        if (shade > shades[start + column]) shades[start + column] = shade;
      }
    }
  }
  return colourImage(shades, width, lines);
}

function colourImage(shades, width, lines) {
  // The four bytes of a pixel are written as one number, which takes a quarter of the time.
  const asNumber = (rgb) => new Uint32Array(Uint8ClampedArray.of(...rgb, 255).buffer)[0];
  const scale = heatScale().map(asNumber);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, lines];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, lines);
  const pixels = new Uint32Array(image.data.buffer);
  for (let index = 0; index < shades.length; index += 1) pixels[index] = scale[shades[index]];
  context.putImageData(image, 0, 0);
  return canvas;
}

// The colour scale; its labels stand where these weights are on the scale.
class HeatLegend {
  constructor() {
    const attributes = { width: SHADES, height: 1, className: "bar", "aria-hidden": "true" };
    this.canvas = create("canvas", attributes);
    this.labels = create("div", { className: "bar-labels" });
    const scale = create("div", {}, this.canvas, this.labels);
    const title = create("span", {}, "share of weight");
    this.element = create("div", { className: "heat-legend" }, title, scale);
  }

  draw(highest) {
    const context = this.canvas.getContext("2d");
    heatScale().forEach((rgb, at) => {
      context.fillStyle = `rgb(${rgb.map(Math.round).join(", ")})`;
      context.fillRect(at, 0, 1, 1);
    });
    const weights = [0, 1 / 16, 1 / 4, 9 / 16, 1].map((share) => (share * highest) / WEIGHT_OF_ONE);
    setChildren(this.labels, ...weights.map((weight) => create("span", {}, percent(weight))));
  }
}

// The weights of all slots over time, the slots with the largest weights, and their names explained.

let weightsReport = null;
let highestWeight = WEIGHT_OF_ONE;
let weightsSlot = 0; // the line under the cursor
let weightsSlotChosen = false; // until the viewer chooses one, it is the slot of largest weight

const SLOTS_LISTED = 8;
const heatLegend = new HeatLegend();

const nameWidth = (plot) => Math.round(Math.min(310, plot.width * 0.34));

const weightsChart = new Chart("weights-chart", {
  label: "Heat map of the weights: slots from top to bottom, rows from left to right",
  height: () => {
    const slots = weightsReport?.slots.names.length ?? 1;
    return 56 + Math.max(90, Math.min(innerWidth < 600 ? 380 : 560, slots * 15));
  },
  overTime: true,
  horizontalCursor: true,
  empty: "No weights yet.",
  downwards: true,
  yRange: () => [0, weightsReport.slots.names.length],
  xOf: (at) => (weightsReport.timeline.startOf(at) + weightsReport.timeline.xs[at]) / 2,
  series: [{ colour: "muted", width: 0, points: { show: false } }],
  yAxis: {
    size: nameWidth,
    grid: { show: false },
    ticks: { show: false },
    gap: 6,
    splits: (plot) => namedSlots(plot).map((slot) => slot + 0.5),
    values: (plot, middles) => {
      plot.ctx.font = plot.axes[1].font[0];
      const width = (nameWidth(plot) - 12) * devicePixelRatio;
      const nameAt = (middle) => weightsReport.slots.names[Math.floor(middle)] ?? "";
      return middles.map((middle) => cropText(plot.ctx, nameAt(middle), width));
    },
  },
  paintAbove: (plot, context) => paintHeat(plot, context),
  table: () => {
    const { points, slots } = weightsReport;
    const table = pointColumns(weightsReport);
    slots.names.forEach((name, slot) => {
      table[name] = points.weights.map((weights) => (weights?.[slot] ?? 0) / 10000);
    });
    return table;
  },
  indexAt: (plot, x) => {
    const here = plot.posToVal(x, "x");
    const at = weightsReport.timeline.xs.findIndex((end) => here <= end);
    return at < 0 ? weightsReport.count - 1 : at;
  },
  onHover: (plot, at, y) => chooseSlot(Math.floor(plot.posToVal(y, "y"))),
  moveVertically: (step) => chooseSlot(weightsSlot + step),
  cursorY: (plot) => plot.valToPos(weightsSlot + 0.5, "y"),
  readout: (at) => {
    const { points, slots } = weightsReport;
    return [
      [pointText(weightsReport, at), ""],
      [dataText(slots.names[weightsSlot]), "", "slot-name"],
      ["mean weight", weightPercent(points.weights[at]?.[weightsSlot])],
      ["highest", weightPercent(points.weights_high[at]?.[weightsSlot])],
    ];
  },
});
weightsChart.legend.replaceWith(heatLegend.element);
onColourChange.push(() => weightsReport && heatLegend.draw(highestWeight));

// Returns whether the choice has changed.
function chooseSlot(slot) {
  const next = Math.max(0, Math.min(weightsReport.slots.names.length - 1, slot));
  const changed = next !== weightsSlot;
  weightsSlot = next;
  weightsSlotChosen = true;
  return changed;
}

// As many slots as have room for a name, at even distances.
function namedSlots(plot) {
  const slots = weightsReport.slots.names.length;
  const room = Math.max(1, Math.floor(plot.bbox.height / devicePixelRatio / 14));
  const step = Math.ceil(slots / room);
  return Array.from({ length: Math.ceil(slots / step) }, (_, index) => index * step);
}

function paintHeat(plot, context) {
  const { left, top, width, height } = plot.bbox;
  const image = heatImage(weightsReport, highestWeight, Math.round(width), Math.round(height));
  context.imageSmoothingEnabled = false;
  context.drawImage(image, left, top, width, height);
}

function drawWeights(report) {
  weightsReport = report;
  const drawn = report.points.weights.some((weights) => weights?.length);
  heatLegend.element.hidden = !drawn;
  byId("weights-table").hidden = !drawn;
  drawTerms(report);
  if (!drawn) {
    weightsChart.setData(null);
    return;
  }
  const present = lastOf(report.points.weights) ?? [];
  weightsSlot = weightsSlotChosen
    ? Math.min(weightsSlot, report.slots.names.length - 1)
    : present.reduce((most, one, slot) => (one > present[most] ? slot : most), 0);
  highestWeight = 1;
  for (const weights of report.points.weights) {
    for (const weight of weights ?? []) if (weight > highestWeight) highestWeight = weight;
  }
  heatLegend.draw(highestWeight);
  const { xs } = report.timeline;
  weightsChart.setData([xs, xs.map(() => null)], {
    caption: report.run.weights_of
      ? ["slots that predict the label ", dataText(report.run.weights_of)]
      : "slots",
  });
  weightsChart.resize();
  drawRanking(report);
}

const termsList = new Collapsible(() => [
  create("dl", { className: "pairs" }, ...(weightsReport.run.slot_terms ?? []).map((pair) =>
    create("div", {}, create("dt", {}, dataText(pair[0])), create("dd", {}, dataText(pair[1]))))),
]);
byId("slot-terms").append(termsList.element);

function drawTerms({ run }) {
  termsList.setTitle(run.slot_terms?.length ? "What the names of slots mean" : null);
}

let ranking = []; // slots by their present weight
const smallerWeights = new Collapsible(() =>
  [rankingTable("Smaller weights", ranking.slice(SLOTS_LISTED))]);
const largestWeights = create("div");
byId("weights-table").append(largestWeights, smallerWeights.element);

function rankingTable(caption, rows) {
  const columns = [
    ["slot", "text"], ["share of weight now", "number"], ["highest share", "number"],
    [`${errorName(weightsReport)} alone`, "number"],
  ];
  return createTable("named", caption, columns, rows.map(({ name, now, highest, error }) => [
    dataText(name), weightPercent(now), weightPercent(highest), errorText(weightsReport, error),
  ]));
}

function drawRanking(report) {
  const present = report.points.weights[report.count - 1] ?? [];
  const scored = lastOf(report.scored);
  ranking = report.slots.names.map((name, slot) => ({
    name,
    now: present[slot],
    highest: Math.max(0, ...report.points.weights_high.map((weights) => weights?.[slot] ?? 0)),
    error: report.errorOf(lastOf(report.slots.totals[slot]), scored),
  })).sort((one, other) => (other.now ?? 0) - (one.now ?? 0));
  setChildren(largestWeights, rankingTable("Largest weights", ranking.slice(0, SLOTS_LISTED)));
  const others = ranking.length - SLOTS_LISTED;
  smallerWeights.setTitle(
    others > 0 ? `Show ${counted(others, "other slot", "other slots")}` : null);
}
