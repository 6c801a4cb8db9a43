// The prediction along one input: a number, a part of the time (in shares of its day, week or year)
// or a category (by its number).

const inputChoice = byId("curves-input");

const curvesChart = new Chart("curves-chart", {
  label: "Prediction along one input, with its interval",
  height: onPhones(260, 340),
  empty: "No predictions have been recorded yet.",
  yAxis: { values: (...axis) => errorAxis(curvesChart.report).values(...axis) },
  xAxis: {
    splits: (plot, at, low, high, step) => inputTicks(plot, low, high, step),
    values: (plot, values, at, space, step) => inputTickLabels(plot, values, step),
  },
  series: [
    { colour: "model", width: 1, alpha: 0.4, hidden: () => isCategory() },
    { colour: "model", width: 1, alpha: 0.4, hidden: () => isCategory() },
    { colour: "model", width: 2.5, hidden: () => isCategory() },
  ],
  bands: [{ colour: "model", alpha: 0.16, series: [2, 1], hidden: () => isCategory() }],
  view({ run, isClassification }) {
    const line = chosenLine();
    if (!line?.x?.length) return null;
    const [xRange, yRange] = curvesRanges(line, isClassification);
    const predicted = isClassification
      ? ["probability of ", dataText(run.classes?.[0] ?? "the first class")]
      : ["predicted ", dataText(run.target ?? "target")];
    const name = inputName();
    const { x, prediction, low, high } = line;
    return {
      xRange, yRange,
      xLabel: name,
      data: drawnLine(line),
      caption: [...predicted, " along ", dataText(name)],
      paintAbove: (plot, context) => isCategory() && paintCategories(plot, context),
      restingIndex: Math.floor(x.length / 2),
      table: () => {
        const lists = { [name]: isCategory() ? x.map(categoryName) : x, prediction };
        return isClassification ? lists : { ...lists, low, high };
      },
      readout: (at) => [
        [dataText(name), atText(x[at])],
        ...(isClassification
          ? [["probability", percent(prediction[at]), "model"]]
          : [["prediction", number(prediction[at]), "model"],
            ["interval", fromTo(low[at], high[at])]]),
      ],
    };
  },
});

const inputIndex = () => Math.max(0, inputChoice.selectedIndex);
const inputAt = (index) => curvesChart.report.run.inputs?.[index] ?? {};
const inputNameAt = (index) => inputAt(index).name ?? `input ${index + 1}`;
const inputName = () => inputNameAt(inputIndex());
const inputKind = () => inputAt(inputIndex()).kind;
const isCategory = () => inputKind() === "category";
const chosenLine = () => part("curves", [])[inputIndex()];

// --- axes of times and categories -----------------------------------------------------------------

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

// A share of a day, week or year as text.
const SHARE_TEXTS = {
  __proto__: null,
  day: (share) => {
    const minutes = Math.round(24 * 60 * share);
    return `${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
  },
  week: (share) => {
    const hours = Math.round(7 * 24 * share);
    return `${WEEKDAYS[Math.floor(hours / 24) % 7]} ${twoDigits(hours % 24)}:00`;
  },
  year: (share) => MONTHS[Math.floor(12 * share + 1e-9) % 12],
};
const SHARE_TICKS = { __proto__: null, day: 8, week: 7, year: 12 }; // parts of the axis

const categoryName = (index) => inputAt(inputIndex()).labels?.[index] ?? "";

function atText(x) {
  if (isCategory()) return create("span", {}, "is ", dataText(categoryName(x)));
  const text = SHARE_TEXTS[inputKind()];
  return `at ${text ? text(x) : number(x)}`;
}

// As many categories as have room for a name.
function inputTicks(plot, low, high, step) {
  const parts = SHARE_TICKS[inputKind()];
  if (parts) return Array.from({ length: parts + 1 }, (_, at) => at / parts);
  if (!isCategory()) return ticksBetween(low, high, step);
  const { x } = chosenLine();
  const room = Math.max(1, Math.floor(plot.bbox.width / devicePixelRatio / 44));
  const every = Math.ceil(x.length / room);
  return x.map((_, at) => at).filter((at) => at % every === 0);
}

function inputTickLabels(plot, ticks, step) {
  const kind = inputKind();
  if (kind === "week") return ticks.map((share) => WEEKDAYS[Math.round(7 * share)] ?? "");
  if (SHARE_TEXTS[kind]) {
    return ticks.map((share) => (share < 1 || kind === "day" ? SHARE_TEXTS[kind](share) : ""));
  }
  if (!isCategory()) return tickLabels(ticks, step);
  const { x } = chosenLine();
  const width = plot.bbox.width / Math.max(1, ticks.length) - 8 * devicePixelRatio;
  return namesOnAxis(plot, 0, ticks.map((at) => categoryName(x[at])), width);
}

// A dot with its interval for each category.
function paintCategories(plot, context) {
  const [positions, low, high, prediction] = plot.data;
  const ratio = devicePixelRatio;
  const place = (value) => plot.valToPos(value, "y", true);
  context.lineWidth = 2 * ratio;
  context.strokeStyle = translucent("model", 0.5);
  context.fillStyle = colours.model;
  positions.forEach((at, index) => {
    const x = plot.valToPos(at, "x", true);
    context.beginPath();
    context.moveTo(x, place(low[index]));
    context.lineTo(x, place(high[index]));
    for (const end of [low[index], high[index]]) {
      context.moveTo(x - 6 * ratio, place(end));
      context.lineTo(x + 6 * ratio, place(end));
    }
    context.stroke();
    paintDot(context, x, place(prediction[index]), 5 * ratio);
  });
}

function drawnLine({ x, low, high, prediction }) {
  return [isCategory() ? x.map((_, at) => at) : x, low, high, prediction];
}

// --- the chart -----------------------------------------------------------------------------------

function curvesRanges({ x, low, high, prediction }, isClassification) {
  const [left, right] = [Math.min(...x), Math.max(...x)];
  let xRange = left < right ? [left, right] : [left - 1, left + 1];
  if (SHARE_TEXTS[inputKind()]) xRange = [0, 1];
  if (isCategory()) xRange = [-0.5, x.length - 0.5];
  if (isClassification) return [xRange, [0, 1]];
  const ys = [...low, ...high, ...prediction].filter(isNumber);
  return [xRange, withEdges(Math.min(...ys), Math.max(...ys), 0.06)];
}

function drawCurves(report) {
  curvesChart.report = report;
  setText(byId("curves-about"),
    report.isClassification ? "Probability of one label" : "Prediction and interval");
  const inputs = part("curves", []).length;
  const names = Array.from({ length: inputs }, (_, index) => inputNameAt(index));
  const chosen = inputs ? Math.min(inputIndex(), inputs - 1) : -1;
  setChildren(inputChoice, ...names.map((name) => create("option", {}, name)));
  if (inputChoice.selectedIndex !== chosen) inputChoice.selectedIndex = chosen;
  byId("curves-choices").hidden = !inputs;
  curvesChart.draw(report);
}

inputChoice.addEventListener("change", () => curvesChart.draw(curvesChart.report));
