// One chart: uPlot inside, and around it what makes it usable by everybody: a caption, a legend in
// words, a readout of the values at the cursor, arrow keys, and a sentence when there is nothing.

const charts = [];

const PRINTED_WIDTH = 660; // pixels that fit between the margins of A4 and of Letter

class Chart {
  // spec: what a chart is.
  //   label, empty      words for those who do not see it, and for when there is nothing to see
  //   height, range     functions of nothing; xRange and xLabel too, if rows are not what is across
  //   series, bands     looks by the role of a colour; legend, axis: more of the kind
  //   paint, finish     paint by hand below and above the lines
  //   tell(index)       what the readout says: [[label, value, role], ...]
  //   overTime          shares its cursor with all others that are
  //   up, hover, left   if the chart has a second direction: keys, the mouse, and neither any more
  constructor(id, spec) {
    this.spec = spec;
    this.index = null; // of the point under the cursor, null without one
    this.row = null; // its place along the chart, which stays when points are joined
    this.settling = false;
    this.data = null;
    this.plot = null;
    this.caption = make("p", { className: "caption" });
    this.holder = make("div", {
      className: "chart",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "chart",
      "aria-label": spec.label,
      "aria-describedby": `${id}-readout`,
    });
    this.legend = make("ul", { className: "legend" });
    this.readout = make("p", { className: "readout", id: `${id}-readout`, "aria-live": "polite" });
    this.note = make("p", { className: "note" });
    this.nothing = nothing(spec.empty);
    this.element = byId(id);
    this.drawn = [this.caption, this.holder, this.legend, this.readout];
    this.element.append(this.nothing, ...this.drawn, this.note);
    this.showLegend(spec.legend ?? []);
    this.holder.addEventListener("keydown", (event) => pressed(this, event));
    this.holder.addEventListener("mouseleave", () => leave(this));
    new ResizeObserver(() => this.resize()).observe(this.element);
    whenRecoloured.push(() => this.redraw());
    addEventListener("beforeprint", () => this.resize(PRINTED_WIDTH));
    addEventListener("afterprint", () => this.resize());
    charts.push(this);
    this.set(null);
  }

  // New values: null or no points at all shows the sentence instead of an empty frame.
  set(data, { caption = "", note = "" } = {}) {
    this.data = data && data[0].length ? data : null;
    const drawn = this.data !== null;
    this.nothing.hidden = drawn;
    for (const piece of this.drawn) piece.hidden = !drawn;
    this.note.hidden = !drawn || !note;
    if (!drawn) return;
    fill(this.caption, ...[caption].flat());
    say(this.note, note);
    if (this.index !== null) this.index = placeOf(this.data[0], this.row, this.spec.overTime);
    if (this.plot) this.atOnce(() => this.plot.setData(this.data));
    else this.plot = new uPlot(plotOptions(this), this.data, this.holder);
    this.showCursor();
    this.tell(true);
  }

  // uPlot would wait until later, and meanwhile place cursors by the scales of before.
  atOnce(change) {
    this.settling = true;
    this.plot.batch(change);
    this.settling = false;
  }

  size(width) {
    return { width: width ?? Math.max(220, this.element.clientWidth), height: this.spec.height() };
  }

  resize(width) {
    if (!this.plot || !this.data) return;
    const size = this.size(width);
    if (size.width === this.plot.width && size.height === this.plot.height) return;
    this.atOnce(() => this.plot.setSize(size));
    this.showCursor();
  }

  redraw() {
    if (this.plot && this.data) this.plot.redraw(false, true);
  }

  showLegend(entries) {
    fill(this.legend, ...entries.map(([words, look]) =>
      make("li", {}, make("span", { className: `swatch ${look}` }), ...[words].flat())));
  }

  // Put the cursor on a point; `quiet` when another chart or new data moved it.
  point(index, quiet = false) {
    this.index = index;
    if (!this.data) return;
    this.row = this.data[0][index];
    this.showCursor();
    this.tell(quiet);
  }

