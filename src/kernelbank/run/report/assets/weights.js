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

// The weights of all slots over time, and the slots with the largest weights.

let weightsSlot = 0; // the line under the cursor
let weightsSlotChosen = false; // until the viewer chooses one, it is the slot of largest weight

const SLOTS_LISTED = 8;
const heatLegend = new HeatLegend();

const nameWidth = (plot) => Math.round(Math.min(310, plot.width * 0.34));

const weightsChart = new Chart("weights-chart", {
  label: "Heat map of the weights: slots from top to bottom, rows from left to right",
  height: ({ names }) =>
    56 + Math.max(90, Math.min(innerWidth < 600 ? 380 : 560, names.length * 15)),
  overTime: true,
  horizontalCursor: true,
  empty: "No weights yet.",
  downwards: true,
  series: [{ colour: "muted", width: 0, points: { show: false } }],
  yAxis: {
    size: nameWidth,
    grid: { show: false },
    ticks: { show: false },
    gap: 6,
    splits: (plot) => namedSlots(plot).map((slot) => slot + 0.5),
    values: (plot, middles) => {
      const { names } = weightsChart.view;
      const shown = middles.map((middle) => names[Math.floor(middle)] ?? "");
      return namesOnAxis(plot, 1, shown, (nameWidth(plot) - 12) * devicePixelRatio);
    },
  },
  onHover: (plot, at, y) => chooseSlot(Math.floor(plot.posToVal(y, "y"))),
  moveVertically: (step) => chooseSlot(weightsSlot + step),
  cursorY: (plot) => plot.valToPos(weightsSlot + 0.5, "y"),
  view(report) {
    const { points: { weights, weights_high: high }, timeline: { xs, startOf }, run } = report;
    const { names } = report.slots;
    if (!weights.some((shares) => shares?.length)) return null;
    const present = lastOf(weights) ?? [];
    weightsSlot = weightsSlotChosen
      ? Math.min(weightsSlot, names.length - 1)
      : present.reduce((most, weight, slot) => (weight > present[most] ? slot : most), 0);
    const highest = weights.flat().reduce((most, weight) => Math.max(most, weight ?? 0), 1);
    return {
      names, highest,
      yRange: [0, names.length],
      data: [xs, xs.map(() => null)],
      caption: run.weights_of
        ? ["slots that predict the label ", dataText(run.weights_of)]
        : "slots",
      paintAbove: (plot, context) => paintHeat(plot, context, report, highest),
      xOf: (at) => (startOf(at) + xs[at]) / 2,
      indexAt: (plot, x) => segmentAt(xs, plot.posToVal(x, "x")),
      table: () => ({
        ...pointColumns(report),
        ...Object.fromEntries(names.map((name, slot) =>
          [name, weights.map((shares) => (shares?.[slot] ?? 0) / WEIGHT_OF_ONE)])),
      }),
      readout: (at) => [
        [pointText(report, at), ""],
        [dataText(names[weightsSlot]), "", "slot-name"],
        ["mean weight", weightPercent(weights[at]?.[weightsSlot])],
        ["highest", weightPercent(high[at]?.[weightsSlot])],
      ],
    };
  },
});
weightsChart.legend.replaceWith(heatLegend.element);
onColourChange.push(() => weightsChart.view && heatLegend.draw(weightsChart.view.highest));

// Returns whether the choice has changed.
function chooseSlot(slot) {
  const next = Math.max(0, Math.min(weightsChart.view.names.length - 1, slot));
  const changed = next !== weightsSlot;
  weightsSlot = next;
  weightsSlotChosen = true;
  return changed;
}

// As many slots as have room for a name, at even distances.
function namedSlots(plot) {
  const slots = weightsChart.view.names.length;
  const room = Math.max(1, Math.floor(plot.bbox.height / devicePixelRatio / 14));
  const step = Math.ceil(slots / room);
  return Array.from({ length: Math.ceil(slots / step) }, (_, index) => index * step);
}

function paintHeat(plot, context, report, highest) {
  const { left, top, width, height } = plot.bbox;
  const image = heatImage(report, highest, Math.round(width), Math.round(height));
  context.imageSmoothingEnabled = false;
  context.drawImage(image, left, top, width, height);
}

const ranking = new ShortenedTable("weights-table", SLOTS_LISTED, (caption, rows) => {
  const { report } = weightsChart;
  const columns = [
    ["slot", "text"], ["share of weight now", "number"], ["highest share", "number"],
    [`${errorName(report)} alone`, "number"],
  ];
  return listTable("named", caption, columns, rows.map(({ name, now, highest, error }) => [
    dataText(name), weightPercent(now), weightPercent(highest), errorText(report, error),
  ]));
}, ["Largest weights", "Smaller weights", "other slot", "other slots"]);

function drawWeights(report) {
  weightsChart.draw(report);
  const drawn = weightsChart.view !== null;
  heatLegend.element.hidden = !drawn;
  byId("weights-table").hidden = !drawn;
  if (!drawn) return;
  heatLegend.draw(weightsChart.view.highest);
  const { weights, weights_high: high } = report.points;
  const present = lastOf(weights) ?? [];
  const scored = lastOf(report.scored);
  ranking.draw(report.slots.names.map((name, slot) => ({
    name,
    now: present[slot],
    highest: Math.max(0, ...high.map((shares) => shares?.[slot] ?? 0)),
    error: report.errorOf(lastOf(report.slots.totals[slot]), scored),
  })).sort((a, b) => (b.now ?? 0) - (a.now ?? 0)), "");
}
