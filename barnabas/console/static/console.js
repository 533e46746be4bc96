// What pages do beyond HTML: theme, dialogs, shortcuts, times in the reader's zone. Everything works on attributes
// (data-open, data-open-next, data-close, data-toggle, data-theme-toggle, data-search, data-copy), also on what htmx swaps in.
"use strict";
(() => {
  const root = document.documentElement;

  // --- theme: the system's, until the reader chooses
  const chosen = () => localStorage.getItem("theme");
  const applyTheme = () => { if (chosen()) root.dataset.theme = chosen(); };
  const switchTheme = () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    localStorage.setItem("theme", isDark ? "light" : "dark");
    applyTheme();
    document.dispatchEvent(new Event("theme"));
  };
  applyTheme();

  // --- clicks
  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    let element;
    if ((element = at("[data-open-next]"))) element.nextElementSibling.showModal();
    else if ((element = at("[data-open]"))) document.getElementById(element.dataset.open)?.showModal();
    else if ((element = at("[data-close]"))) element.closest("dialog").close();
    else if (at("[data-theme-toggle]")) switchTheme();
    else if ((element = at("[data-toggle]"))) {
      const isOpen = document.getElementById(element.dataset.toggle).classList.toggle("open");
      element.setAttribute("aria-expanded", String(isOpen));
    } else if ((element = at("[data-copy]"))) {
      const text = document.getElementById(element.dataset.copy).textContent;
      navigator.clipboard.writeText(text).then(() => say(element, "Copied"), () => say(element, "Not copied"));
    }
  });
  const say = (button, text) => {
    const before = button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 1500);
  };

  // --- keys
  let afterG = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
    const follow = (selector) => document.querySelector(selector)?.click();
    const key = event.key;
    if (afterG) {
      afterG = false;
      event.stopImmediatePropagation();  // the letter is no shortcut of the screen
      document.querySelector(`#navigation a[data-key="${CSS.escape(key)}"]`)?.click();
    } else if (key === "g") afterG = true;
    else if (key === "/") { event.preventDefault(); document.querySelector("[data-search]")?.focus(); }
    else if (key === "n") follow("[rel=next]");
    else if (key === "p") follow("[rel=prev]");
    else if (key === "t") switchTheme();
    else if (key === "?") document.getElementById("shortcuts").showModal();
  });

  // --- times
  const localTimes = (within) => {
    for (const time of within.querySelectorAll("time[datetime]:not([title])")) {
      const when = new Date(time.dateTime);
      if (Number.isNaN(when.getTime())) continue;
      time.title = time.textContent;
      const two = (number) => String(number).padStart(2, "0");
      time.textContent = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ` +
        `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}` +
        `.${String(when.getMilliseconds()).padStart(3, "0")}`;
    }
  };
  document.addEventListener("DOMContentLoaded", () => localTimes(document));
  document.addEventListener("htmx:after:swap", () => localTimes(document));
})();
