// Runs before the first paint, so that a dark page never flashes white.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("kernelbank-theme");
  } catch {
    // Without storage the choice of the system holds.
  }
  if (theme !== "light" && theme !== "dark") {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
