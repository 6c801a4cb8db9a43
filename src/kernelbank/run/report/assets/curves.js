// The prediction along one numeric input, the others at their medians.

const inputChoice = byId("curves-input");
const inputIndex = () => Math.max(0, inputChoice.selectedIndex);
const inputNameAt = (run, index) => run.inputs?.[index] ?? `input ${index + 1}`;

const curvesChart = new Chart("curves-chart", {
  label: "Prediction along one input, with its interval",
  height: onPhones(260, 340),
  empty: "No predictions have been recorded yet.",
  yAxis: { values: (...axis) => errorAxis(curvesChart.report).values(...axis) },
  series: [
    { colour: "model", width: 1, alpha: 0.4 },
    { colour: "model", width: 1, alpha: 0.4 },
    { colour: "model", width: 2.5 },
  ],
  bands: [{ colour: "model", alpha: 0.16, series: [2, 1] }],
  view({ run, isClassification }) {
    const line = part("curves", [])[inputIndex()];
    if (!line?.x?.length) return null;
    const { x, prediction, low, high } = line;
    const predicted = isClassification
      ? ["probability of ", dataText(run.classes?.[0] ?? "the first class")]
      : ["predicted ", dataText(run.target ?? "target")];
    const name = inputNameAt(run, inputIndex());
    const [left, right] = [x[0], lastOf(x)];
    const ys = [...low, ...high, ...prediction].filter(isNumber);
    return {
      xRange: left < right ? [left, right] : [left - 1, left + 1],
      yRange: isClassification ? [0, 1] : withEdges(Math.min(...ys), Math.max(...ys), 0.06),
      xLabel: name,
      data: [x, low, high, prediction],
      caption: [...predicted, " along ", dataText(name)],
      restingIndex: Math.floor(x.length / 2),
      table: () => ({ [name]: x, prediction, ...(isClassification ? {} : { low, high }) }),
      readout: (at) => [
        [dataText(name), `at ${number(x[at])}`],
        ...(isClassification
          ? [["probability", percent(prediction[at]), "model"]]
          : [["prediction", number(prediction[at]), "model"],
            ["interval", fromTo(low[at], high[at])]]),
      ],
    };
  },
});

function drawCurves(report) {
  curvesChart.report = report;
  setText(byId("curves-about"),
    report.isClassification ? "Probability of one label" : "Prediction and interval");
  const inputs = part("curves", []).length;
  const names = Array.from({ length: inputs }, (_, index) => inputNameAt(report.run, index));
  const chosen = inputs ? Math.min(inputIndex(), inputs - 1) : -1;
  setChildren(inputChoice, ...names.map((name) => create("option", {}, name)));
  if (inputChoice.selectedIndex !== chosen) inputChoice.selectedIndex = chosen;
  byId("curves-choices").hidden = !inputs;
  curvesChart.draw(report);
}

inputChoice.addEventListener("change", () => curvesChart.draw(curvesChart.report));
