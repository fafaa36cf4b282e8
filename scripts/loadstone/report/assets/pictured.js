/* The charts over all requests of a variant: page.pictured comes from loadstone/report/distributions_section.py. `tools` are
 * those of figures.js. loadstone/report/figure_rows.py makes the same rows for figures in papers.
 */
loadstone.figureSets.push(function pictured(page, reader, tools) {
  "use strict";

  const found = page.pictured;
  if (!found) return {};
  const { labels, shown, byVariant, latency, latencyText, figureOf, runName } = tools, { count } = loadstone;
  const name = (each) => page.variants[each.variant].name;
  const NEEDS = { mean: 1, p50: 20, p90: 100, p99: 1000 };
  const statistic = () => figureOf(reader.state().stat);
  const WORDS = { mean: "mean", p50: "median", p90: "90th percentile", p99: "99th percentile" };

  // --- Latency against time and load ------------------------------------------------------------------------------------

  function bins() {
    return found.bins.filter((each) => shown(name(each))).flatMap((each) => each.from.map((from, index) => {
      const value = each[statistic()][index], least = value !== null && ((each.least || {})[statistic()] || []).includes(index);
      return {
        variant: name(each), label: labels.get(name(each)), panel: `${String(each.variant).padStart(2, "0")}:${labels.get(name(each))}`,
        load: each.rate, from, to: from + each.width, middle: from + each.width / 2,
        edge: from + each.width * (index + 1 < each.from.length ? 1.05 : 1), value, least, requests: each.requests[index], runs: each.runs,
        text: value === null ? "not estimable: too few requests" : `${least ? "at least " : ""}${latencyText(value)}`,
      };
    })).sort(byVariant);
  }

  const known = (rows) => rows.filter((row) => row.value !== null);

  const SPACE = 18, AXIS = 42, LETTER = 7, HIGHEST = 26, LOWEST = 9, USUAL = 300, TITLE = 110;

  // Round values of a logarithmic scale: enough to read it, few enough to stand apart.
  function ticks(low, high) {
    const ladder = [1, 2, 5].flatMap((digit) => Array.from({ length: 24 }, (_, power) => digit * 10 ** (power - 12)));
    const round = (values) => values.filter((value) => value >= low && value <= high).sort((one, other) => one - other);
    const fine = round(ladder), coarse = round(ladder.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9));
    if (fine.length < 2) return [low, high];
    return fine.length <= 5 || coarse.length < 2 ? fine.slice(0, 5) : coarse;
  }

  function arrange(spec, rows, width) {
    const panels = new Set(rows.map((row) => row.panel)).size, all = [...new Set(rows.map((row) => row.load))], loads = all.length;
    const beside = AXIS + LETTER * Math.max(...all.map((load) => count(load).length));
    const most = width >= 780 && panels !== 4 ? 3 : width >= 520 ? 2 : 1, columns = Math.min(panels, most);
    const values = known(rows).map((row) => row.value).filter((value) => value > 0);
    spec.columns = columns;
    spec.spacing = SPACE;
    spec.spec.width = Math.max(120, Math.floor((width - beside - (columns - 1) * SPACE) / columns));
    spec.spec.height = loads * Math.max(Math.ceil(TITLE / loads), Math.round(Math.max(LOWEST, Math.min(HIGHEST, USUAL / loads))));
    spec.facet.header.labelLimit = spec.spec.width;
    const { color } = spec.spec.layer[0].encoding, domain = values.length ? [Math.min(...values), Math.max(...values)] : [1, 10];
    color.scale.domain = domain;
    color.legend.values = ticks(...domain);
    color.legend.gradientLength = Math.min(220, width / 2, spec.spec.width - 100);  // its title is before it
  }

  const place = (row) => `at ${count(row.load)} ${page.load_unit}, ${+row.from.toFixed(3)} to ${+row.to.toFixed(3)} s`;

  function extremes(rows) {
    const all = [...new Set(rows.map((row) => row.panel))];
    return all.map((panel) => {
      const own = known(rows.filter((row) => row.panel === panel)).sort((one, other) => one.value - other.value);
      const { label } = rows.find((row) => row.panel === panel), least = own[0], most = own[own.length - 1];
      return own.length ? `${label}: least ${latency(least.value)} ${place(least)}, most ${latency(most.value)} ${place(most)}.` : `${label}: nothing is estimable.`;
    }).join(" ");
  }

  function heatNote() {
    const rows = bins(), few = rows.length - known(rows).length;
    return `Colour: the ${WORDS[statistic()]} of the requests of all runs that count, pooled, that were sent in a bin of time. ${
      few ? `A dot on grey: fewer than the ${count(NEEDS[statistic()])} requests that it takes.` : ""}`.trim();
  }

  // --- The whole distribution at one load -------------------------------------------------------------------------------

  const isChosen = (each) => String(+each.rate.toFixed(9)) === reader.state().rate && shown(name(each));

  function points(each, more) {
    return each.curve.map((value, index) => {
      const share = found.shares[each.from + index], least = each.least !== null && each.from + index >= each.least;
      return {
        variant: name(each), label: labels.get(name(each)), load: each.rate, share: share * 100, beyond: 1 / (1 - share), value,
        text: `${least ? "at least " : ""}${latencyText(value)}`, least, ...more,
      };
    });
  }

  const curves = () => found.curves.filter(isChosen).flatMap((each) => points(each, { run: "all", requests: each.requests, runs: each.runs })).sort(byVariant);
  const each = () => found.each.filter(isChosen).flatMap((run) => (
    points(run, { run: runName(run), series: `${run.variant}: ${runName(run)}`, runs: 1 }))).sort(byVariant);

  function tails(rows) {
    return [...new Set(rows.map((row) => row.variant))].map((variant) => {
      const own = rows.filter((row) => row.variant === variant), last = own[own.length - 1];
      const middle = own.find((row) => row.share >= 50) || last;
      return `${last.label}: half of the requests took at most ${latency(middle.value)}, ${+last.share.toFixed(4)} % at most ${latency(last.value)}.`;
    }).join(" ");
  }

  const shareText = (value) => String(+value.toFixed(5));
  return {
    heat: {
      uses: ["stat", "hide"], rows: () => (known(bins()).length ? bins() : []), arrange, words: extremes, note: heatNote, named: true, empty: "In no bin of time were there enough requests for this figure.",
      columns: [
        ["label", "Variant"], ["load", `Load (${page.load_unit})`, count], ["from", "From (s)", (value) => String(+value.toFixed(6))],
        ["to", "To (s)", (value) => String(+value.toFixed(6))], ["text", `Latency (${page.unit})`, undefined, ["value", `Latency (${page.unit})`]], ["requests", "Requests", count], ["runs", "Runs", count],
      ],
      extra: [["least", "At least so much"]],
    },
    curves: {
      uses: ["rate", "axes", "hide"], tail: true, rows: curves, runs: each, more: each, words: tails, empty: "No run that is shown has requests at this load.",
      columns: [
        ["label", "Variant"], ["run", "Run"], ["share", "Share of requests (%)", shareText], ["text", `Latency at most (${page.unit})`, undefined, ["value", `Latency at most (${page.unit})`]],
      ],
      extra: [["least", "At least so much"], ["requests", "Requests"]],
    },
  };
});
