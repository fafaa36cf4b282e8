/* Connects the choices, charts and controls of a page.
 *
 * The page contains two elements with JSON: #page-data (script_data of loadstone/report/campaign_page.py and
 * comparison_page.py) and #chart-specs (loadstone/report/charts). figures.js defines what each chart shows.
 */
(function () {
  "use strict";

  const page = JSON.parse(document.getElementById("page-data").textContent);
  const specs = JSON.parse(document.getElementById("chart-specs").textContent);
  const choices = loadstone.choices(page, (names) => changed(names));
  const inspector = loadstone.inspector(page, choices);
  const { charts: definitions, axes, latency } = loadstone.figures(page, { state: choices.state, rate: inspector.rate, run: inspector.run });
  for (const chart of Object.values(definitions)) chart.ready = () => !chart.loads || Boolean(inspector.rate());
  const charts = loadstone.charts(page, specs, choices, definitions, axes);
  let shownAxes = axes();

  function showControls() {
    const chosen = { ...choices.state(), axes: axes() };
    document.querySelectorAll("main form.controls input[type=radio]").forEach((input) => { input.checked = chosen[input.name] === input.value; });
    document.querySelectorAll("main form.controls select:not([name=run])").forEach((select) => { select.value = chosen[select.name]; });
    document.querySelectorAll("input[name=hide]").forEach((input) => { input.checked = !chosen.hide.includes(input.value); });
    document.querySelectorAll("#with-excluded").forEach((note) => { note.hidden = chosen.of !== "all"; });
    document.querySelectorAll("[data-chosen]").forEach((place) => {
      const texts = { stat: () => page.statistics[chosen.stat].toLowerCase(), part: () => page.resources.parts[chosen.part] };
      place.textContent = (texts[place.dataset.chosen] || (() => loadstone.count(Number(chosen.rate))))();
    });
    showVerdicts(chosen.stat);
  }

  /** The matrix for this statistic: cells of baselines are [value, interval], verdicts [verdict, size, interval, mark, value]. */
  function showVerdicts(statistic) {
    const { element, unbroken } = loadstone;
    const of = (cells) => (cells ? cells[page.figures[statistic]] || [] : []);
    const rows = of(page.matrix), soft = (textContent, className = "interval") => element("span", { className, textContent });
    document.querySelectorAll("#why-inconclusive").forEach((place) => {
      const why = page.why_inconclusive[page.figures[statistic]];
      place.textContent = why ? `: ${why}` : "";
      const region = document.getElementById("verdict-matrix").closest("[aria-label]");
      region.setAttribute("aria-label", `Table: The ${page.statistics[statistic].toLowerCase()} relative to ${page.baselines.join(", ")}`);
    });
    document.querySelectorAll("#verdict-matrix .baseline").forEach((row, baseline) => {
      row.querySelectorAll("td").forEach((place, load) => {
        const [value, interval] = (of(page.baseline_cells)[baseline] || [])[load] || ["–", ""];
        place.replaceChildren(unbroken(value), soft(interval));
      });
    });
    document.querySelectorAll("#verdict-matrix tbody tr:not(.baseline)").forEach((row, variant) => {
      row.querySelectorAll("td").forEach((place, load) => {
        const [verdict, size, interval, mark, value] = (rows[variant] || [])[load] || ["", "–", "", "", ""];
        place.className = verdict;
        place.replaceChildren(
          ...(verdict ? [element("span", { className: "symbol", ariaHidden: "true", textContent: page.symbols[verdict] }),
            element("span", { className: "offscreen", textContent: `${verdict}: ` })] : []),
          unbroken(size), ...(mark ? [element("sup", { textContent: mark })] : []),
          soft(interval), soft(value, "interval value"),
        );
      });
    });
    const marks = new Set([...document.querySelectorAll(".matrix sup")].flatMap((mark) => mark.textContent.split(",")));
    document.querySelectorAll("#verdict-key [data-mark]").forEach((part) => { part.hidden = !marks.has(part.dataset.mark); });
  }

  function changed(names) {
    if (axes() !== shownAxes) names.push("axes");
    shownAxes = axes();
    showControls();
    return update(names);
  }

  /** Redraw the charts that depend on these choices; without `names`, all charts. */
  async function update(names) {
    const affected = charts.all().filter((figure) => !names || charts.definition(figure).uses.some((use) => names.includes(use)));
    const loads = (figure) => charts.definition(figure).loads;
    const waiting = affected.filter(loads);
    waiting.forEach((figure) => { figure.dataset.state = "waiting"; });
    const drawing = affected.filter((figure) => !loads(figure)).map(charts.redraw);
    const { rate } = choices.state();
    if (waiting.length && rate) {
      const problem = document.getElementById("load-problem");
      try {
        await inspector.load(rate);
        problem.hidden = true;
        inspector.show(latency);
        drawing.push(...waiting.map(charts.redraw));
      } catch (error) {
        problem.textContent = `The data of this load could not be loaded: ${error.message}. Was the page moved without its folder?`;
        problem.hidden = false;
      }
    }
    await Promise.all(drawing);
  }

  function listen() {
    document.addEventListener("change", ({ target }) => {
      if (!target.closest("form.controls")) return;
      if (target.name === "hide") {
        choices.choose({ hide: [...document.querySelectorAll("input[name=hide]")].filter((input) => !input.checked).map((input) => input.value) });
      } else if (target.name === "variant" || target.name === "rate") {
        choices.choose({ [target.name]: target.value, run: "" });
      } else if (choices.has(target.name)) {
        choices.choose({ [target.name]: target.value });
      }
    });
    document.addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", inspector.scrollToRun);
    let wide = innerWidth >= 760, timer = 0;
    addEventListener("resize", () => {
      // Vega adapts to the width itself, except for panels. Labels depend on the layout, so a new layout redraws all charts.
      if (wide !== innerWidth >= 760) { wide = innerWidth >= 760; update(); }
      else { clearTimeout(timer); timer = setTimeout(() => charts.all().filter((figure) => charts.definition(figure).arrange).forEach(charts.redraw), 200); }
    });
  }

  // A constructed style sheet, because the content security policy forbids style elements.
  function setVariantColours() {
    const rules = page.variants.map(({ light, dark }, index) => `--variant-${index}:light-dark(${light},${dark});`).join("");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`:root{${rules}}`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }

  /** The Vega view of a figure by its id, to inspect data and scales in the console. */
  window.loadstone.view = charts.view;

  setVariantColours();
  listen();
  showControls();
  update().then(inspector.scrollToRun);
})();
