// The error of the bank beside its best slot and persistence, so far or stretch by stretch.

let errorView = null;
let errorMode = "far";
let errorTop = 1;

const errorUnit = (view) => view.classes
  ? "share of wrong answers"
  : ["root mean square error of ", fromData(view.run.target ?? "the target")];

const errorChart = new Chart("error-chart", {
  label: "Error over rows of the bank, of the best slot and of persistence",
  height: () => (innerWidth < 600 ? 240 : 300),
  overTime: true,
  empty: "No row has been answered yet.",
  range: () => [0, errorTop],
  axis: { values: (...told) => (errorView.classes ? inPercent : anySize).values(...told) },
  series: [
    { role: "persistence", width: 1.5, dash: [6, 4] },
    { role: "best", width: 2 },
    { role: "bank", width: 2.5 },
  ],
  paint: (plot, context) => paintSignals(plot, context, errorView.changes),
  finish: (plot, context) => errorMode === "stretch" && paintWorst(plot, context),
  tell: (at) => {
    const form = errorView.classes ? percent : number;
    const slot = errorMode === "far" ? errorView.best.slots[at] : errorView.best.slot;
    const first = errorMode === "far" ? 1 : errorView.starts[at] + 1;
    const told = [
      [rowsFromTo(first, errorView.ends[at]), ""],
      ["bank", form(errorView.bank[errorMode][at]), "bank"],
      ["best slot", withName(form(errorView.best[errorMode][at]), slot), "best"],
      ["persistence", form(errorView.persistence[errorMode][at]), "persistence"],
    ];
    if (errorMode === "stretch" && !errorView.classes) {
      told.push(["worst single error", form(errorView.worst[at]), "mark"]);
    }
    return [...told, ...signalsBetween(errorView.starts[at] + 1, errorView.ends[at])];
  },
});

function withName(value, slot) {
  if (slot === null) return value;
  return make("span", {}, `${value} (`, fromData(errorView.names[slot]), ")");
}

// What the readout says of the signals inside a stretch.
function signalsBetween(first, last) {
  const inside = errorView.changes.filter(([row]) => row >= first && row <= last);
  if (!inside.length) return [];
  const words = inside.slice(0, 3).map(([row, what]) => `${what} at ${whole(row)}`);
  if (inside.length > 3) words.push(`and ${inside.length - 3} more`);
  return [["signal", words.join(", "), "signal"]];
}

// A tick at the top for each signal; lines through the picture only while they do not fill it.
function paintSignals(plot, context, changes) {
  const { top, height } = plot.bbox;
  const ratio = devicePixelRatio;
  const long = changes.length <= 40;
  for (const [row] of changes) {
    const across = Math.round(plot.valToPos(row, "x", true));
    context.fillStyle = veil("signal", 0.45);
    if (long) context.fillRect(across, top, Math.max(1, ratio), height);
    context.fillStyle = colour.signal;
    context.fillRect(across - ratio, top, 3 * ratio, 7 * ratio);
  }
}

// The worst row of each stretch as a thin dash, at the upper edge if it lies beyond.
function paintWorst(plot, context) {
  const ratio = devicePixelRatio;
  context.fillStyle = veil("bank", 0.55);
  errorView.worst.forEach((worst, at) => {
    if (worst === null || errorView.classes) return;
    const across = plot.valToPos(errorView.ends[at], "x", true);
    const down = plot.valToPos(Math.min(worst, errorTop), "y", true);
    context.fillRect(across - 2.5 * ratio, down, 5 * ratio, ratio);
  });
}

function drawError(view) {
  errorView = view;
  const lines = ["persistence", "best", "bank"].map((name) => view[name][errorMode]);
  const marks = errorMode === "stretch" && !view.classes;
  const { top, beyond } = roomyTop(marks ? [...lines, view.worst] : lines);
  errorTop = view.classes ? Math.min(1, top) : top;
  errorChart.showLegend([
    ["bank", "bank"],
    [errorMode === "far" ? "best slot so far" : "best slot of the whole run", "best"],
    ["persistence", "persistence dashed"],
    ...(marks ? [["worst single error of the bank", "mark"]] : []),
    ...(view.changes.length ? [["signal of change", "signal upright"]] : []),
  ]);
  errorChart.set(view.answered.some((rows) => rows > 0) ? [view.ends, ...lines] : null, {
    caption: errorUnit(view),
    note: beyond
      ? `${counted(beyond, "value lies", "values lie")} above the picture, ` +
        "so that the rest can be seen; the readout tells every value."
      : "",
  });
}

for (const radio of document.querySelectorAll("input[name=error-mode]")) {
  radio.addEventListener("change", () => {
    errorMode = radio.value;
    if (errorView) drawError(errorView);
  });
  if (radio.checked) errorMode = radio.value; // a browser may remember the choice over a reload
}
