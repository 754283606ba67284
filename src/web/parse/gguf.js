/*
 * The header of a GGUF file (versions 2 and 3): metadata, and for each tensor
 * its type, shape and position.
 *
 * The length of the header is known only at its end.  parseGguf() reads what
 * it gets, and its result says with "need" how many bytes of the file it must
 * have to go on, or 0 if the header is complete.  Nothing is allocated for a
 * count or a length before it is compared with the size of the file.
 */

import { Invalid, product, shorten } from "./error.js";

const KEPT = 64;                      /* elements of a long array */
const TEXT = 4096;                    /* characters of a text */
const DEPTH = 4;
const KEYS = 65536;
const TENSORS = 1000000;

/* Values of metadata by number: width in bytes and reader of a DataView. */

const NUMBERS = new Map([[0, [1, "getUint8"]], [1, [1, "getInt8"]],
    [2, [2, "getUint16"]], [3, [2, "getInt16"]], [4, [4, "getUint32"]],
    [5, [4, "getInt32"]], [6, [4, "getFloat32"]], [7, [1, "getUint8"]],
    [10, [8, "getBigUint64"]], [11, [8, "getBigInt64"]],
    [12, [8, "getFloat64"]]]);
const BOOL = 7;
const STRING = 8;
const ARRAY = 9;

/* Types of tensors: name, elements of a block, bytes of a block. */

const TYPES = new Map(Object.entries({
    0: ["F32", 1, 4], 1: ["F16", 1, 2], 2: ["Q4_0", 32, 18],
    3: ["Q4_1", 32, 20], 6: ["Q5_0", 32, 22], 7: ["Q5_1", 32, 24],
    8: ["Q8_0", 32, 34], 9: ["Q8_1", 32, 36], 10: ["Q2_K", 256, 84],
    11: ["Q3_K", 256, 110], 12: ["Q4_K", 256, 144], 13: ["Q5_K", 256, 176],
    14: ["Q6_K", 256, 210], 15: ["Q8_K", 256, 292], 16: ["IQ2_XXS", 256, 66],
    17: ["IQ2_XS", 256, 74], 18: ["IQ3_XXS", 256, 98], 19: ["IQ1_S", 256, 50],
    20: ["IQ4_NL", 32, 18], 21: ["IQ3_S", 256, 110], 22: ["IQ2_S", 256, 82],
    23: ["IQ4_XS", 256, 136], 24: ["I8", 1, 1], 25: ["I16", 1, 2],
    26: ["I32", 1, 4], 27: ["I64", 1, 8], 28: ["F64", 1, 8],
    29: ["IQ1_M", 256, 56], 30: ["BF16", 1, 2], 34: ["TQ1_0", 256, 54],
    35: ["TQ2_0", 256, 66], 39: ["MXFP4", 32, 17]
}).map(([number, type]) => [Number(number), type]));

const bad = (reason) => new Invalid("GGUF", reason);


/* Thrown if the header goes on behind the bytes that were read. */

class More {
    constructor(need) {
        this.need = need;
    }
}


class Reader {
    constructor(buffer, fileSize) {
        this.view = new DataView(buffer);
        this.bytes = new Uint8Array(buffer);
        this.fileSize = fileSize;
        this.at = 0;
    }

    /* Moves over bytes, and returns where they begin. */

    take(n) {
        const at = this.at;

        if (n > this.fileSize - at) {
            throw bad(`at byte ${at} it claims ${n} bytes, and `
                + `${this.fileSize - at} follow`);
        }

        if (at + n > this.view.byteLength) {
            throw new More(at + n);
        }

        this.at = at + n;

        return at;
    }

    u32() {
        return this.view.getUint32(this.take(4), true);
    }

    /* Reads a length or an offset of 64 bits. */

    count() {
        const value = this.view.getBigUint64(this.take(8), true);

        if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
            throw bad(`at byte ${this.at - 8} is the number ${value}, which `
                + "is too large");
        }

