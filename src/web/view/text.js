/*
 * Shows text and source code with numbers of lines, and Markdown.
 *
 * A line has the id "L10", and the hash of the URL may name lines: #L10 or
 * #L10-L20.  The file is loaded in pieces of 256 KiB; colours are added to the
 * first piece, after it is shown.
 */

import { fill, formatBytes, formatNumber, h, notice } from "../dom.js";
import { load } from "../lib.js";
import { ending } from "../parse/kind.js";
import { choice, frame, moreButton, readText, PIECE, TextReader }
    from "./parts.js";

const LINES = 5000;                   /* shown at once */
const BLOCK = 100;                    /* lines that are coloured at once */
const LONG = 20000;                   /* a line that gets no colours */
const REACH = 4 * 1024 * 1024;        /* loaded to reach a line of the hash */
const MARKDOWN = 1024 * 1024;

/* Languages of highlight.js by the ending or the name of a file. */

const LANGUAGES = new Map(Object.entries({
    py: "python", pyi: "python", js: "javascript", mjs: "javascript",
    cjs: "javascript", jsx: "javascript", ts: "typescript",
    tsx: "typescript", json: "json", jsonl: "json", ipynb: "json",
    yaml: "yaml", yml: "yaml", toml: "ini", ini: "ini", cfg: "ini",
    conf: "nginx", sh: "bash", bash: "bash", zsh: "bash", c: "cpp",
    h: "cpp", cc: "cpp", cpp: "cpp", hpp: "cpp", cu: "cpp", cuh: "cpp",
    rs: "rust", go: "go", java: "java", kt: "kotlin", swift: "swift",
    rb: "ruby", php: "php", pl: "perl", pm: "perl", lua: "lua", r: "r",
    jl: "julia", scala: "scala", sql: "sql", html: "xml", htm: "xml",
    xml: "xml", svg: "xml", css: "css", scss: "scss", md: "markdown",
    tex: "tex", diff: "diff", patch: "diff", cmake: "cmake", m: "matlab",
    cs: "cs", hs: "haskell", vim: "vim", proto: "protobuf",
    dockerfile: "dockerfile", makefile: "makefile", mk: "makefile",
    jinja: "django", properties: "properties", ps1: "powershell"
}));
const GUESSES = ["bash", "python", "perl", "ruby", "javascript", "json",
    "yaml", "xml", "ini", "cpp"];

/* Characters that change the order in which text is displayed. */

const ORDER = /[\u202a-\u202e\u2066-\u2069]/;


export async function view(file, kind) {
    if (kind === "markdown" && file.size <= MARKDOWN) {
        const { tools, body } = choice([
            ["Preview", () => preview(file)],
            ["Source", () => source(file)]
        ], readHash() ? 1 : 0);

        return frame("Markdown", tools, body);
    }

    return source(file);
}


async function preview(file) {
    const { markdown, withoutFrontMatter } = await import("../markdown.js");
    const { repo, rev, dir, signal } = file;
    const text = await readText(file);
    const body = withoutFrontMatter(text);
    const metadata = text.slice(0, text.length - body.length).trim();

    return h("div", { class: "rendered" },
        metadata && h("details", { class: "box" },
            h("summary", {}, "Metadata"), h("pre", { tabindex: 0 }, metadata)),
        await markdown(body, { repo, rev, dir, signal }));
}


/* --- lines ---------------------------------------------------------------- */

/* Returns the text of a file with numbers of lines. */

export async function source(file) {
    const text = new Source(file);

    await text.start();

    return text.node;
}


class Source {
    constructor(file) {
        this.file = file;
        this.reader = new TextReader(file);
        this.rest = "";             /* a line whose end is not loaded */
        this.waiting = [];          /* lines that are loaded, but not shown */
        this.count = 0;
        this.code = h("div", { class: "code wraps", onclick: (event) =>
            this.click(event), onkeydown: (event) => this.key(event) });
        this.below = h("div");
        this.info = h("span", { class: "soft small" });
        this.wraps = h("button", { type: "button", class: "quiet small",
            "aria-pressed": "true", onclick: () => this.wrap() },
        "Wrap lines");
        this.node = h("div", { class: "source" }, h("div",
            { class: "view-bar row" }, h("div", { class: "grow" }, this.info),
            this.wraps), this.code, this.below);
    }

