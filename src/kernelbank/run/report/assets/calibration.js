// Coverage and width of the intervals; for classification, predicted probabilities and how often
// the predicted label was correct. Lines are means over so many rows that chance hardly shows.

const coverageChart = new Chart("coverage-chart", {
  label: "Share of targets inside their intervals over rows",
  height: 230,
  overTime: true,
  empty: "No interval has been predicted yet.",
  yAxis: percentAxis,
  series: [
    { colour: "model", width: 1, alpha: 0.6 },
    { colour: "model", width: 2.5 },
    { colour: "change", width: 1.5, dash: [6, 4] },
  ],
  view(report) {
    const { covered, width, isClassification, run, timeline: { xs } } = report;
    if (!covered.cumulative.some(isNumber)) return null;
    const compared = isClassification ? width.recent : xs.map(() => run.coverage ?? null);
    const yRange = rangeOfShares(
      [covered.recent, covered.cumulative, compared], isClassification ? 0.98 : 0.85);
    const below = covered.recent.filter((share) => isNumber(share) && share < yRange[0]).length;
    const what = isClassification ? "correct" : "inside";
    const smoothed = `mean of ${whole(smoothedRows(lastOf(report.scored)))} rows`;
    return {
      yRange,
      data: [xs, covered.cumulative, covered.recent, compared],
      legend: [
        [`${what}, ${smoothed}`, "model"],
        [`${what} so far`, "model thin"],
        [isClassification ? `predicted, ${smoothed}` : "requested", "change dashed"],
      ],
      caption: isClassification ? "share of predictions" : "share of targets inside",
      note: below ? `${segmentsAre(below)} below the chart.` : "",
      table: () => ({
        ...pointColumns(report),
        [`${what}, smoothed`]: covered.recent,
        [`${what} so far`]: covered.cumulative,
        ...(isClassification ? { "predicted, smoothed": width.recent } : {}),
      }),
      readout: (at) => {
        const rows = [pointText(report, at), ""];
        const present = percent(covered.recent[at]);
        const soFar = percent(covered.cumulative[at]);
        return isClassification
          ? [
            rows, ["correct", present, "model"],
            ["predicted", percent(width.recent[at]), "change"], ["correct so far", soFar],
            ["predicted so far", percent(width.cumulative[at])],
          ]
          : [
            rows, ["inside", present, "model"], ["so far", soFar],
            ["requested", percent(run.coverage), "change"],
          ];
      },
    };
  },
});

const widthChart = new Chart("width-chart", {
  label: "Mean width of the intervals over rows",
  height: 230,
  overTime: true,
  empty: "No interval has been predicted yet.",
  series: [{ colour: "model", width: 1, alpha: 0.35 }, { colour: "model", width: 2.5 }],
  isMeantFor: ({ isClassification, covered }) =>
    !isClassification && covered.cumulative.some(isNumber),
  view(report) {
    const { width: { recent, segment, cumulative }, run, timeline: { xs } } = report;
    const { top, above } = axisTop([segment, recent]);
    return {
      yRange: [0, top],
      data: [xs, segment, recent],
      legend: [["smoothed", "model"], ["per segment", "model thin"]],
      caption: ["mean width, in units of ", dataText(run.target ?? "the target")],
      note: above ? `${segmentsAre(above)} above the chart.` : "",
      table: () => ({ ...pointColumns(report), smoothed: recent, segment }),
      readout: (at) => [
        [pointText(report, at), ""],
        ["mean width", number(recent[at]), "model"],
        ["so far", number(cumulative[at])],
      ],
    };
  },
});

// From below nearly all shares up to 100 %; the first rows may lie far below.
function rangeOfShares(lists, highest) {
  const low = Math.min(quantile(sortedNumbers(lists.flat()), 0.02) ?? 0, highest);
  return [Math.max(0, Math.floor(20 * low - 0.2) / 20), 1.004];
}

const segmentsAre = (count) => counted(count, "segment is", "segments are");

