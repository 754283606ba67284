/*
 * Shows the objects of a zTensor file.  The server parses the file, and sends
 * the list in pages; it also decompresses the values of a tensor.
 */

import { cas, readSome } from "../cas.js";
import { fill, formatNumber, h, notice } from "../dom.js";
import { parseListing } from "../parse/ztensor.js";
import { tensorView } from "../tensors.js";
import { frame, moreButton } from "./parts.js";

const STEP = 1000;
const WARNINGS = {
    missing_header_magic: "The file has no magic number at its start.",
    unknown_version: "The file has a version that the server does not know.",
    overlap: "Some tensors share bytes with others.",
    attributes_not_echoed: "The attributes of this file are too large to be "
        + "shown."
};


export async function view(file) {
    if (!file.hash) {
        throw new RangeError("The server does not say how this file is "
            + "stored, so its tensors cannot be listed.");
    }

    const first = await page(file);
    const tensors = first.tensors;
    const node = h("div");
    let next = first.next;
    let listed = first.listed;

    function show() {
        fill(node, tensorView({ tensors, metadata: metadataOf(first),
            warnings: first.warnings.map((one) => WARNINGS[one] || one),
            about: [["Container", first.container],
                ["Version", first.version]],
            read: (tensor, n) => values(file, tensor, n) }),
        next !== null && [notice("info",
            `${formatNumber(listed)} of ${formatNumber(first.count)} objects `
            + "are listed; sums and the filter cover these."),
        moreButton("List more objects", async () => {
            const more = await page(file, next);

            tensors.push(...more.tensors);
            listed += more.listed;
            next = more.next;
            show();
        })]);
    }

    show();

    return frame("zTensor", null, node);
}


async function page(file, after) {
    const response = await cas(file, `/v1/zt/${file.hash}`,
        { query: { limit: STEP, after } });
    const json = await response.json();

    return { ...parseListing(json), listed: json.objects.length };
}


function metadataOf({ attributes }) {
    return Object.entries(attributes).map(([key, value]) => [key,
        typeof value === "string" ? value : JSON.stringify(value)]);
}


/* Stored values are bytes of the file; the server decodes others. */

async function values(file, tensor, n) {
    const { ok, encoding, size, offset, i, role } = tensor;

    if (!ok) {
        return null;
    }

    if (encoding === "raw") {
        return size > 0 ? file.read(offset, offset + Math.min(n, size) - 1)
            : null;
    }

    return readSome(await cas(file, `/v1/zt/${file.hash}/data`,
        { query: { i, role, form: "decoded" } }), n);
}
