/* loadstone.runFindings(run, latency): what is known of a single run besides its figures, from loadstone/report/run_findings.py:
 * the shape of its latency, how punctually it was sent, and its latencies from when requests were due.
 */
window.loadstone = window.loadstone || {};
window.loadstone.runFindings = function runFindings(run, latency) {
  "use strict";

  const { element, count, significant } = loadstone;
  const NAMES = ["Mean", "Median", "p90", "p99", "p99.9"];

  function showShape() {
    const place = document.getElementById("run-shape"), shape = run && run.shape;
    place.hidden = !shape;
    place.className = shape && shape.unsettled ? "notice" : "";
    place.textContent = shape ? `Shape: ${shape.words}.${shape.unsettled ? " Its mean is none of a steady state." : ""}` : "";
  }

  function facts({ asked, achieved, lag, limit, limited }) {
    const told = [
      ["Asked (requests/s)", count(asked)], ["Achieved (requests/s)", significant(achieved)], ["Send lag, median", latency(lag[0])],
      ["Send lag, p99", latency(lag[1])], ["Send lag, maximum", latency(lag[2])], ["Limit of its p99", `${latency(limit)}${limited ? ": exceeded" : ""}`],
    ];
    return element("dl", { className: "figures" }, ...told.map(([term, text]) => (
      element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: text })))));
  }

  function sideBySide({ observed, corrected }) {
    const row = (heading, values) => element("tr", {}, element("th", { scope: "row", textContent: heading }),
      ...values.map((value) => element("td", { className: "n", textContent: value === null ? "not estimable" : latency(value) })));
    const head = element("tr", {}, element("th", { scope: "col", textContent: "Latency" }),
      ...NAMES.map((name) => element("th", { scope: "col", className: "n", textContent: name })));
    const box = element("div", { className: "scroll", tabIndex: 0, role: "region" }, element("table", {}, element("thead", {}, head),
      element("tbody", {}, row("From when sent (as observed)", observed), row("From when due (lag-corrected)", corrected))));
    box.setAttribute("aria-label", "Table: Latency from when sent, and from when due");
    return box;
  }

  function showSending() {
    const place = document.getElementById("run-sending"), sending = run && run.sending;
    if (!sending) place.replaceChildren();
    else if (sending.refused) place.replaceChildren(element("p", { className: "small", textContent: `How punctually it was sent can't be told: ${sending.refused}.` }));
    else {
      place.replaceChildren(element("h4", { textContent: "How it was sent" }), facts(sending), sideBySide(sending));
    }
  }

  showShape();
  showSending();
};
