/* loadstone.choices(page, changed): the reader's choices, kept in the fragment of the page's address.
 *
 * Every choice is an entry of the browser's history. Opening an address, or going back to it, restores its choices.
 * Unknown names and values are ignored. changed(names) is called with the names of the choices that changed.
 */
window.loadstone = window.loadstone || {};
window.loadstone.choices = function choices(page, changed) {
  "use strict";

  const variants = page.variants.map((variant) => variant.name);
  // An empty choice of axes: figures.js selects them by the latencies.
  const DEFAULTS = {
    stat: page.statistic, axes: "", rate: page.rate, scale: "linear", of: "valid", variant: variants[0] || "", run: "", hide: [],
    part: page.resources ? page.resources.part : "", ...page.chosen,
  };
  const ALLOWED = {
    stat: Object.keys(page.statistics), axes: ["linear", "log", "lin-log"], scale: ["linear", "log"],
    of: page.with_excluded ? ["valid", "all"] : ["valid"], part: page.resources ? Object.keys(page.resources.parts) : [],
    rate: page.rates, variant: variants, ...page.choices,
  };
  let state = readAddress();

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const chosen = { ...DEFAULTS };
    for (const [name, allowed] of Object.entries(ALLOWED)) {
      if (allowed.includes(given.get(name))) chosen[name] = given.get(name);
    }
    chosen.run = given.get("run") || "";
    chosen.hide = given.getAll("hide").filter((name) => variants.includes(name));
    return chosen;
  }

  function address() {
    const parameters = new URLSearchParams();
    for (const name of [...Object.keys(ALLOWED), "run"]) {
      if (state[name] !== DEFAULTS[name]) parameters.set(name, state[name]);
    }
    state.hide.forEach((name) => parameters.append("hide", name));
    return `#${parameters}`;
  }

  function apply(chosen) {
    const names = Object.keys(chosen).filter((name) => String(state[name]) !== String(chosen[name]));
    state = { ...state, ...chosen };
    if (names.length) changed(names);
  }

  // A fragment without "=" is the id of a section and contains no choices.
  addEventListener("hashchange", () => {
    if (location.hash === "" || location.hash.includes("=")) apply(readAddress());
  });

  return {
    state: () => state,
    has: (name) => name in DEFAULTS,
    choose(chosen) {
      apply(chosen);
      if (location.hash !== address() && (location.hash || address() !== "#")) history.pushState(null, "", address());
    },
  };
};
