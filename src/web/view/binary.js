/*
 * Shows the first bytes of a file, and for every file its hashes and how it is
 * stored.
 *
 * A file consists of terms: each is a range of chunks of a xorb.  A chunk that
 * occurs twice in the file is stored once.
 */

import { cas } from "../cas.js";
import { fill, formatBytes, formatNumber, h, later, notice } from "../dom.js";
import { countParts } from "../parse/storage.js";
import { facts, frame, hash } from "./parts.js";

const BYTES = 512;
const WIDTH = 16;
const ANSWER = 32 * 1024 * 1024;


export async function view(file) {
    const bytes = new Uint8Array(await file.read(0,
        Math.min(BYTES, file.size) - 1));
    const starts = Array.from({ length: Math.ceil(bytes.length / WIDTH) },
        (_, i) => i * WIDTH);

    return frame(file.size > BYTES ? `The first ${BYTES} bytes` : "Bytes",
        null, h("div", { class: "scrolls", tabindex: 0, role: "region",
            "aria-label": "Bytes of the file" },
        h("table", { class: "hex" },
            h("thead", {}, h("tr", {}, ["Offset", "Bytes", "Text"].map(
                (name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, starts.map((at) => hexRow(at,
                bytes.subarray(at, at + WIDTH)))))));
}


function hexRow(at, bytes) {
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0"));
    const text = [...bytes].map((byte) => (byte >= 32 && byte < 127
        ? String.fromCharCode(byte) : "·"));

    return h("tr", {},
        h("th", { scope: "row" }, at.toString(16).padStart(4, "0")),
        h("td", {}, hex.slice(0, 8).join(" "), hex.length > 8 && "  ",
            hex.slice(8).join(" ")),
        h("td", { class: "soft" }, text.join("")));
}


/* --- hashes and storage --------------------------------------------------- */

/* Returns the box for every file; "open" also loads how it is stored. */

export function about(file, open) {
    const { entry } = file;
    const stored = h("div");
    const storage = file.hash && file.size > 0 && h("details",
        { open, ontoggle: () => {
            if (storage.open && !stored.firstChild) {
                fill(stored, later(howStored(file), 1));
            }
        } }, h("summary", {}, "How this file is stored"), stored);

    return h("section", { class: "panel about-file" },
        h("h2", {}, "About this file"),
        facts([
            ["Size", file.size < 1024 ? `${file.size} bytes`
                : `${formatBytes(file.size)} (${formatNumber(file.size)} `
                    + "bytes)"],
            entry.lfs?.oid && ["SHA-256", hash(entry.lfs.oid,
                "Copy the SHA-256")],
            file.hash && ["Xet hash", hash(file.hash, "Copy the Xet hash")],
            !entry.lfs && entry.oid && ["Git hash", hash(entry.oid,
                "Copy the git hash")]
        ], "About this file"), storage);
}


async function howStored(file) {
    const response = await cas(file, `/v2/reconstructions/${file.hash}`);

    if (Number(response.headers.get("Content-Length")) > ANSWER) {
        await response.body?.cancel();
        return notice("info", "This file has too many parts to be counted "
            + "here.");
    }

    const { terms, stored, xorbs, repeated } = countParts(
        await response.json());

    return facts([
        ["Terms", `${formatNumber(terms)} in ${formatNumber(xorbs)} `
            + (xorbs === 1 ? "xorb" : "xorbs")],
        ["Stored bytes", `${formatBytes(stored)}, `
            + `${percent(stored, file.size)} of the size of the file`],
        ["Repeated chunks", repeated.again === 0 ? "none inside this file"
            : `${formatNumber(repeated.again)} of `
                + `${formatNumber(repeated.all)}, `
                + percent(repeated.again, repeated.all)]
    ], "How this file is stored");
}


const percent = (part, all) => (part > 0 && part < all / 100 ? "under 1%"
    : `${Math.round(part / all * 100)}%`);
