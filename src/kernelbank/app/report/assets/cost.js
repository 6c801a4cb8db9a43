// Cumulative cost: every slot in grey as in the paper, the bank in colour, persistence dashed.

let costView = null;
let costTop = 1;
let costOrder = []; // slots from the cheapest to the dearest, those without a total last
let costSlot = null; // the one picked out

const MOST_SEGMENTS = 60000; // grey lines keep to this, so that a thousand slots are drawn quickly

const costChart = new Chart("cost-chart", {
  label: "Cumulative cost over rows of slots, bank and persistence. Up and down pick a slot",
  height: () => (innerWidth < 600 ? 260 : 340),
  overTime: true,
  empty: "Nothing has been charged yet.",
  range: () => [0, costTop],
  series: [
    { role: "persistence", width: 1.5, dash: [6, 4] },
    { role: "bank", width: 3 },
    { role: "chosen", width: 2 },
  ],
  legend: [["bank", "bank"], ["every slot alone", "slot"], ["persistence", "persistence dashed"]],
  paint: (plot, context) => paintSlots(plot, context),
  tell: (at) => {
    const told = [
      [`after row ${whole(costView.ends[at])}`, ""],
      ["bank", number(costView.bank.totals[at]), "bank"],
      ["persistence", number(costView.persistence.totals[at]), "persistence"],
    ];
    const best = costView.best.slots[at];
    const total = (slot) => number(costView.slots.totals[slot][at]);
    const name = fromData(costView.names[costSlot]);
    if (costSlot !== null) told.push([name, total(costSlot), "chosen"]);
    else if (best !== null) told.push(["cheapest slot", withName(total(best), best)]);
    return told;
  },
  // Up is dearer, as in the picture.
  up: (step) => {
    const here = costOrder.indexOf(costSlot);
    const next = costSlot === null ? 0 : Math.max(0, Math.min(costOrder.length - 1, here - step));
    pickOut(costOrder[next] ?? null);
  },
  hover: (plot, at, top) => pickOut(nearestSlot(plot, at, top)),
  left: () => pickOut(null),
});

function paintSlots(plot, context) {
  const { totals } = costView.slots;
  const step = Math.max(1, Math.ceil((totals.length * costView.count) / MOST_SEGMENTS));
  const last = costView.count - 1;
  const across = costView.ends.map((end) => plot.valToPos(end, "x", true));
  const floor = plot.valToPos(0, "y", true);
  const height = (plot.valToPos(costTop, "y", true) - floor) / costTop;
  context.lineWidth = devicePixelRatio;
  context.strokeStyle = veil("slot", totals.length > 300 ? 0.25 : 0.75);
  for (const total of totals) {
    context.beginPath();
    for (let at = 0; ; at = Math.min(last, at + step)) {
      if (Number.isNaN(total[at])) break;
      // Far beyond the frame a canvas loses its footing: just above it will do.
      context.lineTo(across[at], floor + height * Math.min(total[at], 3 * costTop));
      if (at === last) break;
    }
    context.stroke();
  }
}

// The slot whose line is next to the mouse; none if it is more than a finger away.
function nearestSlot(plot, at, top) {
  let [nearest, distance] = [null, 24];
  costView.slots.totals.forEach((total, slot) => {
    const away = Math.abs(plot.valToPos(total[at], "y") - top);
    if (away < distance) [nearest, distance] = [slot, away];
  });
  return nearest;
}

// Returns whether the choice is another one.
function pickOut(slot) {
  if (slot === costSlot) return false;
  costSlot = slot;
  const picked = slot === null ? [] : [["slot picked out", "chosen"]];
  costChart.showLegend([...costChart.spec.legend, ...picked]);
  if (costChart.data) costChart.atOnce(() => costChart.plot.setData(costData()));
  return true;
}

const asLine = (totals) => Array.from(totals, (total) => (known(total) ? total : null));

function costData() {
  const { ends, bank, persistence, slots } = costView;
  const chosen = costSlot === null ? ends.map(() => null) : asLine(slots.totals[costSlot]);
  return [ends, asLine(persistence.totals), asLine(bank.totals), chosen];
}

// The axis holds what ends within six times of the dearer of bank and best slot.
function drawCost(view) {
  costView = view;
  if (costSlot !== null && costSlot >= view.names.length) costSlot = null;
  const ends = view.slots.totals.map((totals) => lastOf(totals) ?? NaN);
  const rank = (slot) => (known(ends[slot]) ? ends[slot] : Number.MAX_VALUE);
  costOrder = ends.map((_, slot) => slot).sort((one, other) => rank(one) - rank(other));
  const bank = lastOf(asLine(view.bank.totals)) ?? 0;
  const lines = [...ends, lastOf(view.persistence.totals) ?? NaN];
  const reference = Math.max(bank, ends[view.best.slot] ?? 0);
  const limit = reference > 0 ? 6 * reference : Math.max(...lines.filter(known), 0);
  costTop = 1.05 * Math.max(bank, ...lines.filter((end) => known(end) && end <= limit)) || 1;
  const beyond = lines.filter((end) => !(end <= limit)).length;
  costChart.set(view.answered.some((rows) => rows > 0) ? costData() : null, {
    caption: view.classes ? "wrong answers, added up" : "squared errors, added up",
    note: beyond
      ? `${counted(beyond, "line leaves", "lines leave")} the picture: ` +
        "more than six times as dear as bank and best slot, or no number at all."
      : "",
  });
}
