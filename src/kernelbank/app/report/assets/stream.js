// Bands from the lowest to the highest target and prediction of each stretch.

let streamView = null;
let streamRange = [0, 1];

const streamChart = new Chart("stream-chart", {
  label: "Lowest and highest target and prediction over rows",
  height: () => (innerWidth < 600 ? 200 : 240),
  overTime: true,
  empty: "No target has been seen yet.",
  range: () => streamRange,
  series: [
    { role: "muted", width: 1, share: 0.5 },
    { role: "muted", width: 1, share: 0.5 },
    { role: "bank", width: 1, share: 0.8 },
    { role: "bank", width: 1, share: 0.8 },
  ],
  bands: [
    { role: "muted", share: 0.3, series: [2, 1] },
    { role: "bank", share: 0.4, series: [4, 3] },
  ],
  legend: [["targets", "muted block"], ["predictions of the bank", "bank block"]],
  tell: (at) => {
    const { points: all, starts, ends } = streamView;
    const span = (low, high) => `${number(low)} to ${number(high)}`;
    return [
      [rowsFromTo(starts[at] + 1, ends[at]), ""],
      ["targets", span(all.target_low[at], all.target_high[at]), "muted"],
      ["predictions", span(all.prediction_low[at], all.prediction_high[at]), "bank"],
    ];
  },
});

// Room for all targets, and for predictions that do not go far beyond them.
function rangeOfStream({ target_low, target_high, prediction_low, prediction_high }) {
  const least = (values) => Math.min(...values.filter(known));
  const most = (values) => Math.max(...values.filter(known));
  const [low, high] = [least(target_low), most(target_high)];
  const room = (high - low || Math.abs(high) || 1) / 2;
  const from = Math.max(low - room, Math.min(low, least(prediction_low)));
  const to = Math.min(high + room, Math.max(high, most(prediction_high)));
  const edge = 0.04 * (to - from || 1);
  return [from - edge, to + edge];
}

function drawStream(view) {
  streamView = view;
  byId("stream").hidden = view.classes;
  const { points: all } = view;
  if (view.classes || !all.target_low.some(known)) {
    streamChart.set(null);
    return;
  }
  streamRange = rangeOfStream(all);
  const beyond = view.ends.filter(
    (_, at) => all.prediction_low[at] < streamRange[0] || all.prediction_high[at] > streamRange[1]).length;
  streamChart.set([view.ends, all.target_low, all.target_high, all.prediction_low, all.prediction_high], {
    caption: fromData(view.run.target ?? "target"),
    note: beyond
      ? `Predictions leave the picture in ${counted(beyond, "stretch", "stretches")}.`
      : "",
  });
}
