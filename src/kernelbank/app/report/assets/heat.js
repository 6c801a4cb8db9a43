// Painting weights: a scale of colours, and one small picture that the chart stretches.

const SHADES = 256;
const WHOLE_WEIGHT = 10000; // weights come as whole numbers in 1/10000

// The scale's colours between the five of the theme, as red, green, blue of each shade.
function heatScale() {
  const stops = [0, 1, 2, 3, 4].map((stop) => channels(colour[`heat-${stop}`]));
  return Array.from({ length: SHADES }, (_, shade) => {
    const at = (shade / (SHADES - 1)) * (stops.length - 1);
    const below = Math.min(stops.length - 2, Math.floor(at));
    const above = stops[below + 1];
    return stops[below].map((channel, place) => channel + (at - below) * (above[place] - channel));
  });
}

// The square root keeps small weights visible beside one that has nearly all.
function shadeOf(weight, highest) {
  const share = Math.min(1, Math.max(0, weight) / highest);
  return Math.round((SHADES - 1) * Math.sqrt(share));
}

// The picture: `wide` columns of pixels, and a line for each slot or for several of them.
// Where several weights fall on one pixel the largest is shown: none is lost by joining.
function heatPicture(view, highest, wide, high) {
  const slots = view.names.length;
  const lines = Math.min(slots, high);
  const shades = new Uint8ClampedArray(wide * lines);
  const total = view.ends[view.count - 1] || 1;
  for (let at = 0; at < view.count; at += 1) {
    const weights = view.points.weights[at];
    if (!weights) continue;
    const from = Math.min(wide - 1, Math.round((view.starts[at] / total) * wide));
    const to = Math.max(from + 1, Math.round((view.ends[at] / total) * wide));
    for (let slot = 0; slot < slots; slot += 1) {
      const shade = shadeOf(weights[slot] ?? 0, highest);
      if (shade === 0) continue;
      const start = Math.floor((slot * lines) / slots) * wide;
      for (let column = from; column < to; column += 1) {
        if (shade > shades[start + column]) shades[start + column] = shade;
      }
    }
  }
  return tinted(shades, wide, lines);
}

function tinted(shades, wide, lines) {
  // A pixel is four bytes in a row: written as one number they take a fourth of the time.
  const inOne = (shade) => new Uint32Array(Uint8ClampedArray.of(...shade, 255).buffer)[0];
  const scale = heatScale().map(inOne);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [wide, lines];
  const context = canvas.getContext("2d");
  const image = context.createImageData(wide, lines);
  const pixels = new Uint32Array(image.data.buffer);
  for (let place = 0; place < shades.length; place += 1) pixels[place] = scale[shades[place]];
  context.putImageData(image, 0, 0);
  return canvas;
}

// The bar that tells what the colours mean; its labels stand where those weights are on the scale.
class HeatLegend {
  constructor() {
    const look = { width: SHADES, height: 1, className: "bar", "aria-hidden": "true" };
    this.canvas = make("canvas", look);
    this.labels = make("div", { className: "bar-labels" });
    const scale = make("div", {}, this.canvas, this.labels);
    this.element = make("div", { className: "heat-legend" }, make("span", {}, "weight"), scale);
  }

  draw(highest) {
    const context = this.canvas.getContext("2d");
    heatScale().forEach((shade, at) => {
      context.fillStyle = `rgb(${shade.map(Math.round).join(", ")})`;
      context.fillRect(at, 0, 1, 1);
    });
    const weights = [0, 1 / 16, 1 / 4, 9 / 16, 1].map((share) => (share * highest) / WHOLE_WEIGHT);
    fill(this.labels, ...weights.map((weight) => make("span", {}, percent(weight))));
  }
}

// A text that fits into so many pixels of a canvas, with an ellipsis if some of it is left out.
function cropped(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const signs = Array.from(text.slice(0, 200));
  while (signs.length && context.measureText(`${signs.join("")}…`).width > room) signs.pop();
  return `${signs.join("").trimEnd()}…`;
}
