/*
 * Lists of repos: all of them (home.js), or those of an owner (owner.js).
 *
 * The API lists one kind at a time.  A Merge reads several lists page by page,
 * and takes the first row of all of them.  browser() is the search field, the
 * order, the rows, and the button for more rows.
 */

import { list, pageUrl, root, token, whoami } from "./api.js";
import { announce, command, fill, formatBytes, formatNumber, h, icon, later,
    notice, time } from "./dom.js";

export const KINDS = {
    models: { title: "Models", one: "model", icon: "model" },
    datasets: { title: "Datasets", one: "dataset", icon: "dataset" },
    spaces: { title: "Spaces", one: "space", icon: "space" },
    buckets: { title: "Buckets", one: "bucket", icon: "bucket" }
};

/* The orders of a list: the argument of the API, and whether a is before b. */

const ORDERS = {
    changed: { title: "Last change", sort: "lastModified",
        before: (a, b) => a.lastModified > b.lastModified },
    created: { title: "Created", sort: "createdAt",
        before: (a, b) => a.createdAt > b.createdAt },
    name: { title: "Name", sort: "id",
        before: (a, b) => a.id.toLowerCase() < b.id.toLowerCase() },
    size: { title: "Size", sort: "usedStorage",
        before: (a, b) => a.size > b.size }
};

const PAGE = 30;

/* A page of a search may be empty and have a next page: read so many. */

const EMPTY_PAGES = 4;


/*
 * Replaces characters that change the direction of writing, with which a name
 * could look like another name.
 */

export function plain(text) {
    return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
        "\ufffd");
}


/* --- rows of several lists ------------------------------------------------ */

/*
 * Takes rows from several lists; before(a, b) is their order.  A source is
 * { rows, next }: rows that are not taken yet, and the function that reads the
 * next page, or null.
 */

class Merge {
    constructor(firsts, before) {
        this.before = before;
        this.sources = firsts.map((next) => ({ rows: [], next }));
    }

    get more() {
        return this.sources.some((one) => one.rows.length || one.next);
    }

    async take(count) {
        const rows = [];

        while (rows.length < count) {
            await Promise.all(this.sources.map(refill));

            if (this.sources.some((one) => !one.rows.length && one.next)) {
                break;
            }

            const full = this.sources.filter((one) => one.rows.length);

            if (full.length === 0) {
                break;
            }

            const best = full.reduce((a, b) =>
                this.before(b.rows[0], a.rows[0]) ? b : a);

            rows.push(best.rows.shift());
        }

        return rows;
    }
}


async function refill(source) {
    for (let i = 0; i < EMPTY_PAGES && !source.rows.length && source.next;
         i++)
    {
        const page = await source.next();

        source.rows = page.rows;
        source.next = page.next;
    }
}


/* Returns a function that reads the first page of repos of a kind. */

function first(kind, { owner, search, sort, filter }, signal) {
    const bucket = kind === "buckets";
    const path = bucket && owner ? `/api/buckets/${encodeURIComponent(owner)}`
        : `/api/${kind}`;
    const query = { search, sort, limit: PAGE };

    if (!bucket) {
        query.author = owner;
        query.filter = filter;
    }

    const wrap = ({ rows, next }) => ({
        rows: rows.map((row) => describe(kind, row)),
        next: next && (async () => wrap(await next()))
    });

    return async () => wrap(await list(path, query, signal));
}


function describe(kind, row) {
    return { kind, id: row.id, isPrivate: Boolean(row.private),
        lastModified: row.lastModified || row.updatedAt || "",
        createdAt: row.createdAt || "", tags: row.tags || [],
        task: row.pipeline_tag, library: row.library_name || row.sdk,
        size: row.size ?? row.usedStorage, files: row.totalFiles };
}


/* --- the list as a part of a page ----------------------------------------- */

/*
 * Returns the search field, the order and the rows.  "kinds" are listed, of
 * one owner or of all; onsearch(words) is called when the words change.  The
 * first rows are read before it returns, so that the router shows a failure.
 */

