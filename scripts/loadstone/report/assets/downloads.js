/* loadstone.downloads: saves a chart as SVG, PNG or Vega-Lite, and its data as CSV or Parquet.
 *
 * CSV and Parquet contain complete intervals, even if the chart clips them. Saved charts have the colours of the light
 * theme.
 */
window.loadstone = window.loadstone || {};
window.loadstone.downloads = (function () {
  "use strict";

  const WIDTH = 900, SCALE = 2, MARGIN = 16;

  // --- Data: the columns of the data table; numbers are numbers, not text ---------------------------------------------

  function csv(names, columns) {
    const cell = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const rows = columns.length ? columns[0].map((_, index) => columns.map((column) => column[index])) : [];
    return [names, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join(""); // RFC 4180
  }

  // --- Images: always in the light theme, on white --------------------------------------------------------------------

  function lightColours() {
    const probe = document.body.appendChild(loadstone.element("span", { hidden: true }));
    probe.dataset.theme = "light";
    return {
      of: (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; },
      end: () => probe.remove(),
    };
  }

  /** Text in which variables of the page's style sheet are replaced by their colours. */
  function resolved(text) {
    const colours = lightColours(), known = new Map();
    const found = text.replace(/var\((--[a-z0-9-]+)[^)]*\)/g, (_, name) => {
      if (!known.has(name)) known.set(name, colours.of(name));
      return known.get(name);
    });
    colours.end();
    return found;
  }

  /** A Vega-Lite specification as JSON; texts and data stay as they are. */
  function specification({ $schema, description, datasets, ...spec }) {
    return JSON.stringify({ $schema, description, ...JSON.parse(resolved(JSON.stringify(spec))), datasets }, null, 1);
  }

  /** A standalone SVG from Vega's `text`, whose colours are variables of the page's style sheet. */
  function standalone(text, title, summary) {
    const parsed = new DOMParser().parseFromString(resolved(text), "image/svg+xml"), svg = parsed.documentElement;
    const [width, height] = ["width", "height"].map((name) => Math.ceil(Number(svg.getAttribute(name))) + 2 * MARGIN);
    const create = (name, attributes, content = "") => {
      const element = parsed.createElementNS("http://www.w3.org/2000/svg", name);
      Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
      element.textContent = content;
      return element;
    };
    const paper = create("rect", { x: -MARGIN, y: -MARGIN, width, height, fill: "#ffffff" });
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `${-MARGIN} ${-MARGIN} ${width} ${height}`);
    svg.prepend(create("title", {}, title), create("desc", {}, summary), paper);
    return { text: new XMLSerializer().serializeToString(svg), width, height };
  }

  function png({ text, width, height }) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => {
        const canvas = loadstone.element("canvas", { width: width * SCALE, height: height * SCALE });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the image is too large"))), "image/png");
      };
      image.onerror = () => reject(new Error("the image could not be drawn"));
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }

  const TYPES = { svg: "image/svg+xml", csv: "text/csv;charset=utf-8", "vl.json": "application/json", parquet: "application/vnd.apache.parquet" };

  function save(name, content, type) {
    const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    loadstone.element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  /** Save a chart in one format. `shown`: { name, title, summary, columns (as in figures.js), rows, svg (width → text),
   *  vegaLite (width → specification) }. */
  return async function downloads(format, shown) {
    const file = `${shown.name}.${format}`, listed = shown.columns.filter((column) => column[3] !== null)
      .map(([field, heading, text, data = [field, heading]]) => [...data, Boolean(text) || data[0] !== field]);
    const names = listed.map(([, heading]) => heading);
    const columns = listed.map(([field]) => shown.rows.map((row) => (row[field] === undefined || row[field] === "–" ? null : row[field])));
    if (format === "csv") return save(file, csv(names, columns), TYPES.csv);
    if (format === "parquet") return save(file, loadstone.parquet(names, columns, listed.map(([, , isNumber]) => isNumber)), TYPES.parquet);
    if (format === "vl.json") return save(file, specification(await shown.vegaLite(WIDTH)), TYPES[format]);
    const image = standalone(await shown.svg(WIDTH), shown.title, shown.summary);
    return format === "svg" ? save(file, image.text, TYPES.svg) : save(file, await png(image));
  };
})();
