// The top of the page: what the run is, how it stands, and its figures.

const STATUS = ["running", "ended", "stopped", "saved"];

// For tests and for anyone who copies: `data` carries the figure in full beside the short form.
const figure = (value, shown) => known(value)
  ? make("data", { value: String(value) }, shown)
  : make("span", { className: "unknown" }, "–");

function tile(label, role, value, shown, note) {
  const name = make("dt", { className: role ? `name ${role}` : "" }, label);
  const children = [name, make("dd", {}, figure(value, shown))];
  if (note) children.push(make("dd", { className: "aside" }, note));
  const id = `tile-${label.replace(/[ /]/g, "-")}`;
  return make("div", { className: "tile", id }, ...children);
}

function drawHeader(view) {
  const { run, now, classes } = view;
  const title = run.title || (run.target ? `A run to predict ${run.target}` : "A run");
  say(byId("title"), title);
  if (run.title) document.title = run.title;
  drawTiles(view);
  say(byId("summary"), summary(view));
  const measure = classes
    ? "How often the answer was wrong"
    : "How far the answers were from the targets";
  say(byId("error-plain"), `${measure}, each row answered before it was learned: lower is better.`);
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
    const right = known(share) ? `${percent(share)} were right` : "";
    tiles.push(tile("stated", "", stated, percent(stated), right));
  } else {
    const asked = known(run.coverage) ? `${percent(run.coverage)} asked for` : "";
    tiles.push(tile("coverage", "", share, percent(share), asked));
  }
  const bad = now.bad ?? part("bad", {}).count;
  const signals = part("changes", null)?.length;
  const newest = signals ? `last at row ${whole(lastOf(view.changes)[0])}` : "";
  const spent = known(now.seconds) ? `${seconds(now.seconds)} in all` : "";
  tiles.push(
    tile("signals", "signal", signals, whole(signals), newest),
    tile("bad rows", "", bad, whole(bad), ""),
    tile("rows/s", "", now.speed, number(now.speed), spent),
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
  const lost = connection === "lost";
  const standing = STATUS.includes(status) ? status : "waiting";
  const words = lost ? "connection lost, trying again" : standing;
  const live = connection === "open" && status === "running";
  element.dataset.state = lost ? "lost" : live ? "live" : "still";
  fill(
    element,
    make("span", { className: "dot", "aria-hidden": "true" }),
    make("span", { id: "status-words" }, words),
  );
  say(byId("when"), moment(updated)); // apart: a clock that is announced every second helps nobody
}
