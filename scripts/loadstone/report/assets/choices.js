/* loadstone.choices(page, changed): what the reader has chosen, kept in the address.
 *
 * Every choice is a step of the browser's history; an address that is opened, copied or gone back to restores what was
 * chosen. What an address says that the page does not know is ignored. changed(names) hears of every change.
 */
window.loadstone = window.loadstone || {};
window.loadstone.choices = function choices(page, changed) {
  "use strict";

  const variants = page.variants.map((variant) => variant.name);
  // Without a choice of axes, the latencies decide.
  const DEFAULTS = {
    stat: page.statistic, axes: "", rate: page.rate, scale: "linear", of: "counting", variant: variants[0] || "", run: "", hide: [],
    part: page.resources ? page.resources.part : "", ...page.chosen,
  };
  const ALLOWED = {
    stat: Object.keys(page.statistics), axes: ["linear", "log", "lin-log"], scale: ["linear", "log"],
    of: page.with_excluded ? ["counting", "all"] : ["counting"], part: page.resources ? Object.keys(page.resources.parts) : [],
    rate: page.rates, variant: variants, ...page.choices,
  };
  let state = fromAddress();

  function fromAddress() {
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

  function follow(chosen) {
    const names = Object.keys(chosen).filter((name) => String(state[name]) !== String(chosen[name]));
    state = { ...state, ...chosen };
    if (names.length) changed(names);
  }

  // An address without "=" is that of a place in the page, which chooses nothing.
  addEventListener("hashchange", () => {
    if (location.hash === "" || location.hash.includes("=")) follow(fromAddress());
  });

  return {
    state: () => state,
    has: (name) => name in DEFAULTS,
    choose(chosen) {
      follow(chosen);
      if (location.hash !== address() && (location.hash || address() !== "#")) history.pushState(null, "", address());
    },
  };
};
