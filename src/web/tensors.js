/*
 * Shows the tensors of a file: sums for each type, metadata, and a tree made
 * of the dotted names, with a filter.  The first values of a tensor are loaded
 * when its row is opened.
 *
 * A tensor is { name, dtype, shape, count, size, offset, notes }; count and
 * size are NaN if they are unknown.  Rows are created when their parent is
 * opened, and in steps: a file may have a million tensors.
 */

import { fill, formatBytes, formatCount, formatNumber, h, later, notice }
    from "./dom.js";
import { plain } from "./list.js";
import { decodeValues, widthOf } from "./parse/values.js";
import { facts, moreButton } from "./view/parts.js";

const STEP = 200;
const DEPTH = 24;
const VALUES = 128;
const METADATA = 100;

const natural = new Intl.Collator("en", { numeric: true });


/*
 * Returns the view.  "about" are facts of the file, "metadata" pairs of a name
 * and a text or a node, and read(tensor, n) returns n bytes of its data, or
 * null if the page cannot read them.
 */

export function tensorView({ tensors, about = [], metadata = [],
    warnings = [], read })
{
    return h("div", { class: "tensors" },
        warnings.map((text) => notice("info", text)),
        summary(tensors, about), metadata.length > 0
            && metadataBox(metadata), treeBox(tensors, read));
}


/* --- sums ----------------------------------------------------------------- */

function sumOf(tensors) {
    const types = new Map();
    const all = { tensors: tensors.length, count: 0, size: 0 };

    for (const { dtype, count, size } of tensors) {
        const sum = types.get(dtype) || { tensors: 0, count: 0, size: 0 };

        for (const one of [sum, all]) {
            one.count += count || 0;
            one.size += size || 0;
        }

        sum.tensors++;
        types.set(dtype, sum);
    }

    return { all, types: [...types].sort((a, b) => b[1].size - a[1].size) };
}


function summary(tensors, about) {
    const { all, types } = sumOf(tensors);

    return h("div", { class: "sums" },
        h("dl", { class: "figures" },
            figure("Parameters", formatCount(all.count),
                formatNumber(all.count)),
            figure("Tensors", formatNumber(all.tensors)),
            figure("Data", formatBytes(all.size)),
            about.map(([name, value]) => figure(name, value))),
        types.length > 0 && typeTable(types, all));
}


function figure(name, value, title) {
    return h("div", {}, h("dt", { class: "soft small" }, name),
        h("dd", { title: title !== value && title }, value));
}


