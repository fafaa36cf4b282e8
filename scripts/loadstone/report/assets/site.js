/* Draws a campaign page's charts, makes its controls work and keeps what is chosen in the address.
 *
 * The page brings two elements of JSON: #page-data (script_data of loadstone/report/campaign_page.py and
 * comparison_page.py) and #chart-specs (loadstone/report/charts.py, specifications); what the charts draw is in
 * figures.js. What one rate needs comes from a script of its own, loaded when the rate is chosen, which calls
 * loadstone.receive: a page opened from a file may load scripts but not read files.
 * Text from the archive only ever becomes textContent, a chart's data or an attribute's value.
 */
(function () {
  "use strict";

  const page = JSON.parse(document.getElementById("page-data").textContent);
  const specs = JSON.parse(document.getElementById("chart-specs").textContent);
  const order = new Map(page.variants.map((variant, position) => [variant.name, position]));
  const views = new Map();
  const figures = window.loadstone.figures(page, { state: () => state, rate: () => loaded(), run: () => chosenRun() });
  const { charts: CHARTS, axes, count, latency, percent } = figures;

  // --- What is chosen ------------------------------------------------------------------------------------------------

  // Without a choice of axes, the latencies decide.
  const DEFAULTS = {
    stat: page.statistic, axes: "", rate: page.rate, scale: "linear", of: "counting",
    variant: page.variants.length ? page.variants[0].name : "", run: "", hide: [],
  };
  const CHOICES = {
    stat: Object.keys(page.statistics), axes: ["linear", "log", "lin-log"], scale: ["linear", "log"],
    of: page.put_back ? ["counting", "all"] : ["counting"],
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
    chosen.hide = given.getAll("hide").filter((name) => order.has(name));
    return chosen;
  }

  function toAddress() {
    const parameters = new URLSearchParams();
    for (const name of ["stat", "axes", "of", "rate", "scale", "variant", "run"]) {
      if (state[name] !== DEFAULTS[name]) parameters.set(name, state[name]);
    }
    state.hide.forEach((name) => parameters.append("hide", name));
    const hash = "#" + parameters;
    if (location.hash !== hash && (location.hash || parameters.size)) history.replaceState(null, "", hash);
  }

  function choose(changes) {
    const names = Object.keys(changes).filter((name) => String(state[name]) !== String(changes[name]));
    const before = axes();
    state = { ...state, ...changes };
    if (axes() !== before) names.push("axes");
    toAddress();
    showControls();
    if (names.length) update(names);
  }

  // --- Drawing ----------------------------------------------------------------------------------------------------------

  const OPTIONS = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config: specs.config,
    // Layers without rows make Vega warn of empty extents, which is nothing to mend: errors alone (1).
    tooltip: { disableDefaultStyle: true }, logLevel: 1,
  };

  function scaleOf(kind, inspected) {
    if (inspected) return kind === "latency" ? state.scale : "linear";
    if (kind === "load") return axes() === "log" ? "log" : "linear";
    return kind === "latency" && axes() !== "linear" ? "log" : "linear";
  }

  function setScale(spec, channel, type) {
    (spec.layer || []).forEach((layer) => setScale(layer, channel, type));
    const encoding = spec.encoding && spec.encoding[channel];
    if (encoding && encoding.field && encoding.scale !== null) {
      const { zero, nice, ...rest } = encoding.scale || {};
      // A logarithmic axis knows no zero, and rounding it to whole decades would leave most of it empty.
      encoding.scale = type === "log" ? { padding: 10, ...rest, nice: false, type } : { ...encoding.scale, type };
    }
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
    const width = figure.querySelector(".plot").clientWidth;
    for (const { mark } of spec.layer || []) if (mark.limit) mark.limit = Math.min(0.3 * width, 260);
    spec.datasets = { rows: drawn, labels: labelled(figure, rows) };
    return spec;
  }

  const named = (rows) => rows.length > 0 && rows[0].variant !== undefined;
  const hasRoomForLabels = (figure) => figure.querySelector(".plot").clientWidth >= 460;

  // The last row of each variant, for the name beside its line's end. The y of 0 only keeps its place free.
  function labelled(figure, rows) {
    const last = new Map(named(rows) && hasRoomForLabels(figure) ? rows.map((row) => [row.variant, row]) : []);
    return [...last.values()].map((row) => ({ ...row, y: 0 }));
  }

  // Moves the names to the height of their line's end, and then apart until none covers another.
  function placeLabels(view, labels) {
    const scale = view.scale("y"), height = view.height(), gap = 17;
    const placed = labels
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
    const plot = figure.querySelector(".plot"), words = figure.querySelector(".words"), note = figure.querySelector(".note");
    const name = figure.id;
    if (chart.loads && !loaded()) return;
    if (views.has(name)) views.get(name).finalize();
    views.delete(name);
    const rows = chart.rows(figure.dataset);
    figure.dataset.rows = rows.length;
    plot.classList.toggle("short", !rows.length);
    const hidden = chart.uses.includes("hide") && state.hide.length === page.variants.length;
    const none = hidden ? "All variants are hidden." : chart.empty;
    const text = rows.length ? chart.words(rows) : none;
    words.textContent = text;
    note.textContent = rows.length && chart.note ? chart.note() : "";
    figure.querySelector(".empty-note").textContent = rows.length ? "" : none;
    plot.setAttribute("aria-label", `${figure.querySelector("h3, h4").textContent}. ${text}`);
    fillTable(figure, chart, rows);
    fillLegend(figure, rows);
    if (!rows.length) {
      plot.replaceChildren();
    } else {
      const spec = prepared(chart, figure, rows);
      // Vega names the element that it draws into, and so gets one inside the one that has our name.
      const place = element("div", { className: "drawing" });
      plot.replaceChildren(place);
      const result = await vegaEmbed(place, spec, OPTIONS);
      views.set(name, result);
      if (spec.datasets.labels.length) await placeLabels(result.view, spec.datasets.labels);
    }
  }

  // One drawing of a figure after the other: the last choice is what stays.
  const queues = new Map();
  function redraw(figure) {
    figure.dataset.state = "waiting";
    const next = (queues.get(figure) || Promise.resolve()).then(() => draw(figure)).catch((error) => {
      figure.querySelector(".empty-note").textContent = "This chart could not be drawn.";
      console.error(error);
    }).then(() => {
      if (queues.get(figure) === next) figure.dataset.state = "drawn";
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

  // Where there is no room for names beside the lines, they stand below the chart.
  function fillLegend(figure, rows) {
    const names = named(rows) && !hasRoomForLabels(figure) ? [...new Map(rows.map((row) => [row.variant, row.label]))] : [];
    figure.querySelector(".legend").replaceChildren(...names.map(([name, label]) => {
      const swatch = document.querySelectorAll(".variants .swatch")[order.get(name)].cloneNode(true);
      return element("li", {}, swatch, label);
    }));
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
    const variant = page.variants[order.get(state.variant)];
    document.getElementById("run-name").textContent = run
      ? `Run ${runKey(run)} of ${variant.label} at ${count(Number(state.rate))} requests/s`
      : `No run of ${variant ? variant.label : "any variant"} at ${count(Number(state.rate))} requests/s has requests to show`;
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
    if (variant) document.documentElement.style.setProperty("--run", `var(--variant-${order.get(state.variant)})`);
  }

  // --- Controls -----------------------------------------------------------------------------------------------------------

  function showControls() {
    const chosen = { ...state, axes: axes() };
    document.querySelectorAll("input[type=radio]").forEach((input) => { input.checked = chosen[input.name] === input.value; });
    document.querySelectorAll("input[name=hide]").forEach((input) => { input.checked = !state.hide.includes(input.value); });
    document.querySelectorAll("select[name=rate], select[name=variant]").forEach((select) => { select.value = state[select.name]; });
    document.querySelectorAll("#put-back").forEach((note) => { note.hidden = state.of !== "all"; });
    document.querySelectorAll("[data-says]").forEach((place) => {
      place.textContent = place.dataset.says === "stat" ? page.statistics[state.stat].toLowerCase() : count(Number(state.rate));
    });
  }

  async function update(names) {
    const affected = [...document.querySelectorAll("figure[data-chart]")].filter((figure) => (
      !names || CHARTS[figure.dataset.chart].uses.some((use) => names.includes(use))));
    const loads = (figure) => CHARTS[figure.dataset.chart].loads;
    const waiting = affected.filter(loads);
    waiting.forEach((figure) => { figure.dataset.state = "waiting"; });
    const drawing = affected.filter((figure) => !loads(figure)).map(redraw);
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

  window.loadstone.receive = (rate, content) => received.set(rate, content);
  /** The Vega view of a figure, by the figure's id: for a look at its data and scales from the console. */
  window.loadstone.view = (name) => views.get(name) && views.get(name).view;

  colour();
  listen();
  showControls();
  update();
})();
