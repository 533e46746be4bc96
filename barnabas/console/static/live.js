// Charts and figures of an open page, from one stream of events: `data-live` has its URL, `data-chart` and `data-text`
// inside it name what an event's `charts` and `texts` have. A chart has lines over times in seconds; uPlot draws it.
// With `data-live-query` the stream gets the page's own query; the table is loaded again when `data-rows` is outdated.
"use strict";
(() => {
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = () => ["--accent", "--focus", "--warn", "--bad", "--good", "--quiet", "--link", "--text"].map(style);
  const format = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, notation: "compact" });
  const clock = (second) => new Date(second * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const HEIGHT = 180;
  const SHORTEST_S = 60;
  const INCREMENTS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800]; // seconds

  const draw = (figure, chart) => {
    const data = [chart.times, ...chart.lines.map((line) => line.values)];
    const labels = chart.lines.map((line) => line.label).join("\n");
    if (figure.plot && figure.labels === labels) {
      figure.plot.setData(data);
    } else {
      figure.plot?.destroy();
      figure.querySelector(".plot")?.remove();
      if (chart.times.length === 0) return;
      const at = document.createElement("div");
      at.className = "plot";
      at.setAttribute("role", "img");
      figure.append(at);
      const [grid, text, palette] = [style("--edge"), style("--quiet"), colours()];
      const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid } };
      figure.plot = new uPlot({
        width: figure.clientWidth, height: HEIGHT, cursor: { y: false }, padding: [null, 36, null, null],
        series: [{ value: (_plot, second) => (second == null ? "–" : clock(second)) },
          ...chart.lines.map((line, index) => ({
            label: line.label, stroke: palette[index % palette.length], width: 1.5, spanGaps: true, points: { show: chart.times.length < 3 },
            value: (_plot, value) => (value == null ? "–" : format.format(value)),
          }))],
        axes: [{ ...axis, values: (_plot, ticks) => ticks.map(clock), space: 90, incrs: INCREMENTS },
          { ...axis, values: (_plot, ticks) => ticks.map((tick) => format.format(tick)), size: 60 }],
        scales: { x: { range: (_plot, first, last) => [Math.min(first, last - SHORTEST_S), last] }, y: { range: (_plot, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.1)] } },
      }, data, at);
      figure.labels = labels;
    }
    setTimeout(() => { // the newest values, once uPlot has drawn, unless the pointer is on others
      if (figure.plot && figure.plot.cursor.idx == null) figure.plot.setLegend({ idx: chart.times.length - 1 }, false);
    });
    const last = chart.lines.map((line) => `${line.label} ${format.format(line.values.findLast((value) => value != null) ?? 0)}`);
    const unit = figure.dataset.unit ? ` ${figure.dataset.unit}` : "";
    figure.querySelector(".plot").setAttribute("aria-label", `${figure.querySelector("figcaption").textContent}. Now: ${last.join(", ")}${unit}.`);
  };

  const start = (live) => {
    const charts = {};
    const show = () => {
      for (const figure of live.querySelectorAll("[data-chart]")) {
        if (charts[figure.dataset.chart]) draw(figure, charts[figure.dataset.chart]);
      }
    };
    let stream, query;
    const connect = () => {
      stream?.close();
      query = location.search;
      stream = new EventSource(live.dataset.live + ("liveQuery" in live.dataset ? query : ""));
      stream.onmessage = receive;
    };
    const loadRows = async () => {
      const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const [fresh, shown] = [page.querySelector("[data-rows]"), live.querySelector(".rows")];
      if (!fresh || location.search !== query) return;
      const rows = document.adoptNode(fresh.querySelector(".rows"));
      rows.setAttribute("aria-live", "off");
      shown.replaceWith(rows);
      live.dataset.rows = fresh.dataset.rows;
    };
    const receive = (event) => {
      if ("liveQuery" in live.dataset && location.search !== query) return connect(); // a search has changed the page
      const sample = JSON.parse(event.data);
      if (sample.rows && sample.rows !== live.dataset.rows) loadRows();
      Object.assign(charts, sample.charts);
      show();
      for (const element of live.querySelectorAll("[data-text]")) {
        const text = sample.texts[element.dataset.text];
        if (text === undefined || element.textContent === text) continue;
        element.closest("[aria-live]")?.setAttribute("aria-live", "off"); // figures that change all the time are not read out
        element.textContent = text;
      }
      live.dataset.samples = String(Number(live.dataset.samples ?? 0) + 1);
    };
    const again = () => {
      for (const figure of live.querySelectorAll("[data-chart]")) { figure.plot?.destroy(); figure.plot = null; figure.querySelector(".plot")?.remove(); }
      show();
    };
    connect();
    document.addEventListener("theme", again);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    addEventListener("resize", () => {
      for (const figure of live.querySelectorAll("[data-chart]")) figure.plot?.setSize({ width: figure.clientWidth, height: HEIGHT });
    });
    // A page that nobody sees needs no stream: browsers have six connections to a server, for all its pages together.
    document.addEventListener("visibilitychange", () => (document.hidden ? stream.close() : connect()));
    addEventListener("pagehide", () => stream.close());
    addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  };
  document.querySelectorAll("[data-live]").forEach(start);
})();
