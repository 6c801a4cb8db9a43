// Coverage and width of the intervals; for classification, predicted probabilities and how often
// the predicted label was correct. Lines are means over so many rows that chance hardly shows.

let intervalsReport = null;
let coverageRange = [0, 1];
let widthAxisTop = 1;

const coverageChart = new Chart("coverage-chart", {
  label: "Share of targets inside their intervals over rows",
  height: () => 230,
  overTime: true,
  empty: "No interval has been predicted yet.",
  yRange: () => coverageRange,
  yAxis: percentAxis,
  series: [
    { colour: "model", width: 1, alpha: 0.6 },
    { colour: "model", width: 2.5 },
    { colour: "change", width: 1.5, dash: [6, 4] },
  ],
  table: () => {
    const { covered, width, isClassification } = intervalsReport;
    const what = isClassification ? "correct" : "inside";
    return {
      ...pointColumns(intervalsReport),
      [`${what}, smoothed`]: covered.recent,
      [`${what} so far`]: covered.cumulative,
      ...(isClassification ? { "predicted, smoothed": width.recent } : {}),
    };
  },
  readout: (at) => {
    const { covered, width, isClassification, run } = intervalsReport;
    const rows = [pointText(intervalsReport, at), ""];
    if (isClassification) {
      return [
        rows,
        ["correct", percent(covered.recent[at]), "model"],
        ["predicted", percent(width.recent[at]), "change"],
        ["correct so far", percent(covered.cumulative[at])],
        ["predicted so far", percent(width.cumulative[at])],
      ];
    }
    return [
      rows,
      ["inside", percent(covered.recent[at]), "model"],
      ["so far", percent(covered.cumulative[at])],
      ["requested", percent(run.coverage), "change"],
    ];
  },
});

const widthChart = new Chart("width-chart", {
  label: "Mean width of the intervals over rows",
  height: () => 230,
  overTime: true,
  empty: "No interval has been predicted yet.",
  yRange: () => [0, widthAxisTop],
  series: [{ colour: "model", width: 1, alpha: 0.35 }, { colour: "model", width: 2.5 }],
  legend: [["smoothed", "model"], ["per segment", "model thin"]],
  table: () => {
    const { width: { recent, segment } } = intervalsReport;
    return { ...pointColumns(intervalsReport), smoothed: recent, segment };
  },
  readout: (at) => [
    [pointText(intervalsReport, at), ""],
    ["mean width", number(intervalsReport.width.recent[at]), "model"],
    ["so far", number(intervalsReport.width.cumulative[at])],
  ],
});

// From below nearly all shares up to 100 %; the first rows may lie far below.
function rangeOfShares(lists, highest) {
  const values = lists.flat().filter(known).sort((one, other) => one - other);
  const low = Math.min(quantile(values, 0.02) ?? 0, highest);
  return [Math.max(0, Math.floor(20 * low - 0.2) / 20), 1.004];
}

const segmentsAre = (count) => counted(count, "segment is", "segments are");

function drawIntervals(report) {
  intervalsReport = report;
  const { covered, width, isClassification, run } = report;
  const { xs } = report.timeline;
  setText(byId("intervals-heading"), isClassification ? "Calibration" : "Intervals");
  setText(byId("intervals-about"), isClassification
    ? "Predicted probability of the predicted label, and the share of correct labels: over time, " +
      "and by probability. The two should agree. Below, what each label was taken for."
    : "Share of targets inside the interval that was predicted before, beside the requested " +
      "coverage, and the mean width of the intervals.");
  widthChart.element.hidden = isClassification;
  if (!covered.cumulative.some(known)) {
    coverageChart.setData(null);
    widthChart.setData(null);
    widthChart.element.hidden = true;
    return;
  }
  const requested = xs.map(() => run.coverage ?? null);
  const rows = whole(smoothedRows(lastOf(report.scored)));
  const compared = isClassification ? width.recent : requested;
  const shares = [covered.recent, covered.cumulative, compared];
  coverageRange = rangeOfShares(shares, isClassification ? 0.98 : 0.85);
  const what = isClassification ? "correct" : "inside";
  coverageChart.setLegend([
    [`${what}, mean of ${rows} rows`, "model"],
    [`${what} so far`, "model thin"],
    isClassification
      ? [`predicted, mean of ${rows} rows`, "change dashed"]
      : ["requested", "change dashed"],
  ]);
  const below = covered.recent.filter((share) => known(share) && share < coverageRange[0]).length;
  coverageChart.setData([xs, covered.cumulative, covered.recent, compared], {
    caption: isClassification ? "share of predictions" : "share of targets inside",
    note: below ? `${segmentsAre(below)} below the chart.` : "",
  });
  const { top, above } = axisTop([width.segment, width.recent]);
  widthAxisTop = top;
  widthChart.setData(isClassification ? null : [xs, width.segment, width.recent], {
    caption: ["mean width, in units of ", dataText(run.target ?? "the target")],
    note: above ? `${segmentsAre(above)} above the chart.` : "",
  });
}

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
  table: () => {
    const list = (at) => labelsReport.labels.reliability.map((step) => step[at]);
    return { predicted: list(0), correct: list(1), rows: list(2) };
  },
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
    const predicted = confusion.reduce((total, others) => total + others[line], 0);
    const share = (of) => (of ? percent(counts[line] / of) : "–");
    const area = known(areas[line]) ? areas[line].toFixed(3) : "–";
    return create("tr", {},
      create("th", { scope: "row" }, copy(names[line])), ...cells,
      ...[share(sum), share(predicted), area].map((text) =>
        create("td", { className: "number" }, text)));
  });
  return create("div", { className: "scrolls", tabindex: "0" }, create(
    "table", { className: "confusion" },
    create("caption", {}, "Labels of the rows, and what was predicted (columns)"),
    create("thead", {}, create("tr", {},
      create("th", { scope: "col" }, "label"), ...names.map(heading),
      heading("recall"), heading("precision"), heading("AUC"))),
    create("tbody", {}, ...rows)));
}
