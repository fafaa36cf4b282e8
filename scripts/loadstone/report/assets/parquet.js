/* loadstone.parquet(names, columns, numeric): the bytes of a Parquet file with these columns. `numeric` has the type of
 * columns without any value: numbers or text.
 *
 * Only the part of the format that a chart's data needs: one row group, one uncompressed PLAIN page per column, every
 * column optional; numbers are DOUBLE, booleans BOOLEAN, all else UTF-8 text. Format: parquet.thrift of
 * apache/parquet-format; metadata in Thrift's compact protocol. The page writes the files itself, because files for every
 * chart, load and choice would be many times as large as the page.
 */
window.loadstone = window.loadstone || {};
window.loadstone.parquet = function parquet(names, columns, numeric) {
  "use strict";

  const BOOLEAN = 0, DOUBLE = 5, BYTE_ARRAY = 6, OPTIONAL = 1, UTF8 = 0, PLAIN = 0, RLE = 3;
  const utf8 = (text) => [...new TextEncoder().encode(text)];

  function littleEndian(value) {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, value, true);
    return [...bytes];
  }

  // --- Thrift's compact protocol: a struct is a list of [id, type, value], ids ascending -----------------------------

  function varint(value) {
    const bytes = [];
    for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    return [...bytes, value];
  }

  const CODES = { i32: 5, i64: 6, text: 8, list: 9, struct: 12 };
  const WRITE = {
    i32: (value) => varint(value * 2), // zigzag encoding; values are never negative here
    i64: (value) => varint(value * 2),
    text: (value) => [...varint(utf8(value).length), ...utf8(value)],
    list: ([type, values]) => {
      const head = values.length < 15 ? [values.length * 16 + CODES[type]] : [240 + CODES[type], ...varint(values.length)];
      return head.concat(...values.map(WRITE[type]));
    },
    struct: (fields) => {
      let last = 0;
      const bytes = fields.map(([id, type, value]) => {
        const head = (id - last) * 16 + CODES[type];
        last = id;
        return [head, ...WRITE[type](value)];
      });
      return [].concat(...bytes, 0);
    },
  };

  // --- Columns ----------------------------------------------------------------------------------------------------------

  const missing = (value) => value === null || value === undefined || Number.isNaN(value);

  function bits(values) {
    const bytes = new Array(Math.ceil(values.length / 8)).fill(0);
    values.forEach((value, index) => { if (value) bytes[index >> 3] |= 1 << (index & 7); });
    return bytes;
  }

  function typeOf(present, isNumber) {
    if (!present.length && isNumber) return DOUBLE;
    if (present.length && present.every((value) => typeof value === "number")) return DOUBLE;
    return present.length && present.every((value) => typeof value === "boolean") ? BOOLEAN : BYTE_ARRAY;
  }

  const ENCODE = {
    [BOOLEAN]: bits,
    [DOUBLE]: (values) => [...new Uint8Array(Float64Array.from(values).buffer)],
    [BYTE_ARRAY]: (values) => values.flatMap((value) => { const text = utf8(String(value)); return [...littleEndian(text.length), ...text]; }),
  };

  /** One column's page, which begins at `offset`, and its metadata for the footer. */
  function chunk(name, values, offset, isNumber) {
    const present = values.filter((value) => !missing(value)), type = typeOf(present, isNumber);
    // Definition levels: one bit-packed run, in groups of eight values.
    const levels = [...varint(Math.ceil(values.length / 8) * 2 + 1), ...bits(values.map((value) => !missing(value)))];
    const data = [...littleEndian(levels.length), ...levels, ...ENCODE[type](present)];
    const head = WRITE.struct([
      [1, "i32", 0], [2, "i32", data.length], [3, "i32", data.length],
      [5, "struct", [[1, "i32", values.length], [2, "i32", PLAIN], [3, "i32", RLE], [4, "i32", RLE]]],
    ]);
    const size = head.length + data.length;
    const metadata = [
      [1, "i32", type], [2, "list", ["i32", [PLAIN, RLE]]], [3, "list", ["text", [name]]], [4, "i32", 0],
      [5, "i64", values.length], [6, "i64", size], [7, "i64", size], [9, "i64", offset],
    ];
    const element = [[1, "i32", type], [3, "i32", OPTIONAL], [4, "text", name], ...(type === BYTE_ARRAY ? [[6, "i32", UTF8]] : [])];
    return { bytes: [...head, ...data], element, column: [[2, "i64", offset], [3, "struct", metadata]] };
  }

  const n = columns.length ? columns[0].length : 0, chunks = [];
  const parts = [utf8("PAR1")];
  let offset = 4;
  names.forEach((name, index) => {
    const written = chunk(name, columns[index], offset, numeric[index]);
    offset += written.bytes.length;
    chunks.push(written);
    parts.push(written.bytes);
  });
  const group = [[1, "list", ["struct", chunks.map((each) => each.column)]], [2, "i64", offset - 4], [3, "i64", n]];
  const footer = WRITE.struct([
    [1, "i32", 1], [2, "list", ["struct", [[[4, "text", "rows"], [5, "i32", names.length]], ...chunks.map((each) => each.element)]]],
    [3, "i64", n], [4, "list", ["struct", [group]]], [6, "text", "Loadstone"],
  ]);
  parts.push(footer, littleEndian(footer.length), utf8("PAR1"));
  return new Uint8Array(parts.flat());
};
