// The whole run: bands from the lowest to the highest target and prediction of each segment.

let targetsReport = null;
let targetsRange = [0, 1];

const targetsChart = new Chart("targets-chart", {
  label: "Lowest and highest target and prediction over rows",
  height: () => (innerWidth < 600 ? 170 : 190),
  overTime: true,
  empty: "No target has been seen yet.",
  yRange: () => targetsRange,
  series: [
    { colour: "muted", width: 1, alpha: 0.5 },
    { colour: "muted", width: 1, alpha: 0.5 },
    { colour: "model", width: 1, alpha: 0.8 },
    { colour: "model", width: 1, alpha: 0.8 },
  ],
  bands: [
    { colour: "muted", alpha: 0.3, series: [2, 1] },
    { colour: "model", alpha: 0.4, series: [4, 3] },
  ],
  legend: [["targets", "muted block"], ["predictions", "model block"]],
  readout: (at) => {
    const { points } = targetsReport;
    const range = (low, high) => `${number(low)} to ${number(high)}`;
    return [
      [pointText(targetsReport, at), ""],
      ["targets", range(points.target_low[at], points.target_high[at]), "muted"],
      ["predictions", range(points.prediction_low[at], points.prediction_high[at]), "model"],
    ];
  },
});

// All targets, and predictions that do not go far beyond them.
function rangeOfTargets({ target_low, target_high, prediction_low, prediction_high }) {
  const least = (values) => Math.min(...values.filter(known));
  const most = (values) => Math.max(...values.filter(known));
  const [low, high] = [least(target_low), most(target_high)];
  const margin = (high - low || Math.abs(high) || 1) / 2;
  const from = Math.max(low - margin, Math.min(low, least(prediction_low)));
  const to = Math.min(high + margin, Math.max(high, most(prediction_high)));
  const edge = 0.04 * (to - from || 1);
  return [from - edge, to + edge];
}

function drawTargets(report) {
  targetsReport = report;
  targetsChart.element.hidden = report.isClassification;
  const { points } = report;
  if (report.isClassification || !points.target_low.some(known)) {
    targetsChart.setData(null);
    return;
  }
  targetsRange = rangeOfTargets(points);
  const [low, high] = targetsRange;
  const outside = report.ends.filter(
    (_, at) => points.prediction_low[at] < low || points.prediction_high[at] > high).length;
  const lines = ["target_low", "target_high", "prediction_low", "prediction_high"];
  targetsChart.setData([report.timeline.xs, ...lines.map((name) => points[name])], {
    caption: ["the whole run: lowest to highest ", dataText(report.run.target ?? "target"),
      " of each segment of rows"],
    note: outside
      ? `Predictions leave the chart in ${counted(outside, "segment", "segments")}.`
      : "",
  });
}