export async function browser({ args, signal, kinds, owner, go, onsearch }) {
    const state = { kinds, owner, signal, onsearch, rows: [],
        search: args.get("search") || "", filter: args.getAll("filter"),
        sort: Object.hasOwn(ORDERS, args.get("sort")) ? args.get("sort")
            : "changed",
        node: h("div") };

    const body = h("div", { class: "browser" }, bar(state),
        filters(state, go), state.node);

    await restart(state);

    return body;
}


/* The field and the order. */

function bar(state) {
    let timer;
    const input = h("input", { type: "search", value: state.search,
        placeholder: state.owner ? `Search repos of ${state.owner}`
            : "Search repos", "aria-label": "Search repos",
        autocomplete: "off", spellcheck: "false", oninput: () => {
            clearTimeout(timer);
            timer = setTimeout(() => {
                state.search = input.value.trim();
                state.onsearch?.(state.search);
                keep("search", state.search);
                again(state);
            }, 250);
        } });
    const select = h("select", { onchange: () => {
        state.sort = select.value;
        keep("sort", state.sort === "changed" ? "" : state.sort);
        again(state);
    } }, Object.entries(ORDERS).map(([value, { title }]) => h("option",
        { value, selected: value === state.sort }, title)));

    return h("form", { class: "browser-bar", role: "search",
        onsubmit: (event) => event.preventDefault() },
        h("div", { class: "find grow" }, icon("search"), input),
        h("label", { class: "order" }, h("span", { class: "soft" }, "Order"),
            select));
}


/* Writes a value into the URL, without a new page in the history. */

function keep(name, value) {
    const url = new URL(location.href);

    if (value) {
        url.searchParams.set(name, value);

    } else {
        url.searchParams.delete(name);
    }

    history.replaceState(history.state, "", url);
}


/* The filters in the URL, each with a link that removes it. */

function filters(state, go) {
    const without = (value) => {
        const url = new URL(location.href);

        url.searchParams.delete("filter");
        state.filter.filter((one) => one !== value)
            .forEach((one) => url.searchParams.append("filter", one));

        return url.href;
    };

    return state.filter.length > 0 && h("div", { class: "row filters" },
        h("span", { class: "soft small" }, "Only repos with"),
        state.filter.map((value) => h("span", { class: "chip" }, plain(value),
            h("button", { type: "button", class: "quiet tiny",
                "aria-label": `Remove ${value}`,
                onclick: () => go(without(value), true) }, icon("close")))));
}


/* Reads the list anew; what was under way is abandoned. */

async function restart(state) {
    const { signal, owner, search, filter, kinds } = state;
    const control = new AbortController();

    state.control?.abort();
    state.control = control;
    signal.addEventListener("abort", () => control.abort());

    const { sort, before } = ORDERS[state.sort];
    const query = { owner, search, sort, filter };
    const firsts = [];

    for (const kind of kinds) {
        if (kind !== "buckets" || filter.length === 0) {
            firsts.push(first(kind, query, control.signal));
        }
    }

    state.merge = new Merge(firsts, before);
    state.rows = [];
    await extend(state, control);
}


/* Starts again after a change by the caller: a failure is shown in place. */

async function again(state) {
    state.node.setAttribute("aria-busy", "true");

    try {
        await restart(state);
        announce(`${state.rows.length} ${state.rows.length === 1 ? "repo"
            : "repos"}${state.merge.more ? " or more" : ""}`);

    } catch (error) {
        if (error.name !== "AbortError") {
            fill(state.node, notice("bad", error.message));
            state.node.removeAttribute("aria-busy");
        }
    }
}


async function extend(state, control) {
    const rows = await state.merge.take(PAGE);

    if (control.signal.aborted) {
        return;
    }

    state.rows.push(...rows);
    state.node.removeAttribute("aria-busy");
    draw(state, control);
}


function draw(state, control) {
    const { rows, merge, sort } = state;
    fill(state.node,
        rows.length > 0 && h("ul", { class: "repos panel" },
            rows.map((row) => item(row, state.kinds.length > 1,
                sort === "created"))),
        rows.length === 0 && !merge.more && nothing(state),
        rows.length === 0 && merge.more
            && h("p", { class: "empty soft" }, "Nothing was found so far."),
        merge.more && moreButton(state, control));
}


