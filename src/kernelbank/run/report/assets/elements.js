// Numbers, times and rows as text, the same everywhere on the page.

const UNKNOWN = "not known";
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

// 12345 -> "12,345"
function whole(value) {
  return isNumber(value) ? Math.round(value).toLocaleString("en-US") : UNKNOWN;
}

// Four significant digits; powers of ten where plain digits would be mostly zeros.
function number(value) {
  if (!isNumber(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return scientific(value, 2);
  if (size >= 1e4) return whole(value);
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

// Two significant digits, for sentences.
const brief = (value) => number(isNumber(value) ? Number(value.toPrecision(2)) : value);

function scientific(value, digits) {
  const [mantissa, exponent] = value.toExponential(digits).split("e");
  const signs = exponent.replace("+", "").replace("-", "⁻");
  const raised = signs.replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
  return `${Number(mantissa)}·10${raised}`;
}

// 0.9034 -> "90.3 %"
function percent(share) {
  if (!isNumber(share)) return UNKNOWN;
  const style = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  return `${(100 * share).toLocaleString("en-US", style)} %`;
}

// Weights come as whole numbers in 1/10000: 1234 -> "12.34 %"
const weightPercent = (weight) => (isNumber(weight) ? `${(weight / 100).toFixed(2)} %` : UNKNOWN);

function seconds(value) {
  if (!isNumber(value)) return UNKNOWN;
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

const fromTo = (low, high) => `${number(low)} to ${number(high)}`;

// "1 bad row", "3 bad rows"
const counted = (count, singular, plural) => `${whole(count)} ${count === 1 ? singular : plural}`;

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

// Elements are created one by one and texts are set as text: no data is ever parsed as HTML.

const byId = (id) => document.getElementById(id);

function create(tag, { className, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A text from the data. `bdi` isolates marks that change the direction of writing.
const dataText = (text) => create("bdi", { className: "data" }, String(text ?? ""));

// Replace the children only if they differ: a live page must not lose a selection, and a screen
// reader must not read the same again.
function setChildren(element, ...children) {
  const fresh = create("div", {}, ...children);
  const same =
    fresh.childNodes.length === element.childNodes.length &&
    [...fresh.childNodes].every((child, index) => child.isEqualNode(element.childNodes[index]));
  if (!same) element.replaceChildren(...fresh.childNodes);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A sentence instead of a list or chart that would be empty.
const emptyMessage = (text) => create("p", { className: "empty" }, text);

// Rows of cells; `style` says how phones show the table.
function createTable(style, caption, headings, rows) {
  return create(
    "table", { className: style },
    create("caption", {}, caption),
    create("thead", {}, create("tr", {}, ...headings)),
    create("tbody", {}, ...rows.map((cells) => create("tr", {}, ...cells))),
  );
}

const columnHeading = (text, className = "") => create("th", { scope: "col", className }, text);

// A table whose `columns` are [heading, kind] with kind "text" or "number".
function listTable(style, caption, columns, rows) {
  const headings = columns.map(([heading, kind]) => columnHeading(heading, kind));
  return createTable(style, caption, headings, rows.map((cells) => cells.map((cell, index) => {
    const [heading, kind] = columns[index];
    return create("td", { className: kind, "data-label": heading }, cell);
  })));
}

// A table of shares whose lines have names: the stronger the colour of a cell, the larger its share.
const shareTable = (style, caption, headings, rows) => create(
  "div", { className: "scrolls", tabindex: "0" },
  createTable(`confusion${style}`, caption, headings, rows.map(([name, ...cells]) =>
    [create("th", { scope: "row" }, name), ...cells])));

function shareCell(kind, text, share) {
  const cell = create("td", { className: `number cell ${kind}` }, text);
  cell.style.setProperty("--share", `${Math.round(share)}%`);
  return cell;
}

// Names and what they mean.
const pairsList = (pairs) => create("dl", { className: "pairs" }, ...pairs.map(([name, text]) =>
  create("div", {}, create("dt", {}, dataText(name)), create("dd", {}, dataText(text)))));

// A details element whose content is built when it is first opened or printed: it may be long.
class Collapsible {
  constructor(build) {
    this.build = build;
    this.summary = create("summary");
    this.content = create("div");
    this.element = create("details", {}, this.summary, this.content);
    this.element.addEventListener("toggle", () => this.update());
    addEventListener("beforeprint", () => {
      this.wasOpen = this.element.open;
      this.element.open = true;
      this.update();
    });
    addEventListener("afterprint", () => {
      this.element.open = this.wasOpen ?? this.element.open;
    });
  }

  // A title of null: there is nothing to show.
  setTitle(title) {
    this.element.hidden = title === null;
    setText(this.summary, title ?? "");
    this.update();
  }

  update() {
    if (this.element.hidden) this.content.replaceChildren();
    else if (this.element.open) setChildren(this.content, ...this.build());
  }
}

// The first rows of a table, and the others when they are asked for. `table(caption, rows)` makes
// one; `names` are the captions, and the singular and the plural of a row.
class ShortenedTable {
  constructor(id, most, table, [first, others, ...words]) {
    Object.assign(this, { most, table, first, words, rows: [] });
    this.listed = create("div");
    this.others = new Collapsible(() => [table(others, this.rows.slice(most))]);
    byId(id).append(this.listed, this.others.element);
  }

  draw(rows, empty) {
    this.rows = rows;
    const count = Math.max(0, rows.length - this.most);
    setChildren(this.listed, rows.length
      ? this.table(this.first, rows.slice(0, this.most))
      : emptyMessage(empty));
    this.others.setTitle(count ? `Show ${counted(count, ...this.words)}` : null);
  }
}

// The colours of the theme, for what is painted on a canvas. The style sheet defines them all.

const COLOUR_NAMES = [
  "card", "ink", "muted", "grid", "model", "best", "baseline", "change", "slot", "selected",
  "heat-0", "heat-1", "heat-2", "heat-3", "heat-4",
];
const colours = {};
const onColourChange = [];

const rgbOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

const translucent = (name, alpha) => `rgba(${rgbOf(colours[name]).join(", ")}, ${alpha})`;

function updateColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOUR_NAMES) colours[name] = style.getPropertyValue(`--${name}`).trim();
  const dark = document.documentElement.dataset.theme === "dark";
  setText(byId("theme"), dark ? "Light" : "Dark");
  byId("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
  for (const callback of onColourChange) callback();
}

function storeTheme(theme) {
  try {
    localStorage.setItem("kernelbank-theme", theme);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

function followTheme() {
  const root = document.documentElement;
  let chosen = false;
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    chosen = true;
    storeTheme(root.dataset.theme);
    updateColours();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (system) => {
    if (chosen) return;
    root.dataset.theme = system.matches ? "dark" : "light";
    updateColours();
  });
  // Paper is white: the dark colours hold on screens only, and canvases must follow.
  matchMedia("print").addEventListener("change", updateColours);
  updateColours();
}
