/*
 * Tests of the parsers of files: good files, and hostile ones, which must be
 * refused with words, at once, without much memory.
 *
 *     node --test t/web/
 */

import assert from "node:assert/strict";
import test from "node:test";

const parse = new URL("../../src/web/parse/", import.meta.url);
const load = (name) => import(new URL(`${name}.js`, parse));

const { parseJson, Exact } = await load("json");
const { headerLength, parseHeader } = await load("safetensors");
const { parseGguf } = await load("gguf");
const { footerLength, parseFooter } = await load("parquet");
const { Csv, separatorOf } = await load("csv");
const { parseListing } = await load("ztensor");
const { decodeValues } = await load("values");
const { encodingOf, kindOf } = await load("kind");
const { product } = await load("error");


/* --- bytes ---------------------------------------------------------------- */

const utf8 = (text) => [...new TextEncoder().encode(text)];

function le(value, width) {
    const bytes = [];

    for (let i = 0, n = BigInt(value); i < width; i++, n >>= 8n) {
        bytes.push(Number(n & 255n));
    }

    return bytes;
}

const u32 = (n) => le(n, 4);
const u64 = (n) => le(n, 8);
const buffer = (...parts) => new Uint8Array(parts.flat(Infinity)).buffer;
const header = (value) => buffer(utf8(typeof value === "string" ? value
    : JSON.stringify(value)));


/* --- JSON ----------------------------------------------------------------- */

test("JSON: keeps order, digits and odd keys", () => {
    const value = parseJson('{"2":1,"1":[1.50,12345678901234567890,-0,1e999],'
        + '"__proto__":{"a":"\\u00e9\\n"}}');

    assert.deepEqual([...value.keys()], ["2", "1", "__proto__"]);
    assert.deepEqual(value.get("1").map(String),
        ["1.50", "12345678901234567890", "0", "1e999"]);
    assert.ok(value.get("1")[1] instanceof Exact);
    assert.equal(value.get("__proto__").get("a"), "é\n");
});

test("JSON: refuses what is not JSON", () => {
    for (const text of ["", " ", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "nul",
        "01", "1 2", "\"\n\"", "\"\\x\"", "\"\\u12g4\"", "[1 2]", "'a'",
        "{a:1}", "+1", ".5", "1.", "\"abc"])
    {
        assert.throws(() => parseJson(text), SyntaxError, text);
    }
});

test("JSON: limits depth and number of values", () => {
    assert.throws(() => parseJson("[".repeat(1e6)), /nested more than 200/);
    assert.throws(() => parseJson("{\"a\":".repeat(1e5)), /nested/);
    assert.throws(() => parseJson("[0,0,0,0]", { values: 3 }), /too many/);
});


/* --- safetensors ---------------------------------------------------------- */

test("safetensors: reads a header", () => {
    const text = header({ __metadata__: { format: "pt" },
        a: { dtype: "F32", shape: [2, 3], data_offsets: [0, 24] },
        b: { dtype: "F4", shape: [4], data_offsets: [24, 26] },
        c: { dtype: "NEW", shape: [], data_offsets: [26, 27] } });
    const size = 8 + text.byteLength + 27;
    const { metadata, tensors, warnings } = parseHeader(text, size);

    assert.equal(headerLength(buffer(u64(text.byteLength)), size),
        text.byteLength);
    assert.equal(metadata.get("format"), "pt");
    assert.deepEqual(tensors.map((one) => [one.name, one.count, one.size]),
        [["a", 6, 24], ["b", 4, 2], ["c", 1, 1]]);
    assert.equal(tensors[0].offset, 8 + text.byteLength);
    assert.deepEqual(warnings, []);
});

test("safetensors: refuses lengths that lie", () => {
    const length = (n, size) => () => headerLength(buffer(u64(n)), size);

    assert.throws(length(1n << 63n, 100), /claims a header/);
    assert.throws(length((1n << 64n) - 1n, 100), /claims a header/);
    assert.throws(length(93, 100), /93 bytes, and 92 bytes follow/);
    assert.throws(length(0, 100), /empty/);
    assert.throws(length(17 << 20, 1e9), RangeError);
    assert.throws(() => headerLength(buffer([1, 2]), 2), /less than 8/);
});

