/*
 * The header of a safetensors file: eight bytes with its length, then JSON
 * with the type, the shape and the position of each tensor.
 *
 *     headerLength(first eight bytes, size of the file)
 *     parseHeader(the header without these eight bytes, size of the file)
 */

import { Invalid, isCount, product, shorten } from "./error.js";
import { parseJson } from "./json.js";
import { widthOf } from "./values.js";

const LIMIT = 100e6;                  /* of the format */
const OURS = 16 * 1024 * 1024;        /* what a page loads */
const NAMES = 32;

/* Types with less than a byte an element: bits. */

const BITS = new Map([["F4", 4], ["F6_E2M3", 6], ["F6_E3M2", 6],
    ["F8_E8M0", 8]]);

const bad = (reason) => new Invalid("safetensors", reason);


export function headerLength(buffer, fileSize) {
    if (buffer.byteLength < 8 || fileSize < 8) {
        throw bad("it has less than 8 bytes");
    }

    const claimed = new DataView(buffer).getBigUint64(0, true);

    if (claimed > BigInt(LIMIT)) {
        throw bad(`it claims a header of ${claimed} bytes, and the format `
            + "allows 100 MB");
    }

    const length = Number(claimed);

    if (length > fileSize - 8) {
        throw bad(`it claims a header of ${length} bytes, and `
            + `${fileSize - 8} bytes follow`);
    }

    if (length < 2) {
        throw bad("its header is empty");
    }

    if (length > OURS) {
        throw new RangeError("The header has more than 16 MiB: this page does "
            + "not load it.");
    }

    return length;
}


/*
 * Returns { metadata, tensors, warnings }: metadata is a Map, and a tensor has
 * name, dtype, shape, count (of elements), size and offset (in the file).
 */

export function parseHeader(buffer, fileSize) {
    const data = 8 + buffer.byteLength;
    const root = readRoot(buffer);
    const metadata = readMetadata(root.get("__metadata__"));
    const tensors = [];

    root.delete("__metadata__");

    for (const [name, entry] of root) {
        tensors.push(readTensor(name, entry, data, fileSize));
    }

    return { metadata, tensors, warnings: findGaps(tensors, data, fileSize) };
}


function readRoot(buffer) {
    let root;

    try {
        const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
            .decode(buffer);

        root = parseJson(text, { depth: 8, repeated: (key) => {
            throw new SyntaxError(`the key "${shorten(key, NAMES)}" occurs `
                + "twice");
        } });

    } catch (error) {
        throw bad(error instanceof SyntaxError
            ? `in its header, ${error.message}`
            : "its header is not UTF-8");
    }

    if (!(root instanceof Map)) {
        throw bad("its header is not a JSON object");
    }

    return root;
}


function readMetadata(value) {
    if (value === undefined) {
        return new Map();
    }

    if (!(value instanceof Map)
        || [...value.values()].some((one) => typeof one !== "string"))
    {
        throw bad("its metadata is not an object with texts");
    }

    return value;
}


function readTensor(name, entry, data, fileSize) {
    const fail = (reason) => bad(`the tensor "${shorten(name, NAMES)}" `
        + reason);

    if (!(entry instanceof Map)) {
        throw fail("is not a JSON object");
    }

    const dtype = entry.get("dtype");
    const shape = entry.get("shape");
    const offsets = entry.get("data_offsets");

    if (typeof dtype !== "string" || dtype.length > 32) {
        throw fail("has no type");
    }

    if (!Array.isArray(shape) || shape.length > 64 || !shape.every(isCount)) {
        throw fail("has a malformed shape");
    }

    if (!Array.isArray(offsets) || offsets.length !== 2
        || !offsets.every(isCount) || offsets[0] > offsets[1])
    {
        throw fail("has malformed offsets");
    }

    if (offsets[1] > fileSize - data) {
        throw fail(`ends at byte ${data + offsets[1]}, beyond the end of the `
            + "file");
    }

    const count = product(shape);
    const bits = BITS.get(dtype) ?? 8 * (widthOf(dtype) ?? NaN);
    const size = offsets[1] - offsets[0];

    if (Number.isNaN(count)) {
        throw fail("has a shape with too many elements");
    }

    if (!Number.isNaN(bits) && count * bits !== size * 8) {
        throw fail(`has ${size} bytes, and its shape needs `
            + `${count * bits / 8}`);
    }

    return { name, dtype, shape, count, size, offset: data + offsets[0] };
}


/* The format allows neither gaps nor overlaps; a page can live with both. */

function findGaps(tensors, data, fileSize) {
    let at = data;
    let overlaps = 0;
    let gaps = 0;

    for (const one of [...tensors].sort((a, b) => a.offset - b.offset
        || a.size - b.size))
    {
        overlaps += one.offset < at && one.size > 0;
        gaps += Math.max(0, one.offset - at);
        at = Math.max(at, one.offset + one.size);
    }

    gaps += fileSize - at;

    return [
        overlaps && `${overlaps} ${overlaps === 1 ? "tensor shares" :
            "tensors share"} bytes with another tensor. The format forbids `
            + "this.",
        gaps && `${gaps} bytes belong to no tensor. The format forbids this.`
    ].filter(Boolean);
}
