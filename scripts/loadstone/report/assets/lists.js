/* Finds entries of a page's lists. A form with data-filter, whose fields are
 *   find      words that an entry's text must all hold
 *   a select  an entry's data-* attribute of the same name must have this value
 *   a box     an entry must have that data-* attribute at all
 * Entries are the elements with data-entry; one with data-older shows only when something is looked for. What is looked
 * for is kept in the address; an address with ?find= works too, which is what the form gives where no script runs.
 */
"use strict";

(function () {
  const form = document.querySelector("form[data-filter]");
  if (!form) return;
  const fields = [...form.elements].filter((field) => field.name);
  const entries = [...document.querySelectorAll("[data-entry]")].map((place) => ({ place, text: place.textContent.toLowerCase() }));
  const status = document.getElementById("found");
  const value = (field) => (field.type === "checkbox" ? (field.checked ? "1" : "") : field.value.trim());

  function fits({ place, text }) {
    return fields.every((field) => {
      const wanted = value(field), own = place.dataset[field.name];
      if (!wanted) return true;
      if (field.name === "find") return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
      return field.type === "checkbox" ? own !== undefined : own === wanted;
    });
  }

  function show() {
    const looking = fields.some(value);
    let found = 0;
    entries.forEach((entry) => {
      const shown = looking ? fits(entry) : entry.place.dataset.older === undefined;
      entry.place.hidden = !shown;
      if (shown) found += 1;
    });
    // A list of which nothing is left would be a heading over nothing.
    document.querySelectorAll("[data-list]").forEach((list) => {
      list.hidden = looking && !list.querySelector("[data-entry]:not([hidden])");
    });
    status.textContent = looking ? `${found.toLocaleString("en-GB")} found` : "";
  }

  function fromAddress() {
    const given = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : location.search);
    fields.forEach((field) => {
      const wanted = given.get(field.name) || "";
      if (field.type === "checkbox") field.checked = wanted === "1";
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === wanted)) field.value = wanted;
    });
    show();
  }

  function toAddress(step) {
    const parameters = new URLSearchParams();
    fields.forEach((field) => { if (value(field)) parameters.set(field.name, value(field)); });
    const hash = `#${parameters}`;
    if (hash !== (location.hash || "#")) history[step](null, "", hash);
  }

  // A letter is no step of the browser's history; what one has looked for is.
  let typing = false;
  form.addEventListener("input", ({ target }) => {
    show();
    toAddress(typing ? "replaceState" : "pushState");
    typing = target.type === "search";
  });
  form.addEventListener("change", () => { typing = false; });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    if (location.hash === "" || location.hash.includes("=")) fromAddress();
  });
  fromAddress();
})();
