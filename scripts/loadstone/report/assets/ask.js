/* The query page: runs the reader's SQL in DuckDB, shows the result, and keeps the query in the page's address.
 *
 * Nothing is loaded before the first query. DuckDB and the tables are loaded by scripts that call loadstone.receive, and
 * DuckDB runs in a worker that starts from a blob. So the page also works from a file, and its content security policy
 * applies to the worker, which can send no requests. Text from the tables only becomes textContent.
 */
window.loadstone = window.loadstone || {};
(function () {
  "use strict";

  const page = JSON.parse(document.getElementById("page-data").textContent);
  const [form, box, run, stop, save, status, problem, result, loading] = ["ask", "sql", "run", "stop", "save", "status", "error", "result", "loading"]
    .map((id) => document.getElementById(id));
  const received = new Map();
  let loaded = null, worker = null, waiting = null, last = null;

  // --- Loading ------------------------------------------------------------------------------------------------------------

  window.loadstone.receive = (name, number, text) => {
    if (!received.has(name)) received.set(name, []);
    received.get(name)[number] = text;
  };

  function script(file) {
    return new Promise((done, failed) => {
      const element = document.createElement("script");
      element.src = file;
      element.onload = () => { element.remove(); done(); };
      element.onerror = () => { element.remove(); failed(new Error(`${file} could not be loaded: is this site complete?`)); };
      document.head.append(element);
    });
  }

  function bytes(name) {
    const text = atob(received.get(name).join(""));
    return Uint8Array.from(text, (character) => character.charCodeAt(0));
  }

  // Kept, so that stopping a query does not require loading again.
  async function load() {
    if (loaded) return loaded;
    const files = [...Object.values(page.parts).flat(), ...page.tables.map((table) => table.file)];
    let done = 0;
    loading.max = files.length;
    loading.value = 0;
    loading.hidden = false;
    try {
      await Promise.all(files.map((file) => script(file).then(() => { done += 1; loading.value = done; })));
    } finally {
      loading.hidden = true;
    }
    const source = new Blob([bytes("worker")]).stream().pipeThrough(new DecompressionStream("gzip"));
    loaded = { worker: await new Response(source).text(), module: bytes("module"), tables: page.tables.map(({ name }) => [name, bytes(name)]) };
    received.clear();
    return loaded;
  }

  async function start() {
    if (!window.DecompressionStream || !window.Worker || !window.WebAssembly) throw new Error("This browser is too old for DuckDB: it needs one of 2023 or later.");
    setStatus("Loading DuckDB and the tables …");
    const { worker: source, module, tables } = await load();
    setStatus("Starting DuckDB …");
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    worker = new Worker(address);
    worker.onmessage = ({ data }) => (data.failed === undefined ? waiting.done(data) : waiting.failed(new Error(data.failed)));
    worker.onerror = (event) => {
      event.preventDefault();
      waiting.failed(new Error(`DuckDB does not start here${event.message ? ` (${event.message})` : ""}. ${remedy()}`));
      end();
    };
    try {
      await send({ open: { module, tables } });
    } catch (error) {
      end();
      throw error;
    } finally {
      URL.revokeObjectURL(address);
    }
  }

  function remedy() {
    return location.protocol === "file:"
      ? "Some browsers require a web server, such as this command in the folder of this page: python3 -m http.server"
      : "If the server of this site sends a Content-Security-Policy, it has to allow worker-src blob: and script-src 'self' 'wasm-unsafe-eval'.";
  }

  function send(message) {
    stop.hidden = false;
    return new Promise((done, failed) => {
      waiting = { done, failed };
      worker.postMessage(message);
    });
  }

  function end() {
    if (worker) worker.terminate();
    worker = null;
    run.textContent = loaded ? "Run" : run.dataset.first;
  }

  // --- Queries ------------------------------------------------------------------------------------------------------------

  async function busy(work) {
    run.disabled = true;
    problem.hidden = true;
    try {
      if (!worker) await start();
      await work();
    } catch (error) {
      setStatus("");
      problem.textContent = error.message + hint(error.message);
      problem.hidden = false;
    }
    run.disabled = false;
    run.textContent = loaded ? "Run" : run.dataset.first;
    stop.hidden = true;
  }

  function hint(message) {
    return /extension/i.test(message) ? "\n\nThis page has only DuckDB's core: it loads no extensions." : "";
  }

  function runQuery() {
    if (run.disabled) return;
    const sql = box.value;
    writeAddress(sql);
    busy(async () => {
      setStatus("Running …");
      last = null;
      result.hidden = true;
      save.hidden = true;
      const began = performance.now();
      const { result: found } = await send({ query: { sql, limit: page.shown } });
      last = { sql, found };
      show(found);
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      setStatus(`${count(found.rows.length)} ${found.rows.length === 1 ? "row" : "rows"}${found.more ? ": these are the first, the saved file has more" : ""}; ${seconds} s.`);
    });
  }

  function show({ columns, types, rows }) {
    const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    const numeric = types.map((type) => /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*)$/.test(type));
    columns.forEach((name, index) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = numeric[index] ? "n" : "";
      cell.append(name, Object.assign(document.createElement("span"), { className: "type", textContent: types[index], title: types[index] }));
      head.append(cell);
    });
    rows.forEach((values) => {
      const row = body.insertRow();
      values.forEach((value, index) => {
        const cell = row.insertCell();
        cell.textContent = value === null ? "NULL" : value;
        const kind = numeric[index] ? "n" : value !== null && value.includes("─") ? "drawn" : "";
        cell.className = value === null ? `null ${kind}` : kind;
      });
    });
    result.replaceChildren(table);
    result.hidden = columns.length === 0;
    save.hidden = columns.length === 0;
  }

  function setStatus(text) {
    status.textContent = text;
  }

  function count(number) {
    return number.toLocaleString("en");
  }

  // --- Saving -------------------------------------------------------------------------------------------------------------

  function saveResult() {
    if (!last || run.disabled) return;
    const { sql, found } = last;
    busy(async () => {
      const all = found.more ? (await send({ query: { sql, limit: page.downloaded } })).result : found;
      const address = URL.createObjectURL(new Blob([csv(all)], { type: "text/csv" }));
      Object.assign(document.createElement("a"), { href: address, download: "answer.csv" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
      setStatus(`Saved ${count(all.rows.length)} rows as answer.csv${all.more ? "; the result has more" : ""}.`);
    });
  }

  // NULL is an empty field, an empty string is "".
  function csv({ columns, rows }) {
    const quoted = (value) => (value === null ? "" : value === "" || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    return [columns, ...rows].map((values) => `${values.map(quoted).join(",")}\r\n`).join("");
  }

  // --- The address --------------------------------------------------------------------------------------------------------

  function readAddress() {
    const sql = new URLSearchParams(location.hash.slice(1)).get("sql");
    if (sql !== null) box.value = sql;
  }

  function writeAddress(sql) {
    const hash = `#${new URLSearchParams({ sql })}`;
    if (location.hash !== hash) history.replaceState(null, "", hash);
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); runQuery(); });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); runQuery(); }
  });
  stop.addEventListener("click", () => {
    if (!worker) return;
    end();
    waiting.failed(new Error("Stopped. The next query restarts DuckDB."));
  });
  save.addEventListener("click", saveResult);
  document.querySelectorAll("[data-example]").forEach((button) => button.addEventListener("click", () => {
    box.value = button.dataset.example;
    writeAddress(box.value);
    if (worker) runQuery(); else run.focus();
  }));
  window.addEventListener("hashchange", readAddress);
  run.textContent = run.dataset.first;
  readAddress();
})();
