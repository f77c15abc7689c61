// Puts Yasgui in the place of the plain form, which stays for those without scripts.
"use strict";

(() => {
  const place = document.getElementById("yasgui");
  const form = document.getElementById("plain-query");
  if (!place || !form || !window.Yasgui) return;
  const text = form.querySelector("textarea");
  place.hidden = false; // before the editor is made: it measures its place
  // Completion by prefix.cc and by a vocabulary service would tell strangers what is typed here.
  window.Yasgui.Yasqe.defaults.autocompleters = ["variables"];
  // The service knows the usual prefixes: what is not declared here is no fault.
  window.Yasgui.Yasqe.defaults.syntaxErrorCheck = false;
  // Whole values: shortened to the width of their columns, some would be nothing but dots.
  window.Yasgui.Yasr.defaults.plugins.table.dynamicConfig = { isEllipsed: false };
  const yasgui = new window.Yasgui(place, {
    requestConfig: { endpoint: new URL("/sparql", location.href).href, method: "POST" },
    endpointCatalogueOptions: { getData: () => [] },
    copyEndpointOnNewTab: true,
    persistenceId: null,
    autofocus: false,
  });
  const tab = () => yasgui.getTab();
  tab().setQuery(text.value);
  text.closest("[data-typed]").hidden = true;
  form.querySelector('button[value="answer"]').hidden = true;
  place.querySelector(".CodeMirror textarea").setAttribute("aria-label", "SPARQL query");
  // What Yasgui makes without a name gets one when it appears.
  new MutationObserver(() => {
    const sizer = place.querySelector("select.tableSizer:not([aria-label])");
    if (sizer) sizer.setAttribute("aria-label", "Rows on a page");
  }).observe(place, { childList: true, subtree: true });
  // The files are those of what is written in Yasgui now.
  form.addEventListener("submit", () => { text.value = tab().getYasqe().getValue(); });
  for (const link of document.querySelectorAll("a[data-query]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      tab().setQuery(link.closest("[data-example]").querySelector("pre").textContent);
      place.scrollIntoView({ block: "start" });
    });
  }
})();
