// The live list of requests: rows are put on top as events bring them, until Pause. All text goes in as text.
"use strict";
(() => {
  const MOST = 300;
  const waiting = document.getElementById("waiting");
  if (!waiting) return;
  const body = document.querySelector("#requests tbody");
  const pause = document.getElementById("pause");
  const live = document.getElementById("live");
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const size = (bytes) => bytes < 1024 ? `${bytes} B` : bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
  const clock = (ms) => {
    const when = new Date(ms), two = (number) => String(number).padStart(2, "0");
    return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}.${String(when.getMilliseconds()).padStart(3, "0")}`;
  };
  const cell = (className, ...parts) => {
    const made = element("td", undefined, className);
    made.append(...parts);
    return made;
  };
  const row = (request) => {
    const made = element("tr");
    const time = element("a", clock(request.time_ms));
    const node = request.node ? `node=${request.node}` : "";
    time.href = `/requests/${request.number}${node && "?" + node}`;
    const connection = element("a", `#${request.connection}`, "note");
    connection.href = `/requests?connection=${request.connection}${node && "&" + node}`;
    let outcome = element("span", "ok");
    if (request.errors.length) outcome = element("span", request.errors[0], "badge bad");
    else if (request.outcome !== "answered") outcome = element("span", request.outcome, "badge warn");
    made.append(
      cell("mono", time), ...("brokers" in body.closest("table").dataset ? [cell("number", String(request.node))] : []), cell("", element("span", request.client || "–", "name"), " ", connection),
      cell("", request.api, " ", element("span", `v${request.version}`, "note")), cell("name", request.names),
      cell("", outcome, request.errors.length > 1 ? ` +${request.errors.length - 1}` : ""),
      cell("number", `${request.took_ms.toFixed(2)} ms`), cell("number", size(request.request_size)), cell("number", size(request.response_size)),
    );
    return made;
  };
  const show = (event) => {
    const told = JSON.parse(event.data);
    body.prepend(...told.requests.map(row));
    while (body.rows.length > MOST) body.lastElementChild.remove();
    if (told.requests.length) document.getElementById("new").textContent = told.more ? `${told.more} more in the last half second are not shown: filter them.` : "";
    if (told.lost) document.getElementById("lost").textContent = `${told.lost} came too fast to be kept.`;
    document.getElementById("no-waiting").hidden = told.waiting.length > 0;
    waiting.replaceChildren(...told.waiting.map((request) => {
      const item = element("li");
      item.append(element("span", request.api, "strong"), " of ", element("span", request.client || "–", "name"), ` for ${(request.took_ms / 1000).toFixed(1)} s`);
      if (request.names) item.append(", ", element("span", request.names, "name"));
      return item;
    }));
  };
  let source = null;
  const start = () => {
    source = new EventSource(waiting.dataset.link.replace("/requests", "/requests/events"));
    source.addEventListener("message", show);
    source.addEventListener("open", () => { live.textContent = "Live"; });
    source.addEventListener("failure", (event) => { live.textContent = JSON.parse(event.data).text; source.close(); });
    source.addEventListener("error", () => { live.textContent = "Not connected; trying again"; });
  };
  const stop = () => { source?.close(); source = null; live.textContent = "Paused"; };
  pause.addEventListener("click", () => {
    const isPaused = source === null;
    if (isPaused) start(); else stop();
    pause.setAttribute("aria-pressed", String(!isPaused));
    pause.textContent = isPaused ? "Pause" : "Go on";
  });
  addEventListener("pagehide", stop);
  start();
})();
