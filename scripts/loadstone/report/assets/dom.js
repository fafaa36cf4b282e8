/* DOM elements, numbers as text, and the rows of charts. Text from the archive only becomes textContent or an attribute's value. */
window.loadstone = window.loadstone || {};
(function () {
  "use strict";

  /** A text whose lines don't end between a number and its unit or within an interval (as `unbroken` of output.py). */
  const UNITS = "%|[nµm]?s|min|h|pp|(?:% |percentage )?points|requests?/s|users?|millicores|[KMG]iB|[kMG]?B|CPUs?";
  const BREAKS = new RegExp(`(?<=\\d) (?=(?:${UNITS})(?![\\w/]))|(?<=\\d,) (?=[−+]?[\\d.,]+\\])`, "g");
  const unbroken = (text) => (typeof text === "string" ? text.replace(BREAKS, "\u00a0") : text);

  function element(name, { textContent, ...properties }, ...children) {
    const created = Object.assign(document.createElement(name), properties);
    created.append(...(textContent === undefined ? [] : [unbroken(textContent ?? "")]), ...children.map(unbroken));
    return created;
  }

  /** A table of rows. Columns are [field, heading, format]; those with a format are numbers and right-aligned. */
  function table(columns, rows) {
    const style = ([, , format]) => (format ? "n" : "");
    const head = columns.map((column) => element("th", { scope: "col", className: style(column), textContent: column[1] }));
    const body = rows.map((row) => element("tr", {}, ...columns.map((column) => element("td", {
      className: style(column), textContent: column[2] ? column[2](row[column[0]]) : row[column[0]],
    }))));
    return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  }

  /** A number with so many significant digits; halves become even, as in Python (toPrecision rounds them up). */
  function toDigits(value, digits) {
    const [mantissa, exponent] = Math.abs(value).toExponential(40).split("e"), all = mantissa.replace(".", "");
    const isHalf = /^50*$/.test(all.slice(digits)), isEven = Number(all[digits - 1]) % 2 === 0;
    return isHalf && isEven ? Math.sign(value) * Number(`${all.slice(0, digits)}e${exponent - digits + 1}`) : Number(value.toPrecision(digits));
  }

  /** Three significant digits, as in loadstone/report/numbers.py. */
  function significant(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value), rounded = toDigits(value, size < 1000 ? 3 : String(Math.floor(size)).length);
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
    return rounded.toLocaleString("en-GB", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replace("-", "−");
  }

  /** A multiple of a coarse step; halves become even, after what division leaves beyond 12 digits. */
  function inSteps(value, step) {
    const steps = toDigits(value / step, 12), below = Math.floor(steps);
    return (steps - below === 0.5 ? below + Math.abs(below % 2) : Math.round(steps)) * step + 0; // not -0
  }

  const count = (value) => value.toLocaleString("en-GB");
  const percent = (value) => (value > 99.95 && value < 100 ? "over 99.9 %" : `${significant(value)} %`);

  /** A rate as written in choices and file names (rate_name of loadstone/report/numbers.py). */
  const rateName = (rate) => String(+rate.toFixed(9));

  /** The rows of data that the page has as columns (loadstone/report/chart_rows.py). `choice` selects from columns with alternatives. */
  function rowsOf(found, page, choice) {
    if (!found) return [];
    const isObject = (column) => column !== null && typeof column === "object" && !Array.isArray(column);
    const columns = Object.entries(found.columns).map(([name, column]) => [name, (isObject(column) ? column[choice] : column) ?? null]);
    return Array.from({ length: found.n }, (_, place) => {
      const row = Object.fromEntries(columns.map(([name, column]) => [name, Array.isArray(column) ? column[place] : column]));
      const variant = page.variants[row.variant];
      return variant ? { label: variant.label, ...row, variant: variant.name } : row;
    }).flatMap((row) => {
      const lists = Object.entries(row).filter(([, value]) => Array.isArray(value));
      if (!lists.length) return [row];
      if (row.place !== undefined) lists.push(["share", page.charts.shares.slice(row.place)]);
      const length = Math.min(...lists.map(([, list]) => list.length));
      return Array.from({ length }, (_, at) => ({ ...row, ...Object.fromEntries(lists.map(([name, list]) => [name, list[at]])) }));
    });
  }

  Object.assign(window.loadstone, { unbroken, element, table, significant, inSteps, count, percent, rateName, rowsOf });
})();
