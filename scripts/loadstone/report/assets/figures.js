/* The definition of each chart: its rows, summary, data table and files.
 *
 * loadstone.figures(page, reader) returns the charts by name, the axes, and a function that formats latencies. `page` is
 * the page's data; page.charts has the rows of every chart (loadstone/report/chart_rows.py). `reader` has the choices of
 * the reader: state(), rate() (the data of the chosen rate, if loaded) and run() (the chosen run). Nothing here reads or
 * changes the document. Functions of a chart also get the data-* attributes of the figure. Its fields, most of them
 * optional:
 *   uses     the choices it depends on
 *   rows     the rows to draw
 *   columns  of the data table and files: [field, heading with unit, format of numbers, [field, heading] for files if they
 *            differ, or null if files omit the column]. In files "–" is an empty value
 *   extra    [field, heading] of columns that only files have
 *   summary  the chart as text
 *   note     text below the chart, from its rows and the limits { lowest, highest } at which the chart clips values
 *   empty    text in place of a chart without rows
 *   spec     the name of the specification, if it differs from the chart's
 *   listed   selects the rows of the data table
 *   more     rows of the data table and files that are drawn separately or not at all
 *   height   height of the chart, if it depends on the rows
 *   named    true if each row has its label on the axis, so lines need no labels at their ends
 *   knees    rows of the data set `knees`: the saturation points
 *   runs     rows of the data set `runs`: single runs
 *   tail     whether the values of this chart need a logarithmic axis
 *   arrange  (spec, rows, width): sets the sizes of panels
 *   loads    true if it needs the data of the chosen rate
 */
