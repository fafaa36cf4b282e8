/* loadstone.charts(page, specs, choices, definitions, axes): draws the figures of a page.
 *
 * A figure is an element <figure data-chart=NAME> (templates/parts.html). figures.js defines the chart of that name, and
 * loadstone/report/charts its Vega-Lite specification. Here it becomes a chart with labels at the ends of its lines, a
 * summary, a data table and files.
 */
window.loadstone = window.loadstone || {};
window.loadstone.charts = function charts(page, specs, choices, definitions, axes) {
  "use strict";

  const { element, table, unbroken } = loadstone;
  const order = new Map(page.variants.map((variant, position) => [variant.name, position]));
  const views = new Map(), queues = new Map();
  const OPTIONS = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config: specs.config,
    // Only errors (1): Vega warns about empty extents of layers without rows, which are harmless.
    tooltip: { disableDefaultStyle: true }, logLevel: 1,
  };
  const ROOM = 460, GAP = 17;
  const SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"; // names the language; nothing loads it

  const definition = (figure) => definitions[figure.dataset.chart];
  const state = () => choices.state();

  // --- The specification for the reader's choices ----------------------------------------------------------------------

  function scaleOf(kind, inspected) {
    if (inspected) return kind === "latency" ? state().scale : "linear";
    if (kind === "load") return axes() === "log" ? "log" : "linear";
    return kind === "latency" && axes() !== "linear" ? "log" : "linear";
  }

  function setScale(spec, channel, type) {
    (spec.layer || []).forEach((layer) => setScale(layer, channel, type));
    const encoding = spec.encoding && spec.encoding[channel];
    if (!encoding || !encoding.field || encoding.scale === null) return;
    const { zero, nice, domainMin, ...rest } = encoding.scale || {};
    // A logarithmic axis has no zero, and `nice` would extend it to full decades, leaving most of it empty.
    encoding.scale = type === "log" ? { padding: 10, ...rest, nice: false, type } : { ...encoding.scale, type };
    if (type === "log" && encoding.axis !== null) encoding.axis = { ...specs.log_axis[channel].axis, ...encoding.axis };
  }

  // Limit the widths of labels, to leave room for the data.
  function fit(spec, width) {
    (spec.layer || []).forEach((layer) => fit(layer, width));
    if (spec.mark && spec.mark.limit) spec.mark.limit = Math.min(0.3 * width, 260);
    const axis = spec.encoding && spec.encoding.y && spec.encoding.y.axis;
    if (axis && axis.labelLimit) axis.labelLimit = Math.min(axis.labelLimit, 0.4 * width);
  }

  function prepared(figure, rows, width) {
    const chart = definition(figure);
    const spec = structuredClone(specs[chart.spec ? chart.spec(figure.dataset) : figure.dataset.chart]);
    const inspected = chart.uses.includes("scale"), types = {};
    Object.entries(spec.usermeta.axes).filter(([, kind]) => kind !== "fixed").forEach(([channel, kind]) => {
      const type = channel === "y" && chart.tail && !state().axes && chart.tail() ? "log" : scaleOf(kind, inspected);
      setScale(spec, channel, type);
      if (type === "log") spec.params = [...(spec.params || []), ...specs.log_axis[channel].params];
      types[channel] = type;
    });
    fit(spec, width);
    if (chart.height) spec.height = chart.height(rows);
    if (chart.arrange) chart.arrange(spec, rows, width);
    const runs = chart.runs ? chart.runs(figure.dataset) : [];
    spec.datasets = {
      rows, labels: width >= ROOM && !chart.named ? ends(rows) : [], knees: chart.knees ? chart.knees() : [],
      runs: types.y === "log" ? runs.filter((row) => row.value > 0) : runs,
    };
    return spec;
  }

  // --- Labels at line ends ----------------------------------------------------------------------------------------------

  const named = (rows) => rows.length > 0 && rows[0].variant !== undefined;

  // The last row of each variant, for the label at the end of its line. placeLabels replaces the y of 0.
  function ends(rows) {
    const last = new Map(named(rows) ? rows.map((row) => [row.variant, row]) : []);
    return [...last.values()].map((row) => ({ ...row, y: 0 }));
  }

  // Moves labels to the ends of their lines, and then apart until none overlap.
  function placeLabels(view, labels) {
    const scale = view.scale("y"), height = view.height();
    const placed = labels
      .map((row) => ({ variant: row.variant, label: row.label, y: scale(row.value === undefined ? row.share : row.value) }))
      .sort((one, other) => one.y - other.y);
    for (let round = 0; round < 60; round += 1) {
      for (let index = 1; index < placed.length; index += 1) {
        const overlap = GAP - (placed[index].y - placed[index - 1].y);
        if (overlap > 0) {
          placed[index].y += overlap / 2;
          placed[index - 1].y -= overlap / 2;
        }
      }
      placed.forEach((label, index) => {
        label.y = Math.max(4 + index * GAP, Math.min(height - 4 - (placed.length - 1 - index) * GAP, label.y));
      });
    }
    return view.data("labels", placed).runAsync();
  }

  async function embed(place, spec) {
    const result = await vegaEmbed(place, spec, OPTIONS);
    if (spec.datasets.labels.length) await placeLabels(result.view, spec.datasets.labels);
    return result;
  }

  // --- Hiding and showing variants -------------------------------------------------------------------------------------

  function toggle(name) {
    const { hide } = state();
    choices.choose({ hide: hide.includes(name) ? hide.filter((other) => other !== name) : [...hide, name] });
  }

  // A click on a label hides its variant. Hidden variants, and all variants of narrow charts, are buttons below the chart.
  function fillLegend(figure, rows, width) {
    const legend = figure.querySelector(".legend"), chart = definition(figure);
    const focused = legend.contains(document.activeElement) ? document.activeElement.value : null;
    const toggles = chart.uses.includes("hide");
    const drawn = new Set(named(rows) ? rows.map((row) => row.variant) : []);
    const listed = page.variants.filter(({ name }) => (toggles && state().hide.includes(name)) || (width < ROOM && !chart.arrange && drawn.has(name)));
    const swatches = [".toggles", ".variants:not(.legend)"].map((list) => document.querySelectorAll(`${list} .swatch`)).find(({ length }) => length);
    legend.replaceChildren(...listed.map(({ name, label }) => {
      const swatch = swatches[order.get(name)].cloneNode(true);
      if (!toggles) return element("li", {}, swatch, label);
      const button = element("button", { type: "button", value: name, onclick: () => toggle(name) }, swatch, label);
      button.setAttribute("aria-pressed", String(!state().hide.includes(name)));
      return element("li", {}, button);
    }));
    if (focused !== null) [...legend.querySelectorAll("button")].find((button) => button.value === focused)?.focus();
  }

  // --- One figure -------------------------------------------------------------------------------------------------------

  function summaryOf(figure, rows) {
    const chart = definition(figure);
    const hidden = chart.uses.includes("hide") && state().hide.length === page.variants.length;
    const none = hidden ? "All variants are hidden." : chart.empty;
    return rows.length ? { summary: chart.summary(rows, figure.dataset), none: "" } : { summary: none, none };
  }

  const heading = (figure) => figure.querySelector("h3, h4");
  const title = (figure) => heading(figure).textContent.replaceAll("\u00a0", " ");

  // The title states the finding, if there is one about all that may be shown, else what is shown.
  function setTitle(figure) {
    const { stat, hide, of, at } = state(), { uses } = definition(figure), place = heading(figure);
    if (figure.dataset.title === undefined) figure.dataset.title = place.textContent;
    const found = (page.findings || {})[figure.dataset.chart];
    const isOther = (uses.includes("hide") && hide.length) || (uses.includes("of") && of === "all") || (uses.includes("at") && at);
    place.textContent = unbroken((found && !isOther && found[page.figures[stat]]) || figure.dataset.title);
  }
  const columnsOf = (chart, dataset) => (typeof chart.columns === "function" ? chart.columns(dataset) : chart.columns);
  const listed = (chart, rows, dataset) => [...(chart.listed ? rows.filter(chart.listed) : rows), ...(chart.more ? chart.more(dataset) : [])];

  async function draw(figure) {
    const chart = definition(figure), name = figure.id, plot = figure.querySelector(".plot");
    if (!chart.ready()) return;
    if (views.has(name)) views.get(name).finalize();
    views.delete(name);
    const rows = chart.rows(figure.dataset), width = plot.clientWidth;
    const { summary, none } = summaryOf(figure, rows);
    setTitle(figure);
    figure.dataset.rows = rows.length;
    plot.classList.toggle("short", !rows.length);
    figure.querySelector(".summary").textContent = unbroken(summary);
    figure.querySelector(".note").textContent = "";
    figure.querySelector(".empty-note").textContent = unbroken(none);
    plot.setAttribute("aria-label", `${title(figure)}. ${summary}`);
    fillTable(figure, rows);
    fillLegend(figure, rows, width);
    if (!rows.length) {
      plot.replaceChildren();
      return;
    }
    // Vega sets attributes of the element it draws into, so it gets one inside the plot.
    const place = element("div", { className: "drawing", ariaHidden: "true" }); // the plot has the summary as its label
    plot.replaceChildren(place);
    const spec = prepared(figure, rows, width), result = await embed(place, spec);
    views.set(name, result);
    figure.classList.toggle("tall", result.view.height() > width / 2);
    figure.classList.toggle("long", result.view.height() > 820);
    figure.style.setProperty("--chart-height", `${result.view.height()}px`);
    if (chart.note) figure.querySelector(".note").textContent = unbroken(chart.note(rows, limits(spec, result.view)));
    result.view.addEventListener("click", (_, item) => {
      if (item && item.mark.marktype === "text" && item.datum && item.datum.variant !== undefined) toggle(item.datum.variant);
    });
  }

  // The chart clips or omits values beyond these.
  function limits(spec, view) {
    const names = (spec.params || []).map(({ name }) => name).filter((name) => ["lowest", "highest"].includes(name));
    return Object.fromEntries(names.map((name) => [name, view.signal(name)]));
  }

  // Draws a figure only after its previous drawing has finished, so that the last choice is the one shown.
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

  // --- Data table and files --------------------------------------------------------------------------------------------

  function fillTable(figure, rows) {
    const details = figure.querySelector("details.data"), chart = definition(figure);
    const fill = () => details.querySelector(".scroll").replaceChildren(table(columnsOf(chart, figure.dataset), listed(chart, rows, figure.dataset)));
    details.ontoggle = () => details.open && fill();
    if (details.open) fill();
  }

  // Drawn again for the file, with the same width and labels on every device; what `use` makes of the view and its spec.
  async function drawnAgain(figure, rows, width, use) {
    const place = document.body.appendChild(element("div", { className: "offscreen" }));
    const spec = prepared(figure, rows, width);
    if (!definition(figure).arrange) spec.width = width - 260;
    const kept = structuredClone(spec); // Vega adds fields to rows
    const result = await embed(place, spec);
    const found = await use(result.view, kept);
    result.finalize();
    place.remove();
    return found;
  }

  const svg = (figure, rows, width) => drawnAgain(figure, rows, width, (view) => view.toSVG());

  // A specification that stands alone: with its data, its config, and labels where placeLabels put them.
  const vegaLite = (figure, rows, width) => drawnAgain(figure, rows, width, (view, { usermeta, datasets, ...spec }) => ({
    $schema: SCHEMA, description: `${title(figure)}. ${summaryOf(figure, rows).summary}`, ...spec, config: { ...specs.config, background: "white" },
    datasets: { ...datasets, labels: datasets.labels.length ? view.data("labels") : [] },
  }));

  async function save(figure, format) {
    const chart = definition(figure), rows = chart.rows(figure.dataset);
    const extra = ((typeof chart.extra === "function" ? chart.extra() : chart.extra) || []).filter(([field]) => rows.some((row) => row[field] !== undefined));
    await loadstone.downloads(format, {
      name: `${page.folder}-${figure.id}`, title: title(figure), summary: summaryOf(figure, rows).summary,
      columns: [...columnsOf(chart, figure.dataset), ...extra.map((column) => [...column, String])], rows: listed(chart, rows, figure.dataset), svg: (width) => svg(figure, rows, width),
      vegaLite: (width) => vegaLite(figure, rows, width),
    });
  }

  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-save]");
    if (!button) return;
    const figure = button.closest("figure"), status = figure.querySelector(".saved");
    status.textContent = "";
    save(figure, button.dataset.save).then(() => { status.textContent = `Saved as ${button.textContent}.`; }, (error) => {
      status.textContent = `Could not be saved: ${error.message}.`;
      console.error(error);
    });
  });

  return {
    redraw,
    definition,
    all: () => [...document.querySelectorAll("figure[data-chart]")],
    view: (name) => views.get(name) && views.get(name).view,
  };
};
