// The top of the page: what the run is, its state, and its main numbers.

const PHASES = ["running", "ended", "stopped", "saved"];

const errorName = (report) => (report.isClassification ? "error rate" : "RMSE");
const errorText = (report, error) => (report.isClassification ? percent : number)(error);
const errorAxis = (report) => (report.isClassification ? percentAxis : numberAxis);

// `data` carries the number in full beside the short text, for tests and for copying.
const numberElement = (value, text) => isNumber(value)
  ? create("data", { value: String(value) }, text)
  : create("span", { className: "unknown" }, "–");

function createTile(label, role, value, text, note) {
  const name = create("dt", { className: role ? `name ${role}` : "" }, label);
  const children = [name, create("dd", {}, numberElement(value, text))];
  if (note) children.push(create("dd", { className: "note" }, note));
  const id = `tile-${label.replace(/[ /]/g, "-")}`;
  return create("div", { className: "tile", id }, ...children);
}

// The errors of all targets side by side.
function targetsTable(names) {
  const columns = [
    ["target", "text"], ["RMSE", "number"], ["baseline", "number"], ["coverage", "number"],
  ];
  const rows = names.map((name, at) => {
    const status = parts.get(at ? `targets/${at}/status` : "status") ?? {};
    const text = (value, format) => (isNumber(value) ? format(value) : "–");
    return [
      dataText(name), text(status.error, number), text(status.baseline_error, number),
      text(status.coverage, percent),
    ];
  });
  return listTable("", "All targets; the page below shows the chosen one", columns, rows);
}

// The choice of the target that the page shows, if there are several.
function drawTargetChoice({ run }) {
  const names = run.targets ?? [];
  byId("target-choice").hidden = names.length < 2;
  const more = run.more_targets ?? 0;
  setText(byId("more-targets"),
    more ? `${counted(more, "more target is", "more targets are")} in the predictions only.` : "");
  setChildren(byId("targets-table"), ...(names.length < 2 ? [] : [targetsTable(names)]));
  const select = byId("target-select");
  const shown = [...select.options].map((option) => option.textContent);
  if (names.length === shown.length && names.every((name, at) => name === shown[at])) return;
  setChildren(select, ...names.map((name, at) => create("option", { value: String(at) }, name)));
  select.value = String(shownTarget);
}

byId("target-select").addEventListener("change", (event) => {
  shownTarget = Number(event.target.value);
  requestDraw();
});

function drawHeader(report) {
  drawTargetChoice(report);
  const { run, status, isClassification } = report;
  const title = run.title || (run.target ? `Predictions of ${run.target}` : "A run");
  setText(byId("title"), title);
  if (run.title) document.title = run.title;
  drawTiles(report);
  setChildren(byId("headline"), ...headline(report));
  setText(byId("summary"), summarize(report));
  const measure = isClassification ? "Share of wrong labels" : "RMSE of the predictions";
  setText(byId("error-about"),
    `${measure}. Each row is predicted before its target is learned. Lower is better.`);
  setText(byId("to-intervals"), isClassification ? "Calibration" : "Intervals");
  drawState(status);
}

function drawTiles(report) {
  const { run, status, isClassification } = report;
  const { error, best_slot_error: bestError, baseline_error: baselineError, coverage } = status;
  const text = (value) => errorText(report, value);
  const withoutTarget = status.rows_without_target
    ? `${whole(status.rows_without_target)} without a target`
    : "";
  const bestName = status.best_slot ? dataText(status.best_slot) : "";
  const tiles = [
    createTile("rows", "", status.rows, whole(status.rows), withoutTarget),
    createTile("model", "model", error, text(error), errorName(report)),
  ];
  if (isClassification) {
    // Not the error rates of others: where a label is rare, all are about the same.
    tiles.push(...labelTiles(report));
    const probability = lastOf(report.width.cumulative);
    const correct = isNumber(error) ? `${percent(1 - error)} correct` : "";
    tiles.push(createTile("mean probability", "", probability, percent(probability), correct));
    tiles.push(createTile("log loss", "", status.log_loss, number(status.log_loss), ""));
  } else {
    tiles.push(
      createTile("best slot", "best", bestError, text(bestError), bestName),
      createTile("baseline", "baseline", baselineError, text(baselineError), "last value"),
    );
    const requested = isNumber(run.coverage) ? `${percent(run.coverage)} requested` : "";
    tiles.push(createTile("coverage", "", coverage, percent(coverage), requested));
  }
  const badRows = status.bad_rows ?? part("bad_rows", {}).count;
  const missing = status.missing_rows ? `${whole(status.missing_rows)} missing` : "";
  const changes = part("changes", null)?.length;
  const lastChange = changes ? `last at row ${whole(lastOf(report.changes)[0])}` : "";
  const time = isNumber(status.seconds) ? `${seconds(status.seconds)} in total` : "";
  tiles.push(
    createTile("changes", "change", changes, whole(changes), lastChange),
    createTile("bad rows", "", badRows, whole(badRows), missing),
    createTile("rows/s", "", status.rows_per_second, number(status.rows_per_second), time),
  );
  setChildren(byId("tiles"), ...tiles);
}

