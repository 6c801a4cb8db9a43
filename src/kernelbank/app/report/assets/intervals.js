// Coverage and width of the intervals; for classification, predicted probabilities and how often
// the predicted label was correct.

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
    { colour: "model", width: 1, alpha: 0.5 },
    { colour: "model", width: 2.5 },
    { colour: "change", width: 1.5, dash: [6, 4] },
    { colour: "change", width: 1, alpha: 0.5, show: false },
  ],
  readout: (at) => {
    const { covered, width, starts, ends, isClassification, run } = intervalsReport;
    const rows = [rowRange(starts[at] + 1, ends[at]), ""];
    if (isClassification) {
      return [
        rows,
        ["correct", percent(covered.segment[at]), "model"],
        ["predicted", percent(width.segment[at]), "change"],
        ["correct so far", percent(covered.cumulative[at])],
        ["predicted so far", percent(width.cumulative[at])],
      ];
    }
    return [
      rows,
      ["inside", percent(covered.segment[at]), "model"],
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
  series: [{ colour: "model", width: 2 }],
  legend: [["mean width per segment", "model"]],
  readout: (at) => [
    [rowRange(intervalsReport.starts[at] + 1, intervalsReport.ends[at]), ""],
    ["mean width", number(intervalsReport.width.segment[at]), "model"],
    ["so far", number(intervalsReport.width.cumulative[at])],
  ],
});

// From below nearly all shares up to 100 %; a segment of few rows may lie far below.
function rangeOfShares(lists) {
  const values = lists.flat().filter(known).sort((one, other) => one - other);
  const low = Math.min(quantile(values, 0.02) ?? 0, 0.98);
  return [Math.max(0, Math.floor(20 * low - 0.2) / 20), 1.004];
}

const segmentsAre = (count) => counted(count, "segment is", "segments are");

function drawIntervals(report) {
  intervalsReport = report;
  const { covered, width, isClassification, run, ends } = report;
  setText(byId("intervals-heading"), isClassification ? "Calibration" : "Intervals");
  setText(byId("intervals-about"), isClassification
    ? "Predicted probability of the predicted label, and the share of correct labels. The two " +
      "should agree."
    : "Share of targets inside the interval that was predicted before, beside the requested " +
      "coverage, and the mean width of the intervals.");
  widthChart.element.hidden = isClassification;
  if (!covered.cumulative.some(known)) {
    coverageChart.setData(null);
    widthChart.setData(null);
    widthChart.element.hidden = true;
    return;
  }
  const requested = ends.map(() => run.coverage ?? null);
  const lines = isClassification
    ? [covered.segment, covered.cumulative, width.cumulative, width.segment]
    : [covered.segment, covered.cumulative, requested, ends.map(() => null)];
  coverageRange = rangeOfShares(lines);
  coverageChart.setLegend(isClassification
    ? [
      ["correct so far", "model"], ["correct per segment", "model thin"],
      ["predicted so far", "change dashed"], ["predicted per segment", "change thin"],
    ]
    : [["inside so far", "model"], ["per segment", "model thin"], ["requested", "change dashed"]]);
  const below = covered.segment.filter((share) => known(share) && share < coverageRange[0]).length;
  coverageChart.setData([ends, ...lines], {
    caption: isClassification ? "share of predictions" : "share of targets inside",
    note: below ? `${segmentsAre(below)} below the chart.` : "",
  });
  if (isClassification !== coverageChart.plot.series[4].show) {
    coverageChart.plot.setSeries(4, { show: isClassification });
  }
  const { top, above } = axisTop([width.segment]);
  widthAxisTop = top;
  widthChart.setData(isClassification ? null : [ends, width.segment], {
    caption: ["mean width, in units of ", dataText(run.target ?? "the target")],
    note: above ? `${segmentsAre(above)} above the chart.` : "",
  });
}