test("safetensors: refuses malformed headers", () => {
    const one = (entry) => ({ t: entry });
    const cases = [
        ["[]", /not a JSON object/],
        ["{\"a\":", /ends early/],
        ["[".repeat(10000), /nested/],
        ['{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
            + '"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}', /twice/],
        [{ __metadata__: { a: 1 } }, /metadata/],
        [{ __metadata__: [] }, /metadata/],
        [one(null), /not a JSON object/],
        [one({ shape: [], data_offsets: [0, 0] }), /no type/],
        [one({ dtype: "F32", shape: [-1], data_offsets: [0, 4] }), /shape/],
        [one({ dtype: "F32", shape: [1.5], data_offsets: [0, 4] }), /shape/],
        [one({ dtype: "F32", shape: "2", data_offsets: [0, 4] }), /shape/],
        [one({ dtype: "F32", shape: Array(65).fill(1), data_offsets: [0, 4] }),
            /shape/],
        [one({ dtype: "F32", shape: [1], data_offsets: [4, 0] }), /offsets/],
        [one({ dtype: "F32", shape: [1], data_offsets: [0] }), /offsets/],
        [one({ dtype: "F32", shape: [1], data_offsets: [0, 1e6] }), /beyond/],
        [one({ dtype: "F32", shape: [2], data_offsets: [0, 4] }), /needs 8/],
        [one({ dtype: "F32", shape: [2 ** 40, 2 ** 40],
            data_offsets: [0, 4] }), /too many elements/],
        ['{"t":{"dtype":"U8","shape":[18446744073709551616],'
            + '"data_offsets":[0,4]}}', /shape/],
        ['{"t":{"dtype":"U8","shape":[4],'
            + '"data_offsets":[0,99999999999999999999]}}', /offsets/]
    ];

    for (const [value, reason] of cases) {
        const text = header(value);

        assert.throws(() => parseHeader(text, 8 + text.byteLength + 100),
            reason, JSON.stringify(value).slice(0, 60));
    }

    assert.throws(() => parseHeader(buffer([0xff, 0xfe]), 100), /UTF-8/);
});

test("safetensors: reports gaps and overlaps", () => {
    const text = header({
        a: { dtype: "U8", shape: [4], data_offsets: [0, 4] },
        b: { dtype: "U8", shape: [4], data_offsets: [2, 6] } });
    const { warnings } = parseHeader(text, 8 + text.byteLength + 10);

    assert.match(warnings[0], /^1 tensor shares bytes/);
    assert.match(warnings[1], /^4 bytes belong/);
});


/* --- GGUF ----------------------------------------------------------------- */

const str = (text) => [u64(utf8(text).length), utf8(text)];
const gguf = (tensors, keys, ...rest) =>
    buffer(utf8("GGUF"), u32(3), u64(tensors), u64(keys), rest);
const tensor = (name, shape, type, offset) => [str(name), u32(shape.length),
    shape.map(u64), u32(type), u64(offset)];

test("GGUF: reads metadata and tensors", () => {
    const file = gguf(1, 3, str("general.architecture"), u32(8), str("llama"),
        str("big"), u32(10), u64((1n << 64n) - 1n),
        str("list"), u32(9), u32(5), u64(100), Array(100).fill(u32(7)),
        tensor("w", [32, 2], 2, 0));
    const { metadata, tensors, need } = parseGguf(file, file.byteLength + 200);

    assert.equal(need, 0);
    assert.equal(metadata.get("general.architecture"), "llama");
    assert.equal(metadata.get("big"), (1n << 64n) - 1n);
    assert.equal(metadata.get("list").length, 100);
    assert.equal(metadata.get("list").values.length, 64);
    assert.deepEqual(tensors[0].shape, [2, 32]);
    assert.equal(tensors[0].size, 36);
    assert.equal(tensors[0].offset % 32, 0);
});

test("GGUF: asks for more, at each length", () => {
    const file = gguf(1, 2, str("a"), u32(8), str("text"),
        str("l"), u32(9), u32(8), u64(2), str("x"), str("y"),
        tensor("w", [4], 0, 0));

    for (let n = 0; n < file.byteLength; n++) {
        const { need } = parseGguf(file.slice(0, n), file.byteLength + 64);

        assert.ok(need > n && need <= file.byteLength, `${n}: ${need}`);
    }

    assert.equal(parseGguf(file, file.byteLength + 64).need, 0);
});

