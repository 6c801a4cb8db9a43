// The parts of the report by name, and everything that is drawn, computed from them.

let parts = new Map();

// With several targets, the page shows one of them: parts of all but the first have a prefix.
let shownTarget = 0;
const targetPrefix = () => (shownTarget ? `targets/${shownTarget}/` : "");
const part = (name, fallback) => parts.get(targetPrefix() + name) ?? parts.get(name) ?? fallback;

const COLUMNS = [
  "rows", "scored", "loss", "baseline_loss", "covered", "width", "worst_loss",
  "absolute_error", "baseline_absolute_error", "time_low", "time_high",
  "target_low", "target_high", "prediction_low", "prediction_high",
  "weights", "weights_high", "losses",
];

// One list per column, over all points.
function readPoints() {
  const points = part("points", {});
  return Object.fromEntries(COLUMNS.map((column) => [column, points[column] ?? []]));
}

// Sums from the beginning. An unknown value makes all later sums unknown: it may have been huge.
function runningSums(values) {
  let sum = 0;
  return values.map((value) => {
    sum = isNumber(value) ? sum + value : NaN;
    return sum;
  });
}

// Everything that sections draw. Series are `cumulative` (all rows so far) or by `segment` (the
// rows of one point).
function computeReport() {
  const run = part("run", {});
  const points = readPoints();
  const count = points.rows.length;
  const isClassification = run.task === "classification";
  const errorOfMean = isClassification ? (mean) => mean : Math.sqrt; // RMSE, or the error rate
  const errorOf = (loss, scored) => {
    const error = scored > 0 ? errorOfMean(loss / scored) : NaN;
    return isNumber(error) ? error : null;
  };
  const meanOf = (sum, scored) => (scored > 0 && isNumber(sum) ? sum / scored : null);
  const errors = (losses, scored) => losses.map((loss, at) => errorOf(loss ?? NaN, scored[at]));
  const means = (sums, scored) => sums.map((sum, at) => meanOf(sum, scored[at]));

  const scored = runningSums(points.scored);
  const errorSeries = (losses) => {
    const totals = runningSums(losses);
    return {
      totals, cumulative: errors(totals, scored), segment: errors(losses, points.scored),
    };
  };
  const meanSeries = (sums) => ({
    cumulative: means(runningSums(sums), scored),
    segment: means(sums, points.scored),
    recent: recentMeans(sums, points.scored, smoothedRows(lastOf(scored))),
  });
  const ends = runningSums(points.rows.map((rows) => rows ?? 0));
  const timeline = computeTimeline(run, points, ends);
  const slots = slotLosses(run, points);
  const bestSlots = bestSlotAtEachPoint(slots.totals, count);
  const bestSlot = bestSlots[count - 1] ?? null;
  return {
    run, points, count, isClassification, errorOf, scored, ends, slots, timeline,
    status: part("status", {}),
    recent: readRecent(),
    lastErrors: lastErrors(points, part("status", {}).rows ?? 0),
    labels: part("labels", {}),
    worstRows: part("worst_rows", []),
    categories: part("categories", []),
    forecasts: part("forecasts", null),
    changes: part("changes", []),
    badRows: part("bad_rows", { count: 0, examples: [] }),
    starts: ends.map((end, at) => end - (points.rows[at] ?? 0)),
    model: errorSeries(points.loss),
    baseline: errorSeries(points.baseline_loss),
    best: {
      slot: bestSlot, // over the whole run
      slots: bestSlots, // over all rows so far, at each point
      cumulative: bestSlots.map((slot, at) =>
        slot === null ? null : errorOf(slots.totals[slot][at], scored[at])),
      segment: points.losses.map((losses, at) =>
        bestSlot === null ? null : errorOf(losses?.[bestSlot] ?? NaN, points.scored[at])),
    },
    worst: points.worst_loss.map((loss) => (isNumber(loss) ? errorOfMean(loss) : null)),
    covered: meanSeries(points.covered), // or the share of correct labels
    width: meanSeries(points.width), // or the mean predicted probability
  };
}

// Whether times never go back, and end after the first.
const grows = (times, first = times[0]) => times.length > 1 && lastOf(times) > first &&
  times.every((time, at) => isNumber(time) && (at === 0 || time >= times[at - 1]));

// The segment in which a row or a time is; those after the end are in the last one.
function segmentAt(ends, x) {
  const at = ends.findIndex((end) => end >= x);
  return at < 0 ? ends.length - 1 : at;
}

// Where the points are on the axis: at their last time, if the run has a time that only grows; else
// at their last row.
const clockName = (run) => `${run.time ?? "time"}${run.timezone ? ` (${run.timezone})` : ""}`;

