// The colours of the theme, for what is painted on a canvas. The style sheet defines them all.

const COLOUR_NAMES = [
  "card", "ink", "muted", "grid", "model", "best", "baseline", "change", "slot", "selected",
  "heat-0", "heat-1", "heat-2", "heat-3", "heat-4",
];
const colours = {};
const onColourChange = [];

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOUR_NAMES) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

const rgbOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

const translucent = (name, alpha) => `rgba(${rgbOf(colours[name]).join(", ")}, ${alpha})`;

function updateColours() {
  readColours();
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
