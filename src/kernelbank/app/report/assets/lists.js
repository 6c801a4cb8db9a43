// Sections in words: signals, bad rows, where time went and what ran.

const FIRST_SIGNALS = 20;

const MEANING = {
  "error grew": "the error grew",
  "error fell": "the error fell",
  weights: "the weights moved to other slots",
  "target level": "the level of the target moved",
  "input level": "the level of an input moved",
};

function signalsTable(caption, changes) {
  const columns = [["row", "number"], ["what", "text"], ["input", "text"]];
  const meaning = (what) => (Object.hasOwn(MEANING, what) ? MEANING[what] : fromData(what));
  const rows = changes.map(([row, what, input]) => [whole(row), meaning(what), fromData(input)]);
  return table("", caption, columns, rows);
}

let olderSignals = [];
const signalsTop = make("div");
const signalsRest = new Folded(() => [signalsTable("Older signals", olderSignals)]);
byId("signals-list").append(signalsTop, signalsRest.element);

function drawSignals({ changes }) {
  const newest = [...changes].reverse();
  olderSignals = newest.slice(FIRST_SIGNALS);
  fill(signalsTop, newest.length
    ? signalsTable("Newest signals", newest.slice(0, FIRST_SIGNALS))
    : nothing("No change has been signalled."));
  const older = counted(olderSignals.length, "older signal", "older signals");
  signalsRest.set(olderSignals.length ? `Show ${older}` : null);
}

function drawBad({ bad, now }) {
  const count = bad.count ?? now.bad ?? 0;
  const examples = bad.examples ?? [];
  if (!count) {
    const words = now.rows ? "All rows could be used." : "No row has been read yet.";
    fill(byId("bad-list"), nothing(words));
    return;
  }
  const some = count > examples.length
    ? `; the first and the last of them, ${whole(examples.length)} in all`
    : "";
  const columns = [
    ["row", "number"], ["where", "text"], ["column", "text"], ["value", "text"], ["reason", "text"],
  ];
  const rows = examples.map(({ row, where, column, value, reason }) =>
    [whole(row), ...[where, column, value, reason].map(fromData)]);
  const caption = `${counted(count, "row", "rows")} could not be used${some}`;
  fill(byId("bad-list"), table("stacks", caption, columns, rows));
}

function drawTime({ now }) {
  const told = (now.time ?? []).filter(([, spent]) => known(spent));
  const sum = told.reduce((total, [, spent]) => total + spent, 0);
  const total = Math.max(sum, now.seconds ?? 0);
  if (!(total > 0)) {
    fill(byId("time-list"), nothing("No time has been measured yet."));
    return;
  }
  const rest = total - sum;
  const parts = rest > 0.005 * total ? [...told, ["all else", rest]] : told;
  const bars = [...parts].sort((one, other) => other[1] - one[1]).map(([words, spent]) => {
    const bar = make("span", { className: "bar" });
    bar.style.width = `${Math.max(0.4, (100 * spent) / total)}%`; // by script: no style in the HTML
    return make("li", {},
      make("span", { className: "words" }, fromData(words)),
      make("span", { className: "figures" }, `${seconds(spent)} · ${percent(spent / total)}`),
      make("span", { className: "track", "aria-hidden": "true" }, bar));
  });
  const starts = now.starts > 1 ? ` The run was started ${whole(now.starts)} times.` : "";
  const began = moment(now.started) ? `, begun ${moment(now.started)}` : "";
  fill(byId("time-list"),
    make("ul", { className: "bars" }, ...bars),
    make("p", { className: "note" }, `${seconds(total)} in all${began}.${starts}`));
}

function drawFacts({ run }) {
  const facts = run.facts ?? [];
  const children = facts.flatMap(([heading, pairs]) => [
    make("h3", {}, fromData(heading)),
    make("dl", { className: "facts" }, ...pairs.map(([label, text]) =>
      make("div", {}, make("dt", {}, fromData(label)), make("dd", {}, fromData(text))))),
  ]);
  if (!children.length) children.push(nothing("Nothing is known of the run yet."));
  fill(byId("ran-list"), ...children);
}
