/* Saves any table of a page as Markdown, as LaTeX (booktabs) and as CSV: what it shows, one cell per column.
 *
 * A cell that spans several rows is repeated in each. A second line of a cell (an interval) follows the first one. What
 * marks stand for is below the table, except in CSV.
 */
"use strict";

(function () {
  const LATEX = {
    "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", $: "\\$", "&": "\\&", "#": "\\#", "%": "\\%", _: "\\_", "^": "\\^{}",
    "~": "\\~{}", "|": "\\textbar{}", "`": "\\textasciigrave{}", "-": "-{}", "→": "$\\rightarrow$", "≤": "$\\leq$", "≥": "$\\geq$",
    "<": "\\textless{}", ">": "\\textgreater{}", "–": "--", "−": "$-$", "×": "$\\times$", "±": "$\\pm$",
    "µ": "\\textmu{}", "…": "\\ldots{}", "†": "\\textdagger{}", "’": "'", "“": "``", "”": "''", "▲": "$\\blacktriangle$", "▼": "$\\blacktriangledown$",
    "■": "$\\blacksquare$", "○": "$\\circ$", "◆": "$\\blacklozenge$", "◇": "$\\lozenge$", "□": "$\\square$", "✕": "$\\times$",
  };
  const TYPES = { md: "text/markdown", tex: "application/x-tex", csv: "text/csv" };

  /** The text of a cell in one line: blocks and line breaks become spaces; without what only screen readers have. */
  function textOf(cell) {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll(".offscreen, .stacked-only, svg").forEach((part) => part.remove());
    copy.querySelectorAll("br, .interval, .mark, sup, p, li").forEach((part) => part.before(" "));
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  /** All rows as lists of texts of equal length, cells repeated over the rows and columns that they span. */
  function grid(table) {
    const rows = [...table.rows].filter((row) => !row.hidden), filled = rows.map(() => []);
    rows.forEach((row, at) => {
      let column = 0;
      for (const cell of row.cells) {
        while (filled[at][column] !== undefined) column += 1;
        const text = textOf(cell);
        for (let down = 0; down < cell.rowSpan && at + down < rows.length; down += 1) {
          for (let right = 0; right < cell.colSpan; right += 1) filled[at + down][column + right] = text;
        }
      }
    });
    const width = Math.max(...filled.map((row) => row.length));
    return filled.map((row) => Array.from({ length: width }, (_, column) => row[column] ?? ""));
  }

  const isNumber = (text) => text === "" || /^[▲▼■○ ]*[+−-]?[\d.,–]/.test(text);

  function alignments(rows) {
    return rows[0].map((_, column) => (rows.slice(1).every((row) => isNumber(row[column])) ? "r" : "l"));
  }

  const FORMATS = {
    md(rows, caption, key) {
      const escaped = (text) => text.replace(/([\\|`*_<~&$]|\](?=[([:]))/g, "\\$1");
      const line = (cells) => `| ${cells.map(escaped).join(" | ")} |`;
      const rule = `| ${alignments(rows).map((side) => (side === "r" ? "--:" : "---")).join(" | ")} |`;
      return [...(caption ? [escaped(caption), ""] : []), line(rows[0]), rule, ...rows.slice(1).map(line), ...(key ? ["", escaped(key)] : [])].join("\n") + "\n";
    },
    tex(rows, caption, key, title) {
      const escaped = (text) => text.replace(/-(?=-)|[\\{}$&#%_^~<>|`→≤≥–−×±µ…†’“”▲▼■○◆◇□✕]/g, (sign) => LATEX[sign]).replace(/^[[*]/, "{$&}");
      const line = (cells) => `${cells.map(escaped).join(" & ")} \\\\`;
      return [
        "% \\usepackage{booktabs, amssymb, textcomp}", "\\begin{table}", `\\caption{${escaped(caption || title)}}`,
        `\\begin{tabular}{${alignments(rows).join("")}}`, "\\toprule", line(rows[0]), "\\midrule", ...rows.slice(1).map(line),
        "\\bottomrule", "\\end{tabular}", ...(key ? [`\\par\\small ${escaped(key)}`] : []), "\\end{table}",
      ].join("\n") + "\n";
    },
    // Spreadsheets run text that begins like a formula, so that gets a quote in front.
    csv(rows) {
      const inert = (text) => (/^(=|@|[+-].*[(|!])/.test(text) ? `'${text}` : text);
      const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      return rows.map((row) => `${row.map(inert).map(cell).join(",")}\r\n`).join("");
    },
  };

  function save(table, format) {
    const region = table.closest("[aria-label]");
    const title = (region ? region.getAttribute("aria-label").replace(/^Table: /, "") : "Table") || "Table";
    const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "table";
    const key = document.getElementById(table.getAttribute("aria-describedby"));
    const caption = table.caption ? textOf(table.caption) : "";
    const content = FORMATS[format](grid(table), caption, key ? [...key.children].filter((part) => !part.hidden).map(textOf).join("; ") : "", title);
    const address = URL.createObjectURL(new Blob([content], { type: `${TYPES[format]};charset=utf-8` }));
    Object.assign(document.createElement("a"), { href: address, download: `${name}.${format}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  document.querySelectorAll("main .scroll > table").forEach((table) => {
    const line = Object.assign(document.createElement("p"), { className: "files small soft" });
    line.append("Save this table as ");
    for (const [format, title] of [["md", "Markdown"], ["tex", "LaTeX"], ["csv", "CSV"]]) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: title });
      button.addEventListener("click", () => save(table, format));
      line.append(button, " ");
    }
    table.parentElement.after(line);
  });
})();