test("GGUF: refuses hostile headers", () => {
    const deep = [];

    for (let i = 0; i < 100; i++) {
        deep.push(u32(9), u64(1));
    }

    const cases = [
        [buffer(utf8("GGUF"), u32(3)), /less than 24/],
        [buffer(utf8("GGML"), Array(40).fill(0)), /does not begin/],
        [gguf(1n << 60n, 0), /too large|claims/],
        [gguf(1000, 0), /claims 1000 tensors/],
        [gguf(0, 1n << 40n), /claims .* keys/],
        [gguf(0, 1, u64(1n << 63n), Array(99).fill(0)), /too large/],
        [gguf(0, 1, u64(5000), Array(99).fill(0)), /claims 5000 bytes/],
        [gguf(0, 1, str("a"), u32(99), Array(99).fill(0)), /unknown type 99/],
        [gguf(0, 1, str("a"), u32(9), u32(4), u64(1n << 50n),
            Array(99).fill(0)), /elements of an array/],
        [gguf(0, 1, str("a"), u32(9), deep), /nested|elements/],
        [gguf(0, 2, str("a"), u32(0), 1, str("a"), u32(0), 1,
            Array(99).fill(0)), /twice/],
        [gguf(1, 0, str("w"), u32(1000), Array(99).fill(0)),
            /1000 dimensions/],
        [gguf(1, 0, tensor("w", [2 ** 40, 2 ** 40], 0, 0)), /does not fit/],
        [gguf(1, 0, tensor("w", [33], 2, 0)), /does not fit/],
        [gguf(1, 0, tensor("w", [1000], 0, 0)), /ends beyond/],
        [gguf(1, 0, tensor("w", [1], 0, 2n ** 53n - 1n)), /ends beyond/],
        [gguf(2, 0, tensor("w", [0], 0, 0), tensor("w", [0], 0, 0)), /twice/],
        [gguf(0, 1, str("general.alignment"), u32(4), u32(0),
            Array(99).fill(0)), /alignment/]
    ];

    for (const [file, reason] of cases) {
        assert.throws(() => parseGguf(file, file.byteLength + 4), reason);
    }

    assert.throws(() => parseGguf(buffer(utf8("GGUF"), u32(1),
        Array(99).fill(0)), 200), /version 1/);
    assert.throws(() => parseGguf(buffer(utf8("GGUF"), 0, 0, 0, 3,
        Array(99).fill(0)), 200), /big-endian/);
});


/* --- Parquet -------------------------------------------------------------- */

const vary = (n) => (n < 128 ? [n] : [n & 127 | 128, vary(n >> 7)]);
const zig = (n) => vary(n * 2);
const bin = (text) => [vary(utf8(text).length), utf8(text)];
const SCHEMA = [0x48, bin("schema"), 0x15, zig(1), 0];
const LEAF = [0x15, zig(2), 0x25, zig(0), 0x18, bin("id"), 0];

test("Parquet: reads a footer", () => {
    const column = [0x15, zig(2), 0x29, 0x18, bin("id"), 0x15, zig(6),
        0x16, zig(10), 0x16, zig(90), 0x16, zig(40), 0];
    const group = [0x19, 0x1c, [0x3c, column, 0], 0x16, zig(90), 0x16, zig(10),
        0];
    const footer = buffer(0x15, zig(2), 0x19, 0x2c, SCHEMA, LEAF,
        0x16, zig(10), 0x19, 0x1c, group, 0x28, bin("test"), 0);
    const { rows, schema, groups, columns, createdBy } = parseFooter(footer);

    assert.equal(rows, 10);
    assert.equal(createdBy, "test");
    assert.deepEqual(schema, [{ name: "id", depth: 0, below: 0,
        repetition: "required", type: "INT64", logical: "" }]);
    assert.deepEqual(groups, [{ rows: 10, size: 90, stored: 40 }]);
    assert.deepEqual(columns, [{ path: "id", codecs: ["Zstandard"],
        values: 10, size: 90, stored: 40 }]);
});

