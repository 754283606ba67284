/*
 * Shows the metadata and the tensors of a GGUF file.  Its header has no
 * length: the page loads more of the file until the header is complete, or
 * until it has 32 MiB.
 */

import { formatBytes, formatNumber, h } from "../dom.js";
import { parseGguf } from "../parse/gguf.js";
import { tensorView } from "../tensors.js";
import { frame } from "./parts.js";

const FIRST = 1024 * 1024;
const LIMIT = 32 * 1024 * 1024;


export async function view(file) {
    const result = await readHeader(file);
    const warnings = result.need > 0 ? ["The header of this file has more "
        + `than ${formatBytes(LIMIT)}: the page shows what is before.`] : [];

    return frame("GGUF", null, tensorView({ warnings,
        tensors: result.need > 0 ? result.tensors.map((one) =>
            ({ ...one, offset: null })) : result.tensors,
        metadata: [...result.metadata].map(([key, value]) =>
            [key, showValue(value)]),
        about: [["Version", String(result.version)]],
        read: ({ offset, size }, n) => file.read(offset,
            offset + Math.min(n, size) - 1) }));
}


async function readHeader(file) {
    const limit = Math.min(LIMIT, file.size);
    let size = Math.min(FIRST, limit);

    for (;;) {
        const result = parseGguf(await file.read(0, size - 1), file.size);

        if (result.need === 0 || size === limit) {
            return result;
        }

        size = Math.min(limit, Math.max(2 * size, result.need));
    }
}


function showValue(value) {
    if (typeof value === "string") {
        return value.includes("\n") || value.length > 200
            ? h("pre", { class: "meta-text", tabindex: 0 }, value) : value;
    }

    if (typeof value === "object") {
        const list = value.values.map((one) => (typeof one === "object"
            ? "[…]" : typeof one === "string" ? JSON.stringify(one)
                : number(one)));

        return [h("span", { class: "soft small" },
            `${formatNumber(value.length)} `
            + `${value.length === 1 ? "value: " : "values: "}`),
        h("code", {}, list.join(", ").slice(0, 400),
            (value.length > list.length || list.join(", ").length > 400)
                && " …")];
    }

    return number(value);
}


/* Floats have 32 bits: 0.1 is not 0.10000000149011612. */

const number = (value) => (typeof value === "number"
    && !Number.isInteger(value) ? String(Number(value.toPrecision(7)))
    : String(value));
