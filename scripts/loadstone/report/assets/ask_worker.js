/* DuckDB in a worker of the query page. ask.js starts it; report/query_page.py appends it to Arrow and DuckDB-Wasm.
 *
 * In:  {open: {module, tables}} with gzip-compressed WebAssembly and pairs [name, gzip-compressed Arrow stream], then
 *      {query: {sql, limit}}.
 * Out: {ready: version}, {result: {columns, types, rows, more}} or {failed: message}. Values are text, as DuckDB writes
 *      them: a query runs as a subquery whose columns are all cast to text.
 * The worker starts from a blob, so the page's own content security policy applies to it, which forbids all requests.
 */
"use strict";

(function () {
  // Only the tables: no files, no URLs, no further extensions.
  const RESTRICTIONS = [
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
  ];
  let connection = null;

  async function decompressed(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function open({ module, tables }) {
    const bytes = await decompressed(module);
    const database = await duckdb.createDuckDB({ eh: { mainModule: "duckdb-eh.wasm" } }, new duckdb.VoidLogger(), duckdb.BROWSER_RUNTIME);
    // By default it fetches the module, which a page opened from a file may not, and this worker can't.
    database.instantiateWasm = (imports, done) => {
      globalThis.DUCKDB_RUNTIME = duckdb.BROWSER_RUNTIME;
      WebAssembly.instantiate(bytes, imports).then(({ instance, module: compiled }) => done(instance, compiled), failed);
      return {};
    };
    await database.instantiate();
    database.open({ path: ":memory:" });
    connection = database.connect();
    for (const [name, compressed] of tables) {
      connection.insertArrowFromIPCStream(await decompressed(compressed), { name, create: true });
    }
    RESTRICTIONS.forEach((setting) => connection.query(setting));
    postMessage({ ready: database.getVersion() });
  }

  function rowsOf(table) {
    const columns = table.schema.fields.map((_, index) => table.getChildAt(index));
    const text = (value) => (value === null || value === undefined ? null : String(value));
    return Array.from({ length: table.numRows }, (_, row) => columns.map((column) => text(column.get(row))));
  }

  // Names and types of a query's columns, or null if it is invalid.
  function columnsOf(query) {
    try {
      return rowsOf(connection.query(`DESCRIBE SELECT * FROM (\n${query}\n)`));
    } catch (error) {
      return null;
    }
  }

  // For statements that cannot be subqueries, such as EXPLAIN, and for invalid queries, so that DuckDB's message is about
  // the query as it was written.
  function runDirectly(statement) {
    if (/^\s*(force\s+)?install\b/i.test(statement)) throw new Error("Permission Error: this page installs no extensions, since it sends no requests");
    const table = connection.prepare(statement).query();
    const shown = (type) => [Arrow.DataType.isUtf8, Arrow.DataType.isBool, Arrow.DataType.isInt, Arrow.DataType.isFloat].some((is) => is(type));
    const hidden = table.schema.fields.find((field) => !shown(field.type));
    if (hidden) throw new Error(`Column "${hidden.name}" can only be shown when it is cast to VARCHAR`);
    return { columns: table.schema.fields.map((field) => field.name), types: table.schema.fields.map(() => ""), rows: rowsOf(table) };
  }

  // A semicolon at the end, with comments, is not allowed in a subquery. A string may contain the same characters, so both
  // patterns are tried.
  const ENDINGS = [/[\s;]+$/, /;(\s|;|--[^\n]*(\n|$)|\/\*[^]*?\*\/)*$/];

  // DuckDB converts all values to text: intervals, maps, and sums beyond 2^53.
  function run(sql, limit) {
    const query = ENDINGS.map((ending) => sql.replace(ending, "")).find(columnsOf);
    if (query === undefined) return runDirectly(sql);
    const columns = columnsOf(query);
    try {
      const rows = rowsOf(connection.query(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (\n${query}\n) LIMIT ${limit + 1}`));
      return { columns: columns.map((row) => row[0]), types: columns.map((row) => row[1]), rows };
    } catch (error) {
      return runDirectly(sql);
    }
  }

  function failed(error) {
    postMessage({ failed: String(error && error.message ? error.message : error) });
  }

  onmessage = async ({ data }) => {
    try {
      if (data.open) return await open(data.open);
      const { sql, limit } = data.query, found = run(sql, limit);
      return postMessage({ result: { ...found, rows: found.rows.slice(0, limit), more: found.rows.length > limit } });
    } catch (error) {
      return failed(error);
    }
  };
})();