        return Number(value);
    }

    /* Reads a count of things that have at least so many bytes each. */

    countOf(what, least, limit) {
        const n = this.count();

        if (n * least > this.fileSize - this.at || n > limit) {
            throw bad(`it claims ${n} ${what}`);
        }

        return n;
    }

    text(limit = TEXT) {
        const length = this.count();
        const at = this.take(length);
        const kept = Math.min(length, limit * 4);
        const text = new TextDecoder().decode(
            this.bytes.subarray(at, at + kept));

        return text.length > limit || kept < length
            ? `${text.slice(0, limit)}…` : text;
    }

    value(type, level = 0) {
        if (type === STRING) {
            return this.text();
        }

        if (type === ARRAY) {
            return this.array(level + 1);
        }

        const [width, read] = NUMBERS.get(type) || [];

        if (!width) {
            throw bad(`at byte ${this.at} is a value of the unknown type `
                + `${type}`);
        }

        const value = this.view[read](this.take(width), true);

        return type === BOOL ? value !== 0 : value;
    }

    /* Returns { length, values }, with the first values only. */

    array(level) {
        const type = this.u32();
        const width = NUMBERS.get(type)?.[0];
        const length = this.countOf("elements of an array",
            width || (type === STRING ? 8 : 12), Number.MAX_SAFE_INTEGER);
        const values = [];

        if (level > DEPTH) {
            throw bad(`arrays are nested more than ${DEPTH} deep`);
        }

        for (let i = 0; i < length; i++) {
            if (i < KEPT) {
                values.push(this.value(type, level));

            } else if (width) {
                this.take((length - i) * width);
                break;

            } else if (type === STRING) {
                this.take(this.count());

            } else {
                this.value(type, level);
            }
        }

        return { length, values };
    }
}


/*
 * Parses the beginning of a file.  Returns { version, metadata, tensors,
 * tensorCount, need }: metadata is a Map of numbers, bigints, booleans, texts
 * and { length, values } of arrays.
 */

export function parseGguf(buffer, fileSize) {
    const reader = new Reader(buffer, fileSize);
    const result = { version: 0, metadata: new Map(), tensors: [],
        tensorCount: 0, need: 0 };

    try {
        readAll(reader, result);

    } catch (error) {
        if (!(error instanceof More)) {
            throw error;
        }

        result.need = error.need;
    }

    return result;
}


function readAll(reader, result) {
    if (reader.fileSize < 24) {
        throw bad("it has less than 24 bytes");
    }

    if (reader.u32() !== 0x46554747) {
        throw bad("it does not begin with GGUF");
    }

    readVersion(reader, result);

    result.tensorCount = reader.countOf("tensors", 24, TENSORS);

    for (let n = reader.countOf("keys", 13, KEYS); n > 0; n--) {
        const key = reader.text(256);

        if (result.metadata.has(key)) {
            throw bad(`the key "${shorten(key)}" occurs twice`);
        }

        result.metadata.set(key, reader.value(reader.u32()));
    }

    const names = new Set();

    for (let n = result.tensorCount; n > 0; n--) {
        const tensor = readTensor(reader);

        if (names.has(tensor.name)) {
            throw bad(`the tensor "${shorten(tensor.name)}" occurs twice`);
        }

        names.add(tensor.name);
        result.tensors.push(tensor);
    }

    place(reader, result);
}


function readVersion(reader, result) {
    const version = reader.u32();

    if (version > 0xffff && (version & 0xffff) === 0) {
        throw new RangeError("This GGUF file is big-endian: this page reads "
            + "only little-endian files.");
    }

    if (version !== 2 && version !== 3) {
        throw new RangeError(`This GGUF file has version ${version}: this `
            + "page reads versions 2 and 3.");
    }

    result.version = version;
}


function readTensor(reader) {
    const name = reader.text(256);
    const rank = reader.u32();

    if (rank > 8) {
        throw bad(`the tensor "${shorten(name)}" has ${rank} dimensions`);
    }

    const shape = Array.from({ length: rank }, () => reader.count());
    const type = reader.u32();
    const [dtype, elements, bytes] = TYPES.get(type) || [`type ${type}`];
    const count = product(shape);
    const size = elements ? count / elements * bytes : NaN;

    if (Number.isNaN(count) || (elements && !Number.isSafeInteger(size))) {
        throw bad(`the shape of the tensor "${shorten(name)}" does not fit `
            + "its type");
    }

    /* the first dimension of GGUF is the one whose elements are adjacent */

    return { name, dtype, shape: shape.reverse(), count, size,
        offset: reader.count() };
}


/* Offsets are relative to the data, which begins at a multiple. */

function place(reader, result) {
    const unit = result.metadata.get("general.alignment") ?? 32;

    if (!Number.isSafeInteger(unit) || unit < 1 || unit > 1 << 20) {
        throw bad(`its alignment is ${String(unit)}`);
    }

    const data = Math.ceil(reader.at / unit) * unit;

    result.dataOffset = data;

    for (const tensor of result.tensors) {
        tensor.offset += data;

        if (tensor.offset + (tensor.size || 0) > reader.fileSize) {
            throw bad(`the tensor "${shorten(tensor.name)}" ends beyond the `
                + "end of the file");
        }
    }
}
