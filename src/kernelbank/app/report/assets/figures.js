// Everything that is drawn or told, worked out from the parts of the story.

// Sums from the beginning. What is not known makes all later sums unknown: it may have been huge.
function runningSums(values) {
  let sum = 0;
  return values.map((value) => {
    sum = known(value) ? sum + value : NaN;
    return sum;
  });
}

function figures() {
  const run = part("run", {});
  const all = points();
  const count = all.rows.length;
  const classes = run.task === "classification";
  const asError = run.loss === "wrong answers" || classes ? (mean) => mean : Math.sqrt;
  const errorOf = (sum, answered) => {
    const error = answered > 0 ? asError(sum / answered) : NaN;
    return known(error) ? error : null;
  };
  const shareOf = (sum, answered) => (answered > 0 && known(sum) ? sum / answered : null);
  const errors = (sums, counts) => sums.map((sum, at) => errorOf(sum ?? NaN, counts[at]));
  const shares = (sums, counts) => sums.map((sum, at) => shareOf(sum, counts[at]));

  const answered = runningSums(all.scored);
  const meansOf = (sums) => ({
    far: shares(runningSums(sums), answered),
    stretch: shares(sums, all.scored),
  });
  const ends = runningSums(all.rows.map((rows) => rows ?? 0));
  const slots = slotFigures(run, all, count);
  const player = (losses) => {
    const totals = runningSums(losses);
    return { totals, far: errors(totals, answered), stretch: errors(losses, all.scored) };
  };
  const best = bestSlots(slots.totals, count);
  const last = best[count - 1] ?? null;
  return {
    run, classes, count, answered, ends, slots,
    points: all,
    now: part("now", {}),
    changes: part("changes", []),
    bad: part("bad", { count: 0, examples: [] }),
    names: slots.names,
    starts: ends.map((end, at) => end - (all.rows[at] ?? 0)),
    errorOf,
    bank: player(all.loss),
    persistence: player(all.baseline_loss),
    best: {
      slot: last, // over the whole run
      slots: best, // so far, at each point
      far: best.map((slot, at) =>
        slot === null ? null : errorOf(slots.totals[slot][at], answered[at])),
      stretch: all.losses.map((losses, at) =>
        last === null ? null : errorOf(losses?.[last] ?? NaN, all.scored[at])),
    },
    worst: all.worst_loss.map((loss) => (known(loss) ? asError(loss) : null)),
    inside: meansOf(all.covered),
    width: meansOf(all.width),
  };
}

// Totals of each slot alone over time (NaN once they are not known), and names for all of them.
function slotFigures(run, all, count) {
  const told = run.slots ?? [];
  const lengths = [...all.losses, ...all.weights].map((values) => values?.length ?? 0);
  const size = Math.max(told.length, ...lengths);
  const totals = Array.from({ length: size }, () => new Float64Array(count));
  for (let slot = 0; slot < size; slot += 1) {
    let sum = 0;
    for (let at = 0; at < count; at += 1) {
      const loss = all.losses[at]?.[slot];
      sum = known(loss) ? sum + loss : NaN;
      totals[slot][at] = sum;
    }
  }
  return { totals, names: Array.from({ length: size }, (_, slot) => told[slot] ?? `slot ${slot}`) };
}

// The slot with the least total up to each point; null where none has a total that is known.
function bestSlots(totals, count) {
  return Array.from({ length: count }, (_, at) => {
    let best = null;
    for (let slot = 0; slot < totals.length; slot += 1) {
      if (!known(totals[slot][at])) continue;
      if (best === null || totals[slot][at] < totals[best][at]) best = slot;
    }
    return best;
  });
}

const lastOf = (values) => (values.length ? values[values.length - 1] : null);

function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

// The upper end of an axis from nought. A few values far above the rest, as in the first rows of a
// run, must not press all others flat: they leave the picture and are counted.
function roomyTop(lists) {
  const values = lists.flat().filter(known).sort((one, other) => one - other);
  if (!values.length || lastOf(values) <= 0) return { top: 1, beyond: 0 };
  const usual = quantile(values, 0.95);
  const top = lastOf(values) > 4 * usual && usual > 0 ? 2 * usual : lastOf(values);
  return { top: 1.05 * top, beyond: values.filter((value) => value > 1.05 * top).length };
}