test("Parquet: refuses lies about its length", () => {
    const tail = (n, magic = "PAR1") => buffer(u32(n), utf8(magic));

    assert.throws(() => footerLength(tail(89), 100), /claims a footer/);
    assert.throws(() => footerLength(tail(0xffffffff), 100), /claims/);
    assert.throws(() => footerLength(tail(0), 100), /claims/);
    assert.throws(() => footerLength(tail(4, "ABCD"), 100), /PAR1/);
    assert.throws(() => footerLength(tail(4, "PARE"), 100), /encrypted/);
    assert.throws(() => footerLength(tail(20 << 20), 1e9), RangeError);
    assert.throws(() => footerLength(buffer([1]), 4), /less than 12/);
});

test("Parquet: refuses hostile footers", () => {
    const cases = [
        [buffer([]), /ends early/],
        [buffer(0), /no schema/],
        [buffer(0x15, Array(11).fill(0xff)), /more than 64 bits/],
        [buffer(0x1d, 0), /unknown type/],
        [buffer(0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f), /claims/],
        [buffer(0x18, 0xff, 0xff, 0xff, 0x0f), /claims/],
        [buffer(Array(100000).fill(0x1c)), /nested/],
        [buffer(Array(100000).fill(0x19)), /nested|early|unknown|claims/],
        [buffer(0x15, zig(2), 0x19, 0x3c, SCHEMA, LEAF, LEAF, 0x16, zig(1),
            0), /no place/],
        [buffer(0x29, 0x2c, SCHEMA, LEAF, 0x16, vary(1), 0), /no schema/]
    ];

    for (const [footer, reason] of cases) {
        assert.throws(() => parseFooter(footer), reason);
    }
});


/* --- CSV ------------------------------------------------------------------ */

const rowsOf = (text, size = text.length || 1, mark = ",") => {
    const csv = new Csv(mark);

    for (let i = 0; i < text.length; i += size) {
        csv.push(text.slice(i, i + size));
    }

    csv.end();

    return csv.rows;
};

test("CSV: quotes, ends of lines, and pieces of every size", () => {
    const text = 'a,"b ""q"", x","line\r\nend"\r\n\r\n1,,\n"",2\r"x"y,3';
    const rows = [["a", 'b "q", x', "line\r\nend"], ["1", "", ""], ["", "2"],
        ["xy", "3"]];

    for (let size = 1; size <= text.length; size++) {
        assert.deepEqual(rowsOf(text, size), rows, `pieces of ${size}`);
    }

    assert.deepEqual(rowsOf(""), []);
    assert.deepEqual(rowsOf("\n\n"), []);
    assert.deepEqual(rowsOf("a\tb\n", 4, "\t"), [["a", "b"]]);
});

test("CSV: limits cells and columns", () => {
    assert.equal(rowsOf("x".repeat(1e6))[0][0].length, 10000);
    assert.equal(rowsOf(",".repeat(1e6))[0].length, 1000);
    assert.equal(rowsOf("\"" + "x\n".repeat(1e5)).length, 1);
});

test("CSV: guesses the separator", () => {
    assert.equal(separatorOf("a;b;c\n1,2;3"), ";");
    assert.equal(separatorOf("\"a;b;c\",d\n"), ",");
    assert.equal(separatorOf("one"), ",");
});


/* --- zTensor -------------------------------------------------------------- */

test("zTensor: makes a row of each component", () => {
    const part = (dtype, length) => ({ dtype, offset: 64, length,
        encoding: "raw", decoded_length: length, digest: null });
    const { tensors, next } = parseListing({ container: "1.1",
        version: "1.1.0", count: 2, next: 1, attributes: {}, warnings: [],
        objects: [
            { i: 0, name: "a", shape: [2, 3], format: "dense", status: "ok",
                errors: [], components: { data: part("f32", 24) } },
            { i: 1, name: "s", shape: [9, 9], format: "sparse_csr",
                status: "invalid", errors: ["out_of_bounds"], components: {
                    values: part("f32", 8), indptr: part("u64", 80) } }] });

    assert.equal(next, 1);
    assert.deepEqual(tensors.map((one) => [one.name, one.dtype, one.count]),
        [["a", "F32", 6], ["s.values", "F32", 2], ["s.indptr", "U64", 10]]);
    assert.deepEqual(tensors[1].notes,
        ["invalid", "sparse_csr", "out_of_bounds"]);
    assert.equal(tensors[1].ok, false);
});

