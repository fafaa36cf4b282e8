/* Elements and texts of numbers. Text from the archive only ever becomes textContent or an attribute's value. */
window.loadstone = window.loadstone || {};
(function () {
  "use strict";

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  /** A table of rows; columns are [field, heading, text of a value]: numbers have the last, and stand to the right. */
  function table(columns, rows) {
    const style = ([, , format]) => (format ? "n" : "");
    const head = columns.map((column) => element("th", { scope: "col", className: style(column), textContent: column[1] }));
    const body = rows.map((row) => element("tr", {}, ...columns.map((column) => element("td", {
      className: style(column), textContent: column[2] ? column[2](row[column[0]]) : row[column[0]],
    }))));
    return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  }

  /** Three significant digits, as loadstone/report/numbers.py has them. */
  function significant(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const rounded = Math.abs(value) < 1000 ? Number(value.toPrecision(3)) : Math.round(value);
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
    return rounded.toLocaleString("en-GB", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  }

  const count = (value) => value.toLocaleString("en-GB");
  const percent = (value) => (value > 99.95 && value < 100 ? "over 99.9 %" : `${significant(value)} %`);

  /** Which values a logarithmic axis names, as loadstone/report/ticks.py has them. */
  function logTicks(low, high) {
    if (high < 1.04 * low) return logTicks(low / 1.02, high * 1.02);
    const ratio = high / low, first = low / ratio ** 0.3, last = high * ratio ** 0.3, plain = (value) => Number(value.toPrecision(12));
    const span = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
    if (ratio < 2) {
      const least = (high - low) / 5, power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= least * (1 - 1e-9));
      return span(Math.ceil(first / step), Math.floor(last / step)).map((number) => plain(number * step));
    }
    const digits = ratio < 10 ? [1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9] : ratio < 300 ? [1, 2, 5] : [1];
    return span(Math.floor(Math.log10(first)) - 1, Math.ceil(Math.log10(last)))
      .flatMap((power) => digits.map((digit) => plain(digit * 10 ** power))).filter((value) => first <= value && value <= last);
  }

  Object.assign(window.loadstone, { element, table, significant, count, percent, logTicks });
})();
