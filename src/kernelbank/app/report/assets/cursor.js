// The cursor of a chart, moved by the mouse or by keys. Charts over time share one.

const TEN = 10;

function share(chart) {
  if (!chart.spec.overTime) return;
  for (const other of charts) {
    if (other !== chart && other.spec.overTime && other.data) other.point(chart.index, true);
  }
}

// uPlot tells that the mouse moved over the chart.
function moved(chart, plot) {
  const { left, top } = plot.cursor;
  if (chart.settling || left === undefined || left < 0 || !chart.data) return;
  const index = chart.spec.indexAt?.(plot, left) ?? plot.cursor.idx;
  if (index === null || index === undefined) return;
  const turned = chart.spec.hover?.(plot, index, top) ?? false;
  if (index === chart.index && !turned) return;
  chart.index = index;
  chart.row = chart.data[0][index];
  chart.tell(false);
  share(chart);
}

function leave(chart) {
  if (chart.index === null) return;
  if (chart.holder.matches(":focus")) chart.showCursor(); // the mouse went, the keys are still here
  else withdraw(chart);
}

function withdraw(chart) {
  chart.spec.left?.();
  chart.point(null, true);
  share(chart);
}

function pressed(chart, event) {
  if (!chart.data || event.altKey || event.ctrlKey || event.metaKey) return;
  const last = chart.data[0].length - 1;
  const here = chart.index ?? last + 1;
  const places = {
    ArrowLeft: here - 1,
    ArrowRight: chart.index === null ? last : here + 1,
    PageUp: here - TEN,
    PageDown: chart.index === null ? last : here + TEN,
    Home: 0,
    End: last,
  };
  if (event.key === "Escape") {
    withdraw(chart);
    return;
  }
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step !== undefined && chart.spec.up) {
    chart.index ??= last;
    chart.spec.up(step);
    chart.point(chart.index);
  } else if (event.key in places) {
    chart.point(Math.max(0, Math.min(last, places[event.key])));
  } else {
    return; // every other key belongs to the browser
  }
  event.preventDefault();
  share(chart);
}