function drawIntervals(report) {
  const { isClassification } = report;
  setText(byId("intervals-heading"), isClassification ? "Calibration" : "Intervals");
  setText(byId("intervals-about"), isClassification
    ? "Predicted probability of the predicted label, and the share of correct labels: over time, " +
      "and by probability. The two should agree. Below, what each label was taken for."
    : "Share of targets inside the interval that was predicted before, beside the requested " +
      "coverage, and the mean width of the intervals.");
  coverageChart.draw(report);
  widthChart.draw(report);
}

// For labels: how reliable the probabilities are, and which labels are taken for which.
const reliabilityChart = new Chart("reliability-chart", {
  label: "Share of correct labels by predicted probability",
  height: 260,
  empty: "No label has been predicted yet.",
  xAxis: percentAxis,
  yAxis: percentAxis,
  series: [
    { colour: "change", width: 1.5, dash: [6, 4], points: { show: false } },
    { colour: "model", width: 2, points: { show: false }, spanGaps: true },
  ],
  isMeantFor: (report) => report.isClassification,
  view({ labels: { reliability = [] } }) {
    if (!reliability.length) return null;
    const [probabilities, shares, counts] =
      [0, 1, 2].map((column) => reliability.map((step) => step[column]));
    const total = counts.reduce((sum, rows) => sum + rows, 0);
    // The line goes through dots of many rows only: a few rows are correct or wrong by chance.
    const line = shares.map((share, at) =>
      (counts[at] >= Math.max(5, total / 500) ? share : null));
    return {
      xRange: [Math.max(0, Math.floor(10 * probabilities[0]) / 10 - 0.02), 1.02],
      yRange: [0, 1.05],
      xLabel: "probability of the predicted label",
      data: [probabilities, probabilities, line],
      legend: [["correct", "model"], ["if probabilities were exact", "change dashed"]],
      caption: "share of correct labels; the larger a dot, the more rows",
      paintAbove: (plot, context) => paintCounts(plot, context, reliability, Math.max(...counts)),
      table: () => ({ predicted: probabilities, correct: shares, rows: counts }),
      readout: (at) => [
        ["predicted", percent(probabilities[at]), "change"],
        ["correct", percent(shares[at]), "model"],
        ["rows", whole(counts[at])],
      ],
    };
  },
});

// Dots whose area is the number of rows.
function paintCounts(plot, context, reliability, most) {
  context.fillStyle = colours.model;
  for (const [probability, correct, rows] of reliability) {
    const radius = (2 + 7 * Math.sqrt(rows / most)) * devicePixelRatio;
    const [x, y] = [plot.valToPos(probability, "x", true), plot.valToPos(correct, "y", true)];
    paintDot(context, x, y, radius);
  }
}

function drawLabels(report) {
  reliabilityChart.draw(report);
  byId("confusion").hidden = !report.isClassification;
  setChildren(byId("confusion"),
    ...(reliabilityChart.view ? [confusionTable(report.labels)] : []));
}

// A line per label of the rows, a column per predicted label.
function confusionTable({ labels, confusion }) {
  const nameOf = (_, at) => (at < labels.length ? dataText(labels[at]) : OTHER);
  const rows = confusion.map((counts, line) => {
    const sum = counts.reduce((total, count) => total + count, 0);
    const predicted = confusion.reduce((total, others) => total + others[line], 0);
    const share = (of) => (of ? percent(counts[line] / of) : "–");
    return [
      nameOf(null, line),
      ...counts.map((count, at) =>
        shareCell(at === line ? "right" : "wrong", whole(count), (100 * count) / (sum || 1))),
      ...[share(sum), share(predicted)].map((text) =>
        create("td", { className: "number" }, text)),
    ];
  });
  const headings = [...confusion.map(nameOf), "recall", "precision"]
    .map((name) => columnHeading(name, "number"));
  return shareTable("", "Labels of the rows, and what was predicted (columns)",
    [columnHeading("label"), ...headings], rows);
}
