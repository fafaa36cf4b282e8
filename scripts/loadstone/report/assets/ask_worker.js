/* DuckDB in a worker of the page "Ask the tables"; ask.js starts it, ask_engine.py puts it behind Arrow and DuckDB-Wasm.
 *
 * In:  {open: {module, tables}} with gzip-compressed WebAssembly and [name, gzip-compressed Arrow stream] pairs, then
 *      {ask: {sql, limit}}.
 * The worker starts from text, so it is under the page's own policy, which forbids every request. A query is put into
 * brackets that cast every column to text.
 * Out: {ready: version}, {answer: {columns, types, rows, more}} or {failed: text}. Rows hold text as DuckDB writes it.
 */
"use strict";

(function () {
  // The tables and nothing else: no file, no address, no extension from elsewhere.
  const CLOSED = [
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
  ];
  let connection = null;

  async function unpacked(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function open({ module, tables }) {
    const bytes = await unpacked(module);
    const database = await duckdb.createDuckDB({ eh: { mainModule: "duckdb-eh.wasm" } }, new duckdb.VoidLogger(), duckdb.BROWSER_RUNTIME);
    // By itself it would fetch the module, which a page from a file may not, and this worker can't.
    database.instantiateWasm = (imports, done) => {
      globalThis.DUCKDB_RUNTIME = duckdb.BROWSER_RUNTIME;
      WebAssembly.instantiate(bytes, imports).then((made) => done(made.instance, made.module), failed);
      return {};
    };
    await database.instantiate();
    database.open({ path: ":memory:" });
    connection = database.connect();
    for (const [name, packed] of tables) {
      connection.insertArrowFromIPCStream(await unpacked(packed), { name, create: true });
    }
    CLOSED.forEach((setting) => connection.query(setting));
    postMessage({ ready: database.getVersion() });
  }

  function texts(table) {
    const columns = table.schema.fields.map((_, index) => table.getChildAt(index));
    const written = (value) => (value === null || value === undefined ? null : String(value));
    return Array.from({ length: table.numRows }, (_, row) => columns.map((column) => written(column.get(row))));
  }

  function described(query) {
    try {
      return texts(connection.query(`DESCRIBE SELECT * FROM (\n${query}\n)`));
    } catch (error) {
      return null;
    }
  }

  // EXPLAIN and the like stand in no brackets; and a wrong query is run as it is, for DuckDB's words to be about that.
  function resultOf(statement) {
    if (/^\s*(force\s+)?install\b/i.test(statement)) throw new Error("Permission Error: this page installs no extensions, since it sends no requests");
    const table = connection.prepare(statement).query();
    const shown = (type) => [Arrow.DataType.isUtf8, Arrow.DataType.isBool, Arrow.DataType.isInt, Arrow.DataType.isFloat].some((is) => is(type));
    const hidden = table.schema.fields.find((field) => !shown(field.type));
    if (hidden) throw new Error(`Column "${hidden.name}" can only be shown when it is cast to VARCHAR`);
    return { columns: table.schema.fields.map((field) => field.name), types: table.schema.fields.map(() => ""), rows: texts(table) };
  }

  // A semicolon and what may come behind it would end what is around a query. (In a text it looks the same.)
  const ENDINGS = [/[\s;]+$/, /;(\s|;|--[^\n]*(\n|$)|\/\*[^]*?\*\/)*$/];

  // DuckDB writes every value itself, be it an interval, a map or a sum beyond 2^53.
  function answer(sql, limit) {
    const query = ENDINGS.map((ending) => sql.replace(ending, "")).find(described);
    if (query === undefined) return resultOf(sql);
    const columns = described(query);
    try {
      const rows = texts(connection.query(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (\n${query}\n) LIMIT ${limit + 1}`));
      return { columns: columns.map((row) => row[0]), types: columns.map((row) => row[1]), rows };
    } catch (error) {
      return resultOf(sql);
    }
  }

  function failed(error) {
    postMessage({ failed: String(error && error.message ? error.message : error) });
  }

  onmessage = async ({ data }) => {
    try {
      if (data.open) return await open(data.open);
      const { sql, limit } = data.ask, found = answer(sql, limit);
      return postMessage({ answer: { ...found, rows: found.rows.slice(0, limit), more: found.rows.length > limit } });
    } catch (error) {
      return failed(error);
    }
  };
})();