test("zTensor: survives a listing with other values", () => {
    for (const page of [null, [], {}, { objects: 1, count: 1 },
        { objects: [], count: -1 }])
    {
        assert.throws(() => parseListing(page), TypeError);
    }

    const { tensors } = parseListing({ count: 5, objects: [null, 1, {},
        { name: 1, shape: "x", components: { a: null } },
        { name: "n", shape: [2 ** 40, 2 ** 40], components: { data: {
            dtype: 1, length: -1, offset: 1.5, decoded_length: "x" } } }] });

    assert.equal(tensors.length, 1);
    assert.equal(tensors[0].size, 0);
    assert.equal(tensors[0].offset, null);
    assert.equal(tensors[0].count, 0);
});


/* --- values, kinds -------------------------------------------------------- */

test("values: decodes the types", () => {
    const of = (type, ...bytes) => decodeValues(type, buffer(bytes));

    assert.deepEqual(of("F16", 0x00, 0x3c, 0x00, 0xc0, 0x00, 0x7c, 0x01, 0x00),
        ["1", "-2", "Infinity", "5.96046e-8"]);
    assert.deepEqual(of("BF16", 0x80, 0x3f, 0x00, 0x80), ["1", "-0"]);
    assert.deepEqual(of("F8_E4M3", 0x38, 0x7e, 0x7f, 0x81),
        ["1", "448", "NaN", "-0.00195313"]);
    assert.deepEqual(of("F8_E5M2", 0x3c, 0x7c), ["1", "Infinity"]);
    assert.deepEqual(of("i64", Array(8).fill(255)), ["-1"]);
    assert.deepEqual(of("U64", Array(8).fill(255)), ["18446744073709551615"]);
    assert.deepEqual(of("F32", 0, 0, 128, 63, 1), ["1"]);
    assert.equal(of("Q4_0", 1, 2), null);
    assert.equal(decodeValues("U8", new ArrayBuffer(1e6), 10).length, 10);
});

test("product: no overflow, and zero wherever it is", () => {
    assert.equal(product([]), 1);
    assert.equal(product([2 ** 40, 2 ** 40, 0]), 0);
    assert.ok(Number.isNaN(product([2 ** 40, 2 ** 40])));
});

test("kinds: by magic, by name, by content", () => {
    const bytes = (...parts) => new Uint8Array(parts.flat());

    assert.equal(kindOf("x.bin", bytes(utf8("GGUF...."))), "gguf");
    assert.equal(kindOf("a.JSON", bytes(utf8("{}"))), "json");
    assert.equal(kindOf("a.json", bytes(0, 1, 2)), "binary");
    assert.equal(kindOf("Makefile", bytes(utf8("all:\n"))), "text");
    assert.equal(kindOf(".png", bytes(utf8("a"))), "text");
    assert.equal(encodingOf(bytes(utf8("é").slice(0, 1))), "utf-8");
    assert.equal(encodingOf(bytes(utf8("caf"), 0xe9, 10)), "windows-1252");
    assert.equal(encodingOf(bytes(1, 2, 3)), null);
});


/* --- storage -------------------------------------------------------------- */

test("storage: counts parts that overlap once", async () => {
    const { countParts } = await load("storage");
    const range = (start, end) => ({ start, end });

    assert.deepEqual(countParts({
        terms: [{ hash: "a", range: range(0, 4) },
            { hash: "b", range: range(0, 2) },
            { hash: "a", range: range(2, 6) },
            { hash: "a", range: range(2, 6) }],
        xorbs: { a: [{ ranges: [{ bytes: range(0, 99) },
            { bytes: range(50, 149) }] }], b: [{ ranges: [] }] }
    }), { terms: 4, xorbs: 2, stored: 150, repeated: { all: 14, again: 6 } });
    assert.equal(countParts({}).terms, 0);
});
