// Draws all sections, at most once per frame and never while the page is hidden; on a live page,
// again whenever new parts arrive.

const SECTIONS = [
  drawHeader, drawStream, drawTargets, drawError, drawLoss, drawWeights, drawCurves, drawIntervals,
  drawForecasts, drawLabels, drawChanges, drawBadRows, drawTimes, drawDetails,
];

function draw() {
  const report = computeReport();
  timeline = report.timeline;
  for (const drawSection of SECTIONS) {
    try {
      drawSection(report);
    } catch (error) {
      reportError(error); // the other sections are still worth seeing
    }
  }
}

let drawRequested = false;

function requestDraw() {
  if (drawRequested || document.hidden) return; // it is drawn when the page is shown again
  drawRequested = true;
  requestAnimationFrame(() => {
    drawRequested = false;
    draw();
  });
}

const RECONNECT_AFTER = 3000; // milliseconds

function followEvents(address) {
  connection = connection === "none" ? "open" : connection;
  const source = new EventSource(address);
  const setConnection = (state) => {
    if (connection === state) return;
    connection = state;
    drawState(part("status", {}));
  };
  source.addEventListener("open", () => setConnection("open"));
  source.addEventListener("message", (message) => {
    setConnection("open");
    updateParts(JSON.parse(message.data));
    requestDraw();
  });
  source.addEventListener("end", () => {
    source.close();
    setConnection("ended");
  });
  source.addEventListener("error", () => {
    setConnection("lost");
    // Mostly the browser tries again by itself; after some errors it gives up.
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(() => followEvents(address), RECONNECT_AFTER);
    }
  });
}

document.addEventListener("visibilitychange", requestDraw);

const embedded = byId("report");
updateParts(JSON.parse(embedded.textContent));
followTheme();
if (embedded.dataset.events) followEvents(embedded.dataset.events);
draw();
