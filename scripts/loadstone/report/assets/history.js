/* The chart of a variant through time: page.history comes from loadstone/report/variant_page.py (script_data). The
 * "variants" of such a page are the ways in which it was measured.
 */
loadstone.figureSets.push(function history(page, reader, tools) {
  "use strict";

  if (!page.history) return {};
  const { labels, shown, byVariant } = tools, { significant, count } = loadstone;
  const LINES = 3, LONGEST = 60;
  const isShare = () => reader.state().stat === "error_fraction";
  const steps = new Map(page.variants.map((variant, way) => [variant.name, page.steps[way]]));
  // Latencies in coarse steps have no digits between them.
  const text = (value, { variant }) => (isShare() || !steps.get(variant) ? significant(value) : value.toFixed(steps.get(variant)[1]));
  const unit = () => (isShare() ? "%" : page.unit);

  function figures() {
    const { host, rate, stat } = reader.state(), loads = page.history[host] || {};
    return ((loads[rate] || {})[stat] || []).map(([campaign, way, value, low, high, runs, level, change, levelValue, differs, least]) => {
      const [at, when, note] = page.campaigns[campaign], { name } = page.variants[way];
      return {
        kind: "point", variant: name, label: labels.get(name), at, when, value, low, high, runs, level, change, levelValue,
        differs: page.differs[differs], note: note || "", least, text: `${least ? "at least " : ""}${significant(value)}`,
        interval: low === null && least ? "none: requests timed out" : low === null ? (runs > 1 ? "none" : "one run only") : `${text(low, { variant: name })} to ${text(high, { variant: name })} ${unit()}`,
      };
    }).filter((row) => shown(row.variant)).sort((one, other) => byVariant({ ...one, load: 0 }, { ...other, load: 0 }));
  }

  // The level that a figure's own one follows.
  const before = (points, row) => points.filter((each) => each.variant === row.variant && each.level === row.level - 1).pop();

  function said(points, row) {
    const last = before(points, row);
    return `${row.when}: from ${text(last.levelValue, row)} to ${text(row.levelValue, row)} ${unit()}`;
  }

  function changes(points) {
    const dated = points.filter((row) => row.at !== null), times = dated.map((row) => row.at);
    const middle = (Math.min(...times) + Math.max(...times)) / 2;
    return dated.filter((row) => row.change && before(points, row)).map((row, index) => ({
      kind: "change", at: row.at, said: said(points, row) + (row.note ? `. ${row.note}` : ""), line: index % LINES,
      side: row.at <= middle ? "right" : "left",
      text: row.note.length > LONGEST ? `${row.note.slice(0, LONGEST)}…` : row.note || row.when,
    }));
  }

  function rows() {
    const points = figures();
    const levels = points.map((row) => ({ kind: "level", variant: row.variant, label: row.label, at: row.at, value: row.levelValue }));
    return [...levels, ...changes(points), ...points];
  }

  const atLeast = (row) => (row.least ? "at least " : "");
  const isPoint = (row) => row.kind === "point";

  function words(drawn) {
    const points = drawn.filter(isPoint);
    return [...new Set(points.map((row) => row.variant))].map((name) => {
      const own = points.filter((row) => row.variant === name), last = own[own.length - 1];
      const first = `${labels.get(name)}: ${atLeast(own[0])}${text(own[0].value, own[0])} ${unit()} on ${own[0].when}`;
      const found = own.filter((row) => row.change && before(own, row)).map((row) => said(own, row));
      return `${first}${own.length > 1 ? `, ${atLeast(last)}${text(last.value, last)} ${unit()} on ${last.when}` : ""}. ${
        found.length ? `Its level changes: ${found.join("; ")}.` : own.length > 1 ? "Its level does not change." : ""}`;
    }).join(" ");
  }

  const heading = () => (isShare() ? "Failed requests (%)" : `Latency (${page.unit})`);
  const columns = () => [
    ["when", "Campaign"], ["text", heading(), undefined, ["value", heading()]], ["interval", "Interval"],
    ["runs", "Runs", count], ["level", "Level", count], ["label", "Measured by"], ["differs", "Otherwise than before"], ["note", "Note"],
  ];
  return {
    history: {
      uses: ["stat", "axes", "rate", "host", "hide"], rows, words, columns, listed: isPoint,
      extra: () => [["low", `Low (${unit()})`], ["high", `High (${unit()})`], ["least", "At least so much"]], spec: () => (isShare() ? "history-share" : "history"),
      empty: "No campaign on this host has this figure at this load.",
    },
  };
});
