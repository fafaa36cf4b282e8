/* loadstone.inspector(page, choices): what one rate needs, loaded when it is chosen, and the single run that is looked at.
 *
 * The data of a rate are a script of their own, which calls loadstone.receive: a page opened from a file may load scripts
 * but not read files. An address with run= leads to that run.
 */
window.loadstone = window.loadstone || {};
window.loadstone.inspector = function inspector(page, choices) {
  "use strict";

  const { element, count, percent } = loadstone;
  const received = new Map(), pending = new Map();
  const state = () => choices.state();
  const rate = () => received.get(state().rate);

  loadstone.receive = (name, content) => received.set(name, content);

  function load(name) {
    if (received.has(name)) return Promise.resolve();
    if (!pending.has(name)) {
      pending.set(name, new Promise((resolve, reject) => {
        const source = `${encodeURIComponent(page.folder)}/${encodeURIComponent(name)}.js`;
        const script = element("script", { src: source, onload: resolve });
        script.onerror = () => { pending.delete(name); reject(new Error(`${source} could not be loaded`)); };
        document.head.append(script);
      }));
    }
    return pending.get(name);
  }

  function key(run) {
    const twins = rate().runs.filter((other) => other.variant === run.variant && other.run === run.run);
    return twins.length > 1 ? `${run.run}@${run.folder}` : String(run.run);
  }

  const runs = () => (rate() ? rate().runs.filter((run) => run.variant === state().variant) : []);
  const run = () => runs().find((each) => key(each) === state().run) || runs()[0];

  function mark(other) {
    const marks = [other.shape && other.shape.unsettled && other.shape.name, other.sending && other.sending.limited && "sent late", other.left_out && "left out"];
    const found = marks.filter(Boolean).join(", ");
    return found && ` (${found})`;
  }

  function show(latency) {
    const select = document.querySelector("select[name=run]"), chosen = run();
    if (!select) return; // no run left requests
    select.replaceChildren(...runs().map((other) => element("option", {
      value: key(other), textContent: `Run ${key(other)}${mark(other)}`,
    })));
    select.disabled = !chosen;
    if (chosen) select.value = key(chosen);
    const position = page.variants.findIndex((variant) => variant.name === state().variant), variant = page.variants[position];
    const where = `${variant ? variant.label : "any variant"} at ${count(Number(state().rate))} ${page.load_unit}`;
    document.getElementById("run-name").textContent = chosen ? `Run ${key(chosen)} of ${where}` : `No run of ${where} has requests to show`;
    const note = document.getElementById("left-out");
    note.hidden = !(chosen && chosen.left_out);
    note.textContent = chosen && chosen.left_out ? `This run is left out of every statistic: ${chosen.left_out}.` : "";
    const { figures } = chosen || {};
    const figure = (name) => (figures[name] === undefined ? `not estimable: takes ${count(rate().needs[name])} requests` : latency(figures[name]));
    const told = chosen ? [
      ["Requests", count(chosen.requests)], ["Success", chosen.success === null ? "not told" : percent(chosen.success * 100)],
      ["Mean", figure("mean")], ["Minimum", figure("min")], ["Median", figure("p50")], ["p90", figure("p90")],
      ["p95", figure("p95")], ["p99", figure("p99")], ["p99.9", figure("p999")], ["Maximum", figure("max")],
    ] : [];
    document.getElementById("run-figures").replaceChildren(...told.map(([term, text]) => (
      element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: text })))));
    loadstone.runFindings(chosen, latency);
    if (variant) document.documentElement.style.setProperty("--run", `var(--variant-${position})`);
  }

  /** Lead to the run that the address names. */
  function lead() {
    const heading = document.getElementById("inspector");
    if (heading && new URLSearchParams(location.hash.slice(1)).has("run")) heading.scrollIntoView();
  }

  return { load, rate, run, show, lead };
};
