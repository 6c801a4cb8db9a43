// The top of the page: what the run is, how it stands, and its figures.

const STATUS = { running: "running", ended: "ended", stopped: "stopped", saved: "saved" };

// For tests and for anyone who copies: `data` carries the figure in full beside the short form.
const figure = (value, shown) =>
  known(value) ? make("data", { value: String(value) }, shown) : make("span", { className: "unknown" }, "–");

function tile(label, role, value, shown, note) {
  const children = [make("dt", { className: role ? `name ${role}` : "" }, label), make("dd", {}, figure(value, shown))];
  if (note) children.push(make("dd", { className: "aside" }, note));
  return make("div", { className: "tile", id: `tile-${label.replaceAll(" ", "-").replace("/", "-")}` }, ...children);
}

function drawHeader(view) {
  const { run, now, classes } = view;
  const title = run.title || (run.target ? `A run to predict ${run.target}` : "A run");
  say(byId("title"), title);
  if (run.title) document.title = run.title;
  drawTiles(view);
  say(byId("summary"), summary(view));
  say(byId("error-plain"), classes
    ? "How often the answer was wrong, each row answered before it was learned: lower is better."
    : "How far the answers were from the targets, each row answered before it was learned: lower is better.");
  byId("to-stream").hidden = classes;
  say(byId("to-intervals"), classes ? "Calibration" : "Intervals");
  drawStatus(run.status, now.updated);
}

function drawTiles(view) {
  const { run, now, classes, bank, best, persistence, inside, width } = view;
  const missing = now.without_target ? `${whole(now.without_target)} without a target` : "";
  const name = best.slot === null ? "" : fromData(view.names[best.slot]);
  const form = classes ? percent : number;
  const [far, alone, naive] = [lastOf(bank.far), lastOf(best.far), lastOf(persistence.far)];
  const tiles = [
    tile("rows", "", now.rows, whole(now.rows), missing),
    tile("bank", "bank", far, form(far), classes ? "wrong answers" : "root mean square error"),
    tile("best slot", "best", alone, form(alone), name),
    tile("persistence", "persistence", naive, form(naive), "the last target again"),
  ];
  const share = lastOf(inside.far);
  if (classes) {
    const stated = lastOf(width.far);
    tiles.push(tile("stated", "", stated, percent(stated), known(share) ? `${percent(share)} were right` : ""));
  } else {
    tiles.push(tile("coverage", "", share, percent(share), known(run.coverage) ? `${percent(run.coverage)} asked for` : ""));
  }
  const bad = now.bad ?? part("bad", {}).count;
  const signals = part("changes", null)?.length;
  tiles.push(
    tile("signals", "signal", signals, whole(signals), signals ? `last at row ${whole(lastOf(view.changes)[0])}` : ""),
    tile("bad rows", "", bad, whole(bad), ""),
    tile("rows/s", "", now.speed, number(now.speed), known(now.seconds) ? `${seconds(now.seconds)} in all` : ""),
  );
  fill(byId("tiles"), ...tiles);
}

function less(mine, theirs) {
  const share = 1 - mine / theirs;
  if (!Number.isFinite(share)) return null;
  if (Math.abs(share) < 0.0005) return "as much as";
  return share > 0 ? `${percent(share)} less than` : `${percent(-share)} more than`;
}

// The run in one sentence.
function summary(view) {
  const far = lastOf(view.bank.far);
  if (!known(far)) return view.now.rows ? "" : "Waiting for the first rows.";
  const parts = [
    [less(far, lastOf(view.best.far) ?? NaN), "the best single slot"],
    [less(far, lastOf(view.persistence.far) ?? NaN), "persistence"],
  ].filter(([words]) => words).map((pair) => pair.join(" "));
  const rows = counted(lastOf(view.answered), "answered row", "answered rows");
  const opening = view.classes
    ? `Over ${rows} the bank was wrong in ${percent(far)}`
    : `Over ${rows} the bank erred by ${number(far)} in the root mean square`;
  return parts.length ? `${opening}: ${parts.join(" and ")}.` : `${opening}.`;
}

let connection = "none"; // "none" for a file, or "open", "lost", "over"

function drawStatus(status, updated) {
  const element = byId("status");
  const words = connection === "lost" ? "connection lost, trying again" : STATUS[status] ?? "waiting";
  element.dataset.state = connection === "lost" ? "lost" : connection === "open" && status === "running" ? "live" : "still";
  fill(element, make("span", { className: "dot", "aria-hidden": "true" }), make("span", { id: "status-words" }, words));
  say(byId("when"), moment(updated)); // apart: a clock that is announced every second helps nobody
}