window.loadstone = window.loadstone || {};
window.loadstone.figures = function figures(page, reader) {
  "use strict";

  const { significant, inSteps, count, percent } = loadstone;
  const state = () => reader.state();

  // --- Rows, and numbers as text (as in loadstone/report/numbers.py) ----------------------------------------------------

  const shown = (name) => !state().hide.includes(name);
  const rowsOf = (found, choice) => loadstone.rowsOf(found, page, choice).filter((row) => shown(row.variant));
  const known = (rows) => rows.filter((row) => row.value !== null);
  // The data of valid runs, or of all runs.
  const source = () => (page.with_excluded && state().of === "all" ? page.with_excluded : page);

  // Latencies with a coarse resolution are multiples of its step.
  const latencyText = (value) => (page.step && Number.isFinite(value)
    ? inSteps(value, page.step[0]).toFixed(page.step[1]).replace("-", "−") : significant(value));
  const latency = (value) => `${latencyText(value)} ${page.unit}`;
  const atLeast = (is, text) => `${is ? "at least " : ""}${text}`;
  const range = (low, high, text) => (low === null ? "none" : `[${text(low)}, ${text(high)}]`);

  // On a linear axis, one saturated variant would flatten all others.
  const axes = () => state().axes || ((source().logarithmic || {})[state().stat] ? "lin-log" : "linear");

  // --- Used by several charts -------------------------------------------------------------------------------------------

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

  const ends = (text) => (rows) => groups(rows).map(([label, own]) => {
    const [first, last] = [own[0], own[own.length - 1]].map((row) => atLeast(row.at_least, text(row.value)));
    return `${label}: ${first} at the start, ${last} at the end.`;
  }).join(" ");

  const shareText = (value) => String(+value.toFixed(5));
  const endsIn = (unit) => [["low", `Low (${unit})`], ["high", `High (${unit})`]];
  const VARIANT = ["label", "Variant"], LOAD = ["load", `Load (${page.load_unit})`, count];
  const LATENCY = `Latency (${page.unit})`, AT_MOST = `Latency at most (${page.unit})`;

  // --- Latency across load ----------------------------------------------------------------------------------------------

  function interval(name, { low, high, estimable, runs }) {
    const spread = page.spreads[state().stat], text = () => `${latencyText(low)} to ${latency(high)}`;
    if (spread) return runs > 1 || !spread.of_runs ? `${spread.name}: ${text()}` : "one run only";
    if (!estimable) return "not estimable: too few requests beyond the percentile";
    if (name === "success") return "not computed for code 200";
    if (low === null) return runs > 1 ? "none, or too wide to draw: see the table" : "none: at least 2 runs are needed";
    return `${page.confidence}: ${text()}`;
  }

  const acrossLoad = (name) => known(rowsOf(source().charts[name], state().stat)).map((row) => ({
    ...row, run: "all", interval: interval(name, row), place: row.beyond ? "below this load" : "–",
  }));

  // Every valid run with enough requests for the statistic.
  function runPoints(name) {
    const figure = page.figures[state().stat];
    return known(rowsOf(page.charts[name === "success" ? "success_runs" : "runs"], figure)).map((row) => ({
      ...row, text: atLeast(row.at_least, latencyText(row.value)), interval: "–", runs: 1,
    }));
  }

  function outliersNote(name, { lowest, highest }) {
    const n = runPoints(name).filter((run) => run.value < lowest || run.value > highest).length;
    return n ? `${n === 1 ? "One run is" : `${count(n)} runs are`} above 3 times the highest value or below a third of the lowest, and not drawn; the data table has ${n === 1 ? "it" : "them"}.` : "";
  }

  const knees = () => rowsOf(page.charts.knees);
  const latencyNote = (rows, limits) => [
    rows.some((row) => row.low !== null && (row.low < limits.lowest || row.high > limits.highest))
      ? "Intervals are clipped at 3 times the highest value and a third of the lowest; the data table has them in full." : "",
    outliersNote("latency", limits),
    knees().length || rows.some((row) => row.beyond) ? "Dashed lines are saturation points, bars below them their intervals; crosses are loads beyond them." : "",
  ].join(" ").trim();

  const ACROSS = [VARIANT, LOAD, ["run", "Run"], ["value", LATENCY, latencyText], ["interval", "Interval"], ["requests", "Requests", count], ["runs", "Runs", count]];
  const ENDS = [...endsIn(page.unit), ["estimable", "Estimable"]];
  const SHARES = [VARIANT, LOAD, ["share", "Share of requests (%)", significant], ["interval", "Spread"]];

  function shares(found) {
    const rows = rowsOf(found).map((row) => ({ ...row, interval: `± one standard deviation over runs: ${significant(row.spread)} points` }));
    return rows.some((row) => row.share > 0) ? rows : [];
  }

  const across = {
    latency: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("latency"), runs: () => runPoints("latency"), more: () => runPoints("latency"), knees, note: latencyNote, columns: ACROSS, extra: [...ENDS, ["beyond", "Beyond saturation"]], summary: lines("value", latency), empty: "No requests to draw." },
    success: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("success"), runs: () => runPoints("success"), more: () => runPoints("success"), note: (rows, limits) => outliersNote("success", limits), columns: ACROSS, extra: ENDS, summary: lines("value", latency), empty: "No request was answered with code 200." },
    failed: { uses: ["axes", "hide", "of"], rows: () => shares(source().charts.failed), columns: SHARES, extra: endsIn("%"), summary: lines("share", percent), empty: "No request failed at any load." },
    errors: { uses: ["axes", "hide", "of"], rows: ({ class: name }) => shares(source().charts.errors[name]), columns: SHARES, extra: endsIn("%"), summary: lines("share", percent), empty: "None of the shown variants had errors of this class." },
    reported: {
      uses: ["stat", "axes", "hide"], rows: () => known(rowsOf(page.charts.reported, state().stat)), summary: lines("value", latency), empty: "No report has this statistic.",
      columns: [VARIANT, LOAD, ["run", "Run", count], ["value", LATENCY, latencyText], ["evidence", "From"]],
    },
    percentiles: {
      uses: ["axes", "hide"], rows: () => rowsOf(page.charts.percentiles), summary: medianAndMaximum, empty: "None of the shown variants has a histogram.",
      columns: [VARIANT, ["series", "Run"], ["share", "Share of requests (%)", shareText], ["value", AT_MOST, latencyText]],
    },
    // Lines come first: labels at line ends are only drawn if the first row has a variant.
    fit: {
      uses: ["hide"], spec: ({ class: number }) => `fit-${number}`, summary: (rows, { class: number }) => page.fits[number].result, listed: (row) => row.kind === "run", empty: "None of the shown runs has this figure.",
      rows: ({ class: number }) => ["line", "runs"].flatMap((part) => (
        rowsOf(page.charts.fit[number][part]).map((row) => ({ ...row, kind: part === "line" ? "line" : "run" })))),
      columns: ({ class: number }) => {
        const [x, y] = page.fits[number].axes;
        return [VARIANT, ["load", LOAD[1], undefined, ["rate", LOAD[1]]], ["run", "Run"], ["x", x, (value) => String(value)], ["value", y, significant]];
      },
    },
  };

  function medianAndMaximum(rows) {
    return [...new Set(rows.map((row) => row.series))].map((series) => {
      const own = rows.filter((row) => row.series === series), last = own[own.length - 1];
      return `${last.label}, ${series}: median ${latency((own.find((row) => row.share >= 50) || last).value)}, maximum ${latency(last.value)}.`;
    }).join(" ");
  }

  // --- Latency over time, and the run inspector -------------------------------------------------------------------------

  function distribution() {
    const run = reader.run();
    return run ? reader.rate().shares.map((share, index) => ({ share: share * 100, latency: run.cdf[index] })) : [];
  }

  function requestsInOrder() {
    const run = reader.run();
    if (!run) return [];
    if (!run.points) {
      return run.bins.map(([first, last, failed, min, p50, p99, max]) => (
        { number: (first + last) / 2, first, last, failed, min, p50, p99, p99_text: p99 === null ? "not estimable" : latencyText(p99), max }));
    }
    const numbers = run.points.seq, failed = new Set(run.points.failed);
    return run.points.latency_ns.map((value, index) => {
      const number = typeof numbers === "number" ? numbers + index : numbers[index];
      return { number, latency: value / page.unit_ns, failed: failed.has(number), outcome: failed.has(number) ? "failed" : "successful" };
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
    return `The slowest ${count(beyond)} of the run's requests, up to ${latency(edges[2])}, are beyond the right edge.`;
  }

  function runSummary() {
    const { requests, figures: found } = reader.run();
    const estimable = [["median", "p50"], ["99th percentile", "p99"], ["maximum", "max"]].filter(([, name]) => found[name] !== undefined);
    return `${count(requests)} requests: ${estimable.map(([name, field]) => `${name} ${latency(found[field])}`).join(", ")}.`;
  }

  const binned = () => reader.run() && !reader.run().points;
  const INSPECTED = { uses: ["rate", "variant", "run", "scale"], loads: true, summary: runSummary, empty: "No run to show." };
  const loaded = {
    time: {
      uses: ["rate", "axes", "hide"], loads: true, rows: ({ stat }) => rowsOf(reader.rate().charts.time, stat).map((row) => ({ ...row, text: atLeast(row.at_least, latencyText(row.value)) })),
      summary: (rows) => ends(latency)(rows.filter((row) => row.phase === "test")), empty: "No valid run at this load.", extra: [["at_least", "Is a lower bound"]],
      columns: [VARIANT, ["phase", "Phase"], ["start", "From (s)", significant], ["end", "To (s)", significant], ["text", LATENCY, undefined, ["value", LATENCY]], ["requests", "Requests", count]],
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
    spec.spec.layer[0].encoding.color.legend.gradientLength = Math.min(220, width / 2, spec.spec.width - 100); // its title is to the left
  }

  const place = (row) => `at ${count(row.load)} ${page.load_unit}, ${+row.from.toFixed(3)} to ${+row.to.toFixed(3)} s`;

  function extremes(rows) {
    return groups(rows).map(([label, every]) => {
      const own = known(every).sort((one, other) => one.value - other.value), lowest = own[0], highest = own[own.length - 1];
      return own.length ? `${label}: lowest ${latency(lowest.value)} ${place(lowest)}, highest ${latency(highest.value)} ${place(highest)}.` : `${label}: no bin is estimable.`;
    }).join(" ");
  }

  function heatNote(rows) {
    const figure = page.figures[state().stat];
    return `Colour: the ${page.titles[figure]} of the requests that all valid runs, pooled, sent in a time bin. ${
      known(rows).length < rows.length ? `A dot on grey: fewer than the required ${count(page.needs[figure] || 1)} requests.` : ""}`.trim();
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
      uses: ["stat", "hide"], rows: bins, arrange, summary: extremes, note: heatNote, named: true, empty: "No time bin has enough requests for this statistic.",
      columns: [
        VARIANT, LOAD, ["from", "From (s)", (value) => String(+value.toFixed(6))], ["to", "To (s)", (value) => String(+value.toFixed(6))],
        ["text", LATENCY, undefined, ["value", LATENCY]], ["requests", "Requests", count], ["runs", "Runs", count],
      ],
      extra: [["at_least", "Is a lower bound"]],
    },
    curves: {
      uses: ["rate", "axes", "hide"], tail: () => Boolean((page.charts.curves[state().rate] || {}).logarithmic),
      rows: () => curves("rows"), runs: () => curves("runs"), more: () => curves("runs"), summary: tails, empty: "None of the shown runs has requests at this load.",
      columns: [VARIANT, ["run", "Run"], ["share", "Share of requests (%)", shareText], ["text", AT_MOST, undefined, ["value", AT_MOST]]],
      extra: [["least", "Is a lower bound"], ["requests", "Requests"]],
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

  // How often each verdict occurs, by variant.
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
      rows.some(isCut) ? "Arrow: the interval extends far beyond all values and is clipped; the data table has it in full." : "",
      rows.some(isFar) ? "A row without a point is far beyond the others: choose its load, or see the data table." : "",
      rows.some((row) => row.warning && row.warning !== "–") ? "Steps with a warning are uncertain: see the warnings below." : "",
    ].join(" ").trim();
  }

  const BASELINE = [VARIANT, ["baseline", "Baseline"], LOAD];
  const VERDICT = [["interval", "Interval"], ["shown", "Verdict"], ["why", "Why"], ["needs", "Runs needed", undefined, null], ["p", "p, adjusted", undefined, ["p_value", "p, adjusted"]]];
  const RUNS = [["needed", "Runs needed per variant"], ["runs", "Runs"], ["baseline_runs", "Runs of the baseline"], ["pairs", "Pairs"]];
  const FOREST = { summary: verdicts, height: (rows) => (rows.length > MANY ? 17 : 25) * rows.length, named: true };
  const dumbbells = () => rowsOf((page.charts.dumbbell || {})[page.figures[state().stat]]).map((row) => (
    { ...row, percent: 100 * (row.value / row.before - 1) }));
  const twoDots = (rows) => rows.map((row) => (
    `${row.label} at ${count(row.load)} ${page.load_unit}: ${latency(row.value)}, ${row.shown} relative to ${row.baseline} (${latency(row.before)}).`)).join(" ");

  const conclusions = {
    dumbbell: {
      uses: ["stat", "axes", "hide"], rows: dumbbells, summary: twoDots, height: FOREST.height, named: true, empty: "None of the shown variants has this statistic and a baseline.",
      columns: [...BASELINE, ["value", LATENCY, latencyText], ["before", `Latency of the baseline (${page.unit})`, latencyText], ["shown", "Difference", undefined, ["percent", "Difference (%)"]], ["runs", "Runs", count]],
      extra: [["baseline_runs", "Runs of the baseline"]],
    },
    effects: {
      ...FOREST, uses: ["stat", "hide", "effect", "at"], rows: () => effects(page.charts.effects[page.figures[state().stat]], state().effect, effectText),
      spec: () => `effects-${state().effect}`, note: cutNote, empty: "None of the shown variants has this statistic and a baseline.",
      columns: () => [...BASELINE, ["value", isRatio() ? "Ratio" : `Shift (${page.unit})`, effectText], ...VERDICT],
      extra: () => [...endsIn(isRatio() ? "ratio" : page.unit), ...RUNS],
    },
    "effects-errors": {
      ...FOREST, uses: ["hide", "at"], rows: () => effects(page.charts["effects-errors"], undefined, significant), empty: "None of the shown variants has an error fraction and a baseline.",
      columns: [...BASELINE, ["value", "Shift (percentage points)", significant], ...VERDICT], extra: [...endsIn("percentage points"), ...RUNS],
    },
    layers: {
      uses: ["stat", "hide", "at"], rows: layers, summary: steps, height: (rows) => 31 * rows.length, named: true, note: cutNote,
      columns: [["label", "Step"], LOAD, ["value", `Added (${page.unit})`, latencyText], ["interval", "Interval"], ["warning", "Warning"]],
      extra: [...endsIn(page.unit), ["runs", "Runs"]], empty: "None of the shown variants has this statistic and a layer below it (variants.yaml).",
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
      uses: ["part", "axes", "hide"], rows: () => usage(page.charts.usage, what), summary: lines("value", text),
      columns: [VARIANT, LOAD, ...figures_], extra: endsIn(unit), empty: "None of the shown variants has samples of this.",
    };
    resources[`use-time-${what}`] = {
      uses: ["rate", "part", "hide"], loads: true, rows: () => usage(reader.rate().charts.usage, what), summary: ends(text),
      columns: [VARIANT, ["time", "Time (s)", significant], ...figures_], extra: endsIn(unit), empty: "No run at this load has samples of this.",
    };
  }

  const traces = {
    shares: {
      uses: [], height: (rows) => 28 * rows.length, rows: ({ class: kind }) => page.traces[kind], empty: "No spans other than the root.",
      summary: (rows) => rows.slice(0, 5).map((row) => `${row.name}: median ${significant(row.p50)} %.`).join(" "),
      columns: [
        ["name", "Name"], ["p5", "5th percentile (%)", significant], ["p25", "25th percentile (%)", significant], ["p50", "Median (%)", significant],
        ["p75", "75th percentile (%)", significant], ["p95", "95th percentile (%)", significant], ["traces", "Traces", count],
      ],
    },
  };

  // --- A variant's history: a series per way of measuring, in place of variants ------------------------------------------

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
      interval: row.low !== null ? `[${levelText(row.low, row)}, ${levelText(row.high, row)}]`
        : row.at_least ? "none: requests timed out" : row.runs > 1 ? "none" : "one run only",
    }));
    return [...rowsOf(found.changes).map((row) => ({ ...row, kind: "change" })), ...points];
  }

  function levels(rows) {
    return groups(rows.filter(isPoint)).map(([label, own]) => {
      const text = (row) => `${atLeast(row.at_least, levelText(row.value, row))} ${levelUnit()} on ${row.when}`;
      const changes = rows.filter((row) => !isPoint(row) && row.label === label).map((row) => row.levels);
      return `${label}: ${text(own[0])}${own.length > 1 ? `, ${text(own[own.length - 1])}` : ""}. ${
        changes.length ? `Level changes: ${changes.join("; ")}.` : own.length > 1 ? "The level does not change." : ""}`;
    }).join(" ");
  }

  const history = {
    history: {
      uses: ["stat", "axes", "rate", "host", "hide"], rows: throughTime, summary: levels, listed: isPoint,
      spec: () => (isShare() ? "history-share" : "history"), empty: "No campaign on this host has this statistic at this load.",
      columns: () => [
        ["when", "Campaign"], ["text", levelHeading(), undefined, ["value", levelHeading()]], ["interval", "Interval"],
        ["runs", "Runs", count], ["level", "Level", count], ["label", "Measured by"], ["differs", "Differs from before"], ["note", "Note"],
      ],
      extra: () => [...endsIn(levelUnit()), ["at_least", "Is a lower bound"]],
    },
  };

  return { charts: { ...across, ...loaded, ...distributions, ...conclusions, ...resources, ...traces, ...history }, axes, latency };
};
