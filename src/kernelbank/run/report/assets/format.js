// Numbers, times and rows as text, the same everywhere on the page.

const UNKNOWN = "not known";
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

const known = (value) => typeof value === "number" && Number.isFinite(value);

// 12345 -> "12,345"
function whole(value) {
  return known(value) ? Math.round(value).toLocaleString("en-US") : UNKNOWN;
}

// Four significant digits; powers of ten where plain digits would be mostly zeros.
function number(value) {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return scientific(value, 2);
  if (size >= 1e4) return whole(value);
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

// Two significant digits, for sentences.
const brief = (value) => number(known(value) ? Number(value.toPrecision(2)) : value);

function scientific(value, digits) {
  const [mantissa, exponent] = value.toExponential(digits).split("e");
  const signs = exponent.replace("+", "").replace("-", "⁻");
  const raised = signs.replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
  return `${Number(mantissa)}·10${raised}`;
}

// 0.9034 -> "90.3 %"
function percent(share) {
  if (!known(share)) return UNKNOWN;
  const style = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  return `${(100 * share).toLocaleString("en-US", style)} %`;
}

// Weights come as whole numbers in 1/10000: 1234 -> "12.34 %"
const weightPercent = (weight) => (known(weight) ? `${(weight / 100).toFixed(2)} %` : UNKNOWN);

function seconds(value) {
  if (!known(value)) return UNKNOWN;
  if (value >= 7200) return `${number(value / 3600)} h`;
  if (value >= 120) return `${number(value / 60)} min`;
  if (value < 0.001) return "below 0.001 s";
  return `${number(value)} s`;
}

// Labels of an axis: as many decimals as tell neighbours apart, and no more.
function tickLabels(values, step) {
  const largest = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) {
    const digits = Math.min(6, Math.max(0, Math.ceil(Math.log10(largest / step) - 1e-9)));
    const label = (value) => (value === 0 ? "0" : scientific(value, digits));
    return values.map((value) => (value === null ? "" : label(value)));
  }
  const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  const style = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return values.map((value) => (value === null ? "" : value.toLocaleString("en-US", style)));
}

function rowRange(first, last) {
  return first === last ? `row ${whole(last)}` : `rows ${whole(first)} to ${whole(last)}`;
}

// "1 bad row", "3 bad rows"
const counted = (count, one, many) => `${whole(count)} ${count === 1 ? one : many}`;

function dateTime(text) {
  const date = new Date(text ?? NaN);
  if (Number.isNaN(date.getTime())) return "";
  return date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

// A text that fits into `width` pixels of a canvas; if it is too long, an ellipsis replaces its
// middle: names of slots differ at both ends.
function cropText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const characters = Array.from(text.length > 200 ? text.slice(0, 100) + text.slice(-100) : text);
  const cropped = () => {
    const half = Math.ceil(characters.length / 2);
    return `${characters.slice(0, half).join("").trimEnd()}…${characters.slice(half).join("")}`;
  };
  while (characters.length && context.measureText(cropped()).width > width) {
    characters.splice(Math.floor(characters.length / 2), 1);
  }
  return cropped();
}
