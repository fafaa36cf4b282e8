/* What each chart shows of the page's data: which rows, in which words, columns and files.
 *
 * loadstone.figures(page, reader) gives the charts by name, the axes and the text of a latency. `page` is the page's data,
 * whose page.charts has the rows of every chart (loadstone/report/chart_rows.py); `reader` has the choices of the
 * reader: state(), rate() (the loaded data of the chosen rate, if any) and run() (the chosen run of it). Here rows are
 * selected and put into words; nothing touches the document. A chart is
 *   uses     the choices on which it depends
 *   rows     what it draws; its arguments, like those of spec and words, are the figure's data-* attributes
 *   columns  of its table and files: [field, heading with unit, text of a number, [field, heading] in files where that is
 *            not the same, null for none]; extra: [field, heading] of files alone. In files "–" is nothing
 *   words    the same in words; note, empty: a line below the picture, and in its place. A note gets the rows and, where
 *            the picture cuts what reaches further, the limits { lowest, highest }
 *   spec     the name of its specification, where that is not its own; listed: which rows the table has
 *   height   of the picture, where that follows from its rows; named: true where each row bears its name itself
 *   knees    rows of the data set of that name: where each variant's knee is
 *   runs     the same: what single runs have; more: rows that the table and files have besides those that are drawn
 *   tail     whether the values of this picture alone need a logarithmic axis
 *   arrange  (spec, rows, width): gives the panels of a picture their size
 *   loads    true where it needs the data of the chosen rate
 */
