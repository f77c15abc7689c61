// What pages gain from a script: they work without it. No text from the web is ever put in as HTML here.
"use strict";

// The live part of the overview stops while nobody looks, or when told so.
(() => {
  const button = document.querySelector("[data-pause]");
  let paused = false;
  if (button) {
    button.hidden = !window.htmx;
    button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
    });
  }
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const polled = event.target.hasAttribute("data-live");
    if (polled && (paused || document.hidden)) event.preventDefault();
  });
})();

// News come as events, where the service sends them; else the part is asked for every few seconds.
(() => {
  const part = document.querySelector("[data-events]");
  if (!part || !window.htmx || !window.EventSource) return;
  let waiting = false;
  const tell = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; window.htmx.trigger(part, "news"); }, 1000);
  };
  const source = new EventSource(part.dataset.events);
  for (const kind of ["version", "state", "rates"]) source.addEventListener(kind, tell);
  addEventListener("pagehide", () => source.close());
})();

// The menu is one row on a phone: the page that is open is in sight.
(() => {
  const here = document.querySelector("header nav [aria-current]");
  if (here) here.closest("ul").scrollLeft = here.offsetLeft - 80;
})();

// A file of seeds is read here, so that they can be looked at before they are sent.
(() => {
  const input = document.querySelector("input[data-into]");
  if (!input) return;
  input.closest("[data-upload]").hidden = false;
  input.addEventListener("change", async () => {
    const into = document.getElementById(input.dataset.into);
    if (input.files.length) into.value = await input.files[0].text();
  });
})();

// Two versions are chosen with radio buttons; a version is not compared with itself.
(() => {
  const form = document.querySelector("form[data-compare]");
  if (!form) return;
  form.addEventListener("submit", (event) => {
    const chosen = (name) => form.querySelector(`input[name="${name}"]:checked`);
    const [a, b] = [chosen("a"), chosen("b")];
    if (!a || !b || a.value === b.value) {
      event.preventDefault();
      form.querySelector("[data-told]").hidden = false;
    }
  });
})();
