/*
 * The footer of a Parquet file: columns, row groups and codecs.  The values
 * themselves are not decoded.
 *
 *     footerLength(last eight bytes, size of the file)
 *     parseFooter(the footer without these eight bytes)
 *
 * The footer is a structure of Thrift in the compact protocol.  Fields that
 * the page does not show are skipped.
 */

import { Invalid, isCount, shorten } from "./error.js";

const OURS = 16 * 1024 * 1024;
const DEPTH = 16;
const NODES = 2e6;
const MAGIC = 0x31524150;             /* PAR1 */
const ENCRYPTED = 0x45524150;         /* PARE */

/* Types of the compact protocol. */

const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const SET = 10;
const MAP = 11;
const STRUCT = 12;

const PHYSICAL = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE",
    "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"];
const CONVERTED = ["UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL",
    "DATE", "TIME_MILLIS", "TIME_MICROS", "TIMESTAMP_MILLIS",
    "TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "INT_8",
    "INT_16", "INT_32", "INT_64", "JSON", "BSON", "INTERVAL"];
const LOGICAL = new Map([[1, "STRING"], [2, "MAP"], [3, "LIST"], [4, "ENUM"],
    [5, "DECIMAL"], [6, "DATE"], [7, "TIME"], [8, "TIMESTAMP"],
    [10, "INTEGER"], [11, "UNKNOWN"], [12, "JSON"], [13, "BSON"],
    [14, "UUID"], [15, "FLOAT16"]]);
const CODECS = ["uncompressed", "Snappy", "Gzip", "LZO", "Brotli", "LZ4",
    "Zstandard", "LZ4 raw"];
const REPETITIONS = ["required", "optional", "repeated"];

/* The fields that are read: numbers of Thrift, "all" for every field. */

const COLUMN = { 3: { 1: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1 } };
const WANTED = {
    1: 1,
    2: { 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 10: "all" },
    3: 1,
    4: { 1: COLUMN, 2: 1, 3: 1 },
    5: { 1: 1, 2: 1 },
    6: 1
};

const bad = (reason) => new Invalid("Parquet", reason);


export function footerLength(buffer, fileSize) {
    if (fileSize < 12 || buffer.byteLength < 8) {
        throw bad("it has less than 12 bytes");
    }

    const view = new DataView(buffer);
    const length = view.getUint32(0, true);
    const magic = view.getUint32(4, true);

    if (magic === ENCRYPTED) {
        throw new RangeError("This Parquet file has an encrypted footer: its "
            + "columns cannot be shown.");
    }

    if (magic !== MAGIC) {
        throw bad("it does not end with PAR1");
    }

    if (length > fileSize - 12 || length === 0) {
        throw bad(`it claims a footer of ${length} bytes, and the file has `
            + `${fileSize}`);
    }

    if (length > OURS) {
        throw new RangeError("The footer has more than 16 MiB: this page does "
            + "not load it.");
    }

    return length;
}


class Reader {
    constructor(buffer) {
        this.view = new DataView(buffer);
        this.at = 0;
        this.left = NODES;
    }

    take(n) {
        const at = this.at;

        if (n > this.view.byteLength - at) {
            throw bad("its footer ends early");
        }

        this.at += n;

        return at;
    }

    byte() {
        return this.view.getUint8(this.take(1));
    }

    /* Reads a number of up to 64 bits, as a BigInt. */

    varint() {
        let value = 0n;

        for (let shift = 0n; shift < 70n; shift += 7n) {
            const byte = this.byte();

            value |= BigInt(byte & 127) << shift;

            if (byte < 128) {
                return value;
            }
        }

        throw bad("its footer has a number of more than 64 bits");
    }

    signed() {
        const value = this.varint();

        return Number(BigInt.asIntN(64, value >> 1n ^ -(value & 1n)));
    }

    length() {
        const n = Number(this.varint());

        if (n > this.view.byteLength - this.at) {
            throw bad(`its footer claims ${n} bytes or values, and `
                + `${this.view.byteLength - this.at} bytes follow`);
        }

        return n;
    }

    value(type, level, wanted) {
        if (level > DEPTH) {
            throw bad(`its footer is nested more than ${DEPTH} deep`);
        }

        if (--this.left < 0) {
            throw new RangeError("The footer has too many values: this page "
                + "does not show it.");
        }

        switch (type) {
        case TRUE:
        case FALSE:
            return type === TRUE;
        case BYTE:
            return this.byte();
        case I16:
        case I32:
        case I64:
            return this.signed();
        case DOUBLE:
            return this.view.getFloat64(this.take(8), true);
        case BINARY:
            return this.text(wanted);
        case LIST:
        case SET:
            return this.list(level, wanted);
        case MAP:
            return this.map(level);
        case STRUCT:
            return this.struct(level, wanted);
        default:
            throw bad(`its footer has the unknown type ${type}`);
        }
    }