function computeTimeline(run, { time_low, time_high }, ends) {
  const isTime = time_low.every(isNumber) && grows(time_high, time_low[0]);
  const xs = isTime ? time_high : ends;
  const first = xs === time_high ? time_low[0] : 0;
  const name = xs === time_high ? clockName(run) : null;
  const startOf = (at) => (at > 0 ? xs[at - 1] : first);
  const positionOf = (row) => {
    const at = segmentAt(ends, row);
    if (at < 0) return 0;
    const before = at > 0 ? ends[at - 1] : 0;
    const share = ends[at] > before ? (row - before) / (ends[at] - before) : 1;
    return startOf(at) + Math.min(1, share) * (xs[at] - startOf(at));
  };
  return { name, xs, range: [first, lastOf(xs) ?? 1], startOf, positionOf };
}

// The last rows. They are numbered back from the last row of the run.
function readRecent() {
  const recent = part("recent", {});
  const { time = [], target = [], prediction = [], low = [], high = [] } = recent;
  const last = part("status", {}).rows ?? prediction.length;
  const rows = prediction.map((_, at) => last - prediction.length + 1 + at);
  const isTime = grows(time);
  return { rows, xs: isTime ? time : rows, isTime, target, prediction, low, high };
}

// Mean errors over the last tenth of the rows, but at least 100; null if fewer than 20 are scored.
function lastErrors(points, rows) {
  let [first, count] = [points.rows.length, 0];
  while (first > 0 && count < Math.max(100, rows / 10)) {
    first -= 1;
    count += points.rows[first] ?? 0;
  }
  const sum = (name) => points[name].slice(first).reduce((total, value) => total + (value ?? NaN), 0);
  const scored = sum("scored");
  const meanOf = (name) => sum(name) / scored;
  return scored < 20 ? null : {
    rows: count, isWhole: first === 0, loss: meanOf("loss"), baselineLoss: meanOf("baseline_loss"),
    error: meanOf("absolute_error"), baseline: meanOf("baseline_absolute_error"),
  };
}

// Means over so many scored rows before each point that chance hardly shows: a twentieth of all.
const smoothedRows = (scored) => Math.max(200, Math.round((scored ?? 0) / 20));

function recentMeans(sums, scored, rows) {
  let [first, sum, count] = [0, 0, 0];
  return sums.map((value, at) => {
    sum += value ?? NaN;
    count += scored[at] ?? 0;
    while (first < at && count - (scored[first] ?? 0) >= rows) {
      sum -= sums[first];
      count -= scored[first] ?? 0;
      first += 1;
    }
    return count > 0 && isNumber(sum) ? sum / count : null;
  });
}

// Cumulative loss of each slot alone (NaN once it is unknown), and names for all slots.
function slotLosses(run, points) {
  const names = run.slots ?? [];
  const lengths = [...points.losses, ...points.weights].map((values) => values?.length ?? 0);
  const size = Math.max(names.length, ...lengths);
  const totals = Array.from({ length: size }, (_, slot) =>
    runningSums(points.losses.map((losses) => losses?.[slot])));
  const allNames = Array.from({ length: size }, (_, slot) => names[slot] ?? `slot ${slot}`);
  return { totals, names: allNames };
}

// The slot with the least loss up to each point; null where no loss is isNumber.
function bestSlotAtEachPoint(totals, count) {
  return Array.from({ length: count }, (_, at) => {
    let best = null;
    for (let slot = 0; slot < totals.length; slot += 1) {
      if (!isNumber(totals[slot][at])) continue;
      if (best === null || totals[slot][at] < totals[best][at]) best = slot;
    }
    return best;
  });
}

const lastOf = (values) => (values.length ? values[values.length - 1] : null);

const sortedNumbers = (list) => list.filter(isNumber).sort((a, b) => a - b);

// A range with a share of its width at both ends.
function withEdges(low, high, share) {
  const edge = share * (high - low || Math.abs(high) || 1);
  return [low - edge, high + edge];
}

function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

// The range of most values: a few that lie far from all others, such as one -999, do not count.
function usualRange(list) {
  const values = sortedNumbers(list);
  const [low, high] = [quantile(values, 0.05), quantile(values, 0.95)];
  const reach = 3 * (high - low);
  const usual = reach > 0
    ? values.filter((value) => value >= low - reach && value <= high + reach)
    : values;
  return [usual[0], lastOf(usual)];
}

// The upper end of an axis from 0. A few values far above the rest, as in the first rows of a run,
// must not flatten all others: they are cut off and counted.
function axisTop(lists) {
  const values = sortedNumbers(lists.flat());
  if (!values.length || lastOf(values) <= 0) return { top: 1, above: 0 };
  const usual = quantile(values, 0.95);
  const top = lastOf(values) > 4 * usual && usual > 0 ? 2 * usual : lastOf(values);
  return { top: 1.05 * top, above: values.filter((value) => value > 1.05 * top).length };
}
