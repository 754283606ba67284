/*
 * The files that differ between two commits: their sizes before and after, and
 * the changed lines of texts.
 */

import { apiPath, bytes, encodeRev, list, pageUrl } from "../api.js";
import { fill, formatBytes, formatNumber, h, icon, later, notice }
    from "../dom.js";
import { diff } from "../diff.js";
import { plain } from "../list.js";

const PAGE = 100;

/* Texts up to this size are compared, and so many are at once. */

const TEXT_MAX = 256 << 10;
const OPEN = 5;

/* Lines around a change, and lines of a file that are shown at first. */

const AROUND = 3;
const ROWS = 1000;

const BINARY = new RegExp("\\.(safetensors|bin|pt|pth|ckpt|gguf|onnx|h5|np[yz]"
    + "|zt|parquet|arrow|feather|zip|gz|xz|bz2|zst|7z|tar|tgz|png|jpe?g|gif"
    + "|webp|avif|ico|bmp|mp[34]|wav|flac|ogg|webm|mov|pdf|msgpack|pkl|pickle"
    + "|woff2?|ttf|so|pb|model)$", "i");


/*
 * Returns what the commit "to" changed.  "from" is its parent, or with "base"
 * the commit to compare with; without one everything is new.
 */

export async function changes(repo, { to, from, base, signal }) {
    const state = { repo, to, from, signal, rows: [], next: null, opened: 0,
        node: h("div") };

    take(state, await list(apiPath(repo, `/changes/${encodeRev(to)}`),
        { limit: PAGE, ...(base && { base: from || "" }) }, signal));
    draw(state);

    return state.node;
}


function take(state, page) {
    state.rows.push(...page.rows);
    state.next = page.next;
}


function draw(state) {
    const { rows, next } = state;
    const fresh = rows.slice(state.node.querySelectorAll(".change").length);
    const count = (type) => rows.filter((row) => row.type === type).length;
    const parts = [["added", "added"], ["changed", "changed"],
        ["removed", "removed"]].filter(([type]) => count(type))
        .map(([type, text]) => `${formatNumber(count(type))} ${text}`);
    const old = [...state.node.querySelectorAll(".change")];

    fill(state.node, rows.length === 0 && !next ? h("div", { class: "empty" },
        h("p", { class: "soft" }, "No file changed."))
        : h("p", { class: "soft" }, `${rows.length === 1 ? "1 file"
            : `${formatNumber(rows.length)} files`}${next ? " so far" : ""}: `
            + parts.join(", ")),
    old, fresh.map((row) => change(state, row)), next && more(state));
}


function more(state) {
    const problem = h("div");
    const button = h("button", { type: "button", class: "plain",
        onclick: async () => {
            button.disabled = true;
            fill(problem);

            try {
                take(state, await state.next());
                draw(state);

            } catch (error) {
                button.disabled = false;
                fill(problem, error.name !== "AbortError"
                    && notice("bad", error.message));
            }
        } }, "Show more files");

    return h("div", { class: "more" }, problem, button);
}


function sizes({ type, size, oldSize }) {
    if (type === "added") {
        return formatBytes(size || 0);
    }

    if (type === "removed") {
        return formatBytes(oldSize ?? size ?? 0);
    }

    return size === oldSize ? formatBytes(size)
        : `${formatBytes(oldSize || 0)} → ${formatBytes(size || 0)}`;
}


/* A file: it opens to its lines if it may be a text. */

function change(state, row) {
    const { repo, from, to } = state;
    const sign = { added: "+", removed: "−", changed: "±" }[row.type] || "";
    const big = Math.max(row.size || 0, row.oldSize || 0);
    const text = big <= TEXT_MAX && !BINARY.test(row.path);
    const at = row.type === "removed" ? from : to;
    const head = [h("span", { class: `sign ${row.type}`, title: row.type },
        h("span", { "aria-hidden": "true" }, sign),
        h("span", { class: "hidden" }, row.type)),
    h("span", { class: "grow path" }, plain(row.path)),
    h("span", { class: "soft small" }, sizes(row))];
    const link = h("a", { class: "soft small",
        href: pageUrl(repo, "blob", at, row.path) }, row.type === "removed"
        ? "Open the old file" : "Open the file");

    if (!text) {
        return h("div", { class: "change panel closed" },
            h("div", { class: "change-head" }, head, link));
    }

    const node = h("div", { class: "change-body" });
    const details = h("details", { class: "change panel", ontoggle: () => {
        if (details.open && !node.firstChild) {
            fill(node, later(lines(state, row), 3),
                h("p", { class: "change-link" }, link));
        }
    } }, h("summary", { class: "change-head" }, head), node);

    details.open = state.opened++ < OPEN;

    return details;
}


