/* The page compare.html: the reader picks two series and a statistic, and sees their difference with its interval.
 *
 * Series and replicates (loadstone/report/series_data.py) are scripts that call loadstone.receive, loaded when a campaign
 * or comparison is chosen, so the page also works from a file. The choices are kept in the fragment of the page's
 * address: a, av, al are folder, variant and load of A, b, bv, bl those of B. Text from the archive only becomes
 * textContent.
 */
window.loadstone = window.loadstone || {};
(function () {
  "use strict";

  const page = JSON.parse(document.getElementById("page-data").textContent);
  const { element, unbroken, significant, inSteps, count } = loadstone;
  const [form, status, result, sentence, figures, notes] = ["compare", "status", "result", "sentence", "figures", "notes"].map((id) => document.getElementById(id));
  const COARSE_NS = 100000; // of a clock: as in loadstone/report/numbers.py
  const folders = page.sources.map(([folder]) => folder);
  const received = new Map(), loading = new Map();
  let nth = 0;

  // --- Loading -------------------------------------------------------------------------------------------------------------

  window.loadstone.receive = (name, content) => received.set(name, content);

  function load(name) {
    if (!loading.has(name)) {
      loading.set(name, new Promise((done, failed) => {
        const script = element("script", { src: `${name}.js` });
        script.onload = () => { script.remove(); done(received.get(name)); };
        script.onerror = () => { script.remove(); loading.delete(name); failed(new Error(`${name}.js could not be loaded: is this site complete?`)); };
        document.head.append(script);
      }));
    }
    return loading.get(name);
  }

  /** The replicates of one series: single-precision numbers, first those with runs and blocks drawn, then of blocks alone. */
  async function replicates({ of, drawn }, at) {
    const bytes = Uint8Array.from(atob(drawn), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const all = new Float32Array(await new Response(stream).arrayBuffer()), length = all.length / of.length / 2, from = of.indexOf(at) * 2 * length;
    return { draws: all.slice(from, from + length), within: all.slice(from + length, from + 2 * length) };
  }

  // --- Choices, kept in the address ------------------------------------------------------------------------------------------

  const field = (name) => form.elements[name];
  const given = () => new URLSearchParams(location.hash.slice(1));

  function fill(select, options, wanted) {
    const values = options.map(([value]) => value);
    select.replaceChildren(...options.map(([value, text]) => element("option", { value, textContent: text })));
    select.value = values.includes(wanted) ? wanted : values[0];
  }

  /** Fill in variants and loads of a side, keep what is `wanted` where it exists, and return its series. */
  function choose(side, about, wanted, position) {
    const folder = field(side).value;
    const variants = [...new Map(about.series.map((each) => [each.variant, each.label]))];
    const first = variants[Math.min(position, variants.length - 1)];
    const known = variants.some(([name]) => name === wanted.variant) ? wanted.variant : first && first[0];
    fill(field(`${side}v`), variants, known);
    const loads = about.series.filter((each) => each.variant === known).map((each) => [each.rate, each.load]);
    fill(field(`${side}l`), loads, wanted.load ?? (loads[Math.floor(loads.length / 2)] || [])[0]);
    const at = about.series.findIndex((each) => each.variant === known && each.rate === field(`${side}l`).value);
    return { folder, about, at, ...about.series[at], source: page.sources[folders.indexOf(folder)][1] };
  }

  function writeAddress(method) {
    const chosen = new URLSearchParams(["a", "av", "al", "b", "bv", "bl", "stat"].map((name) => [name, field(name).value]));
    if (location.hash !== `#${chosen}`) history[method](null, "", `#${chosen}`);
  }

  async function show(parameters, method) {
    const mine = nth += 1;
    result.setAttribute("aria-busy", "true");
    status.textContent = "Loading …";
    try {
      const wanted = (side) => ({ variant: parameters.get(`${side}v`), load: parameters.get(`${side}l`) });
      const about = await Promise.all(["a", "b"].map((side) => load(`${field(side).value}/series`)));
      if (mine !== nth) return;
      const one = choose("a", about[0], wanted("a"), 0);
      const other = choose("b", about[1], { variant: wanted("b").variant, load: wanted("b").load || one.rate }, 1);
      const known = (name) => [one, other].every((side) => side.at >= 0 && side.figures[name]);
      if (!parameters.has("stat")) field("stat").value = [page.statistic, ...Object.keys(page.statistics)].find(known) || page.statistic;
      const found = await compare(one, other, field("stat").value);
      if (mine !== nth) return;
      status.textContent = "";
      present(found);
      if (method) writeAddress(method);
    } catch (error) {
      if (mine !== nth) return;
      status.textContent = error.message;
      result.hidden = true;
    }
    result.removeAttribute("aria-busy");
  }

  // --- Why two series are not compared -----------------------------------------------------------------------------------------

  const named = (side) => `${side.label} at ${side.load}`;
  const differ = (one, other) => JSON.stringify(one) !== JSON.stringify(other);
  const unasked = (what, one, other, allow) => `their runs are of different ${what} (${one} and ${other}), which only a declared comparison with allow: [${allow}] compares`;

  function refusal(one, other) {
    for (const side of [one, other]) {
      if (side.about.refusals.length) return `${side.source} has no figures: ${side.about.refusals.join("; ")}`;
      if (side.at < 0) return `${side.source} has no series`;
      if (side.why) return `${named(side)}: ${side.why}`;
    }
    if (one.folder === other.folder && one.at === other.at) return "A and B are the same series";
    if (one.about.app !== other.about.app) return `they are of different applications (${one.about.app} and ${other.about.app})`;
    if (one.evidence !== other.evidence) return page.reasons.evidence_differs;
    if (one.load_model !== other.load_model) return unasked("load models", one.load_model, other.load_model, "load_models");
    if (differ(one.measured, other.measured)) return unasked("load generators", one.generator, other.generator, "generators");
    if (new Set([...one.protocols, ...other.protocols]).size > 1) return page.reasons.protocols_differ;
    if (one.folder !== other.folder && differ(one.hosts, other.hosts)) return unasked("hosts", one.hosts.join(", "), other.hosts.join(", "), "hosts");
    return null;
  }

  /** Why figures that are known have no interval for their difference. */
  function whyNoInterval(one, other, statistic) {
    const values = [one, other].map((side) => side.figures[statistic][0]), isShare = statistic === "error_fraction";
    if (isShare && values.every((value) => value === 0)) return page.reasons.no_failures;
    if (isShare && values.every((value) => value === 1)) return page.reasons.only_failures;
    const single = [one, other].find((side) => side.runs < 2);
    if (single) return `${named(single)} has ${page.reasons.one_run}`;
    if (one.evidence === "reports") return page.reasons.only_reports;
    return [one, other].map((side) => side.missing[statistic]).find(Boolean) || page.reasons.zero_latency;
  }

  // --- The comparison --------------------------------------------------------------------------------------------------------

  async function compare(one, other, statistic) {
    const sides = [one, other], why = refusal(one, other);
    if (why) return { sides, statistic, why };
    const unknown = sides.find((side) => !side.figures[statistic]);
    if (unknown) return { sides, statistic, why: unknown.missing[statistic] || `${named(unknown)} has no such figure` };
    const values = sides.map((side) => side.figures[statistic][0]), found = { sides, statistic, values };
    const data = await Promise.all(sides.map((side) => (side.about.statistics.includes(statistic) ? load(`${side.folder}/series-${statistic}`) : null)));
    const isShare = statistic === "error_fraction";
    const hasNone = isShare && values[0] === values[1] && (values[0] === 0 || values[0] === 1);
    if (hasNone || !sides.every((side, at) => data[at] && data[at].of.includes(side.at) && side.runs > 1)) {
      return { ...found, whyNot: whyNoInterval(one, other, statistic) };
    }
    // Where the tables have the pair the other way round, so is the computation, and its result is turned.
    const pooled = (before, after) => one.folder === other.folder && data[0].pooled.find((pair) => pair[0] === before.at && pair[1] === after.at);
    const turned = Boolean(pooled(other, one)), pair = pooled(one, other) || pooled(other, one);
    const paired = Boolean(one.blocks) && one.blocks === other.blocks && one.rate === other.rate;
    const input = await Promise.all(sides.map(async (side, at) => (
      { value: values[at], requests: side.requests, runs: side.runs, ...await replicates(data[at], side.at) }
    )));
    const interval = loadstone.contrast(...(turned ? input.reverse() : input), {
      confidence: one.about.confidence, paired, isShare, step: Math.max(one.resolution, other.resolution),
      pooled: pair ? { oneRun: pair[2], freedom: pair[3] } : null,
    });
    if (!interval) return { ...found, whyNot: whyNoInterval(one, other, statistic) };
    const turn = (bounds, how) => bounds && (turned ? bounds.map(how).reverse() : bounds);
    return { ...found, paired, pooled: Boolean(pair), shift: turn(interval.shift, (each) => -each), ratio: turn(interval.ratio, (each) => 1 / each) };
  }

  // --- Numbers as text, as in the tables of verdicts (loadstone/report/conclusions.py and numbers.py) ------------------------------

  function latencyIn({ unit: [, length], step }) {
    return (value) => {
      if (!step) return significant(value / length);
      const digits = { minimumFractionDigits: step[1], maximumFractionDigits: step[1] };
      return inSteps(value / length, step[0]).toLocaleString("en-GB", digits).replace("-", "−");
    };
  }

  function share(value) {
    if (value > 0 && value < 1e-6) return "< 0.0001 %";
    if (value >= 0.9995 && value < 1) return `${(Math.floor(value * 1e6) / 1e4).toFixed(4).replace(/0+$/, "")} %`;
    const text = significant(value * 100);
    return `${text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text} %`;
  }

  const points = (value) => `${significant(100 * value)} points`;
  const range = (bounds, text) => (bounds && bounds[0] !== null ? `[${text(bounds[0])}, ${text(bounds[1])}]` : "–");

  // --- The result -------------------------------------------------------------------------------------------------------------

  function present(found) {
    result.hidden = false;
    const { sides: [one, other], statistic, values } = found, name = page.statistics[statistic];
    figures.parentElement.hidden = !values;
    notes.replaceChildren();
    const note = (text) => notes.append(element("li", { textContent: text }));
    result.classList.toggle("refused", Boolean(found.why));
    if (found.why) {
      sentence.textContent = unbroken(`Not compared: ${found.why}.`);
      return;
    }
    const isShare = statistic === "error_fraction", unit = one.about.unit[0], confidence = share(one.about.confidence);
    const coarse = one.about.step && other.about.step && (one.about.step[0] < other.about.step[0] ? other : one).about.step;
    const latency = latencyIn({ unit: one.about.unit, step: coarse });
    const text = isShare ? share : latency, difference = isShare ? points : latency;
    const full = (value) => (isShare ? text(value) : `${text(value)} ${unit}`), change = values[1] - values[0];
    const ratio = values[0] ? significant(values[1] / values[0]) : "–";
    const by = `${isShare ? points(Math.abs(change)) : full(Math.abs(change))} ${change < 0 ? "less" : "more"} than`;
    const what = `${one.evidence === "reports" ? "reported " : ""}${name[0].toLowerCase()}${name.slice(1)}`;
    const oneLoad = one.load === other.load, called = (side) => (oneLoad ? side.label : named(side));
    sentence.textContent = unbroken(`${oneLoad ? `At ${one.load}, the` : "The"} ${what} of B (${called(other)}) is ${full(values[1])}, `
      + `${!isShare && values[0] ? `${ratio} times` : by} the ${full(values[0])} of A (${called(one)}), `
      + (found.whyNot ? `without an interval: ${found.whyNot}.` : `with a ${confidence} interval ${isShare ? range(found.shift, points) : range(found.ratio, significant)}.`));
    const rows = [[`A: ${named(one)}`, one.source, one], [`B: ${named(other)}`, other.source, other]].map(([label, source, side]) => {
      const [value, ...ends] = side.figures[statistic];
      return { label, source, value: full(value), interval: range(ends, text), runs: count(side.runs) };
    });
    rows.push({ label: "Difference, B\u00a0−\u00a0A", source: "", value: isShare ? points(change) : full(change), interval: range(found.shift, difference), runs: "" });
    rows.push({ label: "Ratio, B\u00a0/\u00a0A", source: "", value: ratio, interval: range(found.ratio, significant), runs: "" });
    figures.tHead.rows[0].cells[2].textContent = `${confidence} interval`;
    figures.tBodies[0].replaceChildren(...rows.map((row) => element("tr", {},
      element("th", { scope: "row" }, row.label, ...(row.source ? [element("span", { className: "interval", textContent: row.source })] : [])),
      ...["value", "interval", "runs"].map((column) => element("td", { className: "n", textContent: row[column] })))));
    for (const [letter, side] of [["A", one], ["B", other]]) {
      const caveats = isShare ? side.caveats_of_failures : side.caveats;
      if (!caveats.length) continue;
      const details = element("a", { href: `${side.folder}.html#claims`, textContent: "details" });
      notes.append(element("li", { className: "caveats" }, element("strong", { textContent: `Caveats of ${letter} (${named(side)}): ${caveats.join(", ")}` }), " (", details, ")"));
    }
    if (!found.whyNot) {
      const basis = found.paired ? "The runs are paired by blocks" : "The runs are not paired";
      note(found.pooled ? `${basis}. The standard error is pooled over the cells of ${one.source}, as in its verdicts.` : `${basis}. The interval rests on these two series alone.`);
      const ends = isShare ? found.shift : found.ratio, none = isShare ? 0 : 1;
      if (ends[0] <= none && none <= ends[1]) note(`The interval includes ${none}: these runs do not show a difference.`);
    }
    const step = Math.max(one.resolution, other.resolution);
    if (!isShare && step >= COARSE_NS && Math.abs(change) < step) note(`The difference is below the clock's resolution of ${step / 1e6} ms.`);
    if (one.rate !== other.rate) note("The loads differ, so the difference is not that of the variants alone.");
    if (one.folder !== other.folder) note("A and B are of different campaigns or comparisons, so the difference includes whatever else changed between them.");
  }

  // --- The page -----------------------------------------------------------------------------------------------------------------

  function readAddress() {
    const parameters = given();
    const source = (name, otherwise) => (folders.includes(parameters.get(name)) ? parameters.get(name) : otherwise);
    field("a").value = source("a", page.first);
    field("b").value = source("b", field("a").value);
    const statistic = parameters.get("stat");
    field("stat").value = statistic in page.statistics ? statistic : page.statistic;
    show(parameters, null);
  }

  for (const side of ["a", "b"]) fill(field(side), page.sources, folders[0]);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    show(new URLSearchParams([...new FormData(form)]), "pushState");
  });
  document.getElementById("swap").addEventListener("click", () => {
    const now = new URLSearchParams([...new FormData(form)]);
    for (const name of ["", "v", "l"]) {
      const [before, after] = [now.get(`a${name}`), now.get(`b${name}`)];
      now.set(`a${name}`, after);
      now.set(`b${name}`, before);
    }
    history.pushState(null, "", `#${now}`);
    readAddress();
  });
  addEventListener("hashchange", readAddress);
  addEventListener("popstate", readAddress);
  readAddress();
})();
