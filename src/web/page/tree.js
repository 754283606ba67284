/*
 * The files of a repo or bucket in one folder: page by page, folders first,
 * with the commit that last changed each, and the README of the folder.
 */

import { apiPath, bytes, encodePath, encodeRev, fileUrl, filePath, list,
    pageUrl, request, whoami } from "../api.js";
import { announce, fill, formatBytes, formatNumber, h, icon, notice, time }
    from "../dom.js";
import { plain, start } from "../list.js";
import { markdown, readmePanel, withoutFrontMatter } from "../markdown.js";
import { crumbs, mayChange, ownerOf, readInfo, readRefs, repoHead,
    revSelect, shortRev } from "../repo_head.js";
import { use } from "../use.js";
import { works } from "../worker.js";

const PAGE = 200;
const README_MAX = 1 << 20;

/* Downloads through memory, in a browser without a service worker. */

const MEMORY_MAX = 256 << 20;

const compare = new Intl.Collator("en", { numeric: true }).compare;


export async function show(route, signal, { go }) {
    const { repo, rev } = route;
    const path = route.path.replace(/\/+$/, "");
    const bucket = repo.kind === "buckets";
    const state = { repo, rev, path, signal, bucket, rows: [], next: null,
        key: "name", down: false, node: h("div"), readme: h("div") };
    const entry = path ? await lookUp(state, path) : undefined;

    if (entry?.type === "file") {
        go(pageUrl(repo, "blob", rev, path), true);
        return { title: repo.id, body: h("div") };
    }

    const [info, page, refs, last, writes] = await Promise.all([
        readInfo(repo, rev, signal),
        list(treePath(state), bucket ? { recursive: false, limit: PAGE }
            : { expand: true, limit: PAGE }, signal),
        bucket ? null : readRefs(repo, signal),
        bucket ? null : lastCommit(state, entry), mayChange(repo)]);

    take(state, page);
    draw(state);
    readme(state);

    const isBranch = !bucket && refs.branches.some((one) => one.name === rev);

    return { title: path ? `${path} · ${repo.id}` : `Files · ${repo.id}`,
        body: h("div", {}, await repoHead(repo, "tree", info, rev),
            bucket && !path && bucketFacts(info),
            h("div", { class: "row tree-bar" },
                refs && revSelect(refs, rev, (name) =>
                    go(pageUrl(repo, "tree", name, path))),
                h("div", { class: "grow" }, crumbs(repo, rev, path)),
                writes && (bucket || isBranch) && h("a", { class: "button",
                    href: pageUrl(repo, "upload", rev, path) },
                icon("upload"), "Upload")),
            h("div", { class: last || state.rows.length || state.next
                ? "panel files-panel" : undefined }, last, state.node),
            await nothing(state, writes), state.readme,
            state.rows.length > 0 && use(repo, { rev, path,
                isFolder: Boolean(path), isPrivate: info.private })) };
}


function treePath({ repo, rev, path, bucket }) {
    return apiPath(repo, "/tree" + (bucket ? "" : `/${encodeRev(rev)}`)
        + (path ? `/${encodePath(path)}` : ""));
}


/* Returns the description of one path, or undefined. */

async function lookUp({ repo, rev, signal, bucket }, path) {
    const rows = await (await request("POST", apiPath(repo, "/paths-info"
        + (bucket ? "" : `/${encodeRev(rev)}`)),
    { body: bucket ? { paths: [path] } : { paths: [path], expand: true },
        signal })).json();

    return rows.find((row) => row.path === path);
}


/* The line above the files: the commit that last changed the folder. */

async function lastCommit({ repo, rev, path, signal }, entry) {
    let commit = entry?.lastCommit;
    let total;

    if (!path) {
        const page = await list(apiPath(repo, `/commits/${encodeRev(rev)}`),
            { limit: 1 }, signal);

        [commit] = page.rows;
        total = page.total;
    }

    if (!commit) {
        return undefined;
    }

    const user = commit.authors?.[0]?.user;

    return h("div", { class: "last" },
        user && h("strong", {}, plain(user)),
        h("a", { class: "grow cut", href: pageUrl(repo, "commit", commit.id) },
            plain(commit.title)),
        h("code", {}, shortRev(commit.id)),
        h("span", { class: "soft" }, time(commit.date)),
        total > 0 && h("a", { href: pageUrl(repo, "commits", rev) },
            icon("history"), " ", total === 1 ? "1 commit"
                : `${formatNumber(total)} commits`),
        path && h("a", { href: pageUrl(repo, "commits", rev, path) },
            icon("history"), " History"));
}


function bucketFacts(info) {
    return h("p", { class: "soft" }, info.totalFiles === 1 ? "1 file, "
        : `${formatNumber(info.totalFiles)} files, `, formatBytes(info.size),
    info.updatedAt && [", changed ", time(info.updatedAt)]);
}


async function nothing({ repo, rows, path, next }, writes) {
    if (rows.length || next) {
        return undefined;
    }

    return h("div", { class: "empty" }, h("h2", {}, path
        ? "Nothing is in this folder" : "There are no files yet"),
    !path && writes && start(await whoami().catch(() => null), ownerOf(repo),
        [repo.kind], repo.id));
}


/* --- the table ------------------------------------------------------------ */

function take(state, page) {
    state.rows.push(...page.rows);
    state.next = page.next;
}


