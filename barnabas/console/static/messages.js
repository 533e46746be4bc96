// The screens of messages: records opened in place, searches that go on, live tails, marked records, saved filters,
// exports, large values on demand. Without this script the same pages work by links and forms.
"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const base = location.pathname.split("/").slice(0, 3).join("/");
  const api = (path) => fetch(`/api${path}`, { headers: { accept: "application/json" } }).then(async (response) => {
    const body = await response.json();
    if (!response.ok) throw new Error(body.error ?? response.statusText);
    return body;
  });
  const pageOf = (path, signal) => fetch(path, { signal }).then(async (response) => {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!response.ok) throw new Error(page.querySelector(".failure")?.textContent ?? response.statusText);
    return page;
  });
  const swapped = () => document.dispatchEvent(new Event("htmx:after:swap"));
  const count = (number, word) => `${number.toLocaleString("en").replaceAll(",", "\u202f")} ${word}${number === 1 ? "" : "s"}`;
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // --- JSON in colours, as elements of text: nothing is parsed as HTML
  const LONGEST_COLOURED = 200000;
  const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  const colour = (pre) => {
    const text = pre.textContent;
    if (text.length > LONGEST_COLOURED) return;
    const pieces = document.createDocumentFragment();
    let at = 0;
    for (const match of text.matchAll(TOKENS)) {
      pieces.append(text.slice(at, match.index));
      const kind = match[2] !== undefined ? "name" : match[1] !== undefined ? "string" : match[3] ? "word" : "digits";
      pieces.append(element("span", { class: `j-${kind}` }, match[1] ?? match[0]), match[2] ?? "");
      at = match.index + match[0].length;
    }
    pieces.append(text.slice(at));
    pre.replaceChildren(pieces);
  };
  const isStructured = (format) => !["text", "hex", "base64", "null"].includes(format);
  const colourAll = (within) => {
    for (const pre of within.querySelectorAll("pre[data-text]")) if (isStructured(pre.dataset.format)) colour(pre);
  };

  // --- one record: forms of its contents, large values in parts
  const article = (inside) => inside.closest(".one-record");
  const load = async (record, side, form, at) => {
    const shown = record.dataset;
    const query = new URLSearchParams({ side, form, at, key_format: shown.keyFormat, value_format: shown.valueFormat });
    const pre = record.querySelector(`[data-text="${side}"]`);
    const more = record.querySelector(`[data-more="${side}"]`);
    try {
      const part = await api(`${shown.path}/part?${query}`);
      if (at === 0) pre.textContent = "";
      pre.append(part.text);
      more.hidden = part.next < 0;
      more.dataset.next = part.next;
      pre.dataset.form = form;
      pre.classList.toggle("plain", form === "hex");
      if (form === "decoded" && part.next < 0 && isStructured(pre.dataset.format)) colour(pre);
    } catch (error) {
      more.hidden = false;
      more.querySelector(".note").textContent = error.message;
    }
  };
  document.addEventListener("click", (event) => {
    const form = event.target.closest("[data-form]");
    if (form) {
      for (const other of form.parentElement.children) other.setAttribute("aria-pressed", String(other === form));
      load(article(form), form.dataset.side, form.dataset.form, 0);
    }
    const more = event.target.closest("[data-load]");
    if (more) {
      const record = article(more);
      const side = more.dataset.load;
      const pre = record.querySelector(`[data-text="${side}"]`);
      load(record, side, pre.dataset.form ?? "decoded", Number(record.querySelector(`[data-more="${side}"]`).dataset.next));
    }
  });

  // --- schemas: a file fills the form
  by("schema-file")?.addEventListener("change", async (event) => {
    const file = event.target.files[0];
    if (!file) return;
    by("schema-name").value = file.name;
    const isSet = /\.(desc|protoset)$/.test(file.name);
    by("schema-kind").value = isSet ? "descriptor-set" : file.name.endsWith(".proto") ? "protobuf" : "avro";
    if (!isSet) { by("schema-text").value = await file.text(); return; }
    const bytes = new Uint8Array(await file.arrayBuffer());
    by("schema-text").value = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  });

  // --- a new record: null has no text
  for (const select of document.querySelectorAll("[data-written]")) {
    const show = () => { by(select.dataset.written).disabled = select.value === "null"; };
    select.addEventListener("change", show);
    show();
  }
  colourAll(document);
  const table = by("messages");
  if (!table) return;

  // The formats that are not the default: the form leaves defaults out (see formdata).
  const formats = () => {
    const form = new FormData(by("criteria"));
    return Object.fromEntries(["key_format", "value_format"].filter((name) => form.get(name)).map((name) => [name, form.get(name)]));
  };

  // --- the list: records opened in place
  const body = by("records");
  const rows = () => [...body.querySelectorAll("tr.record")];
  const link = (row) => row.querySelector("a.open");
  const close = (row) => {
    if (row.nextElementSibling?.classList.contains("details")) row.nextElementSibling.remove();
    link(row).setAttribute("aria-expanded", "false");
  };
  const toggle = async (row) => {
    const anchor = link(row);
    if (anchor.getAttribute("aria-expanded") === "true") { close(row); return; }
    anchor.setAttribute("aria-expanded", "true");
    const cell = element("td", { colspan: "7" }, element("p", { class: "note" }, "Loading…"));
    const details = element("tr", { class: "details" }, cell);
    row.after(details);
    try {
      const record = (await pageOf(anchor.getAttribute("href"))).getElementById("record");
      record.removeAttribute("id");
      cell.replaceChildren(document.adoptNode(record));
      colourAll(cell);
      swapped();
    } catch (error) {
      cell.replaceChildren(element("p", { class: "failure" }, error.message));
    }
  };
  let current = null;
  const select = (row) => {
    current?.classList.remove("current");
    current = row;
    if (!row) return;
    row.classList.add("current");
    link(row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr.record");
    if (!row || event.target.closest("input") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (String(getSelection()) && !event.target.closest("a")) return;  // text is being selected
    event.preventDefault();
    select(row);
    toggle(row);
  });

  // --- marked records
  const marked = [];
  const mark = (box) => {
    const place = box.dataset.mark;
    if (box.checked) marked.push({ place, box });
    else marked.splice(marked.findIndex((other) => other.place === place), 1);
    while (marked.length > 2) marked.shift().box.checked = false;
    by("compare").disabled = marked.length !== 2;
  };
  body.addEventListener("change", (event) => { if (event.target.matches("[data-mark]")) mark(event.target); });
  const compare = () => {
    if (marked.length !== 2) return;
    const query = new URLSearchParams({ left: marked[0].place, right: marked[1].place, ...formats() });
    location.assign(`${base}/compare?${query}`);
  };
  by("compare").addEventListener("click", compare);
  for (const box of body.querySelectorAll("[data-mark]:checked")) mark(box);

  // --- a search that goes on until the page is full, the end is reached, or it is stopped
  const status = by("status");
  const progress = by("progress");
  const tell = (text) => { by("found").textContent = text; };
  let search = null;
  const goOn = async () => {
    const state = { ...status.dataset };
    let scanned = Number(state.scanned);
    let unusable = Number(state.unusable);
    const total = scanned + Number(state.remaining);
    search = new AbortController();
    by("stop").hidden = progress.hidden = false;
    const started = performance.now();
    const scannedBefore = scanned;
    try {
      while (state.on && state.ended === "time" && rows().length < Number(state.limit)) {
        const url = new URL(state.on, location.href);
        url.searchParams.set("limit", Number(state.limit) - rows().length);
        const page = await pageOf(url.pathname + url.search, search.signal);
        const next = page.getElementById("status").dataset;
        body.append(...[...page.querySelectorAll("#records > tr")].map((row) => document.adoptNode(row)));
        for (const id of ["older", "newer"]) {
          const to = page.getElementById(id);
          if (url.searchParams.has(id === "older" ? "before" : "after")) {
            if (to && by(id)) by(id).href = to.getAttribute("href");
            else if (!to) by(id)?.remove();
          }
        }
        scanned += Number(next.scanned);
        unusable += Number(next.unusable);
        Object.assign(state, { on: next.on, ended: next.ended });
        const rate = (scanned - scannedBefore) / ((performance.now() - started) / 1000);
        progress.max = total;
        progress.value = scanned;
        tell(count(rows().length, "record"));
        by("looked").textContent = `· ${count(scanned, "record")} of ${count(total, "record")} looked at, ` +
          `${Math.round(rate).toLocaleString("en").replaceAll(",", "\u202f")} a second`;
        by("lacking").textContent = unusable ? `· ${count(unusable, "record")} without a field of the filter` : "";
        by("nothing").hidden = rows().length > 0;
        swapped();
      }
      if (!rows().length) by("nothing").textContent = "No record matches.";
    } catch (error) {
      by("looked").textContent += error.name === "AbortError" ? " · stopped" : ` · ${error.message}`;
      if (!rows().length) by("nothing").textContent = "No record matches in what was looked at.";
    }
    by("stop").hidden = progress.hidden = true;
    search = null;
  };
  const stop = () => search?.abort();
  by("stop").addEventListener("click", stop);
  if (status.dataset.ended === "time" && status.dataset.selects) goOn();

  // --- live: what arrives is put on top; at most MOST_ROWS rows
  const MOST_ROWS = 500;
  const live = by("live");
  let source = null;
  let from = "";
  let arrived = 0;
  let skipped = 0;
  const liveRow = (record) => {
    const place = `${record.partition}:${record.offset}`;
    const query = new URLSearchParams(formats());
    const href = `${base}/${record.partition}/${record.offset}${query.size ? `?${query}` : ""}`;
    const when = element("time", { datetime: new Date(record.timestamp).toISOString() }, new Date(record.timestamp).toISOString());
    const value = element("td", { class: "value mono" });
    if (record.state || record.problem) value.append(element("span", { class: "badge" }, record.problem ? "unreadable" : record.state), " ");
    if (!["json", "text", "null"].includes(record.value_format)) value.append(element("span", { class: "badge" }, record.value_format), " ");
    value.append(element("bdi", {}, record.problem || record.value));
    const box = element("input", { type: "checkbox", "aria-label": `Mark offset ${record.offset} of partition ${record.partition}`, "data-mark": place });
    return element("tr", { class: "record new", "data-place": place },
      element("td", { class: "mark" }, box), element("td", { class: "when" }, when),
      element("td", { class: "number where" }, String(record.partition)),
      element("th", { scope: "row", class: "number where" }, element("a", { class: "open", href, "aria-expanded": "false" }, String(record.offset))),
      element("td", { class: "key mono" }, element("bdi", {}, record.key)), value,
      element("td", { class: "number size" }, `${record.size} B`));
  };
  const tellLive = (text) => tell(`${text} ${count(arrived, "record")} arrived${skipped ? `, ${count(skipped, "more record")} skipped` : ""}`);
  const follow = () => {
    stop();
    const query = new URLSearchParams(new FormData(by("criteria")));
    for (const name of ["start", "at", "limit"]) query.delete(name);
    if (from) query.set("after", from);
    else { body.replaceChildren(); select(null); }
    source = new EventSource(`${base}/events?${query}`);
    source.addEventListener("following", (event) => {
      const following = JSON.parse(event.data);
      skipped += from ? following.missed : 0;
      from = following.positions;
      by("looked").textContent = "";
      tellLive("Live:");
    });
    source.addEventListener("records", (event) => {
      const arrival = JSON.parse(event.data);
      arrived += arrival.rows.length + arrival.skipped;
      skipped += arrival.skipped;
      const places = new Map(from.split(",").filter(Boolean).map((place) => place.split(":")));
      for (const record of arrival.rows) {
        body.prepend(liveRow(record));
        places.set(String(record.partition), String(Math.max(record.offset + 1, Number(places.get(String(record.partition)) ?? 0))));
      }
      from = [...places].map((place) => place.join(":")).join(",");
      for (const row of rows().slice(MOST_ROWS)) { close(row); row.remove(); }
      by("nothing").hidden = rows().length > 0;
      swapped();
      tellLive("Live:");
    });
    source.addEventListener("failure", (event) => { pause(); tell(JSON.parse(event.data).text); });
    source.onerror = () => { if (source?.readyState === EventSource.CLOSED) { pause(); tell("The live view ended: load the page again."); } };
    live.setAttribute("aria-pressed", "true");
    live.textContent = "Pause";
    by("nothing").hidden = true;
  };
  const pause = () => {
    source?.close();
    source = null;
    live.setAttribute("aria-pressed", "false");
    live.textContent = "Go on";
    tellLive("Paused:");
  };
  live.addEventListener("click", () => (source ? pause() : follow()));
  addEventListener("pagehide", () => source?.close());

  // --- filters by name, in this browser: the console itself keeps nothing, and an address has the whole filter
  const NAMES = ["partitions", "start", "at", "key", "value", "header", "filter", "since", "until", "key_format", "value_format", "isolation", "control"];
  const kept = () => JSON.parse(localStorage.getItem(`filters ${base}`) ?? "{}");
  const keep = (filters) => localStorage.setItem(`filters ${base}`, JSON.stringify(filters));
  const address = () => {
    const form = new FormData(by("criteria"));
    return new URLSearchParams(NAMES.filter((name) => form.get(name)).map((name) => [name, form.get(name)])).toString();
  };
  const listSaved = () => {
    const filters = kept();
    const options = Object.keys(filters).sort().map((name) => element("option", { value: name }, name));
    by("saved").replaceChildren(element("option", { value: "" }, options.length ? "choose…" : "none yet"), ...options);
    const chosen = Object.keys(filters).find((name) => filters[name] === address());
    by("saved").value = chosen ?? "";
    by("forget").disabled = !chosen;
  };
  by("saved").addEventListener("change", (event) => {
    const filter = kept()[event.target.value];
    if (filter !== undefined) location.assign(`${base}?${filter}`);
  });
  by("save").addEventListener("click", () => by("save-dialog").showModal());
  by("save-form").addEventListener("submit", () => {
    keep({ ...kept(), [by("save-name").value]: address() });
    listSaved();
  });
  by("forget").addEventListener("click", () => {
    const { [by("saved").value]: _, ...others } = kept();
    keep(others);
    listSaved();
  });
  listSaved();

  // --- the field beside "from" is for offset, time and group only; empty fields stay out of the address
  const start = by("criteria").elements.start;
  const showAt = () => { by("criteria").querySelector(".at").hidden = ["newest", "oldest"].includes(start.value); };
  start.addEventListener("change", () => { showAt(); if (!["newest", "oldest"].includes(start.value)) by("criteria").elements.at.focus(); });
  showAt();
  by("criteria").addEventListener("formdata", (event) => {
    const defaults = { start: "newest", key_format: "guess", value_format: "guess", isolation: "read_uncommitted", limit: "50" };
    for (const [name, value] of [...event.formData]) if (!value || value === defaults[name]) event.formData.delete(name);
    if (["newest", "oldest"].includes(start.value)) event.formData.delete("at");
  });

  // --- export: the browser saves the file, this asks for the progress
  const exportForm = by("export-form");
  let exportId = "";
  const progressOf = (stopping) => api(`${base}/export-progress?id=${exportId}${stopping ? "&stop=true" : ""}`);
  const watch = async () => {
    const bar = by("export-progress");
    let unknown = 0;
    for (;;) {
      await new Promise((resolve) => { setTimeout(resolve, 300); });
      const state = await progressOf(false);
      if (!state.is_known && ++unknown < 20) continue;
      bar.hidden = false;
      bar.max = state.total || 1;
      bar.value = state.scanned;
      by("export-text").textContent = `${count(state.records, "record")}, ${count(state.size, "byte")}`;
      if (state.is_done || state.failure || !state.is_known) {
        by("export-text").textContent += state.is_done ? ": done" : `: ${state.failure || "the export did not begin"}`;
        bar.hidden = true;
        break;
      }
    }
    by("export-stop").hidden = true;
    by("export-begin").disabled = false;
  };
  exportForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = new URLSearchParams(new FormData(exportForm));
    const range = exportForm.querySelector("[name=range]:checked");
    query.delete("range");
    if (range.value === "shown") { query.set("after", range.dataset.after); query.set("up_to", range.dataset.upTo); }
    exportId = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    query.set("id", exportId);
    by("export-text").textContent = "Begins…";
    by("export-stop").hidden = false;
    by("export-begin").disabled = true;
    const frame = element("iframe", { hidden: "", title: "download" });
    frame.addEventListener("load", () => {  // a refusal is a page; a download loads nothing
      const refused = frame.contentDocument?.querySelector(".failure")?.textContent ?? frame.contentDocument?.body?.textContent;
      if (refused) by("export-text").textContent = refused;
    });
    frame.src = `${base}/export?${query}`;
    document.body.append(frame);
    await watch().catch((error) => { by("export-text").textContent = error.message; });
  });
  by("export-stop").addEventListener("click", () => progressOf(true));

  // --- keys
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select, dialog[open]")) return;
    const list = rows();
    const at = list.indexOf(current);
    const act = {
      j: () => select(list[Math.min(at + 1, list.length - 1)]),
      k: () => select(list[Math.max(at - 1, 0)]),
      x: () => { const box = current?.querySelector("[data-mark]"); box?.click(); },
      c: compare,
      l: () => live.click(),
      s: stop,
      f: () => by("filter").focus(),
      e: () => by("open-export").click(),
      w: () => by("write").click(),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
