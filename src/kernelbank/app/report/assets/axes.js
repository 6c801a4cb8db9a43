// Axes for numbers of any size. uPlot's own know steps from 1e-16 to 1e15 only, and count for ever
// where a step is too small to change a number.

const MOST_TICKS = 60;

// A range that can be drawn, whatever came out of the data.
function sane([low, high]) {
  if (!known(low) || !known(high) || !(high > low)) return [0, 1];
  return [Math.max(low, -1e300), Math.min(high, 1e300)];
}

function stepsFor(low, high) {
  const power = Math.floor(Math.log10(high - low));
  const powers = [-3, -2, -1, 0, 1].map((away) => power + away);
  return powers.flatMap((each) => [1, 2, 5].map((front) => Number(`${front}e${each}`)));
}

function ticksBetween(low, high, step) {
  const first = Math.ceil(low / step);
  const count = Math.min(MOST_TICKS, Math.floor(high / step) - first + 1);
  if (!(step > 0) || !(count > 0) || first + 1 === first) return [low, high];
  // Multiples, rounded: 3 times 0.1 should be 0.3.
  const multiple = (_, place) => Number(((first + place) * step).toPrecision(12));
  return Array.from({ length: count }, multiple);
}

const anySize = {
  incrs: (plot, at, low, high) => stepsFor(low, high),
  splits: (plot, at, low, high, step) => ticksBetween(low, high, step),
  values: (plot, values, at, space, step) => ticks(values, step),
};

const inPercent = {
  values: (plot, values) => values.map((value) => `${Number((100 * value).toFixed(1))} %`),
};