  showCursor() {
    if (!this.plot) return;
    if (this.index === null) {
      this.plot.setCursor({ left: -10, top: -10 }, false);
      return;
    }
    const left = this.plot.valToPos(this.across(this.index), "x");
    this.plot.setCursor({ left, top: this.spec.cursorTop?.(this.plot) ?? 1 }, false);
  }

  across(index) {
    return this.spec.across?.(index) ?? this.data[0][index];
  }

  // Without a cursor the readout tells of the newest point.
  tell(quiet) {
    const index = this.index ?? this.spec.usual?.() ?? this.data[0].length - 1;
    const told = this.spec.tell(index).map(([label, value, role = ""]) =>
      make("span", {}, make("span", { className: `name ${role}` }, label), " ", value));
    // Only the chart at hand may speak: the others follow silently.
    this.readout.setAttribute("aria-live", quiet ? "off" : "polite");
    this.readout.classList.toggle("resting", this.index === null);
    fill(this.readout, ...told.flatMap((one, at) => (at ? [" ", one] : [one])));
  }
}

// Where a value belongs in a sorted list: next to its like, or in the stretch that ends after it.
function placeOf(sorted, value, stretches) {
  const after = sorted.findIndex((end) => end >= value);
  if (stretches) return after < 0 ? sorted.length - 1 : after;
  let best = 0;
  for (let at = 1; at < sorted.length; at += 1) {
    if (Math.abs(sorted[at] - value) < Math.abs(sorted[best] - value)) best = at;
  }
  return best;
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';

function plotOptions(chart) {
  const { spec } = chart;
  const axis = {
    stroke: () => colour.muted,
    font: FONT,
    grid: { stroke: () => colour.grid, width: 1 },
    ticks: { stroke: () => colour.grid, width: 1, size: 5 },
    border: { show: false },
  };
  const few = (plot) => plot.data[0].length < 3;
  return {
    ...chart.size(),
    legend: { show: false },
    padding: [10, 26, 0, 0], // the last label of the rows is as long as its number
    cursor: {
      y: spec.cursorY ?? false,
      drag: { x: false, y: false, setScale: false },
      points: { size: 8, width: 2, stroke: () => colour.card },
    },
    scales: {
      x: { time: false, range: () => sane(spec.xRange?.() ?? [0, lastOf(chart.data[0])]) },
      y: { dir: spec.down ? -1 : 1, range: () => sane(spec.range()) },
    },
    axes: [
      {
        ...axis,
        size: 28,
        gap: 4,
        space: 74,
        ...anySize,
        label: (plot) => cropped(plot.ctx, spec.xLabel?.() ?? "row", 0.8 * plot.bbox.width),
        labelFont: FONT,
        labelSize: 18,
      },
      {
        ...axis,
        size: 58,
        space: 34,
        ...anySize,
        ...spec.axis,
      },
    ],
    series: [
      {},
      ...spec.series.map(({ role, share = 1, width = 2, ...rest }) => ({
        stroke: () => (share === 1 ? colour[role] : veil(role, share)),
        width,
        points: { show: few, size: 6 },
        pxAlign: 0, // or slow curves become stairs
        spanGaps: false,
        ...rest,
      })),
    ],
    bands: (spec.bands ?? []).map(({ role, share, series }) => ({
      series,
      fill: () => veil(role, share),
    })),
    hooks: {
      drawAxes: [(plot) => spec.paint && inFrame(plot, spec.paint)],
      draw: [(plot) => spec.finish && inFrame(plot, spec.finish)],
      setCursor: [(plot) => moved(chart, plot)],
    },
  };
}

// Paint by hand, without leaving the frame of the chart.
function inFrame(plot, paint) {
  const { left, top, width, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.beginPath();
  plot.ctx.rect(left, top, width, height);
  plot.ctx.clip();
  paint(plot, plot.ctx);
  plot.ctx.restore();
}