    async start() {
        const first = await this.more();
        const wanted = readHash();

        while (wanted && this.count < wanted[0] && this.goesOn
            && this.reader.at < REACH)
        {
            await this.more();
        }

        if (ORDER.test(first.join("\n"))) {
            this.code.before(notice("info", "This file has invisible "
                + "characters that change the order of its text: it may do "
                + "something other than it seems."));
        }

        this.code.querySelector("a")?.setAttribute("tabindex", "0");
        this.mark(true);
        this.colour(first).catch(() => {});
    }

    get goesOn() {
        return this.waiting.length > 0 || !this.reader.done;
    }

    async more() {
        if (this.waiting.length < LINES && !this.reader.done) {
            const lines = (this.rest + await this.reader.next())
                .split(/\r\n|\n|\r(?!$)/);

            this.rest = this.reader.done ? "" : lines.pop();

            if (this.reader.done && /^\r?$/.test(lines.at(-1))) {
                lines.pop();
            }

            if (this.rest.length > 4 * PIECE) {
                lines.push(this.rest);
                this.rest = "";
            }

            this.waiting = this.waiting.concat(lines);
        }

        const lines = this.waiting.splice(0, LINES);

        this.code.append(...lines.map((line) => row(++this.count, line)));
        this.tell();

        return lines;
    }

    tell() {
        const { file, reader } = this;
        const lines = this.count === 1 ? "1 line"
            : `${formatNumber(this.count)} lines`;

        fill(this.info, this.goesOn ? `The first ${lines}` : lines,
            ` · ${formatBytes(file.size)}`, file.encoding !== "utf-8"
                && ` · shown as ${file.encoding}`);

        fill(this.below, this.goesOn && [
            moreButton("Show more", () => this.more()),
            h("p", { class: "soft small view-more" },
                `${formatBytes(Math.min(reader.at, file.size))} of `
                + `${formatBytes(file.size)} are loaded.`)]);
    }

    wrap() {
        const wraps = this.code.classList.toggle("wraps");

        this.wraps.setAttribute("aria-pressed", String(wraps));
    }

    /* Selects a line; with the shift key, all from the selected line on. */

    click(event) {
        const link = event.target.closest?.("a.number");

        if (!link || event.ctrlKey || event.metaKey || event.altKey) {
            return;
        }

        const line = Number(link.dataset.line);
        const [from] = event.shiftKey && readHash() || [line];
        const [a, b] = [Math.min(from, line), Math.max(from, line)];

        event.preventDefault();
        history.replaceState(history.state, "",
            a === b ? `#L${a}` : `#L${a}-L${b}`);
        this.focus(link);
        this.mark(false);
    }

    /* Of the numbers, one is in the order of the tab key: arrows move on. */

    key(event) {
        const step = { ArrowDown: "nextElementSibling",
            ArrowUp: "previousElementSibling" }[event.key];
        const link = event.target.closest?.("a.number");
        const next = step && link?.parentNode[step]?.querySelector("a");

        if (next) {
            event.preventDefault();
            this.focus(next);
        }
    }

    focus(link) {
        this.code.querySelector("a[tabindex=\"0\"]")
            ?.setAttribute("tabindex", "-1");
        link.setAttribute("tabindex", "0");
        link.focus();
    }

    mark(scroll) {
        const [from, to] = readHash() || [0, 0];

        for (const line of this.code.querySelectorAll(".marked")) {
            line.classList.remove("marked");
        }

        for (let i = from; i > 0 && i <= Math.min(to, this.count); i++) {
            this.code.children[i - 1].classList.add("marked");
        }

        if (scroll && from && from <= this.count) {
            requestAnimationFrame(() => requestAnimationFrame(() =>
                this.code.children[from - 1].scrollIntoView(
                    { block: "center" })));
        }
    }

