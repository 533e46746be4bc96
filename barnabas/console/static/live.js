// Charts and figures of an open page, from one stream of events: `data-live` has its URL, `data-chart` and `data-text`
// inside it name what an event's `charts` and `texts` have. A chart has lines over times in seconds; uPlot draws it.
"use strict";
(() => {
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = () => ["--accent", "--focus", "--warn", "--bad", "--good", "--quiet", "--link", "--text"].map(style);
  const format = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, notation: "compact" });
  const clock = (second) => new Date(second * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const HEIGHT = 180;

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
        width: figure.clientWidth, height: HEIGHT, cursor: { y: false }, legend: { live: true },
        series: [{ value: (_plot, second) => (second == null ? "–" : clock(second)) },
          ...chart.lines.map((line, index) => ({
            label: line.label, stroke: palette[index % palette.length], width: 1.5, spanGaps: true, points: { show: chart.times.length < 3 },
            value: (_plot, value) => (value == null ? "–" : format.format(value)),
          }))],
        axes: [{ ...axis, values: (_plot, ticks) => ticks.map(clock), space: 90 },
          { ...axis, values: (_plot, ticks) => ticks.map((tick) => format.format(tick)), size: 60 }],
        scales: { y: { range: (_plot, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.1)] } },
      }, data, at);
      figure.labels = labels;
    }
    if (figure.plot.cursor.idx == null) figure.plot.setLegend({ idx: chart.times.length - 1 }, false); // the newest values
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
    const stream = new EventSource(live.dataset.live);
    stream.onmessage = (event) => {
      const sample = JSON.parse(event.data);
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
    document.addEventListener("theme", again);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    addEventListener("resize", () => {
      for (const figure of live.querySelectorAll("[data-chart]")) figure.plot?.setSize({ width: figure.clientWidth, height: HEIGHT });
    });
    addEventListener("pagehide", () => stream.close());
  };
  document.querySelectorAll("[data-live]").forEach(start);
})();
