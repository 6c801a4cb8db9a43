// The last rows one by one: targets, predictions and intervals; for labels, dots on a line per label.

let streamReport = null;
let streamRange = [0, 1];
let streamLabels = []; // the labels that have a line, from top to bottom
const OTHER = "other labels";

const labelWidth = (plot) => Math.round(Math.min(170, plot.width * 0.3));

const streamChart = new Chart("recent-chart", {
  label: "Targets, predictions and intervals of the last rows",
  height: () => {
    if (!streamReport?.isClassification) return innerWidth < 600 ? 240 : 300;
    return 56 + Math.max(90, Math.min(360, 44 * streamLabels.length));
  },
  empty: "No row has been predicted yet.",
  xRange: () => {
    const { xs } = streamReport.recent;
    const edge = 0.01 * (lastOf(xs) - xs[0]) || 1;
    return [xs[0] - edge, lastOf(xs) + edge];
  },
  xLabel: () => (streamReport.recent.isTime ? clockName(streamReport.run) : "row"),
  xAxis: timeAxisWhile(() => streamReport.recent.isTime),
  yRange: () => (streamReport.isClassification ? [0, streamLabels.length] : streamRange),
  yAxis: {
    size: (plot) => (streamReport.isClassification ? labelWidth(plot) : 58),
    splits: (plot, at, low, high, step) => (streamReport.isClassification
      ? streamLabels.map((_, index) => index + 0.5)
      : ticksBetween(low, high, step)),
    values: (plot, values, at, space, step) => {
      if (!streamReport.isClassification) return tickLabels(values, step);
      plot.ctx.font = plot.axes[1].font[0];
      const width = (labelWidth(plot) - 16) * devicePixelRatio;
      return values.map((y) => cropText(plot.ctx, labelOfLine(Math.floor(y)), width));
    },
  },
  series: [
    { colour: "model", width: 1, alpha: 0.25 },
    { colour: "model", width: 1, alpha: 0.25 },
    { colour: "model", width: 2 },
    {
      colour: "ink", width: 1.25, alpha: 0.75,
      points: { show: () => !streamReport.isClassification, size: 4 },
    },
  ],
  bands: [{ colour: "model", alpha: 0.14, series: [2, 1] }],
  paintAbove: (plot, context) => streamReport.isClassification && paintLabels(plot, context),
  table: () => {
    const { rows, xs, isTime, target, prediction, low, high } = streamReport.recent;
    const when = isTime ? { [clockName(streamReport.run)]: xs.map(isoTime) } : {};
    if (!streamReport.isClassification) return { row: rows, ...when, target, prediction, low, high };
    const names = (labels) => labels.map((label) => (known(label) ? labelName(label) : ""));
    return {
      row: rows, ...when, label: names(target), predicted: names(prediction), probability: low,
    };
  },
  readout: (at) => {
    const { recent: { rows, xs, isTime, target, prediction, low, high } } = streamReport;
    const when = [`row ${whole(rows[at])}${isTime ? `, ${timeText(xs[at])}` : ""}`, ""];
    if (streamReport.isClassification) {
      const name = (label) => (known(label) ? dataText(labelName(label)) : UNKNOWN);
      const right = target[at] === prediction[at];
      return [
        when,
        ["label", name(target[at])],
        ["predicted", name(prediction[at]), right ? "model" : "baseline"],
        ["probability", percent(low[at])],
      ];
    }
    return [
      when,
      ["target", number(target[at])],
      ["prediction", number(prediction[at]), "model"],
      ["interval", `${number(low[at])} to ${number(high[at])}`, "model"],
    ];
  },
});

const labelName = (label) => streamReport.run.classes?.[label] ?? "";
const labelOfLine = (line) => {
  const label = streamLabels[streamLabels.length - 1 - line];
  return label === null ? OTHER : labelName(label);
};

// The middle of the line of a label.
function lineOfLabel(label) {
  const place = streamLabels.indexOf(label);
  const line = place < 0 ? streamLabels.length - 1 : place;
  return streamLabels.length - 0.5 - line;
}

