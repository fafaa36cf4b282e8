/* The charts of conclusions: page.concluded comes from loadstone/report/conclusions.py (script_data). `tools` are those of
 * figures.js. loadstone/report/figure_rows.py makes the same rows for figures in papers.
 */
loadstone.figureSets.push(function effects(page, reader, tools) {
  "use strict";

  const found = page.concluded;
  if (!found) return {};
  const { labels, shown, latencyText } = tools, { significant, count } = loadstone;
  const MANY = 40, BEYOND = 3;
  // The two means of a comparison's page are averages of the same runs: conclusions are drawn from one mean.
  const statistic = () => ({ summaries: "mean", raw: "mean" }[reader.state().stat] || reader.state().stat);
  const SAID = { "inconclusive": "can't tell" };
  // Without a verdict no request of either failed.
  const said = (verdict) => (verdict === null ? "none failed" : SAID[verdict] || verdict);
  const chosen = (row) => shown(row.variant) && row.statistic === statistic() && ["", row.at].includes(reader.state().at);

  // What is drawn in a row of its own, in order; the first of each load bears the load too.
  function keyed(rows) {
    return rows.map((row, index) => {
      const first = index === 0 || rows[index - 1].load !== row.load;
      return { ...row, first, key: `${index}:${first ? `${count(row.load)} · ` : ""}${row.name || row.label}` };
    });
  }

  // What is drawn: one interval from two runs can be a thousand times as wide as all others, and a queue that grows as
  // long as the attack lasts (`beyond` the knee) would press all others flat.
  function drawn(rows, kind) {
    const within = kind === "shift" && rows.some((row) => !row.beyond) ? rows.filter((row) => !row.beyond) : rows;
    const [lowest, highest] = FAR[kind](within.map((row) => row.value).filter((value) => value !== null));
    return rows.map((row) => {
      const { value, low, high } = row, far = value !== null && (value < lowest || value > highest);
      const ends = far || low === null ? { low: null, high: null } : { low: Math.max(low, lowest), high: Math.min(high, highest) };
      return { ...row, ...ends, from: low, to: high, point: far ? null : value, far,
        cut_low: ends.low === low ? null : ends.low, cut_high: ends.high === high ? null : ends.high };
    });
  }

  const FAR = {
    ratio: (values) => [Math.min(...values, 1) / BEYOND, Math.max(...values, 1) * BEYOND],
    shift: (values) => { const room = BEYOND * Math.max(...values.map(Math.abs)); return [-room, room]; },
  };
  const overloaded = (name, rate) => found.knees.some((each) => each.variant === name && each.beyond.includes(rate));
  const isRatio = () => reader.state().effect === "ratio";
  const text = (value) => (isRatio() ? significant(value) : latencyText(value));
  const range = (low, high, each) => (low === null ? "none" : `${each(low)} to ${each(high)}`);

  function besideBaseline() {
    const kind = reader.state().effect;
    const rows = found.effects.filter(chosen).map((row) => {
      const [value, low, high] = row[kind], [least, most] = isRatio() ? [1 / (1 + found.margin), 1 + found.margin]
        : [row.before / (1 + found.margin) - row.before, row.before * found.margin];
      return {
        ...row, label: labels.get(row.variant), load: row.rate, value, low, high, margin_low: least, margin_high: most,
        interval: range(low, high, text), shown: said(row.verdict), why: row.why || "–",
        beyond: overloaded(row.variant, row.rate),
        needs: row.needed === null ? "–" : `${count(row.needed)} of each variant`, p: row.p === null ? "–" : pText(row.p), p_value: row.p,
      };
    });
    return keyed(drawn(rows, kind));
  }

  // Shares of failed requests, in percentage points: an interval may reach as far as it likes, within -100 and 100.
  function errors() {
    const rows = page.error_effects.filter((row) => shown(row.variant) && ["", row.at].includes(reader.state().at)).map((row) => {
      const [value, low, high] = row.points;
      return {
        ...row, label: labels.get(row.variant), load: row.rate, value, point: value, low, high, from: low, to: high,
        interval: range(low, high, significant), shown: said(row.verdict), why: row.why || "–",
        needs: row.needed === null ? "–" : `${count(row.needed)} of each variant`, p: row.p === null ? "–" : pText(row.p), p_value: row.p,
      };
    });
    return keyed(rows);
  }

  const pText = (p) => (p < 0.001 ? "< 0.001" : p.toFixed(3));
  const signed = (value) => (value < 0 ? `−${latencyText(-value)}` : `+${latencyText(value)}`);

  function added() {
    const rows = found.layers.filter(chosen).map((row) => {
      const [value, low, high] = row.added;
      return {
        ...row, label: `${labels.get(row.variant)} over ${row.below}`, name: `${labels.get(row.variant)}\nover ${row.below}`, load: row.rate, value, low, high,
        interval: range(low, high, latencyText), beyond: overloaded(row.variant, row.rate) || overloaded(row.below_name, row.rate), sure: low !== null && (low > 0 || high < 0),
        warning: row.warning || "–", shown: value === null ? "" : `${signed(value)}${row.warning ? " (in doubt)" : ""}`,
      };
    });
    return keyed(drawn(rows, "shift"));
  }

  // Verdicts by variant: how often each.
  function verdicts(rows) {
    const groups = new Map();
    rows.forEach((row) => groups.set(row.label, [...(groups.get(row.label) || []), row]));
    return [...groups].map(([label, own]) => {
      const numbers = [...new Set(own.map((row) => row.shown))].map((verdict) => (
        `${verdict} at ${count(own.filter((row) => row.shown === verdict).length)} of ${count(own.length)} loads`));
      return `${label} beside ${own[0].baseline}: ${numbers.join(", ")}.`;
    }).join(" ");
  }

  function steps(rows) {
    return rows.filter((row) => row.value !== null).slice(0, 12).map((row) => (
      `${row.label} at ${count(row.load)} ${page.load_unit}: ${signed(row.value)} ${page.unit}.`)).join(" ");
  }

  const cutNote = (rows) => [
    rows.some((row) => row.cut_low !== null || row.cut_high !== null) ? "Arrow: the interval reaches far beyond all values and is cut in the picture; the table has it whole." : "",
    rows.some((row) => row.far) ? "A row without a point is far beyond the others: choose its load, or look at the table." : "",
  ].join(" ").trim();
  const warned = (rows) => (rows.some((row) => row.warning !== "–") ? "In doubt: with a warning, below." : "");
  const height = (rows) => (rows.length > MANY ? 17 : 25) * rows.length, tall = (rows) => 31 * rows.length;
  const BESIDE = [["label", "Variant"], ["baseline", "Baseline"], ["load", `Load (${page.load_unit})`, count]];
  const ends = (unit) => [["from", `Low (${unit})`], ["to", `High (${unit})`]];
  const RUNS = [["needed", "Runs needed of each"], ["runs", "Runs"], ["baseline_runs", "Runs of the baseline"], ["pairs", "Pairs"]];
  return {
    effects: {
      uses: ["stat", "hide", "effect", "at"], rows: besideBaseline, spec: () => `effects-${reader.state().effect}`, words: verdicts,
      note: () => cutNote(besideBaseline()), height, named: true, empty: "No variant that is shown has this figure beside a baseline.",
      columns: () => [...BESIDE, ["value", isRatio() ? "Ratio" : `Shift (${page.unit})`, text], ["interval", "Interval"], ["shown", "Verdict"], ["why", "Why"], ["needs", "Runs needed", undefined, null], ["p", "p, adjusted", undefined, ["p_value", "p, adjusted"]]],
      extra: () => [...ends(isRatio() ? "ratio" : page.unit), ...RUNS],
    },
    "effects-errors": {
      uses: ["hide", "at"], rows: errors, words: verdicts, height, named: true, empty: "No variant that is shown has a share of failed requests beside a baseline.",
      columns: [...BESIDE, ["value", "Shift (percentage points)", significant], ["interval", "Interval"], ["shown", "Verdict"], ["why", "Why"], ["needs", "Runs needed", undefined, null], ["p", "p, adjusted", undefined, ["p_value", "p, adjusted"]]],
      extra: [...ends("percentage points"), ...RUNS],
    },
    layers: {
      uses: ["stat", "hide", "at"], rows: added, words: steps, height: tall, named: true, note: () => [cutNote(added()), warned(added())].join(" ").trim(),
      columns: [["label", "Step"], ["load", `Load (${page.load_unit})`, count], ["value", `Added (${page.unit})`, latencyText], ["interval", "Interval"], ["warning", "Warning"]],
      extra: [...ends(page.unit), ["runs", "Runs"]], empty: "No variant that is shown is declared to be built upon another one with this figure.",
    },
  };
});
