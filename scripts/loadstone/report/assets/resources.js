/* The charts of CPU and memory on a campaign page: page.resources comes from loadstone/report/resources_section.py
 * (script_data), what one rate needs from its over_time. `tools` are those of figures.js.
 */
loadstone.figureSets.push(function resources(page, reader, tools) {
  "use strict";

  if (!page.resources) return {};
  const { labels, shown, byVariant, lines } = tools, { significant, count } = loadstone;
  const UNITS = { cpu: "millicores", memory: "MiB" };

  function row(variant, mean, spread, runs, unit) {
    return {
      variant, label: labels.get(variant), value: mean, runs,
      low: runs > 1 ? Math.max(0, mean - spread) : null, high: runs > 1 ? mean + spread : null,
      interval: runs > 1 ? `± ${significant(spread)} ${unit} over runs` : "one run only",
    };
  }

  function acrossLoad(what) {
    return page.resources.cells
      .filter((cell) => cell.part === reader.state().part && shown(cell.variant) && cell[what][0] !== null)
      .map((cell) => ({ ...row(cell.variant, ...cell[what], cell.runs, UNITS[what]), load: cell.rate }))
      .sort(byVariant);
  }

  function overTime(what) {
    const found = reader.rate().resources, rows = [];
    found.part.forEach((part, index) => {
      const variant = found.variant[index], mean = found[what][index];
      if (part !== reader.state().part || !shown(variant) || mean === null) return;
      rows.push({ ...row(variant, mean, found[`${what}_std`][index], found.runs[index], UNITS[what]), time: found.time[index] });
    });
    return rows.sort((one, other) => byVariant({ ...one, load: 0 }, { ...other, load: 0 }) || one.time - other.time);
  }

  function ends(unit) {
    return (rows) => [...new Set(rows.map((each) => each.label))].map((label) => {
      const own = rows.filter((each) => each.label === label);
      return `${label}: ${significant(own[0].value)} ${unit} at first, ${significant(own[own.length - 1].value)} ${unit} at the end.`;
    }).join(" ");
  }

  const charts = {}, extra = (unit) => [["low", `Low (${unit})`], ["high", `High (${unit})`]];
  for (const [what, unit] of Object.entries(UNITS)) {
    const figures = [["value", what === "cpu" ? "CPU (millicores)" : "Memory (MiB)", significant], ["interval", "Spread"], ["runs", "Runs", count]];
    charts[`use-${what}`] = {
      uses: ["part", "axes", "hide"], rows: () => acrossLoad(what), words: lines("value", (value) => `${significant(value)} ${unit}`),
      columns: [["label", "Variant"], ["load", `Load (${page.load_unit})`, count], ...figures], extra: extra(unit), empty: "No variant that is shown has samples of this.",
    };
    charts[`use-time-${what}`] = {
      uses: ["rate", "part", "hide"], loads: true, rows: () => overTime(what), words: ends(unit),
      columns: [["label", "Variant"], ["time", "Time (s)", significant], ...figures], extra: extra(unit), empty: "No run at this load has samples of this.",
    };
  }
  return charts;
});
