// Runs before anything is painted, so that a dark page never flashes white.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("kernelbank-theme");
  } catch {
    // A browser may keep nothing for this page; then the system's choice holds.
  }
  if (theme !== "light" && theme !== "dark") {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