// How well the positive label, or else the rarest one, is found.
function labelTiles({ run, status }) {
  const scores = Object.entries(status.labels ?? {}).filter(([, { rows }]) => rows > 0);
  const [name, score] = scores.find(([label]) => label === run.positive) ??
    scores.sort(([, a], [, b]) => a.rows - b.rows)[0] ?? [];
  if (!score) return [];
  const note = (...count) => create("span", {}, dataText(name), `: ${counted(...count)}`);
  return [
    createTile("recall", "", score.recall, percent(score.recall), note(score.rows, "row", "rows")),
    createTile("precision", "", score.precision, percent(score.precision),
      note(score.predicted, "prediction", "predictions")),
  ];
}

function comparedWith(error, other) {
  const share = 1 - error / other;
  if (!Number.isFinite(share)) return null;
  if (Math.abs(share) < 0.0005) return "equal to";
  return share > 0 ? `${percent(share)} below` : `${percent(-share)} above`;
}

// How good the last predictions were, for a reader who knows nothing of the model.
function headline(report) {
  const { status: { rows }, run, lastErrors: last } = report;
  if (!last) return rows ? ["Too few rows so far to say how good the predictions are."] : [];
  const target = dataText(run.target ?? "the target");
  const span = `The ${last.isWhole ? "first" : "last"} ${counted(last.rows, "row", "rows")}`;
  if (report.isClassification) {
    const [right, before] = [1 - last.loss, 1 - last.baselineLoss];
    const better = right >= before ? "" : ", which would have been better";
    return [
      `${span}: `, target, ` was predicted correctly in ${percent(right)} of the rows. Repeating ` +
      `the last label would have been correct in ${percent(before)}${better}.`,
    ];
  }
  return [
    `${span} of `, target, ` were predicted to within ±${brief(last.error)} on average`,
    comparison(last.error, last.baseline), ".",
  ];
}

function comparison(error, baseline) {
  const share = 1 - error / baseline;
  if (!Number.isFinite(share)) return "";
  const size = Math.round(100 * Math.abs(share));
  if (size < 1) return ", about as well as by repeating the last value";
  if (share > 0) return `, ${size} % better than repeating the last value`;
  const times = error / baseline;
  const worse = times >= 3 ? `${brief(times)} times the error of` : `${size} % worse than`;
  return `, ${worse} repeating the last value`;
}

function withoutRows({ phase, bad_rows: bad }) {
  if (!phase || phase === "running") return "Waiting for the first rows.";
  return bad ? `No rows: ${counted(bad, "bad row was", "bad rows were")} skipped.` : "No rows.";
}

// The run in one sentence.
function summarize(report) {
  const { status } = report;
  const { error } = status;
  if (!isNumber(error)) return status.rows ? "" : withoutRows(status);
  const comparisons = [
    [comparedWith(error, status.best_slot_error ?? NaN), "the best single slot"],
    [comparedWith(error, status.baseline_error ?? NaN), "the baseline (last value)"],
  ].filter(([text]) => text).map((pair) => pair.join(" "));
  const name = report.isClassification ? "Error rate" : "RMSE";
  const predictions = counted(status.scored, "prediction", "predictions");
  const opening = `${name} ${errorText(report, error)} over ${predictions}`;
  return comparisons.length ? `${opening}: ${comparisons.join(" and ")}.` : `${opening}.`;
}

let connection = "none"; // "none" for a file; "open", "lost" or "ended" for a live page

function drawState({ phase, updated }) {
  const element = byId("state");
  const lost = connection === "lost";
  const live = connection === "open" && phase === "running";
  element.dataset.state = lost ? "lost" : live ? "live" : "still";
  const shown = PHASES.includes(phase) ? phase : "waiting";
  setChildren(
    element,
    create("span", { className: "dot", "aria-hidden": "true" }),
    create("span", { id: "state-text" }, lost ? "connection lost, trying again" : shown),
  );
  // Outside of the announced element: a clock that is read out every second helps nobody.
  setText(byId("updated"), dateTime(updated));
}
