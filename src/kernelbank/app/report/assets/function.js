// The function along one input, at any of the rows at which it was kept.

let functionView = null;
let functionKept = []; // snapshots
let functionRange = [0, 1];
let functionSpan = [0, 1];

const inputChoice = byId("function-input");
const timeChoice = byId("function-time");
const playButton = byId("function-play");

const functionChart = new Chart("function-chart", {
  label: "The bank's answer along one input, with its interval",
  height: () => (innerWidth < 600 ? 260 : 340),
  empty: "The function has not been looked at yet.",
  xRange: () => functionSpan,
  range: () => functionRange,
  axis: { values: (...told) => (functionView.classes ? inPercent : anySize).values(...told) },
  series: [
    { role: "bank", width: 1, share: 0.4 },
    { role: "bank", width: 1, share: 0.4 },
    { role: "bank", width: 2.5 },
  ],
  bands: [{ role: "bank", share: 0.16, series: [2, 1] }],
  xLabel: () => inputName(),
  usual: () => Math.floor(functionLine().at.length / 2),
  tell: (at) => {
    const line = functionLine();
    const form = functionView.classes ? percent : number;
    const told = [
      [fromData(inputName()), `at ${number(line.at[at])}`],
      [functionView.classes ? "probability" : "answer", form(line.middle[at]), "bank"],
    ];
    if (functionView.classes) return told;
    return [...told, ["interval", `${number(line.low[at])} to ${number(line.high[at])}`]];
  },
});

const inputPlace = () => Math.max(0, inputChoice.selectedIndex);
const inputName = () => functionView.run.columns?.[inputPlace()] ?? `input ${inputPlace() + 1}`;
const lineOf = (snapshot) => snapshot?.lines?.[inputPlace()] ?? null;
const functionLine = () => lineOf(functionKept[Number(timeChoice.value)]);

// Both axes hold still while the slider moves. A few snapshots of a bank that knew nothing yet may
// reach far out; they leave the picture rather than flatten the others.
function functionFrame() {
  const lines = functionKept.map(lineOf).filter((line) => line?.at?.length);
  const ends = (pick, choose) => lines
    .map((line) => choose(...pick(line).filter(known)))
    .filter(known)
    .sort((one, other) => one - other);
  const lows = ends((line) => [...line.low, ...line.middle], Math.min);
  const highs = ends((line) => [...line.high, ...line.middle], Math.max);
  const xs = lines.flatMap((line) => line.at).filter(known);
  const [left, right] = xs.length ? [Math.min(...xs), Math.max(...xs)] : [0, 1];
  functionSpan = left < right ? [left, right] : [left - 1, left + 1];
  if (functionView.classes) {
    functionRange = [0, 1];
    return;
  }
  const low = quantile(lows, 0.08) ?? 0;
  const high = quantile(highs, 0.92) ?? 1;
  const edge = 0.06 * (high - low || Math.abs(high) || 1);
  functionRange = [low - edge, high + edge];
}

function showFunction() {
  const snapshot = functionKept[Number(timeChoice.value)];
  const line = lineOf(snapshot);
  const row = snapshot ? whole(snapshot.row) : "";
  say(byId("function-row"), row);
  timeChoice.setAttribute("aria-valuetext", `row ${row}`);
  if (!line?.at?.length) {
    functionChart.set(null);
    return;
  }
  const answer = functionView.classes
    ? ["probability of ", fromData(functionView.run.classes?.[0] ?? "the first class")]
    : [fromData(functionView.run.target ?? "target")];
  const [low, high] = functionRange;
  const outside = (value) => known(value) && (value < low || value > high);
  const beyond = [...line.low, ...line.high].some(outside);
  functionChart.set([line.at, line.low, line.high, line.middle], {
    caption: [...answer, " along ", fromData(inputName()), `, after row ${row}`],
    note: beyond ? "The interval leaves the picture here: its scale is that of most rows." : "",
  });
}

function drawFunction(view) {
  functionView = view;
  const wasLast = Number(timeChoice.value) === functionKept.length - 1;
  const row = functionKept[Number(timeChoice.value)]?.row;
  functionKept = snapshots();
  const columns = view.run.columns ?? [];
  const size = Math.max(0, ...functionKept.map((snapshot) => snapshot.lines?.length ?? 0));
  const names = Array.from({ length: size }, (_, place) => columns[place] ?? `input ${place + 1}`);
  const place = inputPlace();
  fill(inputChoice, ...names.map((name) => make("option", {}, name)));
  const kept = names.length ? Math.min(place, names.length - 1) : -1;
  if (inputChoice.selectedIndex !== kept) inputChoice.selectedIndex = kept;
  byId("function-choices").hidden = !names.length;
  const last = Math.max(0, functionKept.length - 1);
  timeChoice.max = String(last);
  timeChoice.disabled = playButton.disabled = last === 0;
  // Whoever looks at the newest keeps looking at the newest; whoever looks back stays at that row.
  const there = functionKept.findLastIndex((snapshot) => snapshot.row <= row);
  if (!playing) timeChoice.value = String(wasLast || there < 0 ? last : there);
  functionFrame();
  showFunction();
}

let playing = null;

function play() {
  stopPlaying();
  if (Number(timeChoice.value) >= functionKept.length - 1) timeChoice.value = "0";
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  playing = setInterval(() => {
    timeChoice.value = String(Number(timeChoice.value) + 1);
    showFunction();
    if (Number(timeChoice.value) >= functionKept.length - 1) stopPlaying();
  }, calm ? 1000 : 250);
  playButton.setAttribute("aria-pressed", "true");
  say(playButton, "Stop");
  showFunction();
}

function stopPlaying() {
  clearInterval(playing);
  playing = null;
  playButton.setAttribute("aria-pressed", "false");
  say(playButton, "Play");
}

playButton.addEventListener("click", () => (playing ? stopPlaying() : play()));
timeChoice.addEventListener("input", () => {
  stopPlaying();
  showFunction();
});
inputChoice.addEventListener("change", () => {
  functionFrame();
  showFunction();
});