window.loadstone = window.loadstone || {};
window.loadstone.figures = function figures(page, reader) {
  "use strict";

  const { significant, count, percent } = loadstone;
  const state = () => reader.state();

  // --- Rows, and numbers as people read them (as loadstone/report/numbers.py) -------------------------------------------

  const shown = (name) => !state().hide.includes(name);
  const rowsOf = (found, choice) => loadstone.rowsOf(found, page, choice).filter((row) => shown(row.variant));
  const known = (rows) => rows.filter((row) => row.value !== null);
  // Valid runs, or all runs with the excluded ones.
  const source = () => (page.with_excluded && state().of === "all" ? page.with_excluded : page);

  // Latencies in coarse steps have no digits between them.
  const latencyText = (value) => (page.step && Number.isFinite(value)
    ? (Math.round(value / page.step[0]) * page.step[0]).toFixed(page.step[1]) : significant(value));
  const latency = (value) => `${latencyText(value)} ${page.unit}`;
  const atLeast = (is, text) => `${is ? "at least " : ""}${text}`;
  const range = (low, high, text) => (low === null ? "none" : `${text(low)} to ${text(high)}`);

  // On a linear axis one variant that saturates would press all others flat.
  const axes = () => state().axes || ((source().logarithmic || {})[state().stat] ? "lin-log" : "linear");

  // --- Texts of several charts ------------------------------------------------------------------------------------------

  function groups(rows) {
    const found = new Map();
    rows.forEach((row) => found.set(row.label, [...(found.get(row.label) || []), row]));
    return [...found];
  }

  function lines(field, text) {
    return (rows) => groups(rows).map(([label, own]) => {
      const first = own[0], last = own[own.length - 1];
      if (first === last) return `${label}: ${text(first[field])} at ${count(first.load)} ${page.load_unit}.`;
      return `${label}: ${text(first[field])} at ${count(first.load)} ${page.load_unit}, ${text(last[field])} at ${count(last.load)}.`;
    }).join(" ");
  }

  const ends = (text) => (rows) => groups(rows).map(([label, own]) => (
    `${label}: ${text(own[0].value)} at first, ${text(own[own.length - 1].value)} at the end.`)).join(" ");

  const shareText = (value) => String(+value.toFixed(5));
  const endsIn = (unit) => [["low", `Low (${unit})`], ["high", `High (${unit})`]];
  const VARIANT = ["label", "Variant"], LOAD = ["load", `Load (${page.load_unit})`, count];
  const LATENCY = `Latency (${page.unit})`, AT_MOST = `Latency at most (${page.unit})`;

  // --- Latency across load ----------------------------------------------------------------------------------------------

  function interval(name, { low, high, estimable, runs }) {
    const spread = page.spreads[state().stat], text = () => `${latencyText(low)} to ${latency(high)}`;
    if (spread) return runs > 1 || !spread.includes("run means") ? `${spread}: ${text()}` : "one run only";
    if (!estimable) return "not estimable: too few requests beyond it";
    if (name === "success") return "not computed for code 200 alone";
    if (low === null) return runs > 1 ? "none, or too wide to draw: see the table" : "none: it needs more than one run";
    return `${page.confidence}: ${text()}`;
  }

  const acrossLoad = (name) => known(rowsOf(source().charts[name], state().stat)).map((row) => ({
    ...row, run: "all", interval: interval(name, row), place: row.beyond ? "this load is beyond it" : "–",
  }));

  // Every run that counts, where its own requests are enough for the figure.
  function runPoints(name) {
    const figure = page.figures[state().stat];
    return known(rowsOf(page.charts[name === "success" ? "success_runs" : "runs"], figure)).map((row) => ({
      ...row, text: atLeast(row.timeouts && figure === "mean", latencyText(row.value)), interval: "–", runs: 1,
    }));
  }

  function farNote(name, { lowest, highest }) {
    const far = runPoints(name).filter((run) => run.value < lowest || run.value > highest).length;
    return far ? `${far === 1 ? "One run lies" : `${count(far)} runs lie`} beyond 3 times the highest value, or below the lowest by as much, and ${far === 1 ? "is" : "are"} not drawn: the table has ${far === 1 ? "it" : "them"}.` : "";
  }

  const knees = () => rowsOf(page.charts.knees);
  const latencyNote = (rows, limits) => [
    rows.some((row) => row.low !== null && (row.low < limits.lowest || row.high > limits.highest))
      ? "An interval that reaches beyond 3 times the highest value, or below the lowest by as much, is cut in the picture; the table has all of it." : "",
    farNote("latency", limits),
    knees().length || rows.some((row) => row.beyond) ? "A dashed rule is a variant's saturation point, its band the interval; crosses are beyond it." : "",
  ].join(" ").trim();

  const ACROSS = [VARIANT, LOAD, ["run", "Run"], ["value", LATENCY, latencyText], ["interval", "Interval"], ["requests", "Requests", count], ["runs", "Runs", count]];
  const ENDS = [...endsIn(page.unit), ["estimable", "Estimable"]];
  const SHARES = [VARIANT, LOAD, ["share", "Share of requests (%)", significant], ["interval", "Spread"]];

  function shares(found) {
    const rows = rowsOf(found).map((row) => ({ ...row, interval: `± one standard deviation over runs: ${significant(row.spread)} points` }));
    return rows.some((row) => row.share > 0) ? rows : [];
  }

  const across = {
    latency: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("latency"), runs: () => runPoints("latency"), more: () => runPoints("latency"), knees, note: latencyNote, columns: ACROSS, extra: [...ENDS, ["beyond", "Beyond saturation"]], words: lines("value", latency), empty: "No requests to draw." },
    success: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("success"), runs: () => runPoints("success"), more: () => runPoints("success"), note: (rows, limits) => farNote("success", limits), columns: ACROSS, extra: ENDS, words: lines("value", latency), empty: "No request was answered with code 200." },
    failed: { uses: ["axes", "hide", "of"], rows: () => shares(source().charts.failed), columns: SHARES, extra: endsIn("%"), words: lines("share", percent), empty: "No request failed at any load." },
    errors: { uses: ["axes", "hide", "of"], rows: ({ class: name }) => shares(source().charts.errors[name]), columns: SHARES, extra: endsIn("%"), words: lines("share", percent), empty: "No variant that is shown had errors of this class." },
    reported: {
      uses: ["stat", "axes", "hide"], rows: () => known(rowsOf(page.charts.reported, state().stat)), words: lines("value", latency), empty: "No run's report has this figure.",
      columns: [VARIANT, LOAD, ["run", "Run", count], ["value", LATENCY, latencyText], ["evidence", "From"]],
    },
    percentiles: {
      uses: ["axes", "hide"], rows: () => rowsOf(page.charts.percentiles), words: slowest, empty: "No variant that is shown has a histogram.",
      columns: [VARIANT, ["series", "Run"], ["share", "Share of requests (%)", shareText], ["value", AT_MOST, latencyText]],
    },
    // Lines come first: names at line ends are for charts whose rows have a variant.
    fit: {
      uses: ["hide"], spec: ({ class: number }) => `fit-${number}`, words: (rows, { class: number }) => page.fits[number].says, listed: (row) => row.kind === "run", empty: "No run that is shown has this figure.",
      rows: ({ class: number }) => ["line", "runs"].flatMap((part) => (
        rowsOf(page.charts.fit[number][part]).map((row) => ({ ...row, kind: part === "line" ? "line" : "run" })))),
      columns: ({ class: number }) => {
        const [x, y] = page.fits[number].axes;
        return [VARIANT, ["load", LOAD[1], undefined, ["rate", LOAD[1]]], ["run", "Run"], ["x", x, (value) => String(value)], ["value", y, significant]];
      },
    },
  };

  function slowest(rows) {
    return [...new Set(rows.map((row) => row.series))].map((series) => {
      const own = rows.filter((row) => row.series === series), last = own[own.length - 1];
      return `${last.label}, ${series}: ${latency((own.find((row) => row.share >= 50) || last).value)} in the middle, ${latency(last.value)} at most.`;
    }).join(" ");
  }

  // --- Latency over time, and the run that is looked at -----------------------------------------------------------------

  function distribution() {
    const run = reader.run();
    return run ? reader.rate().shares.map((share, index) => ({ share: share * 100, latency: run.cdf[index] })) : [];
  }

  function requestsInOrder() {
    const run = reader.run();
    if (!run) return [];
    if (!run.points) {
      return run.bins.map(([first, last, missed, min, p50, p99, max]) => (
        { number: (first + last) / 2, first, last, failed: missed, min, p50, p99, p99_text: p99 === null ? "not estimable" : latencyText(p99), max }));
    }
    const numbers = run.points.seq, missed = new Set(run.points.failed);
    return run.points.latency.map((value, index) => {
      const number = typeof numbers === "number" ? numbers + index : numbers[index];
      return { number, latency: value, failed: missed.has(number), outcome: missed.has(number) ? "failed" : "successful" };
    });
  }

  function histogram() {
    const run = reader.run();
    if (!run) return [];
    const [low, p99, high] = run.histogram.edges, counts = run.histogram[state().scale];
    const edge = state().scale === "log"
      ? (share) => low * Math.pow(high / low, share)
      : (share) => low + (p99 - low) * share;
    return counts.map((number, index) => (
      { low: edge(index / counts.length), high: edge((index + 1) / counts.length), count: number }));
  }

  function sequenceNote() {
    const run = reader.run();
    if (run.points) return run.points.failed.length ? "Each dot is a request; crosses are failed ones." : "Each dot is a request.";
    return `Bins of about ${count(Math.round(run.requests / run.bins.length))} consecutive requests: median (solid), ${
      run.bins.some((bin) => bin[5] !== null) ? "99th percentile (dashed), " : ""}minimum to maximum (bars).`;
  }

  function histogramNote() {
    const { edges, beyond } = reader.run().histogram;
    if (state().scale === "log" || !beyond) return "";
    return `The slowest ${count(beyond)} of the run's requests, up to ${latency(edges[2])}, lie beyond the right edge.`;
  }

  function summary() {
    const { requests, figures: found } = reader.run();
    const estimable = [["median", "p50"], ["99th percentile", "p99"], ["maximum", "max"]].filter(([, name]) => found[name] !== undefined);
    return `${count(requests)} requests: ${estimable.map(([name, field]) => `${name} ${latency(found[field])}`).join(", ")}.`;
  }

  const binned = () => reader.run() && !reader.run().points;
  const INSPECTED = { uses: ["rate", "variant", "run", "scale"], loads: true, words: summary, empty: "No run to show." };
  const loaded = {
    time: {
      uses: ["rate", "axes", "hide"], loads: true, rows: ({ stat }) => rowsOf(reader.rate().charts.time, stat),
      words: (rows) => ends(latency)(rows.filter((row) => row.phase === "test")), empty: "No run at this load is valid.",
      columns: [VARIANT, ["phase", "Phase"], ["start", "From (s)", significant], ["end", "To (s)", significant], ["value", LATENCY, latencyText], ["requests", "Requests", count]],
    },
    cdf: { ...INSPECTED, rows: distribution, columns: [["share", "Share of requests (%)", (value) => String(+value.toFixed(2))], ["latency", AT_MOST, latencyText]] },
    sequence: {
      ...INSPECTED, rows: requestsInOrder, note: sequenceNote, spec: () => (binned() ? "bins" : "points"),
      columns: () => (binned()
        ? [["first", "First request", count], ["last", "Last", count], ["min", `Minimum (${page.unit})`, latencyText], ["p50", `Median (${page.unit})`, latencyText], ["p99", `p99 (${page.unit})`, latencyText], ["max", `Maximum (${page.unit})`, latencyText], ["failed", "Failed", count]]
        : [["number", "Request", count], ["latency", LATENCY, latencyText], ["outcome", "Outcome"]]),
    },
    histogram: {
      ...INSPECTED, rows: histogram, note: histogramNote,
      columns: [["low", `From (${page.unit})`, latencyText], ["high", `To (${page.unit})`, latencyText], ["count", "Requests", count]],
    },
  };

  // --- Distributions ----------------------------------------------------------------------------------------------------

  const SPACE = 18, AXIS = 42, LETTER = 7, HIGHEST = 26, LOWEST = 9, USUAL = 300, TITLE = 110;

  function bins() {
    const rows = rowsOf(page.charts.heat, page.figures[state().stat]);
    return !known(rows).length ? [] : rows.map((row) => ({
      ...row, text: row.value === null ? "not estimable: too few requests" : atLeast(row.at_least, latencyText(row.value)),
    }));
  }

  function arrange(spec, rows, width) {
    const panels = new Set(rows.map((row) => row.label)).size, all = [...new Set(rows.map((row) => row.load))], loads = all.length;
    const labels = AXIS + LETTER * Math.max(...all.map((load) => count(load).length));
    const most = width >= 780 && panels !== 4 ? 3 : width >= 520 ? 2 : 1, columns = Math.min(panels, most);
    spec.columns = columns;
    spec.spacing = SPACE;
    spec.spec.width = Math.max(120, Math.floor((width - labels - (columns - 1) * SPACE) / columns));
    spec.spec.height = loads * Math.max(Math.ceil(TITLE / loads), Math.round(Math.max(LOWEST, Math.min(HIGHEST, USUAL / loads))));
    spec.facet.header.labelLimit = spec.spec.width;
    spec.spec.layer[0].encoding.color.legend.gradientLength = Math.min(220, width / 2, spec.spec.width - 100);  // its title is before it
  }

  const place = (row) => `at ${count(row.load)} ${page.load_unit}, ${+row.from.toFixed(3)} to ${+row.to.toFixed(3)} s`;

  function extremes(rows) {
    return groups(rows).map(([label, every]) => {
      const own = known(every).sort((one, other) => one.value - other.value), least = own[0], most = own[own.length - 1];
      return own.length ? `${label}: least ${latency(least.value)} ${place(least)}, most ${latency(most.value)} ${place(most)}.` : `${label}: nothing is estimable.`;
    }).join(" ");
  }

  function heatNote(rows) {
    const figure = page.figures[state().stat];
    return `Colour: the ${page.titles[figure]} of the requests of all valid runs, pooled, that were sent in a bin of time. ${
      known(rows).length < rows.length ? `A dot on grey: fewer than the ${count(page.needs[figure] || 1)} requests that it needs.` : ""}`.trim();
  }

  const curves = (part) => rowsOf((page.charts.curves[state().rate] || {})[part]).map((row) => {
    const least = row.at_least_from !== null && row.share >= page.charts.shares[row.at_least_from];
    return { run: "all", runs: 1, ...row, least, text: atLeast(least, latencyText(row.value)) };
  });

  function tails(rows) {
    return groups(rows).map(([label, own]) => {
      const last = own[own.length - 1], middle = own.find((row) => row.share >= 50) || last;
      return `${label}: half of the requests took at most ${latency(middle.value)}, ${+last.share.toFixed(4)} % at most ${latency(last.value)}.`;
    }).join(" ");
  }

  const distributions = {
    heat: {
      uses: ["stat", "hide"], rows: bins, arrange, words: extremes, note: heatNote, named: true, empty: "In no bin of time were there enough requests for this figure.",
      columns: [
        VARIANT, LOAD, ["from", "From (s)", (value) => String(+value.toFixed(6))], ["to", "To (s)", (value) => String(+value.toFixed(6))],
        ["text", LATENCY, undefined, ["value", LATENCY]], ["requests", "Requests", count], ["runs", "Runs", count],
      ],
      extra: [["at_least", "At least so much"]],
    },
    curves: {
      uses: ["rate", "axes", "hide"], tail: () => Boolean((page.charts.curves[state().rate] || {}).logarithmic),
      rows: () => curves("rows"), runs: () => curves("runs"), more: () => curves("runs"), words: tails, empty: "No run that is shown has requests at this load.",
      columns: [VARIANT, ["run", "Run"], ["share", "Share of requests (%)", shareText], ["text", AT_MOST, undefined, ["value", AT_MOST]]],
      extra: [["least", "At least so much"], ["requests", "Requests"]],
    },
  };

  // --- Conclusions ------------------------------------------------------------------------------------------------------

  const MANY = 40;
  const isRatio = () => state().effect === "ratio";
  const effectText = (value) => (isRatio() ? significant(value) : latencyText(value));
  const pText = (p) => (p === null ? "–" : p < 0.001 ? "< 0.001" : p.toFixed(3));
  const signed = (value) => (value < 0 ? `−${latencyText(-value)}` : `+${latencyText(value)}`);
  const atLoad = (row) => ["", loadstone.rateName(row.load)].includes(state().at);

  const effects = (found, choice, text) => rowsOf(found, choice).filter(atLoad).map((row) => ({
    ...row, interval: range(row.low, row.high, text), why: row.why || "–", p: pText(row.p), p_value: row.p,
    needs: row.needed === null ? "–" : `${count(row.needed)} of each variant`,
  }));

  const layers = () => rowsOf(page.charts.layers[page.figures[state().stat]]).filter(atLoad).map((row) => (
    { ...row, interval: range(row.low, row.high, latencyText), warning: row.warning || "–" }));

  // Verdicts by variant: how often each.
  function verdicts(rows) {
    return groups(rows).map(([label, own]) => {
      const numbers = [...new Set(own.map((row) => row.shown))].map((verdict) => (
        `${verdict} at ${count(own.filter((row) => row.shown === verdict).length)} of ${count(own.length)} loads`));
      return `${label} relative to ${own[0].baseline}: ${numbers.join(", ")}.`;
    }).join(" ");
  }

  const steps = (rows) => known(rows).slice(0, 12).map((row) => (
    `${row.label} at ${count(row.load)} ${page.load_unit}: ${signed(row.value)} ${page.unit}.`)).join(" ");

  function cutNote(rows, { lowest, highest }) {
    const isFar = (row) => row.value !== null && (row.value < lowest || row.value > highest);
    const isCut = (row) => !isFar(row) && row.low !== null && (row.low < lowest || row.high > highest);
    return [
      rows.some(isCut) ? "Arrow: the interval reaches far beyond all values and is cut in the picture; the table has all of it." : "",
      rows.some(isFar) ? "A row without a point is far beyond the others: choose its load, or look at the table." : "",
      rows.some((row) => row.warning && row.warning !== "–") ? "Uncertain: with a warning, below." : "",
    ].join(" ").trim();
  }

  const BASELINE = [VARIANT, ["baseline", "Baseline"], LOAD];
  const VERDICT = [["interval", "Interval"], ["shown", "Verdict"], ["why", "Why"], ["needs", "Runs needed", undefined, null], ["p", "p, adjusted", undefined, ["p_value", "p, adjusted"]]];
  const RUNS = [["needed", "Runs needed of each"], ["runs", "Runs"], ["baseline_runs", "Runs of the baseline"], ["pairs", "Pairs"]];
  const FOREST = { words: verdicts, height: (rows) => (rows.length > MANY ? 17 : 25) * rows.length, named: true };
  const conclusions = {
    effects: {
      ...FOREST, uses: ["stat", "hide", "effect", "at"], rows: () => effects(page.charts.effects[page.figures[state().stat]], state().effect, effectText),
      spec: () => `effects-${state().effect}`, note: cutNote, empty: "No variant that is shown has this figure and a baseline.",
      columns: () => [...BASELINE, ["value", isRatio() ? "Ratio" : `Shift (${page.unit})`, effectText], ...VERDICT],
      extra: () => [...endsIn(isRatio() ? "ratio" : page.unit), ...RUNS],
    },
    "effects-errors": {
      ...FOREST, uses: ["hide", "at"], rows: () => effects(page.charts["effects-errors"], undefined, significant), empty: "No variant that is shown has a share of failed requests and a baseline.",
      columns: [...BASELINE, ["value", "Shift (percentage points)", significant], ...VERDICT], extra: [...endsIn("percentage points"), ...RUNS],
    },
    layers: {
      uses: ["stat", "hide", "at"], rows: layers, words: steps, height: (rows) => 31 * rows.length, named: true, note: cutNote,
      columns: [["label", "Step"], LOAD, ["value", `Added (${page.unit})`, latencyText], ["interval", "Interval"], ["warning", "Warning"]],
      extra: [...endsIn(page.unit), ["runs", "Runs"]], empty: "No variant that is shown is declared to be built upon another one with this figure.",
    },
  };

  // --- Resource usage and traces ----------------------------------------------------------------------------------------

  const UNITS = { cpu: "millicores", memory: "MiB" };

  const usage = (found, what) => known(rowsOf(found[state().part], what)).map((row) => ({
    ...row, interval: row.high === null ? "one run only" : `± ${significant(row.high - row.value)} ${UNITS[what]} over runs`,
  }));

  const resources = {};
  for (const [what, unit] of Object.entries(UNITS)) {
    const figures_ = [["value", what === "cpu" ? "CPU (millicores)" : "Memory (MiB)", significant], ["interval", "Spread"], ["runs", "Runs", count]];
    const text = (value) => `${significant(value)} ${unit}`;
    resources[`use-${what}`] = {
      uses: ["part", "axes", "hide"], rows: () => usage(page.charts.usage, what), words: lines("value", text),
      columns: [VARIANT, LOAD, ...figures_], extra: endsIn(unit), empty: "No variant that is shown has samples of this.",
    };
    resources[`use-time-${what}`] = {
      uses: ["rate", "part", "hide"], loads: true, rows: () => usage(reader.rate().charts.usage, what), words: ends(text),
      columns: [VARIANT, ["time", "Time (s)", significant], ...figures_], extra: endsIn(unit), empty: "No run at this load has samples of this.",
    };
  }

  const traces = {
    shares: {
      uses: [], height: (rows) => 28 * rows.length, rows: ({ class: kind }) => page.traces[kind], empty: "No spans other than the root.",
      words: (rows) => rows.slice(0, 5).map((row) => `${row.name}: ${significant(row.p50)} % in half of the traces.`).join(" "),
      columns: [
        ["name", "Of"], ["p5", "5th percentile (%)", significant], ["p25", "25th percentile (%)", significant], ["p50", "Median (%)", significant],
        ["p75", "75th percentile (%)", significant], ["p95", "95th percentile (%)", significant], ["traces", "Traces", count],
      ],
    },
  };

  // --- A variant through time: its variants are the ways in which it was measured ---------------------------------------

  const isShare = () => state().stat === "error_fraction";
  const decimals = new Map((page.steps || []).map((step, way) => [page.variants[way].name, step && step[1]]));
  const levelUnit = () => (isShare() ? "%" : page.unit);
  const levelText = (value, { variant }) => (isShare() || decimals.get(variant) === null ? significant(value) : value.toFixed(decimals.get(variant)));
  const levelHeading = () => (isShare() ? "Failed requests (%)" : LATENCY);
  const isPoint = (row) => row.kind === "point";

  function throughTime() {
    const { host, rate, stat } = state(), found = ((page.charts.history[host] || {})[rate] || {})[stat] || {};
    const points = rowsOf(found.points).map((row) => ({
      ...row, kind: "point", text: atLeast(row.at_least, significant(row.value)),
      interval: row.low !== null ? `${levelText(row.low, row)} to ${levelText(row.high, row)} ${levelUnit()}`
        : row.at_least ? "none: requests timed out" : row.runs > 1 ? "none" : "one run only",
    }));
    return [...rowsOf(found.changes).map((row) => ({ ...row, kind: "change" })), ...points];
  }

  function levels(rows) {
    return groups(rows.filter(isPoint)).map(([label, own]) => {
      const text = (row) => `${atLeast(row.at_least, levelText(row.value, row))} ${levelUnit()} on ${row.when}`;
      const changes = rows.filter((row) => !isPoint(row) && row.label === label).map((row) => row.levels);
      return `${label}: ${text(own[0])}${own.length > 1 ? `, ${text(own[own.length - 1])}` : ""}. ${
        changes.length ? `Its level changes: ${changes.join("; ")}.` : own.length > 1 ? "Its level does not change." : ""}`;
    }).join(" ");
  }

  const history = {
    history: {
      uses: ["stat", "axes", "rate", "host", "hide"], rows: throughTime, words: levels, listed: isPoint,
      spec: () => (isShare() ? "history-share" : "history"), empty: "No campaign on this host has this figure at this load.",
      columns: () => [
        ["when", "Campaign"], ["text", levelHeading(), undefined, ["value", levelHeading()]], ["interval", "Interval"],
        ["runs", "Runs", count], ["level", "Level", count], ["label", "Measured by"], ["differs", "Differs from before"], ["note", "Note"],
      ],
      extra: () => [...endsIn(levelUnit()), ["at_least", "At least so much"]],
    },
  };

  return { charts: { ...across, ...loaded, ...distributions, ...conclusions, ...resources, ...traces, ...history }, axes, latency };
};
