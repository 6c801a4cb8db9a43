// For labels: how reliable the probabilities are, and which labels are taken for which.

let labelsReport = null;

const reliabilityChart = new Chart("reliability-chart", {
  label: "Share of correct labels by predicted probability",
  height: () => 260,
  empty: "No label has been predicted yet.",
  xRange: () => [reliabilityStart(), 1.02],
  yRange: () => [0, 1.05],
  xLabel: () => "probability of the predicted label",
  xAxis: percentAxis,
  yAxis: percentAxis,
  series: [
    { colour: "change", width: 1.5, dash: [6, 4], points: { show: false } },
    { colour: "model", width: 2, points: { show: false }, spanGaps: true },
  ],
  legend: [["correct", "model"], ["if probabilities were exact", "change dashed"]],
  paintAbove: (plot, context) => paintCounts(plot, context),
  readout: (at) => {
    const [probability, correct, rows] = reliabilityAt(at) ?? [];
    return [
      ["predicted", percent(probability), "change"],
      ["correct", percent(correct), "model"],
      ["rows", whole(rows)],
    ];
  },
});

const reliabilityAt = (at) => labelsReport.labels.reliability[at];
const reliabilityStart = () =>
  Math.max(0, Math.floor(10 * (labelsReport.labels.reliability[0]?.[0] ?? 0)) / 10 - 0.02);

// Dots whose area is the number of rows.
function paintCounts(plot, context) {
  const { reliability } = labelsReport.labels;
  const most = Math.max(...reliability.map(([, , rows]) => rows));
  context.fillStyle = colours.model;
  for (const [probability, correct, rows] of reliability) {
    const radius = (2 + 7 * Math.sqrt(rows / most)) * devicePixelRatio;
    const [x, y] = [plot.valToPos(probability, "x", true), plot.valToPos(correct, "y", true)];
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }
}

function drawLabels(report) {
  labelsReport = report;
  const { isClassification, labels } = report;
  const reliability = labels.reliability ?? [];
  reliabilityChart.element.hidden = !isClassification;
  byId("confusion").hidden = !isClassification;
  if (!isClassification || !reliability.length) {
    reliabilityChart.setData(null);
    setChildren(byId("confusion"));
    return;
  }
  const probabilities = reliability.map(([probability]) => probability);
  const total = reliability.reduce((sum, [, , rows]) => sum + rows, 0);
  // The line goes through dots of many rows only: a few rows are correct or wrong by chance.
  const line = reliability.map(([, correct, rows]) =>
    (rows >= Math.max(5, total / 500) ? correct : null));
  reliabilityChart.setData([probabilities, probabilities, line], {
    caption: "share of correct labels; the larger a dot, the more rows",
  });
  setChildren(byId("confusion"), confusionTable(labels));
}

// A line per label of the rows, a column per predicted label.
function confusionTable({ labels, confusion, areas }) {
  const names = confusion.map((_, at) => (at < labels.length ? dataText(labels[at]) : OTHER));
  const copy = (name) => (typeof name === "string" ? name : name.cloneNode(true));
  const heading = (name) => create("th", { scope: "col", className: "number" }, copy(name));
  const rows = confusion.map((counts, line) => {
    const sum = counts.reduce((total, count) => total + count, 0);
    const cells = counts.map((count, at) => {
      const cell = create("td", {
        className: `number cell ${at === line ? "right" : "wrong"}`,
      }, whole(count));
      cell.style.setProperty("--share", `${Math.round((100 * count) / (sum || 1))}%`);
      return cell;
    });
    const recall = percent(sum ? counts[line] / sum : NaN);
    const area = known(areas[line]) ? areas[line].toFixed(3) : "–";
    return create("tr", {},
      create("th", { scope: "row" }, copy(names[line])), ...cells,
      create("td", { className: "number" }, recall), create("td", { className: "number" }, area));
  });
  return create("div", { className: "scrolls", tabindex: "0" }, create(
    "table", { className: "confusion" },
    create("caption", {}, "Labels of the rows, and what was predicted (columns)"),
    create("thead", {}, create("tr", {},
      create("th", { scope: "col" }, "label"), ...names.map(heading),
      heading("correct"), heading("AUC"))),
    create("tbody", {}, ...rows)));
}
