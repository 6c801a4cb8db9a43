// The last rows one by one: targets, predictions and intervals; for labels, dots on a line per label.

const OTHER = "other labels";

const labelWidth = (plot) => Math.round(Math.min(170, plot.width * 0.3));

const recentChart = new Chart("recent-chart", {
  label: "Targets, predictions and intervals of the last rows",
  height: ({ lines }) => (lines
    ? 56 + Math.max(90, Math.min(360, 44 * lines.length))
    : onPhones(240, 300)()),
  empty: "No row has been predicted yet.",
  xAxis: timeAxisWhile(() => recentChart.report.recent.isTime),
  yAxis: {
    size: (plot) => (recentChart.view.lines ? labelWidth(plot) : 58),
    splits: (plot, at, low, high, step) =>
      recentChart.view.lines?.map((_, line) => line + 0.5) ?? ticksBetween(low, high, step),
    values: (plot, values, at, space, step) => {
      const { lines } = recentChart.view;
      if (!lines) return tickLabels(values, step);
      const names = values.map((y) => lines[Math.floor(y)].name);
      return namesOnAxis(plot, 1, names, (labelWidth(plot) - 16) * devicePixelRatio);
    },
  },
  series: [
    { colour: "model", width: 1, alpha: 0.25 },
    { colour: "model", width: 1, alpha: 0.25 },
    { colour: "model", width: 2 },
    {
      colour: "ink", width: 1.25, alpha: 0.75,
      points: { show: () => !recentChart.view.lines, size: 4 },
    },
  ],
  bands: [{ colour: "model", alpha: 0.14, series: [2, 1] }],
  view(report) {
    const { recent: { rows, xs, isTime }, run } = report;
    if (!rows.length) return null;
    const edge = 0.01 * (lastOf(xs) - xs[0]) || 1;
    const count = counted(rows.length, "row", "rows");
    const columns = { row: rows, ...(isTime ? { [clockName(run)]: xs.map(isoTime) } : {}) };
    const when = (at) => [`row ${whole(rows[at])}${isTime ? `, ${timeText(xs[at])}` : ""}`, ""];
    return {
      xRange: [xs[0] - edge, lastOf(xs) + edge],
      xLabel: isTime ? clockName(run) : "row",
      ...(report.isClassification ? recentLabels : recentNumbers)(report, columns, when, count),
    };
  },
});

function recentNumbers({ recent, run }, columns, when, count) {
  const { xs, target, prediction, low, high } = recent;
  const yRange = rangeOfStream(recent);
  return {
    yRange,
    data: [xs, low, high, prediction, target],
    legend: [["target", "ink"], ["prediction", "model"], ["interval", "model block"]],
    caption: [dataText(run.target ?? "target"), ` in the last ${count}`],
    note: outsideNote(target, prediction, yRange, "row"),
    table: () => ({ ...columns, target, prediction, low, high }),
    readout: (at) => [
      when(at),
      ["target", number(target[at])],
      ["prediction", number(prediction[at]), "model"],
      ["interval", fromTo(low[at], high[at]), "model"],
    ],
  };
}

// There is a line for each label that is listed, the first one at the top, and one for all others.
function recentLabels({ recent, run, labels }, columns, when, count) {
  const { xs, target, prediction, low } = recent;
  const classes = run.classes ?? [];
  const name = (label) => (isNumber(label) ? classes[label] ?? "" : null);
  const lines = (labels.labels ?? classes)
    .map((listed) => ({ label: classes.indexOf(listed), name: listed }));
  const hasLine = (label) => lines.some((line) => line.label === label);
  if (![...target, ...prediction].filter(isNumber).every(hasLine)) {
    lines.push({ label: null, name: OTHER });
  }
  lines.reverse();
  const none = xs.map(() => null);
  const shown = (label) => (isNumber(label) ? dataText(name(label)) : UNKNOWN);
  return {
    lines,
    yRange: [0, lines.length],
    data: [xs, none, none, none, none],
    legend: [
      ["label", "muted block"], ["predicted, correct", "model dot"],
      ["predicted, wrong", "baseline dot"],
    ],
    caption: `the last ${count}`,
    paintAbove: (plot, context) => paintLabels(plot, context, recent, lines),
    table: () => (
      { ...columns, label: target.map(name), predicted: prediction.map(name), probability: low }),
    readout: (at) => [
      when(at),
      ["label", shown(target[at])],
      ["predicted", shown(prediction[at]), target[at] === prediction[at] ? "model" : "baseline"],
      ["probability", percent(low[at])],
    ],
  };
}

