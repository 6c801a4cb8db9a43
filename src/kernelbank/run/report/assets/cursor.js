// The cursor of a chart, moved by the mouse or by keys. Charts over time share one.

const PAGE_STEP = 10; // points that Page Up and Page Down move

function moveOthers(chart) {
  if (!chart.spec.overTime) return;
  for (const other of charts) {
    if (other !== chart && other.spec.overTime && other.data) other.moveTo(chart.index, true);
  }
}

// Called by uPlot when the mouse has moved over the chart.
function onMouseMove(chart, plot) {
  const { left, top } = plot.cursor;
  if (chart.updating || left === undefined || left < 0 || !chart.data) return;
  const index = chart.spec.indexAt?.(plot, left) ?? plot.cursor.idx;
  if (index === null || index === undefined) return;
  const changed = chart.spec.onHover?.(plot, index, top) ?? false;
  if (index === chart.index && !changed) return;
  chart.index = index;
  chart.cursorX = chart.data[0][index];
  chart.updateReadout(false);
  moveOthers(chart);
}

function onMouseLeave(chart) {
  if (chart.index === null) return;
  if (chart.frame.matches(":focus")) chart.placeCursor(); // the keys still move it
  else removeCursor(chart);
}

function removeCursor(chart) {
  chart.spec.onLeave?.();
  chart.moveTo(null, true);
  moveOthers(chart);
}

function onKey(chart, event) {
  if (!chart.data || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape") {
    removeCursor(chart);
    return;
  }
  const last = chart.data[0].length - 1;
  const here = chart.index ?? last + 1;
  const indices = {
    ArrowLeft: here - 1,
    ArrowRight: chart.index === null ? last : here + 1,
    PageUp: here - PAGE_STEP,
    PageDown: chart.index === null ? last : here + PAGE_STEP,
    Home: 0,
    End: last,
  };
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step !== undefined && chart.spec.moveVertically) {
    chart.index ??= last;
    chart.spec.moveVertically(step);
    chart.moveTo(chart.index);
  } else if (event.key in indices) {
    chart.moveTo(Math.max(0, Math.min(last, indices[event.key])));
  } else {
    return; // every other key belongs to the browser
  }
  event.preventDefault();
  moveOthers(chart);
}