/* --- the lines of a file -------------------------------------------------- */

async function lines(state, row) {
    const { repo, from, to, signal } = state;
    const [before, after] = await Promise.all([
        row.type === "added" ? "" : read(repo, from, row.path,
            row.oldSize ?? row.size, signal),
        row.type === "removed" ? "" : read(repo, to, row.path, row.size,
            signal)]);

    if (before === undefined || after === undefined) {
        return h("p", { class: "soft pad" }, "This is a binary file.");
    }

    const rows = diff(before, after);

    if (!rows.some((one) => one.sign !== " ")) {
        return h("p", { class: "soft pad" }, before === "" && after === ""
            ? "The file is empty." : "The text is the same.");
    }

    return table(rows);
}


/* Returns the text of a file, or undefined if it is not a text. */

async function read(repo, rev, path, size, signal) {
    if (size === 0) {
        return "";
    }

    const data = await bytes(repo, rev, path, 0, TEXT_MAX - 1, signal);

    try {
        const text = new TextDecoder("utf-8", { fatal: true }).decode(data);

        return text.includes("\0") ? undefined : text;

    } catch {
        return undefined;
    }
}


/*
 * Groups rows: { shown: true, rows } near a change, and { shown: false, rows }
 * elsewhere.
 */

function groups(rows) {
    const near = new Uint8Array(rows.length);

    rows.forEach((row, i) => {
        if (row.sign !== " ") {
            near.fill(1, Math.max(i - AROUND, 0), i + AROUND + 1);
        }
    });

    const found = [];

    rows.forEach((row, i) => {
        if (i === 0 || near[i] !== near[i - 1]) {
            found.push({ shown: near[i] === 1, rows: [] });
        }

        found.at(-1).rows.push(row);
    });

    return found;
}


function table(rows) {
    const body = h("tbody");
    const draws = [];
    let count = 0;

    for (const group of groups(rows)) {
        if (group.shown) {
            for (const row of group.rows) {
                draws.push(row);
            }

        } else {
            draws.push(group);
        }
    }

    const extend = () => {
        const part = draws.slice(count, count + ROWS);

        count += part.length;
        body.append(...part.map((one) => (one.sign ? textRow(one)
            : gap(one.rows))));
        button.hidden = count >= draws.length;
    };
    const button = h("button", { type: "button", class: "plain",
        onclick: extend }, "Show more lines");

    extend();

    return [h("div", { class: "diff-box", tabindex: 0 },
        h("table", { class: "diff" },
            h("caption", { class: "hidden" }, "Changed lines"),
            h("thead", { class: "hidden" }, h("tr", {},
                h("th", { scope: "col" }, "Old line"),
                h("th", { scope: "col" }, "New line"),
                h("th", { scope: "col" }, "Change"),
                h("th", { scope: "col" }, "Text"))), body)), button];
}


function textRow({ sign, text, old, now, open }) {
    const kind = { "+": "added", "-": "removed", " ": "same" }[sign];

    return h("tr", { class: kind }, h("td", { class: "diff-no" }, old),
        h("td", { class: "diff-no" }, now),
        h("td", { class: "diff-mark" }, sign === " " ? "" : sign),
        h("td", { class: "diff-text" }, plain(text),
            open && h("span", { class: "soft" }, " (no line end)")));
}


/* Unchanged lines, which a button shows. */

function gap(rows) {
    const row = h("tr", { class: "diff-gap" }, h("td", { colspan: 4 },
        h("button", { type: "button", class: "quiet", onclick: () => {
            const part = rows.splice(0, ROWS);

            row.before(...part.map(textRow));

            if (rows.length === 0) {
                row.remove();
            }
        } }, icon("down"), rows.length === 1 ? "1 unchanged line"
            : `${formatNumber(rows.length)} unchanged lines`)));

    return row;
}
