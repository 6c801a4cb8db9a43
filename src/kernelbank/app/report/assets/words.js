// Numbers and rows in words, the same everywhere on the page.

const UNKNOWN = "not known";
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

const known = (value) => typeof value === "number" && Number.isFinite(value);

// 12345 -> "12,345"
function whole(value) {
  return known(value) ? Math.round(value).toLocaleString("en-US") : UNKNOWN;
}

// Four digits that count; powers of ten where plain digits would be a row of noughts.
function number(value) {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return power(value, 2);
  if (size >= 1e4) return whole(value);
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

function power(value, digits) {
  const [front, exponent] = value.toExponential(digits).split("e");
  const signs = exponent.replace("+", "").replace("-", "⁻");
  const raised = signs.replace(/\d/g, (digit) => RAISED[digit]);
  return `${Number(front)}·10${raised}`;
}

// 0.9034 -> "90.3 %"
function percent(share) {
  if (!known(share)) return UNKNOWN;
  const style = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  return `${(100 * share).toLocaleString("en-US", style)} %`;
}

function seconds(value) {
  if (!known(value)) return UNKNOWN;
  if (value >= 7200) return `${number(value / 3600)} h`;
  if (value >= 120) return `${number(value / 60)} min`;
  if (value < 0.001) return "below 0.001 s"; // nobody waits for less
  return `${number(value)} s`;
}

// Labels of an axis: as many decimals as tell neighbours apart, and no more.
function ticks(values, step) {
  const largest = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) {
    const digits = Math.min(6, Math.max(0, Math.ceil(Math.log10(largest / step) - 1e-9)));
    return values.map((value) => (value === null ? "" : value === 0 ? "0" : power(value, digits)));
  }
  const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  const style = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return values.map((value) => (value === null ? "" : value.toLocaleString("en-US", style)));
}

function rowsFromTo(first, last) {
  return first === last ? `row ${whole(last)}` : `rows ${whole(first)} to ${whole(last)}`;
}

// "1 bad row", "3 bad rows"
const counted = (count, one, many) => `${whole(count)} ${count === 1 ? one : many}`;

function moment(text) {
  const when = new Date(text ?? NaN);
  if (Number.isNaN(when.getTime())) return "";
  return when.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}
