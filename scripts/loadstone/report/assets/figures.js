/* What each chart of a campaign page draws: its rows, its table's columns and the same in words.
 *
 * loadstone.figures(page, reader) gives the charts by name, the axes and the texts of numbers. `page` is the page's data, `reader`
 * tells what its reader has chosen: state(), rate() (the loaded data of the chosen rate, if any) and run() (the chosen
 * run of it). Nothing here touches the document.
 */
window.loadstone = window.loadstone || {};
window.loadstone.figures = function figures(page, reader) {
  "use strict";

  const labels = new Map(page.variants.map((variant) => [variant.name, variant.label]));
  const order = new Map(page.variants.map((variant, position) => [variant.name, position]));

  // --- Numbers as people read them (as loadstone/report/numbers.py) -----------------------------------------------------

  function significant(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const rounded = Math.abs(value) < 1000 ? Number(value.toPrecision(3)) : Math.round(value);
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
    return rounded.toLocaleString("en-GB", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  }

  const count = (value) => value.toLocaleString("en-GB");
  const latency = (value) => `${significant(value)} ${page.unit}`;
  const percent = (value) => (value > 99.95 && value < 100 ? "over 99.9 %" : `${significant(value)} %`);
  const shown = (name) => !reader.state().hide.includes(name);
  const byVariant = (one, other) => order.get(one.variant) - order.get(other.variant) || one.load - other.load;

  const BEYOND = 3, DECADES = 1.5;

  // What counts, or everything with the left-out runs put back.
  const source = () => (page.put_back && reader.state().of === "all" ? page.put_back : page);

  // On a linear axis one variant that saturates would press all others flat.
  function axes() {
    if (reader.state().axes) return reader.state().axes;
    const values = source().cells.map((cell) => cell.all[reader.state().stat][0]).filter((value) => value > 0);
    return Math.max(...values) / Math.min(...values) > 10 ** DECADES ? "lin-log" : "linear";
  }

  // --- What each chart draws --------------------------------------------------------------------------------------------

  function interval(part, [, low, high, estimable], runs) {
    const spread = page.spreads[reader.state().stat];
    if (spread) return runs > 1 || !spread.includes("run means") ? `${spread}: ${range(low, high)}` : "one run only";
    if (!estimable) return "not estimable: too few requests beyond it";
    if (part === "ok") return "not computed for code 200 alone";
    if (low === null) return "none: it takes more than one run";
    return high > 100 * low ? "too few runs: they differ too much" : `95 %: ${range(low, high)}`;
  }

  const range = (low, high) => `${significant(low)} to ${latency(high)}`;

  function acrossLoad(part) {
    const rows = source().cells.filter((cell) => shown(cell.variant)).map((cell) => {
      const estimate = cell[part][reader.state().stat];
      const [value, low, high, estimable] = estimate;
      return {
        variant: cell.variant, label: labels.get(cell.variant), load: cell.rate, value, low, high, estimable,
        interval: interval(part, estimate, cell.runs), runs: cell.runs,
        requests: part === "ok" ? cell.ok_requests : cell.requests,
      };
    });
    return cut(rows.filter((row) => row.value !== null).sort(byVariant));
  }

  // One interval from a few scattered runs can be a thousand times as high as every value, and would flatten them all.
  function cut(rows) {
    const values = rows.map((row) => row.value);
    const [lowest, highest] = [Math.min(...values) / BEYOND, Math.max(...values) * BEYOND];
    return rows.map((row) => (row.low === null || (row.low >= lowest && row.high <= highest)
      ? row
      : { ...row, low: Math.max(row.low, lowest), high: Math.min(row.high, highest), cut: true }));
  }

  const cutNote = () => (acrossLoad("all").some((row) => row.cut)
    ? `An interval that reaches beyond ${BEYOND} times the highest value, or below the lowest by as much, is cut in the picture; the table has it whole.`
    : "");

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
        { number: (first + last) / 2, first, last, failed: missed, min, p50, p99, max }));
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

  const VARIANT = ["label", "Variant"], LOAD = ["load", "Load (requests/s)", count];
  const LATENCY = `Latency (${page.unit})`;
  const ACROSS = [VARIANT, LOAD, ["value", LATENCY, significant], ["interval", "Interval"], ["requests", "Requests", count], ["runs", "Runs", count]];
  const SHARES = [VARIANT, LOAD, ["share", "Share of requests (%)", significant], ["interval", "Spread"]];
  const CHARTS = {
    latency: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("all"), note: cutNote, columns: ACROSS, words: lines("value", latency), empty: "No requests to draw." },
    success: { uses: ["stat", "axes", "hide", "of"], rows: () => acrossLoad("ok"), columns: ACROSS, words: lines("value", latency), empty: "No request was answered with 200." },
    failed: { uses: ["axes", "hide", "of"], rows: failed, columns: SHARES, words: lines("share", percent), empty: "No request failed at any load." },
    errors: { uses: ["axes", "hide", "of"], rows: errors, columns: SHARES, words: lines("share", percent), empty: "No variant that is shown had errors of this class." },
    time: {
      uses: ["rate", "axes", "hide"], loads: true, rows: overTime, words: ends, empty: "No run at this load counts.",
      columns: [VARIANT, ["phase", "Phase"], ["start", "From (s)", significant], ["end", "To (s)", significant], ["value", LATENCY, significant], ["requests", "Requests", count]],
    },
    cdf: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: distribution, empty: "No run to show.",
      words: summary, columns: [["share", "Share of requests (%)", (value) => String(+value.toFixed(2))], ["latency", `Latency at most (${page.unit})`, significant]],
    },
    sequence: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: requestsInOrder, words: summary, note: sequenceNote, empty: "No run to show.",
      spec: () => (reader.run() && !reader.run().points ? "bins" : "points"),
      columns: () => (reader.run() && !reader.run().points
        ? [["first", "First request", count], ["last", "Last", count], ["min", `Minimum (${page.unit})`, significant], ["p50", `Median (${page.unit})`, significant], ["p99", `p99 (${page.unit})`, significant], ["max", `Maximum (${page.unit})`, significant], ["failed", "Failed", count]]
        : [["number", "Request", count], ["latency", LATENCY, significant], ["outcome", "Outcome"]]),
    },
    histogram: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: histogram, words: summary, note: histogramNote, empty: "No run to show.",
      columns: [["low", `From (${page.unit})`, significant], ["high", `To (${page.unit})`, significant], ["count", "Requests", count]],
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
      if (first === last) return `${label}: ${text(first[field])} at ${count(first.load)} requests/s.`;
      return `${label}: ${text(first[field])} at ${count(first.load)} requests/s, ${text(last[field])} at ${count(last.load)}.`;
    }).join(" ");
  }

  function ends(rows) {
    return groups(rows.filter((row) => row.phase === "test")).map(([label, own]) => (
      `${label}: ${latency(own[0].value)} at first, ${latency(own[own.length - 1].value)} at the end.`)).join(" ");
  }

  function sequenceNote() {
    const run = reader.run();
    if (run.points) return run.points.failed.length ? "Each dot is a request; crosses are failed ones." : "Each dot is a request.";
    return `Bins of about ${count(Math.round(run.requests / run.bins.length))} consecutive requests: median (solid), 99th percentile (dashed), minimum to maximum (bars).`;
  }

  function histogramNote() {
    const { edges, beyond } = reader.run().histogram;
    if (reader.state().scale === "log" || !beyond) return "";
    return `The slowest ${count(beyond)} of the run's requests, up to ${latency(edges[2])}, lie beyond the right edge.`;
  }

  function summary() {
    const { requests, figures: found } = reader.run();
    return `${count(requests)} requests: median ${latency(found.p50)}, 99th percentile ${latency(found.p99)}, maximum ${latency(found.max)}.`;
  }

  return { charts: CHARTS, axes, count, latency, percent };
};
