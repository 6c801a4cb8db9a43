// Sections in text: detected changes, bad rows and the settings of the run.

const CHANGES_LISTED = 20;

const CHANGE_KINDS = {
  "error grew": "the error grew",
  "error fell": "the error fell",
  weights: "the weights moved to other slots",
  "target level": "the level of the target moved",
  "input level": "the level of an input moved",
  season: "a season was found",
};

// A line per group of changes that are close together, each kind with its count. What a group cost
// is the summed loss of the rows around it beyond that of as many rows before.
function changesTable(caption, changes) {
  const columns = [["row", "number"], ["change", "text"], ["cost", "number"]];
  const text = (kind) => (Object.hasOwn(CHANGE_KINDS, kind) ? CHANGE_KINDS[kind] : dataText(kind));
  const sentence = ([kind, input, count], at) => create("span", {},
    at ? "; " : "", text(kind), ...(input ? [": ", dataText(input)] : []),
    count > 1 ? ` (${whole(count)} times)` : "");
  const rows = changes.map(([first, last, kinds, cost]) => [
    whole(first) + (last > first ? ` to ${whole(last)}` : ""),
    create("span", {}, ...kinds.map(sentence), changeTime(first)),
    known(cost) ? number(cost) : "–",
  ]);
  return createTable("", caption, columns, rows);
}

const changeTime = (row) => (changesTimeline.name === null
  ? "" : ` – ${timeText(changesTimeline.positionOf(row))}`);

let changesTimeline = { name: null };
let lesserChanges = [];
const costliestChanges = create("div");
const lesserChangesTable = new Collapsible(() => [changesTable("Other changes", lesserChanges)]);
byId("changes-list").append(costliestChanges, lesserChangesTable.element);

function drawChanges({ changes, timeline: line }) {
  changesTimeline = line;
  const costliest = [...changes].reverse().sort((one, other) => (other[3] ?? 0) - (one[3] ?? 0));
  lesserChanges = costliest.slice(CHANGES_LISTED);
  setChildren(costliestChanges, costliest.length
    ? changesTable("The costliest changes", costliest.slice(0, CHANGES_LISTED))
    : emptyMessage("No change has been detected."));
  const others = counted(lesserChanges.length, "other change", "other changes");
  lesserChangesTable.setTitle(lesserChanges.length ? `Show ${others}` : null);
}

// The rows with the largest losses, and the errors of each category.
function drawWorst({ worstRows, categories, isClassification, run }) {
  const hasTimes = run.time && worstRows.some(({ time }) => known(time));
  const columns = [
    ["row", "number"], ...(hasTimes ? [[clockName(run), "text"]] : []),
    ...(isClassification
      ? [["predicted", "text"], ["label", "text"], ["probability of the predicted", "number"]]
      : [["prediction", "number"], ["target", "number"], ["interval", "number"]]),
  ];
  const rows = worstRows.map(({ row, time, prediction, target, low, high }) => [
    whole(row), ...(hasTimes ? [timeText(time)] : []),
    ...(isClassification
      ? [dataText(prediction), dataText(target), percent(low)]
      : [number(prediction), number(target), `${number(low)} to ${number(high)}`]),
  ]);
  const name = isClassification ? "error rate" : "RMSE";
  const format = isClassification ? percent : number;
  const byCategory = categories.filter((table) => table.rows.length).map((table) => {
    const more = table.more
      ? [`; ${counted(table.more, "more category costs", "more categories cost")} less`] : [];
    return createTable("", create("span", {}, "Errors by ", dataText(table.column),
      ", by their share of the summed loss", ...more),
    [["category", "text"], ["rows", "number"], [name, "number"], ["baseline", "number"]],
    table.rows.map(([category, count, error, baseline]) =>
      [dataText(category), whole(count), format(error), format(baseline)]));
  });
  setChildren(byId("worst-list"), ...(rows.length
    ? [createTable("stacks", "The largest errors", columns, rows), ...byCategory]
    : [emptyMessage("No row has been predicted yet.")]));
}

function drawBadRows({ badRows, status }) {
  const count = badRows.count ?? status.bad_rows ?? 0;
  const examples = badRows.examples ?? [];
  if (!count) {
    const text = status.rows ? "All rows could be used." : "No row has been read yet.";
    setChildren(byId("bad-rows-list"), emptyMessage(text));
    return;
  }
  const some = count > examples.length
    ? `; the first and the last ${whole(examples.length)} are listed`
    : "";
  const columns = [
    ["row", "number"], ["where", "text"], ["column", "text"], ["value", "text"], ["reason", "text"],
  ];
  const rows = examples.map(({ row, where, column, value, reason }) =>
    [whole(row), ...[where, column, value, reason].map(dataText)]);
  const caption = `${counted(count, "row", "rows")} could not be used${some}`;
  setChildren(byId("bad-rows-list"), createTable("stacks", caption, columns, rows));
}

function drawDetails({ run }) {
  const details = run.details ?? [];
  const children = details.flatMap(([heading, pairs]) => [
    create("h3", {}, dataText(heading)),
    create("dl", { className: "pairs" }, ...pairs.map(([label, text]) =>
      create("div", {}, create("dt", {}, dataText(label)), create("dd", {}, dataText(text))))),
  ]);
  if (!children.length) children.push(emptyMessage("No settings are known yet."));
  setChildren(byId("details-list"), ...children);
}

// Draws all sections, at most once per frame and never while the page is hidden; on a live page,
// again whenever new parts arrive.

const SECTIONS = [
  drawHeader, drawStream, drawTargets, drawError, drawWorst, drawLoss, drawWeights, drawCurves,
  drawIntervals,
  drawForecasts, drawLabels, drawChanges, drawBadRows, drawDetails,
];

function draw() {
  const report = computeReport();
  timeline = report.timeline;
  for (const drawSection of SECTIONS) {
    try {
      drawSection(report);
    } catch (error) {
      reportError(error); // the other sections are still worth seeing
    }
  }
}

let drawRequested = false;

function requestDraw() {
  if (drawRequested || document.hidden) return; // it is drawn when the page is shown again
  drawRequested = true;
  requestAnimationFrame(() => {
    drawRequested = false;
    draw();
  });
}

const RECONNECT_AFTER = 3000; // milliseconds

function followEvents(address) {
  connection = connection === "none" ? "open" : connection;
  const source = new EventSource(address);
  const setConnection = (state) => {
    if (connection === state) return;
    connection = state;
    drawState(part("status", {}));
  };
  source.addEventListener("open", () => setConnection("open"));
  source.addEventListener("message", (message) => {
    setConnection("open");
    updateParts(JSON.parse(message.data));
    requestDraw();
  });
  source.addEventListener("end", () => {
    source.close();
    setConnection("ended");
  });
  source.addEventListener("error", () => {
    setConnection("lost");
    // Mostly the browser tries again by itself; after some errors it gives up.
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(() => followEvents(address), RECONNECT_AFTER);
    }
  });
}

document.addEventListener("visibilitychange", requestDraw);

const embedded = byId("report");
updateParts(JSON.parse(embedded.textContent));
followTheme();
if (embedded.dataset.events) followEvents(embedded.dataset.events);
draw();
