// From the parts to the picture: at most once a frame, and never for a page that nobody sees.

const SECTIONS = [
  drawHeader, drawError, drawStream, drawCost, drawWeights, drawFunction, drawIntervals,
  drawSignals, drawBad, drawTime, drawFacts,
];

function redraw() {
  const view = figures();
  for (const draw of SECTIONS) {
    try {
      draw(view);
    } catch (error) {
      reportError(error); // the other sections are still worth seeing
    }
  }
}

let awaited = false;

function redrawSoon() {
  if (awaited || document.hidden) return; // it is drawn when the page is seen again
  awaited = true;
  requestAnimationFrame(() => {
    awaited = false;
    redraw();
  });
}

document.addEventListener("visibilitychange", redrawSoon);

const told = byId("story");
take(JSON.parse(told.textContent));
watchColours();
if (told.dataset.events) listen(told.dataset.events);
redraw();
