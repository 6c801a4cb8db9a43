// The story of a run: parts by name, and the points of all its pieces in one row.

const story = new Map();

// Take new parts; null means that a part has gone.
function take(parts) {
  for (const [name, value] of Object.entries(parts)) {
    if (value === null) story.delete(name);
    else story.set(name, value);
  }
}

const part = (name, otherwise) => story.get(name) ?? otherwise;

const COLUMNS = [
  "rows", "scored", "loss", "baseline_loss", "covered", "width", "worst_loss",
  "target_low", "target_high", "prediction_low", "prediction_high", "weights", "weights_high", "losses",
];

// One list a column. A column that is missing somewhere has nulls there.
function points() {
  const numbers = [...story.keys()]
    .filter((name) => /^points\/\d+$/.test(name))
    .map((name) => Number(name.slice("points/".length)))
    .sort((one, other) => one - other);
  const all = Object.fromEntries(COLUMNS.map((column) => [column, []]));
  for (const piece of numbers.map((place) => story.get(`points/${place}`))) {
    const length = piece.rows?.length ?? 0;
    for (const column of COLUMNS) {
      for (let at = 0; at < length; at += 1) all[column].push(piece[column]?.[at] ?? null);
    }
  }
  return all;
}

// Snapshots of the function in the order of their rows, the present one last.
function snapshots() {
  const kept = [...story.entries()]
    .filter(([name]) => /^snapshot\/\d+$/.test(name))
    .map(([, snapshot]) => snapshot)
    .sort((one, other) => one.row - other.row);
  const present = story.get("snapshot/now");
  if (!present) return kept;
  return [...kept.filter((snapshot) => snapshot.row < present.row), present];
}