const dateOf = (row) => row.lastCommit?.date || row.mtime || row.uploadedAt
    || "";


/* Folders come first, in each order. */

function sorted({ rows, key, down }) {
    const by = {
        name: (a, b) => compare(a.path, b.path),
        size: (a, b) => a.size - b.size || compare(a.path, b.path),
        date: (a, b) => (dateOf(a) < dateOf(b) ? -1
            : dateOf(a) > dateOf(b) ? 1 : compare(a.path, b.path))
    }[key];

    return [...rows].sort((a, b) =>
        (b.type === "directory") - (a.type === "directory")
        || (down ? by(b, a) : by(a, b)));
}


function draw(state) {
    const { rows, bucket, next } = state;

    if (rows.length === 0 && !next) {
        fill(state.node);
        return;
    }

    fill(state.node, h("table", { class: "files" },
        h("caption", { class: "hidden" }, "Files and folders"),
        h("thead", {}, h("tr", {}, column(state, "name", "Name"),
            column(state, "size", "Size", "number"),
            !bucket && h("th", { scope: "col", class: "wide" }, "Commit"),
            column(state, "date", "Changed", "when"),
            h("th", { scope: "col", class: "act" },
                h("span", { class: "hidden" }, "Download")))),
        h("tbody", {}, sorted(state).map((row) => line(state, row)))),
    next && more(state));
}


function column(state, key, text, kind) {
    const on = state.key === key;

    return h("th", { scope: "col", class: kind, "aria-sort": on
        ? (state.down ? "descending" : "ascending") : undefined },
    h("button", { type: "button", class: "quiet sort", "data-key": key,
        onclick: () => {
            state.down = on ? !state.down : key !== "name";
            state.key = key;
            draw(state);
            state.node.querySelector(`[data-key=${key}]`).focus();
        } }, text, on && icon(state.down ? "down" : "up")));
}


function line({ repo, rev, bucket }, row) {
    const folder = row.type === "directory";
    const name = plain(row.path.split("/").pop());
    const date = dateOf(row);
    const commit = row.lastCommit;

    return h("tr", {},
        h("td", { class: "name" }, icon(folder ? "folder" : "file",
            folder ? "Folder" : undefined), " ",
        h("a", { href: pageUrl(repo, folder ? "tree" : "blob", rev,
            row.path) }, name)),
        h("td", { class: "number soft" }, !folder && formatBytes(row.size)),
        !bucket && h("td", { class: "wide soft cut" }, commit && h("a",
            { href: pageUrl(repo, "commit", commit.id) },
            plain(commit.title))),
        h("td", { class: "when soft" }, date && time(date)),
        h("td", { class: "act" }, !folder && download(repo, rev, row, name)));
}


/* A link that downloads a file; without a service worker, by way of memory. */

function download(repo, rev, row, name) {
    const link = h("a", { class: "button quiet", download: name,
        href: fileUrl(repo, rev, row.path, true), title: `Download ${name}`,
        "aria-label": `Download ${name}`, onclick: async (event) => {
            if (works() || link.href.startsWith("blob:")) {
                return;
            }

            event.preventDefault();
            await throughMemory(link, repo, rev, row);
        } }, icon("download"));

    return link;
}


async function throughMemory(link, repo, rev, row) {
    const tell = (text) => link.parentElement.append(
        notice("bad", text));

    if (row.size > MEMORY_MAX) {
        tell("This browser cannot send the token for a download of this size. "
            + "Use the commands below the list.");
        return;
    }

    try {
        const response = await request("GET", filePath(repo, rev, row.path));
        const url = URL.createObjectURL(await response.blob());

        link.href = url;
        link.click();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
        link.href = fileUrl(repo, rev, row.path, true);

    } catch (error) {
        tell(error.message);
    }
}


function more(state) {
    const problem = h("div");
    const button = h("button", { type: "button", class: "plain",
        onclick: async () => {
            const before = state.rows.length;

            button.disabled = true;
            fill(problem);

            try {
                take(state, await state.next());
                draw(state);
                announce(`${state.rows.length - before} more rows`);

            } catch (error) {
                button.disabled = false;
                fill(problem, error.name !== "AbortError"
                    && notice("bad", error.message));
            }
        } }, "Show more");

    return h("div", { class: "more" }, problem, button,
        h("span", { class: "soft small" }, `${formatNumber(state.rows.length)} `
            + "rows are shown; the order applies to them."));
}


/* --- the README of the folder --------------------------------------------- */

async function readme(state) {
    const { repo, rev, path, signal } = state;
    const wanted = path ? `${path}/README.md` : "README.md";

    try {
        const file = state.rows.find((row) => row.type === "file"
                && row.path.toLowerCase() === wanted.toLowerCase())
            || (state.next && await lookUp(state, wanted));

        if (!file || file.type !== "file" || file.size === 0) {
            return;
        }

        const load = async () => {
            const text = new TextDecoder().decode(await bytes(repo, rev,
                file.path, 0, Math.min(file.size, README_MAX) - 1, signal));

            return markdown(withoutFrontMatter(text), { repo, rev, dir: path,
                signal });
        };

        fill(state.readme, readmePanel(file.path.split("/").pop(), load()));

    } catch (error) {
        if (error.name !== "AbortError") {
            fill(state.readme, notice("bad", error.message));
        }
    }
}
