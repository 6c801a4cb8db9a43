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