// A grey square for the label of a row; a dot for the predicted one, ringed if it was wrong.
function paintLabels(plot, context) {
  const { xs, target, prediction } = streamReport.recent;
  const ratio = devicePixelRatio;
  xs.forEach((x, at) => {
    const left = plot.valToPos(x, "x", true);
    const place = (label) => plot.valToPos(lineOfLabel(label), "y", true);
    if (known(target[at])) {
      context.fillStyle = translucent("muted", 0.45);
      context.fillRect(left - 2.5 * ratio, place(target[at]) - 7 * ratio, 5 * ratio, 14 * ratio);
    }
    if (!known(prediction[at])) return;
    const wrong = known(target[at]) && target[at] !== prediction[at];
    context.fillStyle = wrong ? colours.baseline : colours.model;
    context.beginPath();
    context.arc(left, place(prediction[at]), (wrong ? 3.5 : 2.5) * ratio, 0, 2 * Math.PI);
    context.fill();
  });
}

// Targets and predictions but for a few far ones; ends of intervals that lie far out leave the chart.
function rangeOfStream({ target, prediction, low, high }) {
  const [least, most] = usualRange([...target, ...prediction]);
  const ends = (list) => list.filter(known).sort((one, other) => one - other);
  const from = Math.min(least, quantile(ends(low), 0.05) ?? least);
  const to = Math.max(most, quantile(ends(high), 0.95) ?? most);
  const edge = 0.05 * (to - from || Math.abs(to) || 1);
  return [from - edge, to + edge];
}

function drawStream(report) {
  streamReport = report;
  const { recent, run, labels, isClassification } = report;
  const { xs, target, prediction, low, high } = recent;
  if (!prediction.some(known)) {
    streamChart.setData(null);
    return;
  }
  const none = xs.map(() => null);
  const rows = counted(prediction.length, "row", "rows");
  if (isClassification) {
    const classes = run.classes ?? [];
    const listed = labels.labels ?? classes;
    const places = listed.map((name) => classes.indexOf(name));
    const all = [...target, ...prediction].filter(known);
    const others = all.some((label) => !places.includes(label));
    streamLabels = others ? [...places, null] : places;
    streamChart.setLegend([
      ["label", "muted block"], ["predicted, correct", "model dot"],
      ["predicted, wrong", "baseline dot"],
    ]);
    streamChart.setData([xs, none, none, none, none], { caption: `the last ${rows}` });
    streamChart.resize();
    return;
  }
  streamRange = rangeOfStream(recent);
  streamChart.setLegend([
    ["target", "ink"], ["prediction", "model"], ["interval", "model block"],
  ]);
  streamChart.setData([xs, low, high, prediction, target], {
    caption: [dataText(run.target ?? "target"), ` in the last ${rows}`],
    note: outsideNote(target, prediction, streamRange, "row"),
  });
}

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
  table: () => {
    const { points } = targetsReport;
    const { target_low, target_high, prediction_low, prediction_high } = points;
    return {
      ...pointColumns(targetsReport), target_low, target_high, prediction_low, prediction_high,
    };
  },
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

// Which rows or segments an axis leaves out, so that the rest can be seen; "" if none.
function outsideNote(lows, highs, [from, to], what) {
  const isOutside = (value) => known(value) && (value < from || value > to);
  const count = lows.filter((low, at) => isOutside(low) || isOutside(highs[at])).length;
  return count
    ? `${counted(count, `${what} leaves`, `${what}s leave`)} the chart, so that the rest can be ` +
      "seen. The readout has every value."
    : "";
}

// Targets but for a few far ones, and predictions that do not go far beyond them.
function rangeOfTargets({ target_low, target_high, prediction_low, prediction_high }) {
  const least = (values) => usualRange(values)[0];
  const most = (values) => usualRange(values)[1];
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
  const lines = ["target_low", "target_high", "prediction_low", "prediction_high"];
  targetsChart.setData([report.timeline.xs, ...lines.map((name) => points[name])], {
    caption: ["the whole run: lowest to highest ", dataText(report.run.target ?? "target"),
      " of each segment of rows"],
    note: outsideNote(
      report.ends.map((_, at) => Math.min(points.target_low[at], points.prediction_low[at])),
      report.ends.map((_, at) => Math.max(points.target_high[at], points.prediction_high[at])),
      targetsRange, "segment"),
  });
}
