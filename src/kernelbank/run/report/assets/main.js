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
    isNumber(cost) ? number(cost) : "–",
  ]);
  return listTable("", caption, columns, rows);
}

const changeTime = (row) => (timeline.name === null
  ? "" : ` – ${timeText(timeline.positionOf(row))}`);

const costliestChanges = new ShortenedTable("changes-list", CHANGES_LISTED, changesTable,
  ["The costliest changes", "Other changes", "other change", "other changes"]);

function drawChanges({ changes }) {
  costliestChanges.draw(
    [...changes].reverse().sort((a, b) => (b[3] ?? 0) - (a[3] ?? 0)),
    "No change has been detected.");
}

// The rows with the largest losses, and the errors of each category.
function drawWorst(report) {
  const { worstRows, categories, isClassification, run } = report;
  const hasTimes = run.time && worstRows.some(({ time }) => isNumber(time));
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
      : [number(prediction), number(target), fromTo(low, high)]),
  ]);
  const format = isClassification ? percent : number;
  const byCategory = categories.filter((table) => table.rows.length).map((table) => {
    const more = table.more
      ? [`; ${counted(table.more, "more category costs", "more categories cost")} less`] : [];
    return listTable("", create("span", {}, "Errors by ", dataText(table.column),
      ", by their share of the summed loss", ...more),
    [["category", "text"], ["rows", "number"], [errorName(report), "number"], ["baseline", "number"]],
    table.rows.map(([category, count, error, baseline]) =>
      [dataText(category), whole(count), format(error), format(baseline)]));
  });
  setChildren(byId("worst-list"), ...(rows.length
    ? [listTable("stacks", "The largest errors", columns, rows), ...byCategory]
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
    ? `; the first ${whole(examples.length)} are listed`
    : "";
  const columns = [
    ["row", "number"], ["where", "text"], ["column", "text"], ["value", "text"], ["reason", "text"],
  ];
  const rows = examples.map(({ row, where, column, value, reason }) =>
    [whole(row), ...[where, column, value, reason].map(dataText)]);
  const caption = `${counted(count, "row", "rows")} could not be used${some}`;
  setChildren(byId("bad-rows-list"), listTable("stacks", caption, columns, rows));
}

function drawDetails({ run }) {
  const details = run.details ?? [];
  const children = details.flatMap(([heading, pairs]) => [
    create("h3", {}, dataText(heading)),
    pairsList(pairs),
  ]);
  if (!children.length) children.push(emptyMessage("No settings are isNumber yet."));
  setChildren(byId("details-list"), ...children);
}

// Draws all sections, at most once per frame and never while the page is hidden; on a live page,
// again whenever a new report arrives.

const drawn = (...all) => all.map((chart) => (report) => chart.draw(report));

const SECTIONS = [
  drawHeader, ...drawn(recentChart, targetsChart, errorChart), drawWorst, ...drawn(lossChart),
  drawWeights, drawCurves, drawIntervals, drawForecasts, drawLabels, drawChanges, drawBadRows,
  drawDetails,
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

const TRY_AGAIN_AFTER = 3000; // milliseconds

// Asks for the next report until the run has ended; the response comes when there is one.
async function follow(address) {
  const setConnection = (state) => {
    if (connection === state) return;
    connection = state;
    drawState(part("status", {}));
  };
  let tag = "";
  while (connection !== "ended") {
    try {
      const response = await fetch(address, { headers: { "If-None-Match": tag } });
      if (response.status === 200) {
        parts = new Map(Object.entries(await response.json()));
        tag = response.headers.get("ETag") ?? "";
        requestDraw();
      }
      const isOver = ["ended", "stopped"].includes(part("status", {}).phase);
      setConnection(isOver ? "ended" : "open");
    } catch {
      setConnection("lost");
      await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_AFTER));
    }
  }
}

document.addEventListener("visibilitychange", requestDraw);

const embedded = byId("report");
parts = new Map(Object.entries(JSON.parse(embedded.textContent)));
followTheme();
if (embedded.dataset.address) follow(embedded.dataset.address);
draw();
