/* The chart of a page of traces: page.traces comes from loadstone/report/trace_page.py, one list of rows per kind. */
loadstone.figureSets.push(function traces(page) {
  "use strict";

  const { significant, count } = loadstone, MOST = 5, LINE_HEIGHT = 28;
  const words = (rows) => rows.slice(0, MOST).map((row) => `${row.name}: ${significant(row.p50)} % in half of the traces.`).join(" ");
  const share = (value) => significant(value);
  return {
    shares: {
      uses: [], height: (rows) => LINE_HEIGHT * rows.length, rows: ({ class: kind }) => page.traces[kind], words, empty: "Nothing besides the root.",
      columns: [
        ["name", "Of"], ["p5", "5th percentile (%)", share], ["p25", "25th percentile (%)", share], ["p50", "Median (%)", share],
        ["p75", "75th percentile (%)", share], ["p95", "95th percentile (%)", share], ["traces", "Traces", count],
      ],
    },
  };
});