function typeTable(types, all) {
    return h("div", { class: "scrolls", tabindex: 0, role: "region",
        "aria-label": "Types of the tensors" },
    h("table", { class: "types" },
        h("thead", {}, h("tr", {}, ["Type", "Tensors", "Parameters", "Size",
            "Share"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, types.map(([name, sum]) => h("tr", {},
            h("th", { scope: "row" }, h("code", {}, name)),
            h("td", {}, formatNumber(sum.tensors)),
            h("td", { title: formatNumber(sum.count) },
                formatCount(sum.count)),
            h("td", {}, formatBytes(sum.size)),
            h("td", {}, share(sum.size, all.size)))))));
}


function share(part, all) {
    const percent = all ? part / all * 100 : 0;
    const text = percent > 0 && percent < 1 ? "under 1%"
        : `${Math.round(percent)}%`;

    return h("span", { class: "share" }, h("meter", { min: 0, max: 100,
        value: percent.toFixed(1), "aria-hidden": "true" }), text);
}


function metadataBox(metadata) {
    const list = h("div");
    const below = h("div");
    let shown = 0;

    function more() {
        list.append(facts(metadata.slice(shown, shown + METADATA),
            "Metadata"));
        shown += METADATA;
        fill(below, shown < metadata.length
            && moreButton("Show more metadata", more));
    }

    more();

    return h("details", { class: "box", open: metadata.length <= 6 },
        h("summary", {}, "Metadata ", h("span", { class: "soft small" },
            formatNumber(metadata.length))), list, below);
}


/* --- the tree ------------------------------------------------------------- */

/* Returns the folders and tensors of names, with sums. */

export function treeOf(tensors) {
    const root = { name: "", folders: new Map(), leaves: [], tensors: 0,
        count: 0 };

    for (const tensor of tensors) {
        const words = tensor.name.split(".");
        const folders = words.slice(0, -1).slice(0, DEPTH);
        let at = root;

        add(root, tensor);

        for (const name of folders) {
            if (!at.folders.has(name)) {
                at.folders.set(name, { name, folders: new Map(), leaves: [],
                    tensors: 0, count: 0 });
            }

            at = at.folders.get(name);
            add(at, tensor);
        }

        at.leaves.push({ tensor, name: words.slice(folders.length)
            .join(".") });
    }

    return root;
}


function add(folder, tensor) {
    folder.tensors++;
    folder.count += tensor.count || 0;
}


/*
 * A folder with nothing but one folder is shown as "model.layers", and a
 * folder with nothing but one tensor as this tensor.
 */

function short(folder) {
    let name = folder.name;

    while (folder.leaves.length === 0 && folder.folders.size === 1) {
        [folder] = folder.folders.values();
        name += `.${folder.name}`;
    }

    if (folder.leaves.length === 1 && folder.folders.size === 0) {
        const [{ tensor, name: last }] = folder.leaves;

        return { tensor, name: `${name}.${last}` };
    }

    return { ...folder, name };
}


function treeBox(tensors, read) {
    const root = treeOf(tensors);
    const list = h("div", { class: "tensor-tree" });
    const said = h("p", { class: "soft small", role: "status" });
    const input = h("input", { type: "search", id: "tensor-filter",
        placeholder: "attn, layers.0, F16", oninput: () => show() });

    function show() {
        const text = input.value.trim().toLowerCase();

        if (!text) {
            fill(said);
            fill(list, rowsOf(root, read));
            return;
        }

        const found = tensors.filter((one) => one.name.toLowerCase()
            .includes(text) || one.dtype.toLowerCase() === text);

        fill(said, found.length === 0 ? "No tensor has this in its name."
            : `${formatNumber(found.length)} of `
                + `${formatNumber(tensors.length)} tensors, with `
                + `${formatCount(sumOf(found).all.count)} parameters.`);
        fill(list, found.length > 0 && steps(found, (tensor) =>
            leaf(tensor, tensor.name, read)));
    }

    show();

    return h("div", {}, tensors.length > 1 && h("div", { class: "filter" },
        h("label", { for: "tensor-filter" }, "Filter tensors"), input, said),
    tensors.length > 0 ? list
        : h("p", { class: "empty soft" }, "This file has no tensors."));
}


/* Returns the rows of a folder; a folder with one tensor is its row. */

function rowsOf(folder, read, level = 0) {
    const rows = [...folder.folders.values()].map(short)
        .concat(folder.leaves)
        .sort((a, b) => natural.compare(a.name, b.name));
    const open = level < 2
        && rows.filter((one) => !one.tensor).length === 1;

    return steps(rows, (one) => (one.tensor
        ? leaf(one.tensor, one.name, read)
        : branch(one, read, open, level + 1)));
}


/* Returns a list that grows by a button. */

function steps(rows, make) {
    const list = h("ul", {});
    const below = h("div");
    let shown = 0;

    function more() {
        const part = rows.slice(shown, shown + STEP);

        shown += part.length;
        list.append(...part.map((one) => h("li", {}, make(one))));
        fill(below, shown < rows.length && moreButton("Show more ("
            + `${formatNumber(rows.length - shown)} are left)`, more));
    }

    more();

    return [list, below];
}


function branch(folder, read, open, level) {
    const body = h("div", { class: "tree-body" });
    const details = h("details", { open, ontoggle: () => {
        if (details.open && !body.firstChild) {
            fill(body, rowsOf(folder, read, level));
        }
    } }, h("summary", { class: "tree-row" },
        h("span", { class: "tree-name" }, printable(folder.name)),
        h("span", { class: "soft small tree-sum" },
            `${formatNumber(folder.tensors)} `
            + `${folder.tensors === 1 ? "tensor" : "tensors"} · `
            + `${formatCount(folder.count)}`)), body);

    return details;
}


function leaf(tensor, name, read) {
    const body = h("div", { class: "tree-body" });
    const details = h("details", { class: "leaf", ontoggle: () => {
        if (details.open && !body.firstChild) {
            fill(body, aboutTensor(tensor, read));
        }
    } }, h("summary", { class: "tree-row" },
        h("span", { class: "tree-name" }, printable(name) || "(no name)"),
        tensor.notes?.length > 0 && h("span", { class: "chip" },
            tensor.notes[0]),
        h("code", { class: "tree-type" }, tensor.dtype),
        h("code", { class: "tree-shape" }, shapeOf(tensor)),
        h("span", { class: "soft small tree-size" },
            Number.isNaN(tensor.size) ? "" : formatBytes(tensor.size))),
    body);

    return details;
}


const shapeOf = ({ shape }) => (shape.length
    ? shape.map((n) => String(n)).join(" × ") : "scalar");


/* Control characters of a name are shown as their symbols. */

function printable(name) {
    return plain(name).replace(/[\u0000-\u001f]/g, (letter) =>
        String.fromCharCode(0x2400 + letter.charCodeAt(0)));
}


/* --- one tensor ----------------------------------------------------------- */

function aboutTensor(tensor, read) {
    const width = widthOf(tensor.dtype);
    const compressed = tensor.encoding && tensor.encoding !== "raw";

    return [
        facts([
            ["Name", h("code", {}, printable(tensor.name))],
            !Number.isNaN(tensor.count)
                && ["Elements", formatNumber(tensor.count)],
            tensor.offset !== null && tensor.size > 0
                && ["Bytes of the file", `${formatNumber(tensor.offset)} to `
                    + formatNumber(tensor.offset + tensor.size - 1)],
            compressed && ["Compression", tensor.encoding
                + (tensor.decoded ? `, ${formatBytes(tensor.decoded)} when `
                    + "decoded" : "")],
            tensor.digest && ["Digest", h("span", { class: "hash" },
                tensor.digest)],
            tensor.notes?.length > 0 && ["Notes", tensor.notes.join(", ")]
        ], "About this tensor"),
        width && tensor.count > 0 && tensor.offset !== null
            && later(values(tensor, width, read), 1)
    ];
}


async function values(tensor, width, read) {
    const n = Math.min(VALUES, tensor.count);
    const data = await read(tensor, n * width);

    if (!data) {
        return null;
    }

    const texts = decodeValues(tensor.dtype, data, n);
    const last = tensor.shape.at(-1) || 1;
    const wide = last > 1 && last <= 12 ? last : 8;
    const pad = texts.reduce((most, text) => Math.max(most, text.length), 0);
    const lines = [];

    for (let i = 0; i < texts.length; i += wide) {
        lines.push(texts.slice(i, i + wide).map((text) => text.padStart(pad))
            .join("  "));
    }

    return [h("p", { class: "soft small" }, texts.length < tensor.count
        ? `The first ${texts.length} of ${formatNumber(tensor.count)} values`
        : texts.length === 1 ? "The value" : "All values"),
    h("pre", { class: "values", tabindex: 0 }, lines.join("\n"))];
}
