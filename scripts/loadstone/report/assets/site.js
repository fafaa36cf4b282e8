/* Draws a campaign page's charts, makes its controls work and keeps what is chosen in the address.
 *
 * The page brings two elements of JSON: #page-data (loadstone/report/campaign_page.py, page_data) and #chart-specs
 * (loadstone/report/charts.py, specifications). What one rate needs comes from a script of its own, loaded when the
 * rate is chosen, which calls loadstone.receive: a page opened from a file may load scripts but not read files.
 * Text from the archive only ever becomes textContent, a chart's data or an attribute's value.
 */
(function () {
  "use strict";

  const page = JSON.parse(document.getElementById("page-data").textContent);
  const specs = JSON.parse(document.getElementById("chart-specs").textContent);
  const labels = new Map(page.variants.map((variant) => [variant.name, variant.label]));
  const order = new Map(page.variants.map((variant, position) => [variant.name, position]));
  const views = new Map();

  // --- What is chosen ------------------------------------------------------------------------------------------------

  const DEFAULTS = {
    stat: "p50", axes: "linear", rate: page.rate, scale: "linear",
    variant: page.variants.length ? page.variants[0].name : "", run: "", hide: [],
  };
  const CHOICES = {
    stat: Object.keys(page.statistics), axes: ["linear", "log", "lin-log"], scale: ["linear", "log"],
    rate: page.rates, variant: page.variants.map((variant) => variant.name),
  };
  let state = fromAddress();

  function fromAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const chosen = { ...DEFAULTS };
    for (const [name, allowed] of Object.entries(CHOICES)) {
      if (allowed.includes(given.get(name))) chosen[name] = given.get(name);
    }
    chosen.run = given.get("run") || "";
    chosen.hide = given.getAll("hide").filter((name) => labels.has(name));
    return chosen;
  }

  function toAddress() {
    const parameters = new URLSearchParams();
    for (const name of ["stat", "axes", "rate", "scale", "variant", "run"]) {
      if (state[name] !== DEFAULTS[name]) parameters.set(name, state[name]);
    }
    state.hide.forEach((name) => parameters.append("hide", name));
    const hash = "#" + parameters;
    if (location.hash !== hash && (location.hash || parameters.size)) history.replaceState(null, "", hash);
  }

  function choose(changes) {
    const names = Object.keys(changes).filter((name) => String(state[name]) !== String(changes[name]));
    state = { ...state, ...changes };
    toAddress();
    showControls();
    if (names.length) update(names);
  }

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
  const shown = (name) => !state.hide.includes(name);
  const byVariant = (one, other) => order.get(one.variant) - order.get(other.variant) || one.load - other.load;

  // --- What each chart draws --------------------------------------------------------------------------------------------

  function interval(part, [, low, high, estimable], runs) {
    if (state.stat === "mean") return runs > 1 ? `± one standard deviation of run means: ${range(low, high)}` : "one run only";
    if (part === "ok") return "not computed for code 200 alone";
    if (!estimable) return "not estimable: too few requests beyond it";
    return low === null ? "none: it takes more than one run" : `95 %: ${range(low, high)}`;
  }

  const range = (low, high) => `${significant(low)} to ${latency(high)}`;

  function acrossLoad(part) {
    const rows = page.cells.filter((cell) => shown(cell.variant)).map((cell) => {
      const estimate = cell[part][state.stat];
      const [value, low, high, estimable] = estimate;
      return {
        variant: cell.variant, label: labels.get(cell.variant), load: cell.rate, value, low, high, estimable,
        interval: interval(part, estimate, cell.runs), runs: cell.runs,
        requests: part === "ok" ? cell.ok_requests : cell.requests,
      };
    });
    return rows.filter((row) => row.value !== null).sort(byVariant);
  }

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

  const failed = () => shares(page.cells.filter((cell) => cell.failed[0] !== null).map((cell) => (
    { variant: cell.variant, load: cell.rate, share: cell.failed[0], spread: cell.failed[1] })));

  // A cell that never saw this class of error has a share of zero: the class's lines go through every cell.
  const errors = ({ class: name }) => shares(page.cells.filter((cell) => cell.requests).map((cell) => {
    const found = page.errors.find((error) => (
      error.error_class === name && error.rate === cell.rate && error.variant === cell.variant));
    return { variant: cell.variant, load: cell.rate, share: found ? found.share : 0, spread: found ? found.share_std : 0 };
  }));

  function overTime({ stat }) {
    const { time } = loaded();
    return time.variant.map((variant, index) => ({
      variant, label: labels.get(variant), phase: time.phase[index], value: time[stat][index],
      time: time.start_s[index] + time.width_s / 2, start: time.start_s[index], end: time.start_s[index] + time.width_s,
      requests: time.requests[index],
    })).filter((row) => shown(row.variant)).sort((one, other) => byVariant(one, other) || one.time - other.time);
  }

  function distribution() {
    const run = chosenRun();
    return run ? loaded().shares.map((share, index) => ({ share: share * 100, latency: run.cdf[index] })) : [];
  }

  function requestsInOrder() {
    const run = chosenRun();
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
    const run = chosenRun();
    if (!run) return [];
    const [low, p99, high] = run.histogram.edges, counts = run.histogram[state.scale];
    const edge = state.scale === "log"
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
    latency: { uses: ["stat", "axes", "hide"], rows: () => acrossLoad("all"), columns: ACROSS, words: lines("value", latency), empty: "No requests to draw." },
    success: { uses: ["stat", "axes", "hide"], rows: () => acrossLoad("ok"), columns: ACROSS, words: lines("value", latency), empty: "No request was answered with 200." },
    failed: { uses: ["axes", "hide"], rows: failed, columns: SHARES, words: lines("share", percent), empty: "No requests to draw." },
    errors: { uses: ["axes", "hide"], rows: errors, columns: SHARES, words: lines("share", percent), empty: "No requests to draw." },
    time: {
      uses: ["rate", "axes", "hide"], loads: true, rows: overTime, words: ends, empty: "No run at this load counts.",
      columns: [VARIANT, ["phase", "Phase"], ["start", "From (s)", significant], ["end", "To (s)", significant], ["value", LATENCY, significant], ["requests", "Requests", count]],
    },
    cdf: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: distribution, empty: "No run to show.",
      words: () => "", columns: [["share", "Share of requests (%)", (value) => String(+value.toFixed(2))], ["latency", `Latency at most (${page.unit})`, significant]],
    },
    sequence: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: requestsInOrder, words: sequenceWords, empty: "No run to show.",
      spec: () => (chosenRun() && !chosenRun().points ? "bins" : "points"),
      columns: () => (chosenRun() && !chosenRun().points
        ? [["first", "First request", count], ["last", "Last", count], ["min", `Minimum (${page.unit})`, significant], ["p50", `Median (${page.unit})`, significant], ["p99", `p99 (${page.unit})`, significant], ["max", `Maximum (${page.unit})`, significant], ["failed", "Failed", count]]
        : [["number", "Request", count], ["latency", LATENCY, significant], ["outcome", "Outcome"]]),
    },
    histogram: {
      uses: ["rate", "variant", "run", "scale"], loads: true, rows: histogram, words: histogramWords, empty: "No run to show.",
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

  function sequenceWords() {
    const run = chosenRun();
    if (run.points) return run.points.failed.length ? "Each dot is a request; crosses are failed ones." : "Each dot is a request.";
    return `Bins of about ${count(Math.round(run.requests / run.bins.length))} consecutive requests: median (solid), 99th percentile (dashed), minimum to maximum (bars).`;
  }

  function histogramWords() {
    const { edges, beyond } = chosenRun().histogram;
    if (state.scale === "log" || !beyond) return "";
    return `The slowest ${count(beyond)} of the run's requests, up to ${latency(edges[2])}, lie beyond the right edge.`;
  }

  // --- Drawing ----------------------------------------------------------------------------------------------------------

  const OPTIONS = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config: specs.config,
    tooltip: { disableDefaultStyle: true },
  };

  function scaleOf(kind, inspected) {
    if (inspected) return kind === "latency" ? state.scale : "linear";
    if (kind === "load") return state.axes === "log" ? "log" : "linear";
    return kind === "latency" && state.axes !== "linear" ? "log" : "linear";
  }

  function setScale(spec, channel, type) {
    (spec.layer || []).forEach((layer) => setScale(layer, channel, type));
    const encoding = spec.encoding && spec.encoding[channel];
    if (encoding && encoding.field && encoding.scale !== null) encoding.scale = { ...encoding.scale, type };
  }

  // A logarithmic axis has no zero: what reaches it or below is drawn to just under the smallest value.
  function positive(rows) {
    const least = Math.min(...rows.flatMap((row) => [row.low, row.value, row.latency]).filter((value) => value > 0));
    return rows.map((row) => (row.low <= 0 && row.low !== null ? { ...row, low: least / 1.5 } : row));
  }

  function prepared(chart, figure, rows) {
    const spec = structuredClone(specs[chart.spec ? chart.spec() : figure.dataset.chart]);
    const { x, y } = spec.usermeta.axes;
    const inspected = chart.uses.includes("scale");
    setScale(spec, "x", scaleOf(x, inspected));
    setScale(spec, "y", scaleOf(y, inspected));
    const drawn = scaleOf(y, inspected) === "log" ? positive(rows) : rows;
    spec.datasets = { rows: drawn, labels: [] };
    if (hasRoomForLabels(figure)) spec.padding = { left: 2, top: 6, bottom: 4, right: labelWidth(rows) };
    return spec;
  }

  const named = (rows) => rows.length > 0 && rows[0].variant !== undefined;
  const hasRoomForLabels = (figure) => figure.querySelector(".plot").clientWidth >= 460;
  const labelWidth = (rows) => (named(rows) ? 26 + Math.min(170, 6.9 * Math.max(...rows.map((row) => row.label.length))) : 4);

  // Beside each line's end stands its variant's name, moved until none covers another.
  function placeLabels(view, rows) {
    const last = new Map();
    rows.forEach((row) => last.set(row.variant, row));
    const scale = view.scale("y"), height = view.height(), gap = 17;
    const placed = [...last.values()]
      .map((row) => ({ variant: row.variant, label: row.label, y: scale(row.share === undefined ? row.value : row.share) }))
      .sort((one, other) => one.y - other.y);
    for (let round = 0; round < 60; round += 1) {
      for (let index = 1; index < placed.length; index += 1) {
        const overlap = gap - (placed[index].y - placed[index - 1].y);
        if (overlap > 0) {
          placed[index].y += overlap / 2;
          placed[index - 1].y -= overlap / 2;
        }
      }
      placed.forEach((label, index) => {
        label.y = Math.max(4 + index * gap, Math.min(height - 4 - (placed.length - 1 - index) * gap, label.y));
      });
    }
    return view.data("labels", placed).runAsync();
  }

  async function draw(figure) {
    const chart = CHARTS[figure.dataset.chart];
    const plot = figure.querySelector(".plot"), words = figure.querySelector(".words");
    const name = figure.id;
    if (chart.loads && !loaded()) return;
    if (views.has(name)) views.get(name).finalize();
    views.delete(name);
    const rows = chart.rows(figure.dataset);
    figure.dataset.rows = rows.length;
    plot.classList.toggle("short", !rows.length);
    const text = rows.length ? chart.words(rows) : chart.empty;
    words.textContent = text;
    plot.setAttribute("aria-label", `${figure.querySelector("h3, h4").textContent}. ${text}`);
    fillTable(figure, chart, rows);
    if (!rows.length) {
      plot.replaceChildren();
    } else {
      const result = await vegaEmbed(plot, prepared(chart, figure, rows), OPTIONS);
      views.set(name, result);
      if (named(rows) && hasRoomForLabels(figure)) await placeLabels(result.view, rows);
    }
    figure.dataset.drawn = String(Number(figure.dataset.drawn || 0) + 1);
  }

  // One drawing of a figure after the other: the last choice is what stays.
  const queues = new Map();
  function redraw(figure) {
    const next = (queues.get(figure) || Promise.resolve()).then(() => draw(figure)).catch((error) => {
      figure.querySelector(".words").textContent = "This chart could not be drawn.";
      console.error(error);
    });
    queues.set(figure, next);
    return next;
  }

  function fillTable(figure, chart, rows) {
    const details = figure.querySelector("details");
    const fill = () => {
      const columns = typeof chart.columns === "function" ? chart.columns() : chart.columns;
      details.querySelector(".scroll").replaceChildren(table(columns, rows));
    };
    details.ontoggle = () => details.open && fill();
    if (details.open) fill();
  }

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function table(columns, rows) {
    const style = ([, , format]) => (format ? "n" : "");
    const head = columns.map((column) => element("th", { scope: "col", className: style(column), textContent: column[1] }));
    const body = rows.map((row) => element("tr", {}, ...columns.map((column) => element("td", {
      className: style(column), textContent: column[2] ? column[2](row[column[0]]) : row[column[0]],
    }))));
    return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  }

  // --- What is loaded when a rate is chosen -----------------------------------------------------------------------------

  const received = new Map(), pending = new Map();
  const loaded = () => received.get(state.rate);

  function load(rate) {
    if (received.has(rate)) return Promise.resolve();
    if (!pending.has(rate)) {
      pending.set(rate, new Promise((resolve, reject) => {
        const source = `${encodeURIComponent(page.folder)}/${encodeURIComponent(rate)}.js`;
        const script = element("script", { src: source, onload: resolve });
        script.onerror = () => { pending.delete(rate); reject(new Error(`${source} could not be loaded`)); };
        document.head.append(script);
      }));
    }
    return pending.get(rate);
  }

  function runKey(run) {
    const twins = loaded().runs.filter((other) => other.variant === run.variant && other.run === run.run);
    return twins.length > 1 ? `${run.run}@${run.folder}` : String(run.run);
  }

  const runsOfVariant = () => (loaded() ? loaded().runs.filter((run) => run.variant === state.variant) : []);
  const chosenRun = () => runsOfVariant().find((run) => runKey(run) === state.run) || runsOfVariant()[0];

  function showInspector() {
    const select = document.querySelector("select[name=run]"), run = chosenRun();
    select.replaceChildren(...runsOfVariant().map((other) => element("option", {
      value: runKey(other), textContent: `Run ${runKey(other)}${other.left_out ? " (left out)" : ""}`,
    })));
    select.disabled = !run;
    if (run) select.value = runKey(run);
    const note = document.getElementById("left-out");
    note.hidden = !(run && run.left_out);
    note.textContent = run && run.left_out ? `This run is left out of every statistic: ${run.left_out}.` : "";
    const figures = run ? [
      ["Requests", count(run.requests)], ["Success", percent(run.success * 100)], ["Mean", latency(run.figures.mean)],
      ["Minimum", latency(run.figures.min)], ["Median", latency(run.figures.p50)], ["p90", latency(run.figures.p90)],
      ["p95", latency(run.figures.p95)], ["p99", latency(run.figures.p99)], ["p99.9", latency(run.figures.p999)],
      ["Maximum", latency(run.figures.max)],
    ] : [];
    document.getElementById("run-figures").replaceChildren(...figures.map(([term, text]) => (
      element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: text })))));
    document.documentElement.style.setProperty("--run", `var(--variant-${order.get(state.variant)})`);
  }

  // --- Controls -----------------------------------------------------------------------------------------------------------

  function showControls() {
    document.querySelectorAll("input[type=radio]").forEach((input) => { input.checked = state[input.name] === input.value; });
    document.querySelectorAll("input[name=hide]").forEach((input) => { input.checked = shown(input.value); });
    document.querySelectorAll("select[name=rate], select[name=variant]").forEach((select) => { select.value = state[select.name]; });
    document.querySelectorAll("[data-says]").forEach((place) => {
      place.textContent = place.dataset.says === "stat" ? page.statistics[state.stat].toLowerCase() : count(Number(state.rate));
    });
  }

  async function update(names) {
    const affected = [...document.querySelectorAll("figure[data-chart]")].filter((figure) => (
      !names || CHARTS[figure.dataset.chart].uses.some((use) => names.includes(use))));
    const [waiting, ready] = [affected.filter((figure) => CHARTS[figure.dataset.chart].loads), affected.filter((figure) => !CHARTS[figure.dataset.chart].loads)];
    const drawing = ready.map(redraw);
    if (waiting.length && state.rate) {
      const problem = document.getElementById("load-problem");
      try {
        await load(state.rate);
        problem.hidden = true;
        showInspector();
        drawing.push(...waiting.map(redraw));
      } catch (error) {
        problem.textContent = `The data of this load could not be loaded: ${error.message}. Was the page moved without its folder?`;
        problem.hidden = false;
      }
    }
    await Promise.all(drawing);
  }

  function listen() {
    document.addEventListener("change", ({ target }) => {
      if (target.name === "hide") {
        choose({ hide: [...document.querySelectorAll("input[name=hide]")].filter((input) => !input.checked).map((input) => input.value) });
      } else if (target.name === "variant" || target.name === "rate") {
        choose({ [target.name]: target.value, run: "" });
      } else if (target.name in state) {
        choose({ [target.name]: target.value });
      }
    });
    document.addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", () => {
      if (location.hash === "" || location.hash.includes("=")) choose(fromAddress());
    });
    let wide = innerWidth >= 760;
    addEventListener("resize", () => {
      // Within one layout Vega follows the width by itself; between them, labels come and go.
      if (wide !== innerWidth >= 760) { wide = innerWidth >= 760; update(); }
    });
  }

  // As a constructed style sheet, for a content security policy may forbid style elements.
  function colour() {
    const rules = (name) => page.variants.map((variant, index) => `--variant-${index}:${variant[name]};`).join("");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`:root{${rules("light")}} @media screen and (prefers-color-scheme: dark){:root{${rules("dark")}}}`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }

  window.loadstone = {
    receive(rate, content) { received.set(rate, content); },
    /** The Vega view of a figure, by the figure's id: for a look at its data and scales from the console. */
    view(name) { return views.get(name) && views.get(name).view; },
  };

  colour();
  listen();
  showControls();
  update();
})();
