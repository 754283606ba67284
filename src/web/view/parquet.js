/*
 * Shows the footer of a Parquet file: its columns, row groups, codecs and
 * metadata.  The values are not decoded.
 */

import { fill, formatBytes, formatNumber, h } from "../dom.js";
import { footerLength, parseFooter } from "../parse/parquet.js";
import { facts, frame, moreButton } from "./parts.js";

const STEP = 200;
const TEXT = 4000;


export async function view(file) {
    const tail = file.size >= 12 ? await file.read(file.size - 8,
        file.size - 1) : new ArrayBuffer(0);
    const length = footerLength(tail, file.size);
    const footer = parseFooter(await file.read(file.size - 8 - length,
        file.size - 9));

    return frame("Parquet", null, h("div", { class: "tensors" },
        figures(footer), columns(footer), groups(footer),
        footer.metadata.size > 0 && box("Metadata", footer.metadata.size,
            facts([...footer.metadata].slice(0, STEP).map(([key, value]) =>
                [key, h("pre", { class: "meta-text", tabindex: 0 },
                    value.slice(0, TEXT), value.length > TEXT && " …")])))));
}


function figures(footer) {
    const codecs = [...new Set(footer.columns.flatMap((one) => one.codecs))];
    const sum = (key) => footer.columns.reduce((n, one) => n + one[key], 0);
    const leaves = footer.schema.filter((one) => !one.below).length;

    return h("dl", { class: "figures" }, [
        ["Rows", formatNumber(footer.rows)],
        ["Columns", formatNumber(leaves)],
        ["Row groups", formatNumber(footer.groups.length)],
        ["Codecs", codecs.join(", ") || "none"],
        ["Stored", formatBytes(sum("stored"))],
        ["Decoded", formatBytes(sum("size"))],
        footer.createdBy && ["Written by", footer.createdBy.slice(0, 100)]
    ].filter(Boolean).map(([name, value]) => h("div", {},
        h("dt", { class: "soft small" }, name), h("dd", {}, value))));
}


function box(title, count, ...body) {
    return h("details", { class: "box", open: title === "Columns" },
        h("summary", {}, `${title} `, h("span", { class: "soft small" },
            formatNumber(count))), body);
}


/* Returns a table whose rows are created in steps. */

function table(names, rows, make, label) {
    const body = h("tbody");
    const below = h("div");
    let shown = 0;

    function more() {
        const part = rows.slice(shown, shown + STEP);

        body.append(...part.map((one, i) => h("tr", {},
            make(one, shown + i))));
        shown += part.length;
        fill(below, shown < rows.length && moreButton(
            `Show more (${formatNumber(rows.length - shown)} are left)`,
            more));
    }

    more();

    return [h("div", { class: "scrolls", tabindex: 0, role: "region",
        "aria-label": label }, h("table", { class: "types" },
        h("thead", {}, h("tr", {}, names.map((name) =>
            h("th", { scope: "col" }, name)))), body)), below];
}


/* The paths of columns follow from the depths of the schema. */

function columns(footer) {
    const stored = new Map(footer.columns.map((one) => [one.path, one]));
    const path = [];
    const rows = footer.schema.map((one) => {
        path.splice(one.depth, path.length, one.name);

        return { ...one, ...stored.get(path.join(".")) };
    });

    return box("Columns", rows.length, table(["Name", "Type", "Codec",
        "Stored", "Decoded"], rows, (one) => [
        h("th", { scope: "row", class: `deep-${Math.min(one.depth, 6)}` },
            one.name),
        h("td", {}, h("code", {}, one.below ? "group" : one.type),
            h("span", { class: "soft small" },
                one.logical && ` ${one.logical}`, one.repetition
                    && ` ${one.repetition}`)),
        h("td", {}, one.codecs?.join(", ")),
        h("td", {}, one.codecs && formatBytes(one.stored)),
        h("td", {}, one.codecs && formatBytes(one.size))
    ], "Columns"));
}


function groups(footer) {
    return box("Row groups", footer.groups.length, table(["Group", "Rows",
        "Stored", "Decoded"], footer.groups, (one, i) => [
        h("th", { scope: "row" }, formatNumber(i + 1)),
        h("td", {}, formatNumber(one.rows)),
        h("td", {}, formatBytes(one.stored)),
        h("td", {}, formatBytes(one.size))
    ], "Row groups"));
}
