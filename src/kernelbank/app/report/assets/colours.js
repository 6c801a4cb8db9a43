// The colours of the theme, for what is painted on a canvas. The style sheet holds them all.

const ROLES = [
  "card", "muted", "grid", "bank", "best", "persistence", "signal", "slot", "chosen",
  "heat-0", "heat-1", "heat-2", "heat-3", "heat-4",
];
const colour = {};
const whenRecoloured = [];

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const role of ROLES) colour[role] = style.getPropertyValue(`--${role}`).trim();
}

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

// The colour of a role, seen through: `share` of it is left.
const veil = (role, share) => `rgba(${channels(colour[role]).join(", ")}, ${share})`;

function recolour() {
  readColours();
  const dark = document.documentElement.dataset.theme === "dark";
  say(byId("theme"), dark ? "Light" : "Dark");
  byId("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
  for (const callback of whenRecoloured) callback();
}

function keepTheme(theme) {
  try {
    localStorage.setItem("kernelbank-theme", theme);
  } catch {
    // Then the choice lasts as long as the page.
  }
}

function watchColours() {
  const root = document.documentElement;
  let chosen = false;
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    chosen = true;
    keepTheme(root.dataset.theme);
    recolour();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (system) => {
    if (chosen) return;
    root.dataset.theme = system.matches ? "dark" : "light";
    recolour();
  });
  // Paper is white: the dark colours hold on screens only, and canvases must follow.
  matchMedia("print").addEventListener("change", recolour);
  recolour();
}
