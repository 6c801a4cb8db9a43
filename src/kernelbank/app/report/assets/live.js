// A live page hears of new parts from the run; a file hears nothing.

const TRY_AGAIN = 3000; // milliseconds

function listen(address) {
  connection = connection === "none" ? "open" : connection;
  const source = new EventSource(address);
  const restate = (state) => {
    if (connection === state) return;
    connection = state;
    drawStatus(part("run", {}).status, part("now", {}).updated);
  };
  source.addEventListener("open", () => restate("open"));
  source.addEventListener("message", (message) => {
    restate("open");
    take(JSON.parse(message.data));
    redrawSoon();
  });
  source.addEventListener("end", () => {
    source.close();
    restate("over");
  });
  source.addEventListener("error", () => {
    restate("lost");
    // Mostly the browser tries again by itself; after some errors it gives up.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(address), TRY_AGAIN);
  });
}
