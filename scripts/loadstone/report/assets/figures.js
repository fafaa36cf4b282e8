/* What each chart draws: its rows, its table's columns and the same in words.
 *
 * loadstone.figures(page, reader) gives the charts by name, the axes and the text of a latency. `page` is the page's data,
 * `reader` tells what its reader has chosen: state(), rate() (the loaded data of the chosen rate, if any) and run() (the
 * chosen run of it). Nothing here touches the document. A chart is
 *   uses     the choices on which it depends
 *   rows     what it draws; its arguments, like those of spec and words, are the figure's data-* attributes
 *   columns  of its table and files: [field, heading with unit, text of a number, [field, heading] in files where that is
 *            not the same, null for none]; extra: [field, heading] of files alone. In files "–" is nothing
 *   words    the same in words; note, empty: a line below the picture, and in its place
 *   spec     the name of its specification, where that is not its own; listed: which rows the table has
 *   height   of the picture, where that follows from its rows; named: true where each row bears its name itself
 *   knees    rows of the data set of that name: where each variant's knee is
 *   runs     the same: what single runs have; more: rows that the table and files have besides those that are drawn
 *   tail     true where the values of one picture may span decades: its own axis is logarithmic then
 *   arrange  (spec, rows, width): gives the panels of a picture their size
 *   loads    true where it needs the data of the chosen rate
 * A script with further charts, like resources.js, pushes a function (page, reader, tools) that gives them to
 * loadstone.figureSets.
 */