function moreButton(state, control) {
    const problem = h("div");
    const button = h("button", { type: "button", class: "plain",
        onclick: async () => {
            const count = state.rows.length;

            button.disabled = true;
            fill(problem);

            try {
                await extend(state, control);
                state.node.querySelectorAll(".repos a")[count]?.focus();

            } catch (error) {
                button.disabled = false;

                if (error.name !== "AbortError") {
                    fill(problem, notice("bad", error.message));
                }
            }
        } }, state.rows.length ? "Show more" : "Search further");

    return h("div", { class: "more" }, problem, button);
}


/* --- a row ---------------------------------------------------------------- */

function item(row, withKind, created) {
    const [owner, name] = row.id.includes("/") ? row.id.split("/")
        : ["", row.id];
    const date = created ? row.createdAt : row.lastModified;

    return h("li", { class: "repo" },
        icon(KINDS[row.kind].icon, KINDS[row.kind].one),
        h("div", { class: "repo-name" },
            h("a", { href: pageUrl(row) },
                owner && h("span", { class: "soft" }, `${owner}/`),
                h("strong", {}, name)),
            row.isPrivate && privateMark()),
        h("div", { class: "repo-chips" },
            withKind && row.kind !== "models"
                && h("span", { class: "chip" }, KINDS[row.kind].one),
            chips(row)),
        h("div", { class: "repo-facts soft small" },
            row.files !== undefined && h("span", {}, row.files === 1 ? "1 file"
                : `${formatNumber(row.files)} files`),
            row.size !== undefined && h("span", {}, formatBytes(row.size)),
            date && time(date)));
}


export function privateMark() {
    return h("span", { class: "chip" }, icon("lock"), "private");
}


function chips({ task, library, tags }) {
    const seen = new Set([task, library]);
    const rest = tags.filter((tag) => typeof tag === "string"
        && !seen.has(tag) && tag.length <= 40
        && !/^(region|dataset|base_model|arxiv):/.test(tag)).slice(0, 4);

    return [task, library, ...rest].filter(Boolean).map((tag) =>
        h("span", { class: "chip" }, plain(tag.replace(/:/, ": "))));
}


/* --- empty lists ---------------------------------------------------------- */

function nothing(state) {
    const { search, filter, owner, kinds } = state;
    const what = kinds.length === 1 ? KINDS[kinds[0]].title.toLowerCase()
        : "repos";

    if (search || filter.length) {
        return h("div", { class: "empty" },
            h("h2", {}, "Nothing found"),
            h("p", { class: "soft" }, search
                ? `No ${what} here have “${plain(search)}” in their name.`
                : `No ${what} have these tags.`));
    }

    return h("div", { class: "empty" },
        h("h2", {}, owner ? `${owner} has no ${what}` : `No ${what} yet`),
        kinds[0] === "spaces" && kinds.length === 1 ? h("p",
            { class: "soft" }, "A space stores the files of a demo. This "
            + "server does not run it.") : null,
        later(whoami().catch(() => null).then((who) =>
            start(who, owner, kinds)), 2));
}


/* The lines to begin with. */

export function start(who, owner, kinds, id) {
    const name = id || `${owner || who?.name || "OWNER"}/NAME`;
    const kind = kinds.length === 1 ? kinds[0] : "models";
    const upload = kind === "buckets"
        ? `hf buckets create ${name}\nhf buckets sync . hf://buckets/${name}`
        : `hf upload ${name} .${kind === "models" ? ""
            : ` --repo-type ${KINDS[kind].one}`}`;
    const login = !who || token() ? "hf auth login\n" : "";

    return h("div", { class: "start" },
        h("p", { class: "soft" }, "Upload the files of a folder with these "
            + "commands:"),
        command(`export HF_ENDPOINT=${location.origin}${root}\n${login}${
            upload}`));
}


/* A button for those who may have repos. */

export function newButton(go, kind) {
    const node = h("div");

    whoami().then((who) => who && fill(node, h("button", { type: "button",
        class: "main", onclick: async () => {
            try {
                const { newRepo } = await import("./new_repo.js");

                newRepo({ go, kind });

            } catch {
                fill(node, notice("bad", "The form could not be loaded."));
            }
        } }, icon("plus"), "New repo"))).catch(() => {});

    return node;
}