// A grey square for the label of a row; a dot for the predicted one, ringed if it was wrong.
function paintLabels(plot, context, { xs, target, prediction }, lines) {
  const ratio = devicePixelRatio;
  const middleOf = (label) => Math.max(0, lines.findIndex((line) => line.label === label)) + 0.5;
  xs.forEach((x, at) => {
    const left = plot.valToPos(x, "x", true);
    const place = (label) => plot.valToPos(middleOf(label), "y", true);
    if (isNumber(target[at])) {
      context.fillStyle = translucent("muted", 0.45);
      context.fillRect(left - 2.5 * ratio, place(target[at]) - 7 * ratio, 5 * ratio, 14 * ratio);
    }
    if (!isNumber(prediction[at])) return;
    const wrong = isNumber(target[at]) && target[at] !== prediction[at];
    context.fillStyle = wrong ? colours.baseline : colours.model;
    paintDot(context, left, place(prediction[at]), (wrong ? 3.5 : 2.5) * ratio);
  });
}

// Targets and predictions but for a few far ones; ends of intervals that lie far out leave the chart.
function rangeOfStream({ target, prediction, low, high }) {
  const [least, most] = usualRange([...target, ...prediction]);
  const from = Math.min(least, quantile(sortedNumbers(low), 0.05) ?? least);
  const to = Math.max(most, quantile(sortedNumbers(high), 0.95) ?? most);
  return withEdges(from, to, 0.05);
}

// The whole run: bands from the lowest to the highest target and prediction of each segment.
const targetsChart = new Chart("targets-chart", {
  label: "Lowest and highest target and prediction over rows",
  height: onPhones(170, 190),
  overTime: true,
  empty: "No target has been seen yet.",
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
  isMeantFor: (report) => !report.isClassification,
  view(report) {
    const { target_low, target_high, prediction_low, prediction_high } = report.points;
    if (!target_low.some(isNumber)) return null;
    const yRange = rangeOfTargets(report.points);
    const lows = target_low.map((low, at) => Math.min(low, prediction_low[at]));
    const highs = target_high.map((high, at) => Math.max(high, prediction_high[at]));
    const lines = { target_low, target_high, prediction_low, prediction_high };
    return {
      yRange,
      data: [report.timeline.xs, ...Object.values(lines)],
      legend: [["targets", "muted block"], ["predictions", "model block"]],
      caption: ["the whole run: lowest to highest ", dataText(report.run.target ?? "target"),
        " of each segment of rows"],
      note: outsideNote(lows, highs, yRange, "segment"),
      table: () => ({ ...pointColumns(report), ...lines }),
      readout: (at) => [
        [pointText(report, at), ""],
        ["targets", fromTo(target_low[at], target_high[at]), "muted"],
        ["predictions", fromTo(prediction_low[at], prediction_high[at]), "model"],
      ],
    };
  },
});

// Which rows or segments an axis leaves out, so that the rest can be seen; "" if none.
function outsideNote(lows, highs, [from, to], what) {
  const isOutside = (value) => isNumber(value) && (value < from || value > to);
  const count = lows.filter((low, at) => isOutside(low) || isOutside(highs[at])).length;
  return leftOutNote(count, `${what} leaves`, `${what}s leave`);
}

const leftOutNote = (count, singular, plural) => (count
  ? `${counted(count, singular, plural)} the chart, so that the rest can be seen. The readout has ` +
    "every value."
  : "");

// Targets but for a few far ones, and predictions that do not go far beyond them.
function rangeOfTargets({ target_low, target_high, prediction_low, prediction_high }) {
  const low = usualRange(target_low)[0];
  const high = usualRange(target_high)[1];
  const margin = (high - low || Math.abs(high) || 1) / 2;
  const from = Math.max(low - margin, Math.min(low, usualRange(prediction_low)[0]));
  const to = Math.min(high + margin, Math.max(high, usualRange(prediction_high)[1]));
  return withEdges(from, to, 0.04);
}