window.loadstone = window.loadstone || {};
loadstone.figureSets = [];
window.loadstone.figures = function figures(page, reader) {
  "use strict";

  const labels = new Map(page.variants.map((variant) => [variant.name, variant.label]));
  const order = new Map(page.variants.map((variant, position) => [variant.name, position]));

  // --- Numbers as people read them (as loadstone/report/numbers.py) -----------------------------------------------------

  const { significant, count, percent } = loadstone;
  // Latencies in coarse steps have no digits between them.
  const latencyText = (value) => (page.step && Number.isFinite(value)
    ? (Math.round(value / page.step[0]) * page.step[0]).toFixed(page.step[1]) : significant(value));
  const latency = (value) => `${latencyText(value)} ${page.unit}`;
  const shown = (name) => !reader.state().hide.includes(name);
  const byVariant = (one, other) => order.get(one.variant) - order.get(other.variant) || one.load - other.load;

  const BEYOND = 3, DECADES = 1.5;

  // What counts, or everything with the left-out runs put back.
  const source = () => (page.put_back && reader.state().of === "all" ? page.put_back : page);

  // On a linear axis one variant that saturates would press all others flat.
  function axes() {
    if (reader.state().axes) return reader.state().axes;
    if (!page.cells) return "linear";
    const cells = source().cells.map((cell) => cell.all[reader.state().stat][0]);
    const values = (cells.length ? cells : page.reported.runs.map((run) => run[reader.state().stat])).filter((value) => value > 0);
    return Math.max(...values) / Math.min(...values) > 10 ** DECADES ? "lin-log" : "linear";
  }

  // --- What each chart draws --------------------------------------------------------------------------------------------

  function interval(part, [, low, high, estimable], runs) {
    const spread = page.spreads[reader.state().stat];
    if (spread) return runs > 1 || !spread.includes("run means") ? `${spread}: ${range(low, high)}` : "one run only";
    if (!estimable) return "not estimable: too few requests beyond it";
    if (part === "ok") return "not computed for code 200 alone";
    if (low === null) return runs > 1 ? "none, or too wide to draw: see the table" : "none: it takes more than one run";
    return `${page.confidence}: ${range(low, high)}`;
  }

  const range = (low, high) => `${latencyText(low)} to ${latency(high)}`;

  function acrossLoad(part) {
    const rows = source().cells.filter((cell) => shown(cell.variant)).map((cell) => {
      const estimate = cell[part][reader.state().stat];
      const [value, low, high, estimable] = estimate;
      return {
        variant: cell.variant, label: labels.get(cell.variant), load: cell.rate, value, low, high, from: low, to: high, estimable, run: "all",
        interval: interval(part, estimate, cell.runs), runs: cell.runs,
        requests: part === "ok" ? cell.ok_requests : cell.requests, ...placeOf(cell),
      };
    });
    return cut(rows.filter((row) => row.value !== null).sort(byVariant));
  }

  // Every run that counts, where its own requests are enough for the figure.
  const FIGURES = ["mean", "p50", "p90", "p99"];
  const figureOf = (stat) => ({ summaries: "mean", raw: "mean" }[stat] || stat);

  function runPoints(part) {
    const place = FIGURES.indexOf(figureOf(reader.state().stat)), each = page.pictured ? page.pictured.each : [];
    return each.map((run) => ({ ...run, name: page.variants[run.variant].name, value: run[part][place] }))
      .filter((run) => run.value !== null && shown(run.name))
      .map((run) => ({
        variant: run.name, label: labels.get(run.name), load: run.rate, value: run.value, run: runName(run),
        text: `${run.timeouts && place === 0 ? "at least " : ""}${latencyText(run.value)}`, interval: "–", runs: 1,
        requests: part === "ok" ? run.ok_requests : run.requests,
      })).sort(byVariant);
  }

  // As `cut`: one run that went wrong would flatten all figures.
  function runsWithin(part) {
    const values = acrossLoad(part).map((row) => row.value);
    const [lowest, highest] = [Math.min(...values) / BEYOND, Math.max(...values) * BEYOND];
    return runPoints(part).filter((run) => run.value >= lowest && run.value <= highest);
  }

  const campaigns = new Set((page.pictured ? page.pictured.each : []).map((run) => run.of));
  const runName = ({ run, of }) => (campaigns.size > 1 ? `${run} of ${of}` : String(run));

  const everyKnee = page.concluded ? page.concluded.knees : [];
  const isBeyond = (variant, rate) => everyKnee.some((each) => each.variant === variant && each.beyond.includes(rate));
  const placeOf = ({ variant, rate }) => (isBeyond(variant, rate) ? { beyond: true, place: "this load is beyond it" } : { beyond: false, place: "–" });

  const knees = () => everyKnee.filter((each) => each.knee !== null && shown(each.variant));

  // One interval from a few scattered runs can be a thousand times as high as every value, and would flatten them all.
  function cut(rows) {
    const values = rows.map((row) => row.value);
    const [lowest, highest] = [Math.min(...values) / BEYOND, Math.max(...values) * BEYOND];
    return rows.map((row) => (row.low === null || (row.low >= lowest && row.high <= highest)
      ? row
      : { ...row, low: Math.max(row.low, lowest), high: Math.min(row.high, highest), cut: true }));
  }

  const latencyNote = () => [cutNote(), farNote("all"), kneeNote()].join(" ").trim();
  function farNote(part) {
    const far = runPoints(part).length - runsWithin(part).length;
    return far ? `${far === 1 ? "One run lies" : `${count(far)} runs lie`} beyond ${BEYOND} times the highest value, or below the lowest by as much, and ${far === 1 ? "is" : "are"} not drawn: the table has ${far === 1 ? "it" : "them"}.` : "";
  }

  const kneeNote = () => (knees().length || acrossLoad("all").some((row) => row.beyond)
    ? "A dashed rule is a variant's knee, its band the interval; crosses are beyond it." : "");
  const cutNote = () => (acrossLoad("all").some((row) => row.cut)
    ? `An interval that reaches beyond ${BEYOND} times the highest value, or below the lowest by as much, is cut in the picture; the table has it whole.`
    : "");

  const reported = () => page.reported.runs
    .filter((run) => shown(run.variant) && run[reader.state().stat] !== null)
    .map((run) => ({ ...run, label: labels.get(run.variant), value: run[reader.state().stat] })).sort(byVariant);

  const percentiles = () => page.reported.percentiles.filter((row) => shown(row.variant))
    .map((row) => ({ ...row, label: labels.get(row.variant) }));

  // The line stays whatever is hidden: it is of all runs.
  // Lines come first: names beside line ends are for charts whose rows have a variant.
  const fit = ({ class: number }) => [
    ...page.fits[number].line.map((point) => ({ ...point, kind: "line" })),
    ...page.fits[number].runs.filter((run) => shown(run.variant)).map((run) => ({ ...run, kind: "run", label: labels.get(run.variant) })),
  ];

  function shares(entries) {
    return entries.filter((entry) => shown(entry.variant)).map((entry) => {
      const [share, spread] = [entry.share * 100, (entry.spread || 0) * 100];
      return {
        variant: entry.variant, label: labels.get(entry.variant), load: entry.load, share,
        low: Math.max(0, share - spread), high: Math.min(100, share + spread),
        interval: `± one standard deviation over runs: ${significant(spread)} points`,
      };
    }).sort(byVariant);
  }

  const anyAbove = (rows) => (rows.some((row) => row.share > 0) ? rows : []);

  const failed = () => anyAbove(shares(source().cells.filter((cell) => cell.failed[0] !== null).map((cell) => (
    { variant: cell.variant, load: cell.rate, share: cell.failed[0], spread: cell.failed[1] }))));

  // A cell that never saw this class of error has a share of zero: the class's lines go through every cell.
  const errors = ({ class: name }) => anyAbove(shares(source().cells.filter((cell) => cell.requests).map((cell) => {
    const found = source().errors.find((error) => (
      error.error_class === name && error.rate === cell.rate && error.variant === cell.variant));
    return { variant: cell.variant, load: cell.rate, share: found ? found.share : 0, spread: found ? found.share_std : 0 };
  })));

  function overTime({ stat }) {
    const { time } = reader.rate();
    return time.variant.map((variant, index) => ({
      variant, label: labels.get(variant), phase: time.phase[index], value: time[stat][index],
      time: time.start_s[index] + time.width_s / 2, start: time.start_s[index], end: time.start_s[index] + time.width_s,
      requests: time.requests[index],
    })).filter((row) => shown(row.variant)).sort((one, other) => byVariant(one, other) || one.time - other.time);
  }

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
    const [low, p99, high] = run.histogram.edges, counts = run.histogram[reader.state().scale];
    const edge = reader.state().scale === "log"
      ? (share) => low * Math.pow(high / low, share)
      : (share) => low + (p99 - low) * share;
    return counts.map((number, index) => (
      { low: edge(index / counts.length), high: edge((index + 1) / counts.length), count: number }));
  }

  const VARIANT = ["label", "Variant"], LOAD = ["load", `Load (${page.load_unit})`, count];
  const LATENCY = `Latency (${page.unit})`;
  const ACROSS = [VARIANT, LOAD, ["run", "Run"], ["value", LATENCY, latencyText], ["interval", "Interval"], ["requests", "Requests", count], ["runs", "Runs", count]];
  const ENDS = [["from", `Low (${page.unit})`], ["to", `High (${page.unit})`], ["estimable", "Estimable"]];
  const SPREAD = [["low", "Low (%)"], ["high", "High (%)"]];
  const SHARES = [VARIANT, LOAD, ["share", "Share of requests (%)", significant], ["interval", "Spread"]];
  const CHARTS = {
    latency: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("all"), runs: () => runsWithin("all"), more: () => runPoints("all"), knees, note: latencyNote, columns: ACROSS, extra: [...ENDS, ["beyond", "Beyond its knee"]], words: lines("value", latency), empty: "No requests to draw." },
    success: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("ok"), runs: () => runsWithin("ok"), note: () => farNote("ok"), more: () => runPoints("ok"), columns: ACROSS, extra: ENDS, words: lines("value", latency), empty: "No request was answered with 200." },
    reported: {
      uses: ["stat", "axes", "hide"], rows: reported, words: lines("value", latency), empty: "No run's report has this figure.",
      columns: [VARIANT, LOAD, ["run", "Run", count], ["value", LATENCY, latencyText], ["evidence", "From"]],
    },
    fit: {
      uses: ["hide"], rows: fit, spec: ({ class: number }) => `fit-${number}`, words: (rows, { class: number }) => page.fits[number].says, listed: (row) => row.kind === "run", empty: "No run that is shown has this figure.",
      columns: ({ class: number }) => {
        const [across, up] = page.fits[number].axes;
        return [VARIANT, ["load", LOAD[1], undefined, ["rate", LOAD[1]]], ["run", "Run"], ["x", across, (value) => String(value)], ["value", up, significant]];
      },
    },
    percentiles: {
      uses: ["axes", "hide"], rows: percentiles, words: slowest, empty: "No variant that is shown has a histogram.",
      columns: [VARIANT, ["series", "Run"], ["share", "Share of requests (%)", (value) => String(+value.toFixed(5))], ["value", `Latency at most (${page.unit})`, latencyText]],
    },
    failed: { uses: ["axes", "hide", "of"], rows: failed, columns: SHARES, extra: SPREAD, words: lines("share", percent), empty: "No request failed at any load." },
    errors: { uses: ["axes", "hide", "of"], rows: errors, columns: SHARES, extra: SPREAD, words: lines("share", percent), empty: "No variant that is shown had errors of this class." },
    time: {
      uses: ["rate", "axes", "hide"], loads: true, rows: overTime, words: ends, empty: "No run at this load counts.",
      columns: [VARIANT, ["phase", "Phase"], ["start", "From (s)", significant], ["end", "To (s)", significant], ["value", LATENCY, latencyText], ["requests", "Requests", count]],
    },
    cdf: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: distribution, empty: "No run to show.",
      words: summary, columns: [["share", "Share of requests (%)", (value) => String(+value.toFixed(2))], ["latency", `Latency at most (${page.unit})`, latencyText]],
    },
    sequence: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: requestsInOrder, words: summary, note: sequenceNote, empty: "No run to show.",
      spec: () => (reader.run() && !reader.run().points ? "bins" : "points"),
      columns: () => (reader.run() && !reader.run().points
        ? [["first", "First request", count], ["last", "Last", count], ["min", `Minimum (${page.unit})`, latencyText], ["p50", `Median (${page.unit})`, latencyText], ["p99", `p99 (${page.unit})`, latencyText], ["max", `Maximum (${page.unit})`, latencyText], ["failed", "Failed", count]]
        : [["number", "Request", count], ["latency", LATENCY, latencyText], ["outcome", "Outcome"]]),
    },
    histogram: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: histogram, words: summary, note: histogramNote, empty: "No run to show.",
      columns: [["low", `From (${page.unit})`, latencyText], ["high", `To (${page.unit})`, latencyText], ["count", "Requests", count]],
    },
  };

  // --- The same in words ------------------------------------------------------------------------------------------------

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

  function slowest(rows) {
    return [...new Set(rows.map((row) => row.series))].map((series) => {
      const own = rows.filter((row) => row.series === series), last = own[own.length - 1];
      return `${last.label}, ${series}: ${latency((own.find((row) => row.share >= 50) || last).value)} in the middle, ${latency(last.value)} at most.`;
    }).join(" ");
  }

  function ends(rows) {
    return groups(rows.filter((row) => row.phase === "test")).map(([label, own]) => (
      `${label}: ${latency(own[0].value)} at first, ${latency(own[own.length - 1].value)} at the end.`)).join(" ");
  }

  function sequenceNote() {
    const run = reader.run();
    if (run.points) return run.points.failed.length ? "Each dot is a request; crosses are failed ones." : "Each dot is a request.";
    return `Bins of about ${count(Math.round(run.requests / run.bins.length))} consecutive requests: median (solid), ${
      run.bins.some((bin) => bin[5] !== null) ? "99th percentile (dashed), " : ""}minimum to maximum (bars).`;
  }

  function histogramNote() {
    const { edges, beyond } = reader.run().histogram;
    if (reader.state().scale === "log" || !beyond) return "";
    return `The slowest ${count(beyond)} of the run's requests, up to ${latency(edges[2])}, lie beyond the right edge.`;
  }

  function summary() {
    const { requests, figures: found } = reader.run();
    const told = [["median", "p50"], ["99th percentile", "p99"], ["maximum", "max"]].filter(([, name]) => found[name] !== undefined);
    return `${count(requests)} requests: ${told.map(([name, field]) => `${name} ${latency(found[field])}`).join(", ")}.`;
  }

  const tools = { labels, shown, byVariant, lines, latency, latencyText, figureOf, runName };
  for (const set of loadstone.figureSets) Object.assign(CHARTS, set(page, reader, tools));
  return { charts: CHARTS, axes, latency };
};