    text(wanted) {
        const length = this.length();
        const at = this.take(length);

        return wanted ? new TextDecoder().decode(new Uint8Array(
            this.view.buffer, at, Math.min(length, 65536))) : "";
    }

    list(level, wanted) {
        const head = this.byte();
        const short = head >> 4;
        const n = short === 15 ? this.length() : short;
        const values = [];

        for (let i = 0; i < n; i++) {
            const type = head & 15;
            const value = type === TRUE || type === FALSE
                ? this.byte() === TRUE
                : this.value(type, level + 1, wanted);

            if (wanted) {
                values.push(value);
            }
        }

        return values;
    }

    map(level) {
        const n = this.length();
        const types = n ? this.byte() : 0;

        for (let i = 0; i < n; i++) {
            this.value(types >> 4, level + 1);
            this.value(types & 15, level + 1);
        }

        return undefined;
    }

    struct(level, wanted) {
        const fields = new Map();

        for (let id = 0; ;) {
            const head = this.byte();

            if (head === 0) {
                return fields;
            }

            id = head >> 4 ? id + (head >> 4) : this.signed();

            const want = wanted === "all" ? "all" : wanted?.[id];
            const value = this.value(head & 15, level + 1, want);

            if (want) {
                fields.set(id, value);
            }
        }
    }
}


/*
 * Returns { version, rows, createdBy, metadata, schema, groups, columns }.  A
 * schema element has name, depth, repetition, type and logical; a group has
 * rows, size and stored; a column has path, codecs, values, size and stored.
 */

export function parseFooter(buffer) {
    const root = new Reader(buffer).struct(0, WANTED);
    const schema = listOf(root.get(2));
    const rows = root.get(3);

    if (schema.length === 0 || !isCount(rows)) {
        throw bad("its footer has no schema or number of rows");
    }

    return {
        version: root.get(1) ?? 0,
        rows,
        createdBy: textOf(root.get(6)),
        metadata: new Map(listOf(root.get(5)).map((pair) =>
            [textOf(pair.get(1)), textOf(pair.get(2))])),
        schema: readSchema(schema),
        ...readGroups(listOf(root.get(4)))
    };
}


/* A list of structures; a file may have other values there. */

function listOf(value) {
    return Array.isArray(value) ? value.filter((one) => one instanceof Map)
                                : [];
}


const textOf = (value) => (typeof value === "string" ? value : "");
const sizeOf = (value) => (isCount(value) ? value : 0);


/* The schema is a tree, in which each element says how many follow below. */

function readSchema(elements) {
    const open = [{ left: sizeOf(elements[0].get(5)) }];
    const result = [];

    for (const element of elements.slice(1)) {
        const name = textOf(element.get(4));

        while (open.length && open.at(-1).left === 0) {
            open.pop();
        }

        if (!open.length || open.length > DEPTH * 4) {
            throw bad(`the column "${shorten(name)}" has no place in the `
                + "schema");
        }

        const below = sizeOf(element.get(5));

        open.at(-1).left--;
        result.push({ name, depth: open.length - 1, below,
            repetition: REPETITIONS[element.get(3)] || "",
            type: below ? "" : PHYSICAL[element.get(1)] || "unknown",
            logical: logicalOf(element) });
        open.push({ left: below });
    }

    return result;
}


function logicalOf(element) {
    const logical = element.get(10);
    const id = logical instanceof Map ? [...logical.keys()][0] : undefined;

    return LOGICAL.get(id) || CONVERTED[element.get(6)] || "";
}


function readGroups(groups) {
    const columns = new Map();

    for (const group of groups) {
        for (const chunk of listOf(group.get(1))) {
            addChunk(columns, chunk.get(3));
        }
    }

    return {
        groups: groups.map((group) => ({
            rows: sizeOf(group.get(3)),
            size: sizeOf(group.get(2)),
            stored: listOf(group.get(1)).reduce((sum, chunk) => sum
                + (chunk.get(3) instanceof Map ? sizeOf(chunk.get(3).get(7))
                                               : 0), 0)
        })),
        columns: [...columns.values()].map((column) =>
            ({ ...column, codecs: [...column.codecs] }))
    };
}


function addChunk(columns, chunk) {
    if (!(chunk instanceof Map)) {
        return;
    }

    const path = [chunk.get(3)].flat().map(textOf).join(".");
    const column = columns.get(path) || { path, codecs: new Set(), values: 0,
        size: 0, stored: 0 };

    column.codecs.add(CODECS[chunk.get(4)] || "unknown");
    column.values += sizeOf(chunk.get(5));
    column.size += sizeOf(chunk.get(6));
    column.stored += sizeOf(chunk.get(7));
    columns.set(path, column);
}
