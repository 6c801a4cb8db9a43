// The axis of charts over rows, or over time where the run has one. Times are shown as the
// run reads them: on the clock of --timezone, else in UTC where they name their zone.

let timeline = { name: null, xs: [], range: [0, 1] };

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 30.44 * DAY;
const MONDAY = 4 * DAY; // 1970 began on a Thursday

const TIME_STEPS = [
  ...[0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 4, 7, 14].map((count) => count * DAY),
  ...[1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].map((count) => count * MONTH),
];

const MONTHS = [
  "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const twoDigits = (value) => String(value).padStart(2, "0");

const TIME_FORMATS = {
  second: (date) => `${TIME_FORMATS.minute(date)}:${twoDigits(date.getUTCSeconds())}`,
  minute: (date) => `${twoDigits(date.getUTCHours())}:${twoDigits(date.getUTCMinutes())}`,
  day: (date) => `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`,
  month: (date) => `${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`,
  year: (date) => String(date.getUTCFullYear()),
  whole: (date) => `${date.getUTCDate()} ${TIME_FORMATS.month(date)}, ${TIME_FORMATS.minute(date)}`,
};

// Beyond these seconds there are no dates.
const isDate = (time) => isNumber(time) && Math.abs(time) < 8e12;
const formatTime = (format, time) =>
  (isDate(time) ? TIME_FORMATS[format](new Date(1000 * time)) : "");

const isoTime = (time) => (isDate(time) ? new Date(1000 * time).toISOString().slice(0, -1) : "");

// "3 Mar 2024, 14:00"
const timeText = (time) => formatTime("whole", time);

function timeTicks(low, high, step) {
  if (!isDate(low) || !isDate(high)) return [low, high];
  if (step >= MONTH) return monthTicks(low, high, Math.round(step / MONTH));
  const origin = step >= 7 * DAY ? MONDAY : 0;
  const first = Math.ceil((low - origin) / step);
  const count = Math.min(MAX_TICKS, Math.floor((high - origin) / step) - first + 1);
  if (!(count > 0)) return [low, high];
  return Array.from({ length: count }, (_, index) => origin + (first + index) * step);
}

function monthTicks(low, high, months) {
  const date = new Date(1000 * low);
  const from = 12 * date.getUTCFullYear() + date.getUTCMonth();
  const ticks = [];
  for (let at = Math.floor(from / months) * months; ticks.length < MAX_TICKS; at += months) {
    const tick = Date.UTC(Math.floor(at / 12), at % 12) / 1000;
    if (!(tick <= high)) break;
    if (tick >= low) ticks.push(tick);
  }
  return ticks.length ? ticks : [low, high];
}

// Days stand where they begin; if none begins on the axis, the first label has its day.
function timeLabels(ticks, step) {
  if (step >= 12 * MONTH) return ticks.map((tick) => formatTime("year", tick));
  if (step >= MONTH) return ticks.map((tick) => formatTime("month", tick));
  if (step >= DAY) return ticks.map((tick) => formatTime("day", tick));
  const clock = step < MINUTE ? "second" : "minute";
  const isMidnight = (tick) => tick % DAY === 0;
  const hasDay = ticks.some(isMidnight);
  return ticks.map((tick, at) => {
    const day = formatTime("day", tick);
    if (isMidnight(tick)) return day;
    const time = formatTime(clock, tick);
    return !hasDay && at === 0 ? `${day}, ${time}` : time;
  });
}

// An axis that is one of time while `isTime()`, else one of numbers.
const timeAxisWhile = (isTime) => ({
  incrs: (plot, at, low, high) => (isTime() ? TIME_STEPS : stepsFor(low, high)),
  splits: (plot, at, low, high, step) =>
    (isTime() ? timeTicks : ticksBetween)(low, high, step),
  values: (plot, values, at, space, step) => (isTime() ? timeLabels : tickLabels)(values, step),
});

const timelineAxis = timeAxisWhile(() => timeline.name !== null);

// The rows of a point and, where there is one, the time of the last.
function pointText({ starts, ends, timeline: line }, at, first = starts[at] + 1) {
  const rows = rowRange(first, ends[at]);
  return line.name === null ? rows : `${rows}, ${timeText(line.xs[at])}`;
}

// One chart: uPlot, with a caption, a legend in text, a readout of the values at the cursor, arrow
// keys, and a sentence when there is nothing to draw.

const charts = [];

const PRINT_WIDTH = 660; // pixels that fit between the margins of A4 and of Letter
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';

class Chart {
  // The spec of a chart; [optional]:
  //   label, empty                description for screen readers; text when there are no data
  //   height                      pixels, or a function of the view
  //   series, [bands]             colours by name; hidden(view) says whether it is not drawn
  //   [overTime]                  over rows or time; shares its cursor with all others over time
  //   [xAxis, yAxis, downwards]   options of uPlot's axis; the first value at the top
  //   [horizontalCursor, cursorY, moveVertically, onHover, onLeave]   for a second direction
  //   [isMeantFor(report)]        whether the chart is there at all
  //   view(report)                what is drawn, null for nothing:
  //     data, yRange              lists for the x axis and each series; [low, high]
  //     [xRange, xLabel]          for charts that are not over rows or time
  //     [legend, caption, note]   entries of the legend are [text, classes]
  //     [paintBelow, paintAbove]  paint on the canvas, below and above the lines
  //     table()                   what "CSV" downloads: a list for each column, by name
  //     readout(index)            the entries of the readout: [[label, value, role], ...]
  //     [restingIndex]            of the readout without a cursor, if not the newest
  //     [xOf(index), indexAt(plot, x)]   where the cursor is, if not at a point
  constructor(id, spec) {
    this.spec = spec;
    this.report = null;
    this.view = null;
    this.index = null; // of the point under the cursor; null without a cursor
    this.cursorX = null; // its x value, which stays when points are merged
    this.updating = false;
    this.plot = null;
    this.caption = create("p", { className: "caption" });
    this.frame = create("div", {
      className: "chart",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "chart",
      "aria-label": spec.label,
      "aria-describedby": `${id}-readout`,
    });
    this.legend = create("ul", { className: "legend" });
    this.download = create("button", {
      type: "button", className: "csv", title: "Download the data of this chart as CSV",
    }, "CSV");
    this.download.addEventListener("click", () => downloadCsv(`${id}.csv`, this.view.table()));
    this.readout = create("p", {
      className: "readout", id: `${id}-readout`, "aria-live": "polite",
    });
    this.note = create("p", { className: "note" });
    this.empty = emptyMessage(spec.empty);
    this.element = byId(id);
    this.visible = [this.caption, this.download, this.frame, this.legend, this.readout];
    this.element.append(this.empty, ...this.visible, this.note);
    this.frame.addEventListener("keydown", (event) => onKey(this, event));
    this.frame.addEventListener("mouseleave", () => onMouseLeave(this));
    new ResizeObserver(() => this.resize()).observe(this.element);
    onColourChange.push(() => this.view && this.plot.redraw(false, true));
    addEventListener("beforeprint", () => this.resize(PRINT_WIDTH));
    addEventListener("afterprint", () => this.resize());
    charts.push(this);
    this.show(null);
  }

  draw(report) {
    this.report = report;
    this.element.hidden = !(this.spec.isMeantFor?.(report) ?? true);
    this.show(this.element.hidden ? null : this.spec.view(report));
  }

  // Without a view the chart shows its sentence instead of an empty frame.
  show(view) {
    this.view = view;
    this.empty.hidden = view !== null;
    for (const element of this.visible) element.hidden = view === null;
    const { data, caption = "", note = "", legend = [] } = view ?? {};
    this.note.hidden = !note;
    if (view === null) return;
    setChildren(this.caption, ...[caption].flat());
    setText(this.note, note);
    setChildren(this.legend, ...legend.map(([text, classes]) =>
      create("li", {}, create("span", { className: `swatch ${classes}` }), text)));
    if (this.index !== null) {
      this.index = (this.spec.overTime ? segmentAt : nearestTo)(data[0], this.cursorX);
    }
    if (this.plot) this.applyNow(() => this.plot.setData(data));
    else this.plot = new uPlot(plotOptions(this), data, this.frame);
    this.resize();
    this.placeCursor();
    this.updateReadout(true);
  }

  // uPlot would apply the change later, and meanwhile place cursors by the old scales.
  applyNow(change) {
    this.updating = true;
    this.plot.batch(change);
    this.updating = false;
  }

  size(width = Math.max(220, this.element.clientWidth)) {
    const { height } = this.spec;
    return { width, height: typeof height === "number" ? height : height(this.view) };
  }

  resize(width) {
    if (!this.view) return;
    const size = this.size(width);
    if (size.width === this.plot.width && size.height === this.plot.height) return;
    this.applyNow(() => this.plot.setSize(size));
    this.placeCursor();
  }

  // Move the cursor to a point; `silent` when another chart or new data moved it.
  moveTo(index, silent = false) {
    this.index = index;
    if (!this.view) return;
    this.cursorX = this.view.data[0][index];
    this.placeCursor();
    this.updateReadout(silent);
  }

  placeCursor() {
    if (!this.view) return;
    if (this.index === null) {
      this.plot.setCursor({ left: -10, top: -10 }, false);
      return;
    }
    const x = this.view.xOf?.(this.index) ?? this.view.data[0][this.index];
    const left = this.plot.valToPos(x, "x");
    this.plot.setCursor({ left, top: this.spec.cursorY?.(this.plot) ?? 1 }, false);
  }

  // Without a cursor the readout is of the newest point.
  updateReadout(silent) {
    const { data, readout, restingIndex = data[0].length - 1 } = this.view;
    const entries = readout(this.index ?? restingIndex).map(([label, value, role = ""]) =>
      create("span", {}, create("span", { className: `name ${role}` }, label), " ", value));
    // Screen readers announce only the chart that the viewer moves in.
    this.readout.setAttribute("aria-live", silent ? "off" : "polite");
    this.readout.classList.toggle("resting", this.index === null);
    setChildren(this.readout, ...entries.flatMap((entry, at) => (at ? [" ", entry] : [entry])));
  }
}

// A height that phones have less of.
const onPhones = (small, usual) => () => (innerWidth < 600 ? small : usual);

// The rows, and times if there are any, of charts over time.
const pointColumns = ({ ends, timeline: line }) =>
  ({ row: ends, ...(line.name === null ? {} : { [line.name]: line.xs.map(isoTime) }) });

function downloadCsv(name, table) {
  const quoted = (value) => {
    const text = String(value ?? "");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = Object.values(table);
  const rows = Array.from({ length: columns[0].length }, (_, at) => columns.map((list) => list[at]));
  const text = [Object.keys(table), ...rows].map((row) => row.map(quoted).join(",")).join("\n");
  const address = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/csv" }));
  create("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}

function nearestTo(sorted, value) {
  const distances = sorted.map((each) => Math.abs(each - value));
  return distances.indexOf(Math.min(...distances));
}

function plotOptions(chart) {
  const { spec } = chart;
  const axis = {
    stroke: () => colours.muted,
    font: FONT,
    grid: { stroke: () => colours.grid, width: 1 },
    ticks: { stroke: () => colours.grid, width: 1, size: 5 },
    border: { show: false },
  };
  const hasFewPoints = (plot) => plot.data[0].length < 3;
  return {
    ...chart.size(),
    legend: { show: false },
    padding: [10, 26, 0, 0], // the last label of the rows is as long as its number
    cursor: {
      y: spec.horizontalCursor ?? false,
      drag: { x: false, y: false, setScale: false },
      points: { size: 8, width: 2, stroke: () => colours.card },
    },
    scales: {
      x: { time: false, range: () => drawableRange(chart.view.xRange ?? timeline.range) },
      y: { dir: spec.downwards ? -1 : 1, range: () => drawableRange(chart.view.yRange) },
    },
    axes: [
      {
        ...axis,
        size: 28,
        gap: 4,
        space: 74,
        ...(spec.overTime ? timelineAxis : numberAxis),
        ...spec.xAxis,
        label: (plot) =>
          cropText(plot.ctx, chart.view.xLabel ?? timeline.name ?? "row", 0.8 * plot.bbox.width),
        labelFont: FONT,
        labelSize: 18,
      },
      { ...axis, size: 58, space: 34, ...numberAxis, ...spec.yAxis },
    ],
    series: [
      {},
      ...spec.series.map(({ colour, alpha = 1, width = 2, hidden, ...rest }) => ({
        stroke: () => {
          if (hidden?.(chart.view)) return "transparent";
          return alpha === 1 ? colours[colour] : translucent(colour, alpha);
        },
        width,
        points: { show: hasFewPoints, size: 6 },
        pxAlign: 0, // or slow curves become stairs
        spanGaps: false,
        ...rest,
      })),
    ],
    bands: (spec.bands ?? []).map(({ colour, alpha, series, hidden }) => ({
      series,
      fill: () => (hidden?.(chart.view) ? "transparent" : translucent(colour, alpha)),
    })),
    hooks: {
      drawAxes: [(plot) => paintClipped(plot, chart.view.paintBelow)],
      draw: [(plot) => paintClipped(plot, chart.view.paintAbove)],
      setCursor: [(plot) => onMouseMove(chart, plot)],
    },
  };
}

function paintClipped(plot, paint) {
  if (!paint) return;
  const { left, top, width, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.beginPath();
  plot.ctx.rect(left, top, width, height);
  plot.ctx.clip();
  paint(plot, plot.ctx);
  plot.ctx.restore();
}

function paintDot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

// --- axes for numbers of any size -----------------------------------------------------------------
// uPlot's own axes know steps from 1e-16 to 1e15 only, and never end where a step is too small to
// change a number.

const MAX_TICKS = 60;

// A range that can be drawn, whatever the data are.
function drawableRange([low, high]) {
  if (!isNumber(low) || !isNumber(high) || !(high > low)) return [0, 1];
  return [Math.max(low, -1e300), Math.min(high, 1e300)];
}

function stepsFor(low, high) {
  const exponent = Math.floor(Math.log10(high - low));
  const exponents = [-3, -2, -1, 0, 1].map((away) => exponent + away);
  return exponents.flatMap((each) => [1, 2, 5].map((digit) => Number(`${digit}e${each}`)));
}

function ticksBetween(low, high, step) {
  const first = Math.ceil(low / step);
  const count = Math.min(MAX_TICKS, Math.floor(high / step) - first + 1);
  if (!(step > 0) || !(count > 0) || first + 1 === first) return [low, high];
  // Multiples, rounded: 3 times 0.1 should be 0.3.
  const multiple = (_, index) => Number(((first + index) * step).toPrecision(12));
  return Array.from({ length: count }, multiple);
}

const numberAxis = {
  incrs: (plot, at, low, high) => stepsFor(low, high),
  splits: (plot, at, low, high, step) => ticksBetween(low, high, step),
  values: (plot, values, at, space, step) => tickLabels(values, step),
};

// The names of what stands on an axis, cropped to a width in pixels.
function namesOnAxis(plot, axis, names, width) {
  plot.ctx.font = plot.axes[axis].font[0];
  return names.map((name) => cropText(plot.ctx, name, width));
}

const percentAxis = {
  values: (plot, values) => values.map((value) => `${Number((100 * value).toFixed(1))} %`),
};

// The cursor of a chart, moved by the mouse or by keys. Charts over time share one.

const PAGE_STEP = 10; // points that Page Up and Page Down move

function moveOthers(chart) {
  if (!chart.spec.overTime) return;
  for (const other of charts) {
    if (other !== chart && other.spec.overTime && other.view) other.moveTo(chart.index, true);
  }
}

// Called by uPlot when the mouse has moved over the chart.
function onMouseMove(chart, plot) {
  const { left, top } = plot.cursor;
  if (chart.updating || left === undefined || left < 0 || !chart.view) return;
  const index = chart.view.indexAt?.(plot, left) ?? plot.cursor.idx;
  if (index === null || index === undefined) return;
  const changed = chart.spec.onHover?.(plot, index, top) ?? false;
  if (index === chart.index && !changed) return;
  chart.index = index;
  chart.cursorX = chart.view.data[0][index];
  chart.updateReadout(false);
  moveOthers(chart);
}

function onMouseLeave(chart) {
  if (chart.index === null) return;
  if (chart.frame.matches(":focus")) chart.placeCursor(); // the keys still move it
  else removeCursor(chart);
}

function removeCursor(chart) {
  chart.spec.onLeave?.();
  chart.moveTo(null, true);
  moveOthers(chart);
}

function onKey(chart, event) {
  if (!chart.view || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape") {
    removeCursor(chart);
    return;
  }
  const last = chart.view.data[0].length - 1;
  const here = chart.index ?? last + 1;
  const indices = {
    ArrowLeft: here - 1,
    ArrowRight: chart.index === null ? last : here + 1,
    PageUp: here - PAGE_STEP,
    PageDown: chart.index === null ? last : here + PAGE_STEP,
    Home: 0,
    End: last,
  };
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step !== undefined && chart.spec.moveVertically) {
    if (chart.index === null) chart.moveTo(last);
    chart.spec.moveVertically(step);
    chart.moveTo(chart.index);
  } else if (event.key in indices) {
    chart.moveTo(Math.max(0, Math.min(last, indices[event.key])));
  } else {
    return; // every other key belongs to the browser
  }
  event.preventDefault();
  moveOthers(chart);
}
