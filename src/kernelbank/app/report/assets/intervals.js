// Do the intervals hold what they promise? For classes: are stated probabilities right as often?

let intervalsView = null;
let shareRange = [0, 1];
let widthTop = 1;

const shareChart = new Chart("share-chart", {
  label: "Share of targets inside their intervals over rows",
  height: () => 230,
  overTime: true,
  empty: "No interval has been given yet.",
  range: () => shareRange,
  axis: inPercent,
  series: [
    { role: "bank", width: 1, share: 0.5 },
    { role: "bank", width: 2.5 },
    { role: "signal", width: 1.5, dash: [6, 4] },
    { role: "signal", width: 1, share: 0.5, show: false },
  ],
  tell: (at) => {
    const { inside, width, starts, ends, classes, run } = intervalsView;
    const rows = [rowsFromTo(starts[at] + 1, ends[at]), ""];
    if (classes) {
      return [
        rows,
        ["right", percent(inside.stretch[at]), "bank"],
        ["stated", percent(width.stretch[at]), "signal"],
        ["so far right", percent(inside.far[at])],
        ["stated", percent(width.far[at])],
      ];
    }
    return [
      rows,
      ["inside", percent(inside.stretch[at]), "bank"],
      ["so far", percent(inside.far[at])],
      ["asked", percent(run.coverage), "signal"],
    ];
  },
});

const widthChart = new Chart("width-chart", {
  label: "Mean width of the intervals over rows",
  height: () => 230,
  overTime: true,
  empty: "No interval has been given yet.",
  range: () => [0, widthTop],
  series: [{ role: "bank", width: 2 }],
  legend: [["mean width by stretch", "bank"]],
  tell: (at) => [
    [rowsFromTo(intervalsView.starts[at] + 1, intervalsView.ends[at]), ""],
    ["mean width", number(intervalsView.width.stretch[at]), "bank"],
    ["so far", number(intervalsView.width.far[at])],
  ],
});

// From below nearly all shares up to all; a stretch of few rows may lie far below.
function rangeOfShares(lists) {
  const values = lists.flat().filter(known).sort((one, other) => one - other);
  const low = Math.min(quantile(values, 0.02) ?? 0, 0.98);
  return [Math.max(0, Math.floor(20 * low - 0.2) / 20), 1.004];
}

function drawIntervals(view) {
  intervalsView = view;
  const { inside, width, classes, run, ends } = view;
  say(byId("intervals-heading"), classes ? "Calibration" : "Intervals");
  say(byId("intervals-plain"), classes
    ? "The probability that the bank stated for its answers, beside the share that was right: " +
      "the two should run together."
    : "How many targets fell inside the interval given before, beside the share that was asked " +
      "for; and how wide the intervals were.");
  widthChart.element.hidden = classes;
  if (!inside.far.some(known)) {
    shareChart.set(null);
    widthChart.set(null);
    widthChart.element.hidden = true;
    return;
  }
  const asked = ends.map(() => run.coverage ?? null);
  const lines = classes
    ? [inside.stretch, inside.far, width.far, width.stretch]
    : [inside.stretch, inside.far, asked, ends.map(() => null)];
  shareRange = rangeOfShares(lines);
  shareChart.showLegend(classes
    ? [
      ["right so far", "bank"], ["right by stretch", "bank thin"],
      ["stated so far", "signal dashed"], ["stated by stretch", "signal thin"],
    ]
    : [["inside so far", "bank"], ["by stretch", "bank thin"], ["asked for", "signal dashed"]]);
  const under = inside.stretch.filter((share) => known(share) && share < shareRange[0]).length;
  shareChart.set([ends, ...lines], {
    caption: classes ? "share of answers" : "share of targets inside",
    note: under ? `${counted(under, "stretch lies", "stretches lie")} below the picture.` : "",
  });
  if (classes !== shareChart.plot.series[4].show) shareChart.plot.setSeries(4, { show: classes });
  const { top, beyond } = roomyTop([width.stretch]);
  widthTop = top;
  widthChart.set(classes ? null : [ends, width.stretch], {
    caption: ["mean width, in units of ", fromData(run.target ?? "the target")],
    note: beyond ? `${counted(beyond, "stretch lies", "stretches lie")} above the picture.` : "",
  });
}