    async colour(lines) {
        const language = languageOf(this.file.name);

        for await (const { at, fragments } of colours(lines, language)) {
            if (this.file.signal.aborted) {
                return;
            }

            fragments.forEach((one, i) => this.code.children[at + i].lastChild
                .replaceChildren(one, "\n"));
        }
    }
}


function row(number, text) {
    return h("div", { class: "line", id: `L${number}` },
        h("a", { class: "number", href: `#L${number}`, tabindex: -1,
            "data-line": number, "aria-label": `Line ${number}` }),
        h("code", {}, `${text}\n`));
}


/* The lines that the URL names, as [first, last], or null. */

function readHash() {
    const found = /^#L(\d{1,9})(?:-L?(\d{1,9}))?$/.exec(location.hash);

    if (!found) {
        return null;
    }

    const from = Number(found[1]);
    const to = Number(found[2] || from);

    return from > 0 ? [Math.min(from, to), Math.max(from, to)] : null;
}


/* --- colours -------------------------------------------------------------- */

export function languageOf(name) {
    const word = ending(name) || name.toLowerCase();

    return LANGUAGES.get(word) || (ending(name) ? "" : "guess");
}


/*
 * Yields { at, fragments } for blocks of lines: a fragment for each line from
 * the line "at".  Between the blocks the page can do other things.  Yields
 * nothing without the library, for an unknown language, or for a text that is
 * too long.
 */

export async function* colours(lines, language) {
    const size = lines.reduce((sum, line) => sum + line.length + 1, 0);

    if (!language || size > PIECE + 1
        || lines.some((line) => line.length > LONG)
        || (language === "guess" && size > PIECE / 8))
    {
        return;
    }

    const hljs = await load("highlight");
    const name = language !== "guess" ? language
        : hljs?.highlightAuto(lines.join("\n"), GUESSES).language;
    let top;

    for (let at = 0; hljs?.getLanguage(name || "") && at < lines.length;
        at += BLOCK)
    {
        const text = `${lines.slice(at, at + BLOCK).join("\n")}\n`;
        const result = hljs.highlight(name, text, true, top);
        const node = spans(result.value);

        if (node?.textContent !== text) {
            return;
        }

        top = result.top;
        yield { at, fragments: splitLines(node).slice(0, -1) };
        await new Promise((resolve) => setTimeout(resolve));
    }
}


const LETTERS = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "\"",
    "&#x27;": "'" };

/*
 * Makes nodes of what highlight.js returns: text, and <span class="…">.
 * Returns null if there is anything else.
 */

function spans(html) {
    const root = h("div");
    let at = root;
    let end = 0;

    for (const [part, name, text] of html.matchAll(
        /<span class="([\w -]+)">|<\/span>|([^<]+)/g))
    {
        end += part.length;

        if (text) {
            at.append(text.replace(/&(?:amp|lt|gt|quot|#x27);/g,
                (letter) => LETTERS[letter]));

        } else if (name) {
            const span = h("span", { class: name });

            at.append(span);
            at = span;

        } else if (at === root) {
            return null;

        } else {
            at = at.parentNode;
        }
    }

    return end === html.length && at === root ? root : null;
}


/* Splits nodes at the ends of lines: a span of three lines becomes three. */

function splitLines(node) {
    const lines = [document.createDocumentFragment()];
    const open = [];

    function newLine() {
        let at = document.createDocumentFragment();

        lines.push(at);

        for (let i = 0; i < open.length; i++) {
            open[i] = open[i].cloneNode(false);
            at.append(open[i]);
            at = open[i];
        }
    }

    function walk(parent) {
        for (const child of parent.childNodes) {
            if (child.nodeType === Node.TEXT_NODE) {
                child.data.split("\n").forEach((part, i) => {
                    i && newLine();
                    part && (open.at(-1) || lines.at(-1)).append(part);
                });

            } else {
                const copy = child.cloneNode(false);

                (open.at(-1) || lines.at(-1)).append(copy);
                open.push(copy);
                walk(child);
                open.pop();
            }
        }
    }

    walk(node);

    return lines;
}
