/* Filters the lists of a page. The fields of the form with data-filter:
 *   find      all its words must be in the entry's text
 *   select    the entry's data-* attribute of that name must have this value
 *   checkbox  the entry must have a data-* attribute of that name
 * Entries are elements with data-entry; data-text has further words to find them by. Those with data-older are hidden
 * unless a filter is set. The filter is kept in the fragment of the address. ?find= works too: the form sends it if
 * JavaScript is disabled.
 */
"use strict";

(function () {
  const form = document.querySelector("form[data-filter]");
  if (!form) return;
  const fields = [...form.elements].filter((field) => field.name);
  const entries = [...document.querySelectorAll("[data-entry]")].map((place) => ({ place, text: `${place.textContent} ${place.dataset.text || ""}`.toLowerCase() }));
  const status = document.getElementById("found");
  const value = (field) => (field.type === "checkbox" ? (field.checked ? "1" : "") : field.value.trim());

  function matches({ place, text }) {
    return fields.every((field) => {
      const wanted = value(field), own = place.dataset[field.name];
      if (!wanted) return true;
      if (field.name === "find") return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
      return field.type === "checkbox" ? own !== undefined : own === wanted;
    });
  }

  function show() {
    const filtered = fields.some(value);
    let found = 0;
    entries.forEach((entry) => {
      const shown = filtered ? matches(entry) : entry.place.dataset.older === undefined;
      entry.place.hidden = !shown;
      if (shown) found += 1;
    });
    // Hide the heading of a list without matches.
    document.querySelectorAll("[data-list]").forEach((list) => {
      list.hidden = filtered && !list.querySelector("[data-entry]:not([hidden])");
    });
    status.textContent = filtered ? `${found.toLocaleString("en-GB")} found` : "";
  }

  function readAddress() {
    const given = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : location.search);
    fields.forEach((field) => {
      const wanted = given.get(field.name) || "";
      if (field.type === "checkbox") field.checked = wanted === "1";
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === wanted)) field.value = wanted;
    });
    show();
  }

  function writeAddress(method) {
    const parameters = new URLSearchParams();
    fields.forEach((field) => { if (value(field)) parameters.set(field.name, value(field)); });
    const hash = `#${parameters}`;
    if (hash !== (location.hash || "#")) history[method](null, "", hash);
  }

  // A search is one entry of the browser's history, not one per letter.
  let typing = false;
  form.addEventListener("input", ({ target }) => {
    show();
    writeAddress(typing ? "replaceState" : "pushState");
    typing = target.type === "search";
  });
  form.addEventListener("change", () => { typing = false; });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    if (location.hash === "" || location.hash.includes("=")) readAddress();
  });
  readAddress();
})();
