/* loadstone.inspector(page, choices): the run inspector, and the data of a rate, loaded when the rate is chosen.
 *
 * The data of each rate are a separate script that calls loadstone.receive, because a page opened from a file can load
 * scripts but cannot read files. An address with run= scrolls to the run inspector.
 */
window.loadstone = window.loadstone || {};
window.loadstone.inspector = function inspector(page, choices) {
  "use strict";

  const { element, unbroken, count, percent, significant } = loadstone;
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

  // The run's number; with its folder if two folders of the variant have a run of this number.
  function key(run) {
    const sameNumber = rate().runs.filter((other) => other.variant === run.variant && other.run === run.run);
    return sameNumber.length > 1 ? `${run.run}@${run.folder}` : String(run.run);
  }

  const runs = () => (rate() ? rate().runs.filter((run) => run.variant === state().variant) : []);
  const run = () => runs().find((each) => key(each) === state().run) || runs()[0];

  function remarks(other) {
    const found = [other.shape && other.shape.unsettled && other.shape.name, other.sending && other.sending.limited && "sent late", other.exclusion_reason && "excluded"];
    const text = found.filter(Boolean).join(", ");
    return text && ` (${text})`;
  }

  function show(latency) {
    const select = document.querySelector("select[name=run]"), chosen = run();
    if (!select) return; // no run has single requests
    select.replaceChildren(...runs().map((other) => element("option", {
      value: key(other), textContent: `Run ${key(other)}${remarks(other)}`,
    })));
    select.disabled = !chosen;
    if (chosen) select.value = key(chosen);
    const position = page.variants.findIndex((variant) => variant.name === state().variant), variant = page.variants[position];
    const where = `${variant ? variant.label : "any variant"} at ${count(Number(state().rate))} ${page.load_unit}`;
    document.getElementById("run-name").textContent = unbroken(chosen ? `Run ${key(chosen)} of ${where}` : `No run of ${where} has requests to show`);
    const note = document.getElementById("excluded-run");
    note.hidden = !(chosen && chosen.exclusion_reason);
    note.textContent = chosen && chosen.exclusion_reason ? `This run is excluded from every statistic: ${chosen.exclusion_reason}.` : "";
    const { figures } = chosen || {};
    const atLeast = (name) => (chosen.at_least.includes(name) ? "at least " : "");
    const figure = (name) => (figures[name] === undefined ? `not estimable: needs ${count(rate().needs[name])} requests` : `${atLeast(name)}${latency(figures[name])}`);
    const facts = chosen ? [
      ["Requests", count(chosen.requests)], ["Success", chosen.success === null ? "not reported" : percent(chosen.success * 100)],
      ...Object.entries(rate().figures).map(([name, label]) => [label, figure(name)]),
    ] : [];
    document.getElementById("run-figures").replaceChildren(...facts.map(([term, text]) => (
      element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: text })))));
    showShape(chosen);
    showSending(chosen, latency);
    if (variant) document.documentElement.style.setProperty("--run", `var(--variant-${position})`);
  }

  // --- Shape of the run, and its send lag (loadstone/report/run_findings.py) -------------------------------------------

  const NAMES = ["Mean", "Median", "p90", "p99", "p99.9"];

  function showShape(run) {
    const place = document.getElementById("run-shape"), shape = run && run.shape;
    place.hidden = !shape;
    place.className = shape && shape.unsettled ? "notice" : "";
    place.textContent = unbroken(shape ? `Shape: ${shape.text}.${shape.unsettled ? " Its mean is not that of a steady state." : ""}` : "");
  }

  function sendingFacts({ requested, achieved, lag, limit, limited }, latency) {
    const facts = [
      ["Requested (requests/s)", count(requested)], ["Achieved (requests/s)", significant(achieved)], ["Send lag, median", latency(lag[0])],
      ["Send lag, p99", latency(lag[1])], ["Send lag, maximum", latency(lag[2])], ["Limit for p99", `${latency(limit)}${limited ? ": exceeded" : ""}`],
    ];
    return element("dl", { className: "figures" }, ...facts.map(([term, text]) => (
      element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: text })))));
  }

  function latencies({ observed, corrected }, latency) {
    const row = (heading, values) => element("tr", {}, element("th", { scope: "row", textContent: heading }),
      ...values.map((value) => element("td", { className: "n", textContent: value === null ? "not estimable" : latency(value) })));
    const head = element("tr", {}, element("th", { scope: "col", textContent: "Latency" }),
      ...NAMES.map((name) => element("th", { scope: "col", className: "n", textContent: name })));
    const box = element("div", { className: "scroll", tabIndex: 0, role: "region" }, element("table", {}, element("thead", {}, head),
      element("tbody", {}, row("Since sent (as observed)", observed), row("Since due (lag-corrected)", corrected))));
    box.setAttribute("aria-label", "Table: Latency since requests were sent, and since they were due");
    return box;
  }

  function showSending(run, latency) {
    const place = document.getElementById("run-sending"), sending = run && run.sending;
    if (!sending) place.replaceChildren();
    else if (sending.refused) place.replaceChildren(element("p", { className: "small", textContent: `The send lag is unknown: ${sending.refused}.` }));
    else {
      place.replaceChildren(element("h4", { textContent: "Send lag" }), sendingFacts(sending, latency), latencies(sending, latency));
    }
  }

  /** Scroll to the inspector if the address names a run. */
  function scrollToRun() {
    const heading = document.getElementById("inspector");
    if (heading && new URLSearchParams(location.hash.slice(1)).has("run")) heading.scrollIntoView();
  }

  return { load, rate, run, show, scrollToRun };
};
