/*
 * What the viewers of files share: the frame with its bar, a switch between
 * two views, a table of facts, and readers of text.
 *
 * A viewer exports view(file, kind), which returns a node or a promise.  A
 * file, made by page/file.js, is { repo, rev, path, name, dir, size, head,
 * encoding, entry, hash, signal, read }: head has the first bytes, and
 * read(first, last) returns others as an ArrayBuffer.
 */

import { copyButton, fill, h, later, notice } from "../dom.js";

export const PIECE = 256 * 1024;


/* The frame of a viewer: a bar with a title and tools, and the contents. */

export function frame(title, tools, ...body) {
    return h("section", { class: "panel view", "aria-label": title },
        h("div", { class: "view-bar row" },
            h("span", { class: "view-title soft small grow" }, title), tools),
        ...body);
}


/*
 * Returns { tools, body }: buttons, one for each view, and the node with the
 * view that is chosen.  A choice is [name, function]; the function runs when
 * its view is first shown.
 */

export function choice(choices, first = 0) {
    const body = h("div");
    const made = new Map();
    const buttons = choices.map(([name], i) => h("button", { type: "button",
        class: "quiet small", "aria-pressed": "false",
        onclick: () => select(i) }, name));

    function select(i) {
        if (!made.has(i)) {
            made.set(i, later((async () => choices[i][1]())()));
        }

        buttons.forEach((button, n) =>
            button.setAttribute("aria-pressed", String(n === i)));
        fill(body, made.get(i));
    }

    select(first);

    return { tools: h("div", { class: "choice row", role: "group",
        "aria-label": "View" }, buttons), body };
}


/* A table of names and values; values are texts or nodes. */

export function facts(rows, label) {
    return h("table", { class: "named", "aria-label": label },
        h("tbody", {}, rows.filter(Boolean).map(([name, value]) =>
            h("tr", {}, h("th", { scope: "row" }, name),
                h("td", {}, value)))));
}


/* A hash with a button that copies it. */

export function hash(value, label) {
    return h("span", { class: "hash-line" }, h("span", { class: "hash" },
        value), copyButton(value, label));
}


/* A button for more of a list; it shows what goes wrong beside it. */

export function moreButton(label, onclick) {
    const problem = h("div");
    const button = h("button", { type: "button", onclick: async () => {
        button.disabled = true;
        fill(problem);

        try {
            await onclick();

        } catch (error) {
            if (error.name !== "AbortError") {
                fill(problem, notice("bad", error.message));
            }
        }

        button.disabled = false;
    } }, label);

    return h("div", { class: "view-more" }, button, problem);
}


/* Reads a file as text, piece by piece. */

export class TextReader {
    constructor(file) {
        this.file = file;
        this.at = 0;
        this.decoder = new TextDecoder(file.encoding || "utf-8");
    }

    get done() {
        return this.at >= this.file.size;
    }

    async next(size = PIECE) {
        const last = Math.min(this.at + size, this.file.size) - 1;

        if (this.done) {
            return "";
        }

        const piece = await this.file.read(this.at, last);

        this.at = last + 1;

        return this.decoder.decode(piece, { stream: !this.done });
    }
}


/* Reads a complete text; its size is checked by the caller. */

export const readText = (file) => new TextReader(file).next(file.size);
